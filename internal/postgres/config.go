package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toban.dev/internal/postgres/sql"
)

// Settings is all that goes into the configuration files of a server.
type Settings struct {
	// Name is the instance's; it becomes cluster_name and application_name.
	Name string
	// Parameters and HBA are the user's and the operator's; what belongs to the
	// agent (see Owned) is left out of them.
	Parameters map[string]string
	HBA        []string
	// Closed lets in nobody over the network but our own roles. Who comes in by the socket all the same, a person with
	// psql, is ended a moment later; until then his transactions only read.
	Closed bool
	// Sparing has the server take no writes, and go on with little room; nil where there is enough.
	Sparing *Sparing
	// Upstream is the server to follow, nil for a primary and for a standby that
	// follows nobody for now.
	Upstream *Upstream
	// Standby says that the server is a standby; with an Upstream it is one anyway.
	// A change of the upstream, or to none, needs a reload and no restart.
	Standby bool
	// Link has a standby keep the slots by which another side follows: they are there after its promotion. Before
	// PostgreSQL 17 they can't.
	Link bool
	// Synchronous is the rule by which commits wait for standbys
	// (synchronous_standby_names), empty for none. A standby has it too, so that
	// the rule holds from the moment it is promoted.
	Synchronous string
	// Least are lower bounds that a standby has to keep, and one that has been
	// promoted until its restart. See Control.
	Least map[string]int
}

// Sparing is how a server goes on whose volume gets full.
type Sparing struct {
	// MaxWAL is how much WAL makes a checkpoint due, TempFiles how much disk a session may have for sorting, in bytes,
	// negative for as much as otherwise.
	MaxWAL, TempFiles int64
}

// parameters has transactions begin as such that only read, unless they or their session say otherwise.
func (s *Sparing) parameters() map[string]string {
	size := strconv.FormatInt(s.MaxWAL>>20, 10) + "MB"
	out := map[string]string{
		"default_transaction_read_only": "on",
		"max_wal_size":                  size,
		"min_wal_size":                  size,
		"checkpoint_completion_target":  "0.1", // what is written during a checkpoint comes on top
	}
	if s.TempFiles >= 0 {
		out["temp_file_limit"] = strconv.FormatInt(s.TempFiles>>10, 10) + "kB"
	}
	return out
}

// standby says whether the settings are those of a standby.
func (s Settings) standby() bool { return s.Standby || s.Upstream != nil }

// Upstream is a server to copy and follow.
type Upstream struct {
	// Host is the name; Address, if known, the IP address to use instead of looking it up.
	Host, Address string
	Port          int
	// Name is our own application_name there, Slot the replication slot to use.
	Name, Slot string
	// ByName says that the server may show a certificate of another authority than the SampleDB's own: then its name
	// counts too.
	ByName bool
	// Term is the term in which the upstream leads. See Revoke.
	Term uint64
	// Only says that nobody else acknowledges what the upstream writes: it does not wait for a dead standby for long.
	Only bool
}

// TLS files in Run. PostgreSQL refuses a key that others may read.
const (
	FileCertificate = "server.crt"
	FileKey         = "server.key"
	FileAuthority   = "ca.crt"
	// FileClients has the certificate and the key that clients are shown, in one file: it is replaced at once.
	// FileServers are the authorities of all certificates that may be shown so.
	FileClients = "clients.pem"
	FileServers = "servers.crt"
)

// Owned says whether a parameter is the agent's or would make the server unsafe.
// docs/parameters.md and the rule of the CRD list the same ones.
func Owned(parameter string) bool {
	name := strings.ToLower(parameter)
	for _, prefix := range []string{"ssl", "recovery_target", "archive_", "include"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return owned[name]
}

var owned = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(
		`allow_system_table_mods cluster_name config_file data_directory data_sync_retry db_user_namespace
		event_source external_pid_file fsync full_page_writes hba_file hot_standby ident_file
		ignore_checksum_failure ignore_invalid_pages ignore_system_indexes lc_messages listen_addresses
		log_destination logging_collector port post_auth_delay pre_auth_delay primary_conninfo
		primary_slot_name promote_trigger_file recovery_end_command recovery_init_sync_method
		recovery_min_apply_delay restart_after_crash restore_command standby_mode synchronous_standby_names
		unix_socket_directories unix_socket_group unix_socket_permissions wal_level wal_log_hints
		zero_damaged_pages`) {
		set[name] = true
	}
	return set
}()

// parameters are those of postgresql.conf: the given ones under the agent's own.
func (s *Server) parameters(settings Settings) map[string]string {
	all := map[string]string{}
	for name, value := range settings.Parameters {
		if !Owned(name) {
			all[strings.ToLower(name)] = value
		}
	}
	maps.Copy(all, s.own(settings))
	raise(all, settings.Least)
	if settings.standby() {
		maps.Copy(all, s.following(settings))
	}
	return all
}

// following are a standby's parameters that depend on whom it follows. While it
// follows nobody, no reader may hold up the replay of what it has: of that WAL,
// what came through the receiver falls under the one delay, and what is read
// again from pg_wal under the other (GetStandbyLimitTime in PostgreSQL's standby.c).
// What a standby needs to have the primary's logical slots come along is in the
// documentation of PostgreSQL 17, 47.2.3: a slot of its own, its feedback, and a database to ask in.
func (s *Server) following(settings Settings) map[string]string {
	upstream := settings.Upstream
	if upstream == nil {
		return map[string]string{"primary_conninfo": "", "primary_slot_name": "",
			"max_standby_streaming_delay": "0", "max_standby_archive_delay": "0"}
	}
	all := map[string]string{"primary_conninfo": s.keys().followingInfo(*upstream), "primary_slot_name": upstream.Slot}
	if settings.Link && s.Programs.Major >= 17 && upstream.Slot != "" {
		maps.Copy(all, map[string]string{
			"primary_conninfo": all["primary_conninfo"] + " dbname=postgres", "sync_replication_slots": "on",
			"hot_standby_feedback": "on",
		})
	}
	return all
}

// own are the parameters that follow from how the agent runs a server.
func (s *Server) own(settings Settings) map[string]string {
	all := map[string]string{
		"cluster_name":              settings.Name,
		"listen_addresses":          s.Listen,
		"port":                      strconv.Itoa(s.Port),
		"unix_socket_directories":   s.Run,
		"lc_messages":               "C", // messages go into conditions and are matched by nobody's translation
		"log_destination":           "stderr",
		"logging_collector":         "off", // the container's log is the log
		"hot_standby":               "on",
		"wal_level":                 "logical", // so that logical replication needs no restart
		"wal_log_hints":             "on",      // for pg_rewind
		"fsync":                     "on",
		"full_page_writes":          "on",
		"restart_after_crash":       "on",
		"recovery_target_timeline":  "latest",
		"synchronous_standby_names": settings.Synchronous,
		"ssl":                       "on",
		"ssl_cert_file":             filepath.Join(s.Run, FileClients),
		"ssl_key_file":              filepath.Join(s.Run, FileClients),
		"ssl_ca_file":               filepath.Join(s.Run, FileAuthority),
		"ssl_ciphers":               "ECDHE+AESGCM:ECDHE+CHACHA20", // of TLS 1.2; those of TLS 1.3 are all as good
	}
	if settings.Sparing != nil {
		maps.Copy(all, settings.Sparing.parameters())
	}
	if settings.Closed {
		all["default_transaction_read_only"] = "on"
	}
	if s.Programs.Major >= 17 {
		all["allow_alter_system"] = "off" // the spec says what the parameters are
	}
	return all
}

// raise lifts parameters to their lower bounds; an unset one is left to
// PostgreSQL's default unless the bound is above what that could be.
func raise(all map[string]string, least map[string]int) {
	for name, bound := range least {
		value, err := strconv.Atoi(all[name])
		if err != nil || value < bound {
			all[name] = strconv.Itoa(bound)
		}
	}
}

// postgresqlConf is the text of postgresql.conf.
func (s *Server) postgresqlConf(settings Settings) string {
	return "# Written by the agent of Toban from the SampleDB. Edits are lost: change spec.postgresql instead.\n" +
		ConfigText(s.parameters(settings))
}

// ConfigText is a postgresql.conf. Values are quoted as PostgreSQL reads them (documentation of 17, 19.1.2); a value
// can't leave its line.
func ConfigText(all map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s = '%s'\n", name, quote(all[name]))
	}
	return text.String()
}

func quote(value string) string {
	return strings.NewReplacer(`'`, `''`, `\`, `\\`, "\n", " ", "\r", " ").Replace(value)
}

// hbaConf is the text of pg_hba.conf. Its own lines come first: nothing that a
// user adds can lock the standbys out.
func hbaConf(settings Settings) string {
	follow := "hostssl replication " + RoleReplication + " all cert map=toban"
	if settings.Upstream != nil {
		follow = "hostssl replication " + RoleReplication + " all reject" // who follows it would be sent another's WAL
	}
	lines := []string{
		"# Written by the agent of Toban from the SampleDB. Edits are lost: change spec.postgresql.hba instead.",
		"local all all peer map=local",
		follow,
		"hostssl postgres " + RoleReplication + " all cert map=toban",
		"hostssl replication " + RoleBackup + " all cert map=toban",
		"hostssl postgres " + RoleBackup + " all cert map=toban",
		"hostssl postgres " + RolePooler + " all cert map=toban",
		"hostssl all postgres all cert map=toban",
		"host replication " + RoleReplication + " all reject",
		"host all " + RoleReplication + " all reject",
		"host replication " + RoleBackup + " all reject",
		"host all " + RoleBackup + " all reject",
		"host all " + RoleMetrics + " all reject",
		"host all " + RolePooler + " all reject",
		"host all postgres all reject",
		"host replication " + RoleLink + " all reject",
		"hostssl all " + RoleLink + " all scram-sha-256",
		"host all " + RoleLink + " all reject",
	}
	if settings.Closed {
		lines = append(lines, "host all all all reject", "host replication all all reject")
	}
	lines = append(lines, settings.HBA...)
	// No password goes over the network without TLS, unless a user's own line lets it.
	lines = append(lines, "hostssl all all all scram-sha-256")
	return strings.Join(lines, "\n") + "\n"
}

// identConf maps certificates and the operating system's user to roles.
func identConf(osUser string) string {
	return strings.Join([]string{
		"local " + osUser + " postgres",
		"local " + osUser + " " + RoleMetrics,
		"toban toban:instance " + RoleReplication,
		"toban toban:backup " + RoleBackup,
		"toban toban:pooler " + RolePooler,
		"toban toban:init postgres",
	}, "\n") + "\n"
}

// files are the configuration files of the data directory.
func (s *Server) files(settings Settings, osUser string) map[string]string {
	return map[string]string{
		"postgresql.conf": s.postgresqlConf(settings),
		// What ALTER SYSTEM wrote would take precedence over postgresql.conf.
		"postgresql.auto.conf": "# Written by the agent of Toban: ALTER SYSTEM has no lasting effect.\n",
		"pg_hba.conf":          hbaConf(settings),
		"pg_ident.conf":        identConf(osUser),
	}
}

// Configure writes the configuration files, and with an Upstream the key link of
// its term (see Revoke). It does not make a running server read them. The role
// is set by standby.signal: with it a server starts as a standby.
func (s *Server) Configure(settings Settings) error {
	name, err := osUserName()
	if err != nil {
		return err
	}
	if settings.Upstream != nil {
		if err := s.keys().allow(settings.Upstream.Term); err != nil {
			return err
		}
	}
	for file, text := range s.files(settings, name) {
		if err := replaceIfChanged(filepath.Join(s.Data.Path(), file), []byte(text)); err != nil {
			return err
		}
	}
	return nil
}

// replaceIfChanged replaces a file at once, and does not wait until it is on
// disk: the configuration is written anew before every start, and the change of a
// running server must not wait for a busy disk in the middle of an election.
func replaceIfChanged(path string, content []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == string(content) {
		return nil
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeIfChanged(path string, content []byte) error {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == string(content) {
		return nil
	}
	return WriteFile(path, content, 0o600)
}

// Check asks PostgreSQL whether it accepts the parameters, without touching a running server: it reads a candidate file
// and prints one value (postgres -C). A *RejectedError has PostgreSQL's own words. Any other error says that PostgreSQL
// has not answered: the program was ended by a signal, or ctx is over.
func (s *Server) Check(ctx context.Context, settings Settings) error {
	candidate, err := os.CreateTemp(s.Run, "candidate-*.conf")
	if err != nil {
		return fmt.Errorf("make a candidate configuration: %w", err)
	}
	defer func() { _ = os.Remove(candidate.Name()) }()
	_, err = candidate.WriteString(s.postgresqlConf(settings))
	if err := errors.Join(err, candidate.Close()); err != nil {
		return fmt.Errorf("write a candidate configuration: %w", err)
	}
	cmd := s.Programs.command(ctx, "postgres", "-C", "max_connections", "-D", s.Data.Path(),
		"-c", "config_file="+candidate.Name())
	var messages words
	cmd.Stderr = &messages
	err = Children.RunReading(ctx, s.Data.Path(), cmd)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && errors.As(err, &exit) && exit.Exited():
		return &RejectedError{Words: cmp.Or(rejection(messages.String()), exit.Error())}
	}
	return fmt.Errorf("check a configuration: %w", errors.Join(ctx.Err(), err))
}

// RejectedError says in PostgreSQL's words why it does not take a configuration.
type RejectedError struct{ Words string }

func (e *RejectedError) Error() string { return "PostgreSQL refuses the configuration: " + e.Words }

// RejectedByLogin says of a configuration that the server lets no session begin with it.
func RejectedByLogin(refusal error) *RejectedError {
	return &RejectedError{Words: "no session begins with it: " + sql.Explain(refusal, sql.ShownMessage)}
}

// rejection picks the lines that say what is wrong out of a server's messages.
func rejection(messages string) string {
	var words []string
	for line := range strings.Lines(messages) {
		for _, level := range []string{"LOG:", "FATAL:", "ERROR:", "HINT:", "DETAIL:"} {
			if _, text, ok := strings.Cut(line, level); ok && !strings.Contains(text, "contains errors") {
				words = append(words, strings.TrimSpace(text))
			}
		}
	}
	if len(words) == 0 {
		return lastLines(messages, 2)
	}
	return strings.Join(words[:min(len(words), 5)], "; ")
}
