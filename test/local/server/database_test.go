package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/postgres/database"
)

// foodb is a database as the PostgreSQL default/foodb declares it.
func foodb() database.Declared {
	return declared("default/foodb", "foo", "mypassword")
}

func declared(claimant, name, password string) database.Declared {
	return database.Declared{
		Claimant: claimant, Name: name,
		Owner: database.Login{Name: name, Password: &password, ConnectionLimit: -1}, ConnectionLimit: -1,
	}
}

func role(name string, access database.Access, schemas ...string) database.Role {
	password := name + "'s password"
	return database.Role{
		Login: database.Login{Name: name, Password: &password, ConnectionLimit: -1}, Access: access, Schemas: schemas,
	}
}

// ensure makes a database as declared, and says what was changed.
func (n *node) ensure(d database.Declared) []string {
	n.Helper()
	changed, err := database.Ensure(within(n, deadline), n.ConnectTo, d)
	must(n, err)
	again, err := database.Ensure(within(n, deadline), n.ConnectTo, d)
	must(n, err)
	if len(again) > 0 {
		n.Errorf("the second time it has changed %q", again)
	}
	return changed
}

// refuses says for which reason a database can't be made as declared.
func (n *node) refuses(d database.Declared) database.Reason {
	n.Helper()
	changed, err := database.Ensure(within(n, deadline), n.ConnectTo, d)
	var refusal *database.Refusal
	if !errors.As(err, &refusal) {
		n.Fatalf("not refused: %v", err)
	}
	if len(changed) > 0 {
		n.Errorf("refused, but it has changed %q", changed)
	}
	n.Log(refusal.Message)
	return refusal.Reason
}

// login connects as an application does: over TCP and TLS with a password.
func (n *node) login(role, password, database string) (*pgx.Conn, error) {
	return n.loginWithin(within(n, deadline), role, password, database)
}

// loginConfig is how a client connects over the network.
func (n *node) loginConfig(role, password, database string) *pgx.ConnConfig {
	n.Helper()
	config, err := pgx.ParseConfig("sslmode=disable")
	must(n, err)
	config.Host, config.Port, config.User, config.Password, config.Database = n.Listen, uint16(n.Port),
		role, password, database
	config.TLSConfig = &tls.Config{InsecureSkipVerify: true}
	return config
}

func (n *node) loginWithin(ctx context.Context, role, password, database string) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, n.loginConfig(role, password, database))
	if err == nil {
		n.Cleanup(func() { _ = conn.Close(context.Background()) })
	}
	return conn, err
}

func (n *node) mustLogin(role, password, database string) *pgx.Conn {
	n.Helper()
	conn, err := n.login(role, password, database)
	must(n, err)
	return conn
}

// sql runs statements one after the other, and returns the code of the first error, "" for none.
func sql(t *testing.T, conn *pgx.Conn, statements ...string) string {
	t.Helper()
	for _, statement := range statements {
		_, err := conn.Exec(within(t, deadline), statement)
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			return pg.Code
		}
		must(t, err)
	}
	return ""
}

const (
	denied   = "42501" // insufficient_privilege
	badLogin = "28P01" // invalid_password
	noLogin  = "28000" // invalid_authorization_specification
	noCreate = denied
)

// code is the SQLSTATE of an error.
func code(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func server(t *testing.T) *node {
	t.Helper()
	n := nodes(t, 1)[0]
	n.found()
	n.lead("")
	return n
}

func TestADatabaseIsMadeAsDeclaredAndOnlyOnce(t *testing.T) {
	n := server(t)
	if changed := n.ensure(foodb()); len(changed) != 2 {
		t.Errorf("changed %q, want the role and the database", changed)
	}
	foo := n.mustLogin("foo", "mypassword", "foo")
	if c := sql(t, foo, "CREATE TABLE hoge (id SERIAL, name TEXT)",
		"INSERT INTO hoge (name) VALUES ('foo'), ('bar')"); c != "" {
		t.Errorf("its owner can't use it: %s", c)
	}
	for _, statement := range []string{
		"CREATE ROLE other", "CREATE DATABASE other", "COPY hoge TO PROGRAM 'cat'", "SELECT * FROM pg_authid",
		"SELECT pg_read_file('PG_VERSION')",
	} {
		if c := sql(t, foo, statement); c != denied {
			t.Errorf("%s: %q, want it denied to an application", statement, c)
		}
	}
	if got := n.ask("SELECT count(*) FROM pg_roles WHERE rolname = 'foo' AND (rolsuper OR rolcreaterole OR " +
		"rolcreatedb OR rolreplication OR rolbypassrls)"); got != "0" {
		t.Error("the application's role has rights that it must not have")
	}
	n.ensure(declared("default/bar", "bar", "x"))
	if _, err := n.login("bar", "x", "foo"); code(err) != denied {
		t.Errorf("another one's role connects to the database: %v", err)
	}
}

func TestAPasswordChangesWithItsDeclaration(t *testing.T) {
	n := server(t)
	n.ensure(foodb())
	next := declared("default/foodb", "foo", `n'ext\ "当番"`)
	if changed := n.ensure(next); len(changed) != 1 || !strings.Contains(changed[0], "password") {
		t.Errorf("changed %q, want the password alone", changed)
	}
	n.mustLogin("foo", `n'ext\ "当番"`, "foo")
	if _, err := n.login("foo", "mypassword", "foo"); code(err) != badLogin {
		t.Errorf("the former password: %v", err)
	}
	unknown := next
	unknown.Owner.Password = nil
	if changed := n.ensure(unknown); len(changed) != 0 {
		t.Errorf("an unknown password changed %q", changed)
	}
	n.mustLogin("foo", `n'ext\ "当番"`, "foo")
	if got := n.ask("SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = 'foo'"); got != "true" {
		t.Errorf("the password is not stored as a verifier: %s", got)
	}
	if strings.Contains(n.log.String(), "mypassword") {
		t.Error("the password is in the server's log")
	}
}

func TestNamesAreWhatTheySay(t *testing.T) {
	n := server(t)
	for i, name := range []string{`fo"o`, "fo'o", "Foo Bar", "当番", `b\s`, "select", strings.Repeat("x", 63)} {
		d := declared("default/n", name, "x")
		d.Claimant += string(rune('a' + i))
		d.Roles = []database.Role{role(name+"r", database.Owner)}
		if len(name) == 63 {
			d.Roles = nil
		}
		n.ensure(d)
		conn := n.mustLogin(name, "x", name)
		var user, db string
		must(t, conn.QueryRow(within(t, deadline), "SELECT current_user, current_database()").Scan(&user, &db))
		if user != name || db != name {
			t.Errorf("role %q database %q, want %q", user, db, name)
		}
	}
}

// PostgreSQL would cut it off, and in the middle of a character where a client gives it.
func TestANameOfTooManyBytesIsRefused(t *testing.T) {
	n := server(t)
	for name, change := range map[string]func(*database.Declared, string){
		"database": func(d *database.Declared, long string) { d.Name = long },
		"owner":    func(d *database.Declared, long string) { d.Owner.Name = long },
		"role": func(d *database.Declared, long string) {
			d.Roles = []database.Role{role(long, database.ReadOnly, "public")}
		},
	} {
		d := foodb()
		change(&d, strings.Repeat("ä", 32))
		if reason := n.refuses(d); reason != database.ServerRefused {
			t.Errorf("%s: refused for %s", name, reason)
		}
	}
	if got := n.ask("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'ä%' OR rolname = 'foo'"); got != "0" {
		t.Errorf("%s roles were made", got)
	}
}

func TestRolesMayDoWhatIsDeclaredAndNoMore(t *testing.T) {
	n := server(t)
	d := foodb()
	d.Roles = []database.Role{
		role("reader", database.ReadOnly, "public", "later"),
		role("writer", database.ReadWrite, "public"), role("second", database.Owner),
	}
	n.ensure(d)
	foo := n.mustLogin("foo", "mypassword", "foo")
	sql(t, foo, "CREATE TABLE t (id serial, n int)") // after the grants
	reader, writer, second := n.mustLogin("reader", "reader's password", "foo"), n.mustLogin("writer",
		"writer's password", "foo"), n.mustLogin("second", "second's password", "foo")
	for _, c := range []struct {
		who       *pgx.Conn
		statement string
		want      string
	}{
		{writer, "INSERT INTO t (n) VALUES (1)", ""},
		{reader, "SELECT * FROM t", ""},
		{reader, "INSERT INTO t (n) VALUES (1)", denied},
		{reader, "CREATE TABLE u ()", denied},
		{writer, "DELETE FROM t", ""},
		{writer, "CREATE TABLE u ()", noCreate},
		{writer, "DROP TABLE t", denied},
		{second, "CREATE TABLE made_by_second ()", ""},
		{foo, "DROP TABLE made_by_second", ""}, // as it belongs to the owner
		{second, "CREATE TABLE kept ()", ""},
		{foo, "CREATE SCHEMA later", ""},
		{foo, "CREATE TABLE later.t ()", ""},
		{reader, "SELECT * FROM later.t", denied},
	} {
		if got := sql(t, c.who, c.statement); got != c.want {
			t.Errorf("%s: %q, want %q", c.statement, got, c.want)
		}
	}
	n.ensure(d) // the schema is there by now
	if got := sql(t, reader, "SELECT * FROM later.t"); got != "" {
		t.Errorf("a schema that came later: %s", got)
	}
	d.Roles[1].Access = database.ReadOnly
	n.ensure(d)
	if got := sql(t, writer, "INSERT INTO t (n) VALUES (1)"); got != denied {
		t.Errorf("a role that may only read by now writes: %q", got)
	}
}

func TestARoleThatIsNotDeclaredAnyMoreIsGoneAndItsTablesStay(t *testing.T) {
	n := server(t)
	d := foodb()
	d.Roles = []database.Role{
		role("second", database.Owner), role("elsewhere", database.ReadOnly, "public"),
		role("waits", database.ReadOnly, "public"),
	}
	d.Roles[2].Password = nil
	n.ensure(d)
	n.ensure(declared("default/bar", "bar", "x"))
	n.do(`ALTER DATABASE bar OWNER TO elsewhere`) // something of its own outside of this database
	sql(t, n.mustLogin("second", "second's password", "foo"), "RESET role", "CREATE TABLE mine ()")
	d.Roles = nil
	n.ensure(d)
	for _, name := range []string{"second", "elsewhere"} {
		if _, err := n.login(name, name+"'s password", "foo"); code(err) != badLogin && code(err) != noLogin {
			t.Errorf("%s still logs in: %v", name, err)
		}
	}
	if got := n.ask("SELECT string_agg(rolname, ' ') FROM pg_roles WHERE rolname IN ('second', 'bar', " +
		"'waits')"); got != "bar" {
		t.Errorf("%q of second, waits and bar are there: second was to go, waits has no password, "+
			"and bar is somebody else's", got)
	}
}

// What a user of a database has set for all of its sessions does not change what is done there as superuser.
func TestARoleIsGoneWhateverTheDatabaseSets(t *testing.T) {
	for name, setting := range map[string]string{
		"another role":       "role = foo",
		"another user":       "session_authorization = foo",
		"reading only":       "default_transaction_read_only = on",
		"a short time":       "statement_timeout = 1",
		"their own schema":   "search_path = public",
		"waiting for no one": "lock_timeout = 1",
	} {
		t.Run(name, func(t *testing.T) {
			n := server(t)
			d := foodb()
			d.Roles = []database.Role{role("second", database.Owner)}
			n.ensure(d)
			second := n.mustLogin("second", "second's password", "foo")
			if c := sql(t, second, "RESET role", "CREATE TABLE mine ()", "SET role = foo",
				"ALTER DATABASE foo SET "+setting); c != "" {
				t.Fatalf("the owner can't set it: %s", c)
			}
			d.Roles = nil
			n.ensure(d)
			if _, err := n.login("second", "second's password", "foo"); code(err) != badLogin && code(err) != noLogin {
				t.Errorf("it still logs in: %v", err)
			}
			if sql(t, second, "SELECT") == "" {
				t.Error("a session that it had goes on")
			}
			if got := n.ask("SELECT count(*) FROM pg_roles WHERE rolname = 'second'"); got != "0" {
				t.Error("the role is still there")
			}
		})
	}
}

// Clients of a standby that look for the primary are ended, and our own stay; on a primary nobody is ended.
func TestClientsThatLookForThePrimaryAreEnded(t *testing.T) {
	primary, standbys := pair(t, 1)
	primary.ensure(foodb())
	at := primary.ask("SELECT pg_current_wal_lsn()")
	for standbys[0].ask("SELECT pg_last_wal_replay_lsn() >= '"+at+"'") != "true" {
		time.Sleep(10 * time.Millisecond)
	}
	for n, want := range map[*node]int{primary: 0, standbys[0]: 1} {
		client := n.mustLogin("foo", "mypassword", "foo")
		ours := n.dial()
		defer ours.Close(context.Background())
		s := n.session()
		defer s.Close()
		if ended, err := s.EndMisled(t.Context()); err != nil || ended != want {
			t.Errorf("it ends %d, %v; want %d", ended, err, want)
		}
		if stays := sql(t, client, "SELECT 1") == ""; stays != (want == 0) {
			t.Errorf("the client stays: %t", stays)
		}
		if got := sql(t, ours, "SELECT 1"); got != "" {
			t.Errorf("a session of ours: %s", got)
		}
	}
}

// Before a volume is full, those go that were writing when that was said, and in need those that read; who begins later
// may make room. Our own stay.
func TestWhoWritesIsEnded(t *testing.T) {
	n := server(t)
	n.ensure(foodb())
	writes := n.mustLogin("foo", "mypassword", "foo")
	reads := n.mustLogin("foo", "mypassword", "foo")
	for _, c := range []*pgx.Conn{writes, reads} {
		if got := sql(t, c, "CREATE TABLE IF NOT EXISTS t (n int)", "BEGIN"); got != "" {
			t.Fatal(got)
		}
	}
	ours := n.dial()
	defer ours.Close(context.Background())
	if got := sql(t, writes, "INSERT INTO t VALUES (1)") + sql(t, reads, "SELECT * FROM t") +
		sql(t, ours, "BEGIN", "SELECT pg_current_xact_id()"); got != "" {
		t.Fatal(got)
	}
	s := n.session()
	defer s.Close()
	end := func(begun time.Time, alsoReads bool, want int) {
		t.Helper()
		if ended, err := s.EndWriters(t.Context(), begun, alsoReads); err != nil || ended != want {
			t.Errorf("it ends %d, %v; want %d", ended, err, want)
		}
	}
	end(time.Now().Add(-time.Hour), false, 0)
	end(time.Now(), false, 1)
	n.eventually("the session that was told to end is gone, and is not ended once more", func() bool {
		return n.ask("SELECT count(*)::text FROM pg_stat_activity WHERE usename = 'foo'") == "1"
	})
	asleep := make(chan error, 1)
	go func() {
		_, err := reads.Exec(t.Context(), "SELECT pg_sleep(600)")
		asleep <- err
	}()
	n.eventually("it reads", func() bool {
		return n.ask("SELECT count(*)::text FROM pg_stat_activity "+
			"WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'") == "1"
	})
	end(time.Now(), true, 1)
	if err := <-asleep; code(err) != "57P01" { // admin_shutdown
		t.Errorf("who read was not ended: %v", err)
	}
	if got := sql(t, ours, "COMMIT"); got != "" {
		t.Errorf("one of ours was ended: %s", got)
	}
}

// A user of one database can keep neither his own role's removal nor anybody's password from changing.
func TestNobodyHoldsUpTheServersOwnWork(t *testing.T) {
	n := server(t)
	d := foodb()
	d.Roles = []database.Role{role("second", database.Owner)}
	n.ensure(d)
	for _, name := range []string{"foo", "second"} {
		password := map[string]string{"foo": "mypassword", "second": "second's password"}[name]
		if _, err := n.login(name, password, "postgres"); code(err) != denied {
			t.Errorf("%s connects to the database postgres: %v", name, err)
		}
	}
	second := n.mustLogin("second", "second's password", "foo")
	for _, statement := range []string{
		"SELECT pg_advisory_lock(x) FROM unnest(ARRAY[128021740744194, 500084924782, 0]::bigint[]) x", "BEGIN",
		"SET role = none", "ALTER ROLE second PASSWORD 'mine'",
	} {
		if c := sql(t, second, statement); c != "" {
			t.Fatalf("%s: %s", statement, c)
		}
	}
	n.ensure(declared("default/bar", "bar", "x"))
	d.Roles = nil
	n.ensure(d)
	n.do("GRANT CONNECT ON DATABASE postgres TO bar") // as a user does for a role that watches the server
	s := n.session()
	defer s.Close()
	must(t, s.KeepMaintenance(t.Context()))
	n.mustLogin("bar", "x", "postgres")
}

// CREATE DATABASE copies the template, which works only while nobody is in there.
func TestNoApplicationIsInTheTemplate(t *testing.T) {
	n := server(t)
	n.ensure(foodb())
	refused := func() {
		t.Helper()
		if conn, err := n.login("foo", "mypassword", "template1"); code(err) != denied {
			t.Errorf("an application connects to template1: %v, %v", conn, err)
		}
	}
	refused()
	s := n.session()
	defer s.Close()
	n.do("GRANT CONNECT, TEMPORARY ON DATABASE template1 TO PUBLIC")
	must(t, s.KeepMaintenance(t.Context()))
	refused()
	n.do("CREATE DATABASE other")
	n.do("GRANT CONNECT ON DATABASE template1 TO foo") // who may is a superuser's business
	must(t, s.KeepMaintenance(t.Context()))
	n.mustLogin("foo", "mypassword", "template1")
}

func TestWhatIsSomebodyElsesIsRefused(t *testing.T) {
	n := server(t)
	n.ensure(foodb())
	n.do("CREATE ROLE boss LOGIN SUPERUSER; CREATE ROLE plain LOGIN")
	n.do("CREATE ROLE runner LOGIN; CREATE ROLE runners; GRANT runners TO runner; " +
		"GRANT pg_execute_server_program TO runners; CREATE ROLE deputy LOGIN NOINHERIT; GRANT boss TO deputy")
	n.do("CREATE DATABASE old OWNER plain")
	other := declared("default/other", "other", "x")
	with := func(change func(*database.Declared)) database.Declared {
		d := other
		change(&d)
		return d
	}
	for name, c := range map[string]struct {
		declared database.Declared
		want     database.Reason
	}{
		"database of another": {with(func(d *database.Declared) { d.Name = "foo" }), database.DatabaseTaken},
		"role of another":     {with(func(d *database.Declared) { d.Owner.Name = "foo" }), database.RoleTaken},
		"further role": {
			with(func(d *database.Declared) { d.Roles = []database.Role{role("foo", database.ReadOnly)} }),
			database.RoleTaken,
		},
		"superuser": {
			with(func(d *database.Declared) { d.Owner.Name = "boss"; d.Adopt = true }), database.RolePrivileged,
		},
		"member of a superuser": {
			with(func(d *database.Declared) { d.Owner.Name = "deputy"; d.Adopt = true }), database.RolePrivileged,
		},
		"member of a member of a role that runs programs": {
			with(func(d *database.Declared) { d.Owner.Name = "runner"; d.Adopt = true }), database.RolePrivileged,
		},
		"role there":     {with(func(d *database.Declared) { d.Owner.Name = "plain" }), database.RoleExists},
		"database there": {with(func(d *database.Declared) { d.Name = "old" }), database.DatabaseForeign},
		"another's, to adopt": {
			with(func(d *database.Declared) { d.Name = "old"; d.Adopt = true }), database.DatabaseForeign,
		},
		"no password": {with(func(d *database.Declared) { d.Owner.Password = nil }), database.NoPassword},
	} {
		if got := n.refuses(c.declared); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	adopted := with(func(d *database.Declared) { d.Name, d.Owner.Name, d.Adopt = "old", "plain", true })
	n.ensure(adopted)
	n.mustLogin("plain", "x", "old")
	missing := with(func(d *database.Declared) { d.Extensions = []string{"no_such_extension"} })
	if _, err := database.Ensure(within(t, deadline), n.ConnectTo, missing); !isRefused(err, database.ServerRefused) {
		t.Errorf("an extension that is not there: %v", err)
	}
}

func isRefused(err error, reason database.Reason) bool {
	var refusal *database.Refusal
	return errors.As(err, &refusal) && refusal.Reason == reason
}

func TestDropRemovesWhatIsOursAndNothingElse(t *testing.T) {
	n := server(t)
	d := foodb()
	d.Roles = []database.Role{role("reader", database.ReadOnly, "public")}
	n.ensure(d)
	n.ensure(declared("default/bar", "bar", "x"))
	busy := n.mustLogin("foo", "mypassword", "foo")
	sql(t, busy, "CREATE TABLE t ()")
	foreign := declared("default/other", "foo", "x")
	_, err := database.Drop(within(t, deadline), n.ConnectTo, foreign)
	must(t, err)
	n.mustLogin("foo", "mypassword", "foo")
	for range 2 {
		_, err = database.Drop(within(t, deadline), n.ConnectTo, d)
		must(t, err)
	}
	got := n.ask("SELECT coalesce(string_agg(name, ' ' ORDER BY name), '') FROM (SELECT datname::text AS name FROM " +
		"pg_database UNION SELECT rolname FROM pg_roles) x WHERE name IN ('foo', 'reader', 'bar')")
	if got != "bar" {
		t.Errorf("there are %q, want bar alone", got)
	}
	if err := busy.Ping(within(t, time.Second)); err == nil {
		t.Error("a session in the database goes on")
	}
}

func TestTwoDeclareTheSameAtOnce(t *testing.T) {
	n := server(t)
	results := make(chan error, 8)
	for i := range cap(results) {
		d := foodb()
		if i%2 == 1 {
			d.Claimant = "default/other"
		}
		go func() {
			_, err := database.Ensure(within(t, deadline), n.ConnectTo, d)
			results <- err
		}()
	}
	var reasons []string
	for range cap(results) {
		var refusal *database.Refusal
		if err := <-results; errors.As(err, &refusal) {
			reasons = append(reasons, string(refusal.Reason))
		} else {
			must(t, err)
		}
	}
	slices.Sort(reasons)
	if got := strings.Join(slices.Compact(reasons), " "); len(reasons) != 4 || got != string(database.RoleTaken) {
		t.Errorf("refused %q, want all four of one of the two", reasons)
	}
}
