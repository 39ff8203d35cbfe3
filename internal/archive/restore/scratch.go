package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// scratch is a server that recovers in a folder of its own, and listens on a Unix socket only.
type scratch struct {
	server  *postgres.Server
	process *postgres.Process
	// tablespaces is the folder that they are in.
	tablespaces string
	parameters  map[string]string
	log         io.Writer
	// starting, if set, is called before the server begins to recover.
	starting func() error
	// beside says that another server runs on the same volume.
	beside bool
	// least are the lower bounds by which it was configured (postgres.Control).
	least map[string]int
}

// scratchPort is part of the socket's name; nothing listens on the network.
const scratchPort = 5432

func newScratch(programs postgres.Programs, folder, run string, parameters map[string]string, log io.Writer) scratch {
	server := &postgres.Server{
		Programs: programs, Data: postgres.DataDirectory{Volume: folder}, Run: run, Port: scratchPort,
	}
	return scratch{server: server, tablespaces: filepath.Join(folder, "tablespaces"), parameters: parameters, log: log}
}

// unpack makes the data directory and the tablespaces. Where they go is filled in.
func (s *scratch) unpack(ctx context.Context, o UnpackOptions) error {
	data := s.server.Data
	o.Data, o.Scratch, o.Programs = data.Path(), filepath.Join(data.Volume, "scratch"), s.server.Programs.Dir
	o.Tablespaces = map[uint32]string{}
	for _, space := range o.Chain[len(o.Chain)-1].Tablespaces {
		o.Tablespaces[space.OID] = filepath.Join(s.tablespaces, strconv.FormatUint(uint64(space.OID), 10))
	}
	return Unpack(ctx, o)
}

// recover starts the server and brings it to a target. At that it has left recovery, at the
// end of the archive it has not. The folder pg_wal is filled in. Where the primary was given more connections, workers
// or locks after the backup, it is started again with as many: a server stops its recovery there, or ends.
func (s *scratch) recover(ctx context.Context, o RecoverOptions) (Recovered, error) {
	for {
		reached, err := s.recoverOnce(ctx, o)
		if err == nil || ctx.Err() != nil || s.process == nil {
			return reached, err
		}
		more, unknown := s.needsMore(ctx)
		if unknown != nil || !more {
			return reached, errors.Join(err, unknown)
		}
		s.stop(ctx)
		// Before it takes connections, the segment that it reads may be ahead of what it replays.
		o.From = max(o.From, reached.LSN-min(reached.LSN, wal.SegmentSize))
	}
}

// needsMore says that the WAL that was replayed last demands more than the server was configured with: PostgreSQL puts
// that into the control file before it stops the recovery (XLOG_PARAMETER_CHANGE in xlog.c).
func (s *scratch) needsMore(ctx context.Context) (bool, error) {
	control, err := s.server.Control(ctx)
	if err != nil {
		return false, err
	}
	for name, bound := range control.Least {
		if bound > s.least[name] {
			return true, nil
		}
	}
	return false, nil
}

// recoverOnce is recover with the lower bounds that are known when it begins.
func (s *scratch) recoverOnce(ctx context.Context, o RecoverOptions) (Recovered, error) {
	settings, err := Settings(o.Target, o.Plan.Timeline)
	if err != nil {
		return Recovered{}, err
	}
	if err := s.configure(ctx, settings); err != nil {
		return Recovered{}, err
	}
	if err := os.WriteFile(filepath.Join(s.server.Data.Path(), "standby.signal"), nil, 0o600); err != nil {
		return Recovered{}, fmt.Errorf("configure the scratch server: %w", err)
	}
	o.WAL, o.Tablespace = filepath.Join(s.server.Data.Path(), "pg_wal"), s.makeTablespace
	r := NewRecovery(o)
	if err := r.Prepare(ctx); err != nil {
		return Recovered{}, err
	}
	if s.starting != nil {
		if err := s.starting(); err != nil {
			return Recovered{}, err
		}
	}
	if s.process, err = s.server.Start(ctx, s.log); err != nil {
		return Recovered{}, err
	}
	ctx, cancel := WhileRunning(ctx, s.process)
	defer cancel()
	replayer := &LocalReplayer{Server: s.server}
	defer replayer.Close()
	return r.Run(ctx, replayer)
}

// TablespaceError says that a tablespace which was made after the backup can't have its folder.
type TablespaceError struct {
	Folder string
	// Before is the position before it was made.
	Before wal.LSN
	Why    error
}

// Error says what to do instead.
func (e *TablespaceError) Error() string {
	if e.Why != nil {
		return fmt.Sprintf("after the backup a tablespace was made in %s, and that folder can't be made here: %v",
			e.Folder, e.Why)
	}
	return fmt.Sprintf("after the backup a tablespace was made in %s, and that folder is the running server's: "+
		"restore into a new SampleDB, from a backup that began later, or to no later than the position %s",
		e.Folder, e.Before)
}

// Unwrap is why.
func (e *TablespaceError) Unwrap() error { return e.Why }

// makeTablespace makes the folder of a tablespace that is about to be replayed: PostgreSQL wants it to be there. The
// folder of a server that runs is not written to.
func (s *scratch) makeTablespace(t wal.Tablespace) error {
	if s.beside {
		return &TablespaceError{Folder: t.Folder, Before: format.Pages.Before(t.Begin)}
	}
	if err := os.MkdirAll(t.Folder, 0o700); err != nil {
		return &TablespaceError{Folder: t.Folder, Why: err}
	}
	return nil
}

// restart starts a server that has left recovery and was stopped, and waits until it takes connections.
func (s *scratch) restart(ctx context.Context) (err error) {
	if err := s.configure(ctx, nil); err != nil {
		return err
	}
	if s.process, err = s.server.Start(ctx, s.log); err != nil {
		return err
	}
	return s.process.Ready(ctx)
}

// promote ends the recovery of a server that has replayed all there is.
func (s *scratch) promote(ctx context.Context) error {
	session, err := s.server.Connect(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Promote(ctx, nil)
}

// stop stops the server in order.
func (s *scratch) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, scratchPatience)
	defer cancel()
	s.process.Stop(ctx, postgres.StopFast)
	s.process = nil
}

// scratchPatience is how long a server may take to stop in order: its checkpoint may be a large one.
const scratchPatience = 30 * time.Minute

// kill ends a server whose data is of no use any more.
func (s *scratch) kill(ctx context.Context) {
	if s.process != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		s.process.Stop(ctx, postgres.StopImmediate)
	}
}

// configure writes a configuration of the scratch server's own: the database's may name files and addresses that are
// not here. It must not wait for a disk: if it crashes, all begins anew. Nothing that is in the database runs by
// itself: no event trigger, no vacuum with functions of an index, no subscription, which would also take from its
// publisher what the original needs.
func (s *scratch) configure(ctx context.Context, recovery map[string]string) error {
	control, err := s.server.Control(ctx)
	if err != nil {
		return err
	}
	all := map[string]string{}
	for name, value := range s.parameters {
		if name = strings.ToLower(name); !postgres.Owned(name) && name != "synchronous_commit" {
			all[name] = value
		}
	}
	if s.least == nil {
		s.least = map[string]int{}
	}
	for name, bound := range control.Least { // a standby needs no less than its primary had, at any time
		s.least[name] = max(s.least[name], bound)
		all[name] = strconv.Itoa(s.least[name])
	}
	if s.server.Programs.Major >= 17 {
		all["event_triggers"] = "off"
	}
	room := max(4, ahead(s.server.Data.WALFileSystem())) * wal.SegmentSize
	maps.Copy(all, recovery)
	maps.Copy(all, map[string]string{
		"listen_addresses": "", "port": strconv.Itoa(scratchPort), "unix_socket_directories": s.server.Run,
		"unix_socket_permissions": "0700", "ssl": "off", "logging_collector": "off", "log_destination": "stderr",
		"lc_messages": "C", "archive_mode": "off", "fsync": "off", "autovacuum": "off",
		"max_logical_replication_workers": "0",
		// What is replayed goes soon: there need not be room for more than what lies ahead.
		"max_wal_size":                 strconv.FormatUint(room>>20, 10) + "MB",
		"min_wal_size":                 "32MB",
		"checkpoint_completion_target": "0",
	})
	files := map[string]string{
		"postgresql.conf":      postgres.ConfigText(all),
		"postgresql.auto.conf": "",
		// Nobody else gets at the socket: its folder is ours alone, and so is the socket.
		"pg_hba.conf":   "local all all trust\n",
		"pg_ident.conf": "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.server.Data.Path(), name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("configure the scratch server: %w", err)
		}
	}
	return nil
}

// Settings are the parameters with which a server recovers to the target along a timeline.
// Targets that are not meant are not among them, and must not be set elsewhere: even set to nothing, a
// second one takes the first away, or is refused ("multiple recovery targets specified"), as
// their order has it (assign_recovery_target_time and the like).
// The server also needs a file standby.signal, and the files that Prepare puts there
// (PostgreSQL 17 documentation, 19.5.6 and 26.2.2). They go when the recovery has ended.
func Settings(t book.Target, timeline wal.Timeline) (map[string]string, error) {
	all := map[string]string{
		"primary_conninfo": "", "primary_slot_name": "", "restore_command": "", "archive_cleanup_command": "",
		"recovery_end_command": "", "recovery_target_inclusive": strconv.FormatBool(!t.Exclusive),
		"recovery_target_timeline": strconv.FormatUint(uint64(timeline), 10),
		"recovery_target_action":   "promote", "recovery_min_apply_delay": "0",
		"wal_retrieve_retry_interval": "100ms", // how long it takes to notice a file
		"hot_standby":                 "on",    // it is asked how far it is
		// What has been replayed must not come back under the names of segments to come. PostgreSQL 15 to 18
		// do that only after a receiver was started (InstallXLogFileSegmentActive in xlog.c); that is nowhere promised.
		"wal_recycle": "off",
	}
	chosen := map[string]string{}
	if !t.Time.IsZero() {
		chosen["recovery_target_time"] = t.Time.UTC().Format(format.TimeFormat)
	}
	if t.LSN != 0 {
		chosen["recovery_target_lsn"] = t.LSN.String()
	}
	if t.XID != "" {
		chosen["recovery_target_xid"] = t.XID
	}
	if t.Name != "" {
		chosen["recovery_target_name"] = t.Name
	}
	if t.Immediate {
		chosen["recovery_target"] = "immediate"
	}
	if len(chosen) > 1 {
		return nil, fmt.Errorf("there is more than one target of the recovery: %v", chosen)
	}
	maps.Copy(all, chosen)
	return all, nil
}
