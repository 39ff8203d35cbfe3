package server_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/postgres"
)

// benchmark are the numbers of the CIS PostgreSQL 17 Benchmark 1.1.0, by section how many there are.
func benchmark() (all []string) {
	add := func(section string, from, to int) {
		for i := from; i <= to; i++ {
			all = append(all, fmt.Sprintf("%s.%d", section, i))
		}
	}
	add("1", 1, 7)
	add("2", 1, 4)
	add("3.1", 2, 26)
	add("3", 2, 2)
	add("4", 1, 10)
	add("5", 1, 12)
	add("6", 1, 11)
	add("7", 1, 5)
	add("8", 1, 3)
	return all
}

// answer asks one query whose answer is to be as wanted.
type answer struct{ query, want string }

// shown is a parameter that is to have a value.
func shown(parameter, want string) answer {
	return answer{"current_setting('" + parameter + "')", want}
}

const (
	rules = "select count(*) from pg_hba_file_rules where error is null and "
	roles = "select coalesce(string_agg(rolname, ',' order by rolname), '') from pg_roles where rolname !~ '^pg_' and "
)

// asked are the recommendations that queries check.
var asked = map[string][]answer{
	"1.4":    {shown("data_checksums", "on"), shown("data_directory_mode", "0700")},
	"3.1.2":  {shown("log_destination", "stderr")},
	"3.1.6":  {shown("log_file_mode", "0600")},
	"3.1.11": {shown("syslog_sequence_numbers", "on")},
	"3.1.12": {shown("syslog_split_messages", "on")},
	"3.1.14": {shown("log_min_messages", "warning")},
	"3.1.15": {shown("log_min_error_statement", "error")},
	"3.1.16": {shown("debug_print_parse", "off")},
	"3.1.17": {shown("debug_print_rewritten", "off")},
	"3.1.18": {shown("debug_print_plan", "off")},
	"3.1.19": {shown("debug_pretty_print", "on")},
	"3.1.23": {shown("log_hostname", "off")},
	"3.1.24": {shown("log_line_prefix", "%m [%p] db=%d,user=%u,app=%a,client=%h ")},
	"3.1.26": {{"current_setting('log_timezone') in ('GMT', 'UTC', 'Etc/UTC')", "true"}},
	"4.3":    {{roles + "(rolsuper or rolcreaterole or rolcreatedb or rolbypassrls)", "postgres"}},
	"4.5":    {{"select count(*) from pg_proc where prosecdef and oid >= 16384", "0"}},
	"4.6": {{`select count(*) from information_schema.role_table_grants where grantee = 'PUBLIC' and privilege_type
		in ('INSERT', 'UPDATE', 'DELETE', 'TRUNCATE') and table_schema not in ('pg_catalog', 'information_schema')`,
		"0"}},
	"4.7": {shown("row_security", "on")},
	"4.9": {{roles + `not rolsuper and (pg_has_role(oid, 'pg_read_server_files', 'member') or
		pg_has_role(oid, 'pg_write_server_files', 'member') or
		pg_has_role(oid, 'pg_execute_server_program', 'member'))`, ""}},
	"4.10": {{"has_schema_privilege('public', 'public', 'create')", "false"}},
	"5.3":  {{rules + "type = 'local' and auth_method <> 'peer'", "0"}},
	"5.4":  {{rules + "type <> 'local' and auth_method not in ('cert', 'scram-sha-256', 'reject')", "0"}},
	"5.8":  {{rules + "type not in ('local', 'hostssl') and auth_method <> 'reject'", "0"}},
	"5.11": {
		{rules + "type <> 'local' and 'postgres' = any (user_name) and auth_method not in ('cert', 'reject')", "0"},
		{rules + "type = 'host' and 'postgres' = any (user_name) and auth_method = 'reject'", "1"},
		{"select count(*) from pg_authid where rolpassword is not null", "0"},
	},
	"5.12": {shown("password_encryption", "scram-sha-256")},
	"6.2": {shown("ignore_system_indexes", "off"), shown("jit_debugging_support", "off"),
		shown("jit_profiling_support", "off"), shown("post_auth_delay", "0")},
	"6.3": {shown("shared_preload_libraries", ""), shown("logging_collector", "off"),
		shown("allow_system_table_mods", "off"), shown("ignore_invalid_pages", "off")},
	"6.4": {shown("fsync", "on"), shown("full_page_writes", "on"), shown("restart_after_crash", "on"),
		shown("pre_auth_delay", "0"), shown("db_user_namespace", "off"), shown("krb_caseins_users", "off")},
	"6.5": {shown("ignore_checksum_failure", "off"), shown("zero_damaged_pages", "off"),
		shown("lo_compat_privileges", "off"), shown("session_preload_libraries", ""),
		shown("session_replication_role", "origin"), shown("track_activities", "on")},
	"6.6": {shown("row_security", "on"), shown("check_function_bodies", "on"), shown("transform_null_equals", "off"),
		shown("local_preload_libraries", ""), shown("synchronous_commit", "on"), shown("xmloption", "content")},
	"6.8":  {shown("ssl", "on"), shown("ssl_crl_file", ""), shown("ssl_min_protocol_version", "TLSv1.2")},
	"6.11": {{"select count(*) from pg_available_extensions where name = 'pgcrypto'", "1"}},
	"7.1": {{roles + "rolreplication and not rolsuper", "toban_backup,toban_replication"},
		{"select count(*) from pg_authid where rolreplication and rolpassword is not null", "0"}},
	"7.2": {shown("log_replication_commands", "on")},
	"7.5": {{"current_setting('wal_level') in ('replica', 'logical')", "true"},
		{"current_setting('max_wal_senders')::int >= 10", "true"}, shown("hot_standby", "on"),
		{rules + "'replication' = any (database) and auth_method not in ('cert', 'reject')", "0"}},
	"8.3": {shown("external_pid_file", ""), shown("dynamic_library_path", "$libdir")},
}

// looked are the recommendations that more than queries check.
var looked = map[string]func(*node) error{
	"1.4": func(n *node) error { return closed(n.Data.Path()) },
	"1.6": func(n *node) error { return n.lacks("environ", "PGPASSWORD=") },
	"1.7": func(n *node) error { return n.lacks("environ", "PGPASSWORD=") },
	"2.1": nobodyElses,
	"2.2": imageIsNotWritable,
	"5.1": func(n *node) error { return n.lacks("cmdline", "password") },
	"6.8": func(n *node) error {
		return errors.Join(closed(filepath.Join(n.Server.Run, postgres.FileKey)),
			n.handshake(tls.VersionTLS10, tls.VersionTLS11, false))
	},
	"6.10": weakCiphers,
}

// The CIS PostgreSQL Benchmark, on a server as an agent runs it with the defaults of a SampleDB. docs/cis.md says of
// each recommendation whether this checks it, or why it is not followed.
func TestCISBenchmark(t *testing.T) {
	states := statesOfRecommendations(t)
	n := nodes(t, 1)[0]
	n.defaults = true
	n.found()
	for _, number := range benchmark() {
		state, known := states[number]
		delete(states, number)
		queries, look := asked[number], looked[number]
		switch checks := len(queries) > 0 || look != nil; {
		case !known:
			t.Errorf("docs/cis.md has no row for %s", number)
		case checks != (state == "checked"):
			t.Errorf("docs/cis.md says of %s that it is %q; it is checked: %t", number, state, checks)
		}
		for _, q := range queries {
			if got := n.setting(q.query); got != q.want {
				t.Errorf("%s: %s is %q, want %q", number, q.query, got, q.want)
			}
		}
		if look != nil {
			if err := look(n); err != nil {
				t.Errorf("%s: %v", number, err)
			}
		}
	}
	for number := range states {
		t.Errorf("docs/cis.md has a row %s, which is no recommendation", number)
	}
}

// defaultParameters are those of a SampleDB that says nothing of them.
func defaultParameters() map[string]string {
	db := &v1.SampleDB{}
	db.Spec.Storage.Size = "10Gi"
	db.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}
	return desired.Parameters(db)
}

var row = regexp.MustCompile(`^\| ([0-9.]+) \| ([^|]+) \| ([^|]+) \| ([^|]*)\|$`)

// statesOfRecommendations are what docs/cis.md says, by number. What is not checked has a reason.
func statesOfRecommendations(t *testing.T) map[string]string {
	t.Helper()
	states := map[string]string{}
	for line := range strings.SplitSeq(os.Getenv(cisVariable), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		number, state, why := m[1], m[3], strings.TrimSpace(m[4])
		if states[number] != "" {
			t.Errorf("docs/cis.md has two rows for %s", number)
		}
		switch state {
		case "checked":
		case "elsewhere", "exception", "not ours":
			if len(why) < 20 {
				t.Errorf("docs/cis.md does not say why %s is %q", number, state)
			}
		default:
			t.Errorf("docs/cis.md says of %s %q", number, state)
		}
		states[number] = state
	}
	return states
}

// setting is the answer to a query, and "off" or "" for a parameter that a newer version does not have any more.
func (n *node) setting(query string) string {
	n.Helper()
	if name, is := strings.CutPrefix(query, "current_setting('"); is {
		if name, _, is := strings.Cut(name, "')"); is && n.ask("current_setting('"+name+"', true) is null") == "true" {
			return "off"
		}
	}
	return n.ask(query)
}

// closed says that a file or folder is the server's user's alone.
func closed(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = fmt.Errorf("%s has the mode %s", path, info.Mode())
	}
	return err
}

// nobodyElses looks at all files of the data directory.
func nobodyElses(n *node) error {
	return filepath.WalkDir(n.Data.Path(), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if err == nil {
			err = closed(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // PostgreSQL removes files as it likes
			return nil
		}
		return err
	})
}

// imageIsNotWritable looks at the folders of extensions and libraries.
func imageIsNotWritable(n *node) error {
	for _, name := range []string{"SHAREDIR", "PKGLIBDIR"} {
		folder := n.ask("select setting from pg_config() where name = '" + name + "'")
		const write = 2 // W_OK
		if err := syscall.Access(folder, write); err == nil {
			return fmt.Errorf("the server's user may write to %s", folder)
		}
	}
	return nil
}

// lacks says that a word is not in a file about the server's first process.
func (n *node) lacks(file, word string) error {
	pid, _, _ := strings.Cut(n.ask("pg_read_file('postmaster.pid')"), "\n")
	text, err := os.ReadFile(filepath.Join("/proc", pid, file))
	if err == nil && strings.Contains(strings.ToLower(string(text)), strings.ToLower(word)) {
		err = fmt.Errorf("%s of the server has %q", file, word)
	}
	return err
}

// weakCiphers are refused; the same client gets as far as to its password with a good one.
func weakCiphers(n *node) error {
	return errors.Join(
		n.handshake(tls.VersionTLS12, tls.VersionTLS12, true, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
		n.handshake(tls.VersionTLS12, tls.VersionTLS12, false, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA),
		n.handshake(tls.VersionTLS12, tls.VersionTLS12, false, tls.TLS_RSA_WITH_AES_128_GCM_SHA256))
}

// handshake says whether the server talks to a client with these versions and ciphers: then it refuses the role, as it
// has no password.
func (n *node) handshake(from, to uint16, wanted bool, ciphers ...uint16) error {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=nobody dbname=postgres sslmode=require password=x",
		n.Listen, n.Port))
	if err != nil {
		return err
	}
	config.TLSConfig.MinVersion, config.TLSConfig.MaxVersion, config.TLSConfig.CipherSuites = from, to, ciphers
	_, err = pgx.ConnectConfig(n.Context(), config)
	var answered *pgconn.PgError
	if errors.As(err, &answered) != wanted {
		return fmt.Errorf("with TLS %x to %x and the ciphers %x: %w", from, to, ciphers, err)
	}
	return nil
}
