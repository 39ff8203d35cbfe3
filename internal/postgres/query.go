package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/wal"
)

// Session is a connection of ours to the server, as superuser through the Unix
// socket. Its search_path is pinned, so that nobody's function or table is
// taken for PostgreSQL's.
type Session struct {
	conn *pgx.Conn
	// identifier is the server's system identifier, "" until it was asked.
	identifier string
	// read is how far the WAL was read for its end.
	read read
}

// application is how our own sessions are told from those of a person who is postgres.
const application = sql.Application

// Connection is by the server's Unix socket.
func (s *Server) Connection(database, role string) sql.Connection {
	return sql.Connection{
		Hosts: []string{s.Run}, Port: uint16(s.Port), //nolint:gosec // it is a port
		Database: database, Role: role, Timeout: 3 * time.Second,
	}
}

// Connect opens a session.
func (s *Server) Connect(ctx context.Context) (*Session, error) {
	return s.connect(ctx, func(*pgx.ConnConfig) {})
}

func (s *Server) connect(ctx context.Context, change func(*pgx.ConnConfig)) (*Session, error) {
	config, err := s.Connection("postgres", "postgres").Config(sql.SettingsAt(s.Programs.Major, "postgres",
		map[string]string{
			"application_name":  application,
			"statement_timeout": "5s",
			// Ours must never wait for a standby: it would hang with the users' commits and look dead.
			"synchronous_commit": "local",
			// With a library that is missing no session begins: ours must, to put the configuration right.
			"session_preload_libraries": "",
			// Who ends sessions of clients that are not tracked, because they may be at work, is to see what these do.
			"track_activities": "on",
			// Its questions are short: what is configured for long queries may only hold them up.
			"jit":                             "off",
			"max_parallel_workers_per_gather": "0",
		}))
	if err != nil {
		return nil, err
	}
	change(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to the server: %w", err)
	}
	return &Session{conn: conn}, nil
}

// ConnectTo opens a superuser's session in a database for what a user declares. Unlike our own ones its commits wait
// for the standbys, and nothing that a user has set changes what its statements mean or ends them early.
func (s *Server) ConnectTo(ctx context.Context, database string) (*pgx.Conn, error) {
	opened, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		config.Database = database
		config.RuntimeParams = sql.SettingsAt(s.Programs.Major, config.User, map[string]string{
			"application_name": application,
			// Who may use a database can hold a lock in it, or on a role of his own, for as long as he likes.
			"lock_timeout": "10s",
		})
	})
	if err != nil {
		return nil, err
	}
	if s.Programs.Major < sql.Newest {
		return opened.conn, nil
	}
	if _, err := opened.conn.Exec(ctx, sql.TriggersOn); err != nil {
		opened.Close()
		return nil, fmt.Errorf("begin a session in %s: %w", database, err)
	}
	return opened.conn, nil
}

// ProveLogin opens a session that loads what a client's session loads, and ends it: what is configured may refuse those
// while ours, which load nothing, go on.
func (s *Server) ProveLogin(ctx context.Context) error {
	session, err := s.connect(ctx, func(config *pgx.ConnConfig) {
		for _, name := range []string{"session_preload_libraries", "local_preload_libraries"} {
			delete(config.RuntimeParams, name)
		}
	})
	if err != nil {
		return err
	}
	session.Close()
	return nil
}

// Refuses says that the server has answered who asked for a session, and lets nobody in by what is configured; not
// because it starts or stops (class 57), has no room (class 53), or ended it for what it replays (class 40; PostgreSQL
// 17 documentation, appendix A) or can't read its files, nor because of what RefusesUs is for.
func Refuses(err error) bool {
	code := sql.Code(err)
	return code != "" && !sql.InClass(code, "53", "57", "40") && !slices.Contains(brokenFiles, code) && !RefusesUs(err)
}

// brokenFiles are the codes of a server that can't read its files, or finds damage there.
var brokenFiles = []string{"58030", "XX001", "XX002"}

// RefusesUs says of who asked for a session that nobody is let in who asks as we do, by what is in the server's
// catalog: the role may not log in (class 28), or the database is gone (3D000) or takes no sessions (55000).
func RefusesUs(err error) bool {
	return sql.InClass(sql.Code(err), "28", "3D", "55")
}

// CanBeLetIn says that LetUsIn may undo why a server RefusesUs. A database that is gone it does not bring back. Nor can
// it where the role is gone (of class 28, too), or the database has been dropped by half (55000): then it says so.
func CanBeLetIn(err error) bool { return sql.InClass(sql.Code(err), "28", "55") }

// RefusesBesides says that a server which does what its role asks has refused something else: it lives. It is none
// where it can't read its files (58030, XX001 and XX002). Of several errors each must be one: another one may say that
// the server does not answer any more.
func RefusesBesides(err error) bool {
	if several, are := err.(interface{ Unwrap() []error }); are {
		return !slices.ContainsFunc(several.Unwrap(), func(e error) bool { return !RefusesBesides(e) })
	}
	code := sql.Code(err)
	return code != "" && !sql.InClass(code, "57") && !slices.Contains(brokenFiles, code)
}

// TooManyClients says that the server had no room for another session. It lives:
// it has just said so (PostgreSQL 17 documentation, appendix A, 53300).
func TooManyClients(err error) bool {
	return sql.Code(err) == "53300"
}

// Close ends the session.
func (s *Session) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // nothing is lost with it
}

// PendingRestart are the parameters that wait for a restart of the server.
func (s *Session) PendingRestart(ctx context.Context) ([]string, error) {
	return sql.Column[string](ctx, s.conn, "ask which parameters wait for a restart",
		"select name from pg_settings where pending_restart order by name")
}

// ProveWrite commits something and waits until it is on disk: a message in the
// WAL that nobody reads (PostgreSQL 17 documentation, 9.28.6), so no table is needed.
func (s *Session) ProveWrite(ctx context.Context) error {
	return sql.Do(ctx, s.conn, "write to the WAL", "select pg_logical_emit_message(true, 'toban', 'alive')")
}

// OldestWAL is where the oldest WAL file begins that there is. The server is asked, and the folder not read: who looks
// after the server must be able to stop waiting for a disk that hangs.
func (s *Session) OldestWAL(ctx context.Context) (wal.LSN, error) {
	const query = `select coalesce(min(substr(name, 9)), ''),
		(select setting::bigint from pg_settings where name = 'wal_segment_size')
		from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$'`
	var file string
	var size uint64
	err := s.conn.QueryRow(ctx, query).Scan(&file, &size)
	if err != nil {
		return 0, fmt.Errorf("look for the oldest WAL file: %w", err)
	}
	lsn, err := wal.SegmentStart("00000000"+file, size)
	if err != nil {
		return 0, fmt.Errorf("look for the oldest WAL file: %w", err)
	}
	return lsn, nil
}

// Standbys are the application names of the servers that stream from this one. Sessions of other roles that have the
// name of one whose acknowledgement counts are ended, and told. PostgreSQL goes by that name alone, whatever its case,
// and counts logical replication too (PostgreSQL 17 documentation, 19.6.2): what such a session acknowledges is on no
// standby.
func (s *Session) Standbys(ctx context.Context) (names, impostors []string, err error) {
	impostors, err = sql.Column[string](ctx, s.conn, "end replication that passes for a standby's",
		`select who from (select coalesce(usename, 'a role that is gone') || ' as ' || application_name as who,
		pg_terminate_backend(pid)
		from pg_stat_replication where usename is distinct from $1 and application_name <> ''
		and strpos(lower(current_setting('synchronous_standby_names')),
			lower('"' || application_name || '"')) > 0) ended`,
		RoleReplication)
	if err != nil {
		return nil, nil, err
	}
	names, err = sql.Column[string](ctx, s.conn, "ask who streams", `select distinct application_name
		from pg_stat_replication where state = 'streaming' and usename = $1 and not application_name = any ($2)
		order by 1`,
		RoleReplication, []string{"pg_basebackup", nameClone, nameRewind})
	return names, impostors, err
}

// EnsureReplication makes the role of the standbys, and that of base backups, which sees besides
// whether a standby streams, and may begin a backup by SQL, for a snapshot of the volume. They have no password.
func (s *Session) EnsureReplication(ctx context.Context) error {
	const statement = `do $$ begin
		if not exists (select from pg_roles where rolname = 'toban_replication') then
			create role toban_replication login replication;
			grant execute on function pg_ls_dir(text, boolean, boolean), pg_stat_file(text, boolean),
				pg_read_binary_file(text), pg_read_binary_file(text, bigint, bigint, boolean) to toban_replication;
		end if;
		if not exists (select from pg_roles where rolname = 'toban_backup') then
			create role toban_backup login replication;
			grant pg_read_all_stats to toban_backup;
		end if;
		-- Roles of earlier releases do not have this.
		if not has_function_privilege('toban_backup', 'pg_backup_stop(boolean)', 'execute') then
			grant execute on function pg_backup_start(text, boolean), pg_backup_stop(boolean) to toban_backup;
		end if;
	end $$`
	if _, err := s.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("make the roles %s and %s: %w", RoleReplication, RoleBackup, err)
	}
	return withoutTriggers(ctx, s.conn)
}

// withoutMembers lets nobody be a member of our own roles that are made late.
func withoutMembers(ctx context.Context, conn *pgx.Conn) error {
	return sql.Do(ctx, conn, "keep others from being members of our own roles", sql.WithoutMembers)
}

// withoutTriggers lets no event trigger at login keep our roles out.
func withoutTriggers(ctx context.Context, conn *pgx.Conn) error {
	return sql.Do(ctx, conn, "keep event triggers at login from our own roles", sql.WithoutTriggers)
}

// KeepMaintenance lets nobody connect to the databases postgres and template1 but superusers, our own roles and those
// to whom a superuser has granted it. By itself PostgreSQL lets every role in, where an application's could hold locks
// that ours wait for, and by a session in the template alone keep everybody from CREATE DATABASE. Us it lets in again
// where somebody has taken that from the role postgres or the database postgres. It writes only what is not so yet.
func (s *Session) KeepMaintenance(ctx context.Context) error {
	const letUsIn = `do $$ begin
		if not (select rolcanlogin from pg_roles where rolname = 'postgres') then
			alter role postgres login;
		end if;
		if exists (select from pg_database where datname = 'postgres' and not datallowconn) then
			alter database postgres allow_connections true;
		end if;
	end $$`
	err := sql.Do(ctx, s.conn, "have the role postgres let in again", letUsIn)
	if err != nil && !RefusesBesides(err) {
		return err
	}
	const keepOthersOut = `do $$ begin
		if exists (select from pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba)))
			where datname = 'postgres' and grantee = 0) then
			grant connect on database postgres to toban_replication, toban_backup;
			revoke all on database postgres from public;
		end if;
		if exists (select from pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba)))
			where datname = 'template1' and grantee = 0) then
			revoke all on database template1 from public;
		end if;
	end $$`
	return errors.Join(err, sql.Do(ctx, s.conn, "keep the databases postgres and template1 to us", keepOthersOut))
}

// ownRoles are those that are no clients. What applies the changes of another side has no client at all.
var ownRoles = []string{"postgres", RoleReplication, RoleBackup, RoleLink}

// EndClients ends all sessions that are none of ours, also those of people who are the superuser, and says how many
// there were.
func (s *Session) EndClients(ctx context.Context) (n int, err error) {
	const query = `select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity
		where ` + sql.Clients + `) ended`
	return sql.Value[int](ctx, s.conn, "end the clients' sessions", query)
}

// NotIn are those of some processes of the server that have not logged in, as far as it knows. Before PostgreSQL 18 it
// does not know one at all that has not, and from then on says so.
func (s *Session) NotIn(ctx context.Context, pids []int) ([]int, error) {
	const query = `select pid from unnest($1::int[]) pid where not exists (select from pg_stat_activity a
		where a.pid = pid.pid and a.state is distinct from 'starting')`
	return sql.Column[int](ctx, s.conn, "look for who is logging in", query, pids)
}

// Idle is for how long no session of a client has done anything; known is false where there is none that ever did. We
// ourselves are no clients, nor those that only read how the server is (docs/stop.md, "Sleep"). Who is postgres by
// psql is a person.
func (s *Session) Idle(ctx context.Context) (idle time.Duration, known bool, err error) {
	const query = `select extract(epoch from clock_timestamp() -
			max(case when a.state = 'idle' then a.state_change else clock_timestamp() end))::float8
		from pg_stat_activity a where a.backend_type = 'client backend' and not starts_with(a.usename, 'toban_')
		and not (a.usename = 'postgres' and starts_with(a.application_name, $1))
		and (a.query_start is not null or a.state is distinct from 'idle')
		and not exists (select from pg_auth_members m where m.member = a.usesysid
			and m.roleid = 'pg_monitor'::regrole)`
	seconds, err := sql.Value[*float64](ctx, s.conn, "look for how long no client has done anything",
		query, application)
	if err != nil {
		return 0, false, err
	}
	if seconds == nil {
		return 0, false, nil
	}
	return time.Duration(max(*seconds, 0) * float64(time.Second)), true, nil
}

// EndMisled ends the sessions of all but our own roles if the server is a standby, and says how many there were.
func (s *Session) EndMisled(ctx context.Context) (n int, err error) {
	const query = `select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity
		where pg_is_in_recovery() and backend_type = 'client backend' and not usename = any ($1)) ended`
	return sql.Value[int](ctx, s.conn, "end the sessions of clients that look for the primary", query, ownRoles)
}

// EndWriters ends the sessions of all but our own roles that write in a transaction begun before a moment, or with
// reads all that do anything, and says how many there were. They are ended, and what they do is not only cancelled: a
// commit that waits for standbys would be told to its client as committed. When a transaction began is not known of one
// whose activity is not tracked: it is ended while it writes.
func (s *Session) EndWriters(ctx context.Context, begun time.Time, reads bool) (n int, err error) {
	const query = `select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity
		where backend_type = 'client backend' and not usename = any ($3)
		and (backend_xid is not null and (xact_start < $1 or xact_start is null) or $2 and ` + sql.Busy + `)) ended`
	return sql.Value[int](ctx, s.conn, "end the sessions that write", query, begun, reads, ownRoles)
}

// ConfigErrors are what is wrong in the configuration files on disk, in
// PostgreSQL's words. A setting that waits for a restart is no error, though
// pg_file_settings says that it "could not be applied".
func (s *Session) ConfigErrors(ctx context.Context) error {
	// A line that is no rule has no type; of some PostgreSQL does not say why.
	const query = `select format('pg_hba.conf, line %s: %s', line_number, coalesce(error, 'PostgreSQL does not know ' ||
			'what it says, and does not start with it')) from pg_hba_file_rules
		where error is not null or type is null
		union all select format('%s: %s', name, error) from pg_file_settings
		where error is not null and error <> 'setting could not be applied' and name is not null`
	words, err := sql.Column[string](ctx, s.conn, "check the configuration", query)
	if err != nil {
		return err
	}
	if len(words) > 0 {
		return &RejectedError{Words: strings.Join(words[:min(len(words), 5)], "; ")}
	}
	return nil
}

// LoadTime is when the server last read its configuration.
func (s *Session) LoadTime(ctx context.Context) (time.Time, error) {
	return sql.Value[time.Time](ctx, s.conn, "ask when the configuration was read", "select pg_conf_load_time()")
}

// Checkpoint writes a checkpoint, so that a stop right after it is short.
func (s *Session) Checkpoint(ctx context.Context) error {
	if _, err := s.conn.Exec(ctx, "set statement_timeout = 0"); err != nil {
		return fmt.Errorf("write a checkpoint: %w", err)
	}
	return sql.Do(ctx, s.conn, "write a checkpoint", "checkpoint")
}

// Broken says whether an error means that the connection is of no use any more.
func (s *Session) Broken() bool { return s.conn.IsClosed() }
