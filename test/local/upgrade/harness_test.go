package upgrade_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/former"
	"toban.dev/internal/work/major"
	"toban.dev/test/local/aspostgres"
)

// deadline is for what must come true: generous, for busy machines.
const deadline = 3 * time.Minute

const id = "upgrade-1"

// programs are those of a major version.
func programs(t *testing.T, major int) postgres.Programs {
	t.Helper()
	found := aspostgres.Release(major)
	if !filepath.IsAbs(found) {
		t.Skip(found)
	}
	out, err := exec.Command(filepath.Join(found, "postgres"), "--version").Output()
	must(t, err)
	return postgres.Programs{Dir: found, Major: major, Version: strings.Fields(string(out))[2]}
}

var (
	collectedMutex sync.Mutex
	collectedBy    = map[int]string{}
)

// collected are the programs of a version as the container in its image has left them.
func collected(t *testing.T, major int) postgres.Programs {
	t.Helper()
	collectedMutex.Lock()
	defer collectedMutex.Unlock()
	folder := collectedBy[major]
	if folder == "" {
		var err error
		folder, err = os.MkdirTemp("", "former-") //nolint:usetesting // for all tests
		must(t, err)
		_, err = former.Collect(t.Context(), former.Source{Programs: programs(t, major)}, folder)
		must(t, err)
		collectedBy[major] = folder
	}
	_, p, err := former.Open(folder)
	must(t, err)
	return p
}

// instance is the volume of one, with a server that a test may run there.
type instance struct {
	*testing.T
	*postgres.Server
}

// newInstance makes one with data of a version, in a folder. Its server does not run.
func newInstance(t *testing.T, major int, folder string) *instance {
	t.Helper()
	volume, err := os.MkdirTemp(folder, "v-") //nolint:usetesting // on a file system of its own
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(volume) })
	run, err := os.MkdirTemp("", "toban-up-") //nolint:usetesting // short: a socket's path has at most 107 bytes
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(run) })
	i := &instance{t, &postgres.Server{Programs: programs(t, major), Data: postgres.DataDirectory{Volume: volume},
		Run: run, Port: 5432}}
	must(t, i.Initialise(t.Context(), &testLog{T: t}))
	return i
}

type testLog struct {
	*testing.T
	mutex sync.Mutex
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if os.Getenv("TOBAN_TEST_VERBOSE") != "" {
		l.Log(strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

// start starts the server of a data directory, as a primary that listens on a socket only.
func (i *instance) start(p postgres.Programs, data string) (stop func(syscall.Signal)) {
	i.Helper()
	hba := filepath.Join(i.Server.Run, "hba")
	must(i, os.WriteFile(hba, []byte("local all all trust\nlocal replication all trust\n"), 0o600))
	// As an agent does: that of a server that has ended may name somebody else by now.
	for _, left := range []string{
		filepath.Join(data, "postmaster.pid"), filepath.Join(i.Server.Run, ".s.PGSQL.5432.lock"),
	} {
		if err := os.Remove(left); err != nil && !errors.Is(err, os.ErrNotExist) {
			i.Fatal(err)
		}
	}
	var said bytes.Buffer
	cmd := exec.Command(filepath.Join(p.Dir, "postgres"), "-D", data, "-k", i.Server.Run, "-p", "5432",
		"-c", "listen_addresses=",
		"-c", "hba_file="+hba, "-c", "wal_level=logical", "-c", "max_prepared_transactions=5", "-c", "fsync=off")
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(i, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = sync.OnceValue(func() func(syscall.Signal) {
		return func(signal syscall.Signal) {
			_ = cmd.Process.Signal(signal)
			select {
			case <-ended:
			case <-time.After(deadline):
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				i.Errorf("the server does not stop:\n%s", said.String())
			}
		}
	})()
	i.Cleanup(func() { stop(syscall.SIGQUIT) })
	for end := time.Now().Add(deadline); ; time.Sleep(20 * time.Millisecond) {
		conn, err := i.dial("postgres")
		if err == nil {
			_ = conn.Close(context.Background())
			return stop
		}
		select {
		case <-ended:
			i.Fatalf("the server has ended:\n%s", said.String())
		default:
		}
		if time.Now().After(end) {
			i.Fatalf("the server does not start: %v\n%s", err, said.String())
		}
	}
}

func (i *instance) dial(database string) (*pgx.Conn, error) {
	return pgx.Connect(i.Context(),
		fmt.Sprintf("host=%s port=%d user=postgres dbname=%s sslmode=disable", i.Server.Run, i.Port, database))
}

// do runs statements.
func (i *instance) do(database, statements string) {
	i.Helper()
	conn, err := i.dial(database)
	must(i, err)
	defer conn.Close(context.Background())
	for _, statement := range strings.Split(statements, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err = conn.Exec(i.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			i.Fatalf("%s: %v", statement, err)
		}
	}
}

// ask runs a query and returns its one value.
func (i *instance) ask(database, query string) string {
	i.Helper()
	conn, err := i.dial(database)
	must(i, err)
	defer conn.Close(context.Background())
	var value *string
	must(i, conn.QueryRow(i.Context(), "select ("+query+")::text").Scan(&value))
	if value == nil {
		return ""
	}
	return *value
}

// fill gives it what an upgrade has to bring along.
func (i *instance) fill() {
	i.Helper()
	space := filepath.Join(i.Data.Volume, "tablespaces", "fast")
	must(i, os.MkdirAll(space, 0o700))
	i.do("postgres", fmt.Sprintf(`create role app login password 'secret';
create database shop owner app;
create tablespace fast location '%s';
alter role app set work_mem = '7MB'`, space))
	i.do("shop", `create extension hstore;
create table orders (id bigserial primary key, item text, tags hstore);
insert into orders (item, tags) select 'item ' || n, hstore('n', n::text) from generate_series(1, 20000) n;
create index on orders (item);
create table spaced (n int) tablespace fast;
insert into spaced select generate_series(1, 1000);
create materialized view totals as select count(*) as n from orders;
create type pair as (n int, text text);
create table pairs (pair pair);
insert into pairs select row(n, 'text ' || n)::pair from generate_series(1, 100) n;
alter table pairs add column more int;
alter table pairs alter column pair set (n_distinct = 100);
create sequence numbers start 41;
select nextval('numbers');
select lo_from_bytea(4711, 'large'::bytea);
analyze`)
}

// facts are what must be the same before and after.
func (i *instance) facts() map[string]string {
	i.Helper()
	all := map[string]string{}
	for name, query := range map[string]string{
		"rows":       "select count(*) || '/' || sum(id) || '/' || sum((tags->'n')::int) from orders",
		"index":      "select id from orders where item = 'item 777'",
		"tablespace": "select sum(n) || '/' || count(*) from spaced",
		"view":       "select n from totals",
		"sequence":   "select last_value from numbers",
		"pairs":      "select sum((pair).n) || md5(string_agg(pair::text, ' ' order by pair)) from pairs",
		"option": `select string_agg(o, ' ') from pg_attribute, unnest(attoptions) o
			where attrelid = 'pairs'::regclass and not starts_with(o, 'pg_attver=')`,
		"large":     "select convert_from(lo_get(4711), 'UTF8')",
		"extension": "select extname from pg_extension where extname = 'hstore'",
		"password":  "select rolpassword from pg_authid where rolname = 'app'",
		"setting":   "select setconfig::text from pg_db_role_setting s join pg_roles r on r.oid = s.setrole",
		"checksums": "select current_setting('data_checksums')",
		"locale": `select datcollate || datctype || pg_encoding_to_char(encoding)
			from pg_database where datname = 'shop'`,
	} {
		all[name] = i.ask("shop", query)
	}
	return all
}

// has fails where something is not as it was.
func (i *instance) has(want map[string]string) {
	i.Helper()
	got := i.facts()
	for name, value := range want {
		if got[name] != value {
			i.Errorf("%s: %q, want %q", name, got[name], value)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// childVariable has what a process that is to be ended does.
const childVariable = "TOBAN_TEST_UPGRADE"

type task struct {
	Options taskOptions
	// Kill is at which point it ends itself, Back says that it gives the old data back.
	Kill string
	Back bool
}

type taskOptions struct {
	Volume, WALVolume string
	Run, Method       string
	Former, New       postgres.Programs
	Parameters        map[string]string
}

// child does what it is asked to, and kills itself at a point: not its programs, which may go on.
func child() int {
	var t task
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &t); err != nil {
		return 2
	}
	var points []string
	o := major.Options{ID: id, Instance: "db-0", Volume: t.Options.Volume, WALVolume: t.Options.WALVolume,
		Run: t.Options.Run, Former: t.Options.Former, New: t.Options.New, Method: t.Options.Method,
		Parameters: t.Options.Parameters, Jobs: 2, Log: os.Stderr,
		At: func(point string) {
			points = append(points, point)
			if point == t.Kill {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}}
	_ = os.Unsetenv(childVariable)
	var result any
	var err error
	if t.Back {
		result, err = major.Back(context.Background(), o)
	} else {
		result, err = major.Upgrade(context.Background(), o)
	}
	text, _ := json.Marshal(outcome{Points: points, Result: result, Refused: errors.Is(err, major.ErrRefused),
		Error: fmt.Sprint(err)})
	fmt.Println("RESULT " + string(text))
	return 0
}

type outcome struct {
	Points  []string
	Result  any
	Refused bool
	Error   string
}

// process runs a child, and says how it has ended; killed is true where it has ended itself.
func (i *instance) process(to int, method, kill string, back bool) (o outcome, killed bool) {
	i.Helper()
	text, err := json.Marshal(task{Kill: kill, Back: back, Options: taskOptions{
		Volume: i.Data.Volume, WALVolume: i.Data.WALVolume, Run: i.Server.Run, Method: method,
		Former: collected(i.T, i.Programs.Major), New: programs(i.T, to),
	}})
	must(i, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	// Its programs may outlive it, and keep these open.
	cmd.WaitDelay = 100 * time.Millisecond
	err = cmd.Run()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return o, true
	}
	_, line, ok := strings.Cut(out.String(), "RESULT ")
	if !ok {
		i.Fatalf("the process says nothing: %v\n%s", err, said.String())
	}
	must(i, json.Unmarshal([]byte(line), &o))
	if o.Error != "<nil>" && !o.Refused {
		i.Logf("%s\n%s", o.Error, said.String())
	}
	return o, false
}

// result is that of an upgrade in a process.
func (o outcome) result(t *testing.T) (r protocol.UpgradeResult) {
	t.Helper()
	text, err := json.Marshal(o.Result)
	must(t, err)
	must(t, json.Unmarshal(text, &r))
	return r
}
