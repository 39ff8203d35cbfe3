package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
)

// deadline is for what must come true: generous, for busy machines.
const deadline = 60 * time.Second

var subnets atomic.Int32

// node is one server.
type node struct {
	*testing.T
	*postgres.Server
	name, slot string
	defaults   bool // it has the parameters of a SampleDB that says nothing of them
	along      bool // slots of a link come along to it
	keepsWAL   bool // else a checkpoint, also that of an orderly stop, removes WAL that a rewind needs
	patient    bool // what may wait in it waits longer than a test: nothing goes on by itself
	settings   postgres.Settings
	process    *postgres.Process
	log        *buffer
}

// buffer is a log that is written and read at once.
type buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// nodes are servers with certificates of one authority, and no data.
func nodes(t *testing.T, n int) []*node {
	t.Helper()
	folder, err := os.MkdirTemp("", "toban-pg-") //nolint:usetesting // short: a socket's path has at most 107 bytes
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	authority, err := pki.NewAuthority(bytes.Repeat([]byte{7}, 32), "test", time.Now())
	must(t, err)
	subnet := subnets.Add(1)
	var all []*node
	for i := range n {
		name := naming.Instance("db", i)
		s := &postgres.Server{Programs: programs(t), Data: postgres.DataDirectory{Volume: filepath.Join(folder, name)},
			Run: filepath.Join(folder, name, "run"), Listen: fmt.Sprintf("127.11.%d.%d", subnet, i+1), Port: 5432}
		must(t, os.MkdirAll(s.Run, 0o700))
		leaf, err := authority.Issue(naming.IdentityInstance, []string{name}, time.Now())
		must(t, err)
		for file, content := range map[string][]byte{
			postgres.FileAuthority: authority.CertPEM(), postgres.FileCertificate: leaf.CertPEM,
			postgres.FileKey: leaf.KeyPEM, postgres.FileClients: append(leaf.CertPEM, leaf.KeyPEM...),
		} {
			must(t, os.WriteFile(filepath.Join(s.Run, file), content, 0o600))
		}
		all = append(all, &node{T: t, Server: s, name: name, slot: fmt.Sprintf("toban_db_%d", i), log: &buffer{}})
	}
	t.Cleanup(func() { end(t, all) })
	return all
}

func end(t *testing.T, all []*node) {
	for _, n := range all {
		if n.process != nil {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			if err := n.process.Fence(ctx); err != nil {
				t.Errorf("%s: %v", n.name, err)
			}
			cancel()
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.name, n.log)
		}
	}
}

// programs are those of the newest PostgreSQL version that is installed.
func programs(t *testing.T) postgres.Programs {
	t.Helper()
	for major := 18; major >= 15; major-- {
		if p, err := postgres.FindPrograms(t.Context(), major); err == nil {
			return p
		}
	}
	t.Fatal("no PostgreSQL server is installed: apt-get install postgresql")
	return postgres.Programs{}
}

// pair is a primary and standbys that stream from it.
func pair(t *testing.T, standbys int) (*node, []*node) {
	t.Helper()
	all := nodes(t, 1+standbys)
	all[0].found()
	for _, s := range all[1:] {
		s.clone(all[0])
		s.follow(all[0], 1)
		s.streams()
	}
	return all[0], all[1:]
}

// found makes the first primary.
func (n *node) found() {
	n.Helper()
	must(n, n.Initialise(n.Context(), n.log))
	n.lead("")
	s := n.session()
	defer s.Close()
	must(n, s.EnsureReplication(n.Context()))
	must(n, s.KeepMaintenance(n.Context()))
}

func (n *node) parameters() map[string]string {
	if n.defaults {
		return defaultParameters()
	}
	all := map[string]string{"max_connections": "30", "shared_buffers": "16MB", "log_min_messages": "debug1"}
	if n.keepsWAL {
		all["wal_keep_size"] = "256MB"
	}
	if n.patient {
		maps.Copy(all, map[string]string{
			"wal_retrieve_retry_interval": "1h", "authentication_timeout": "10min",
			"max_standby_streaming_delay": "-1", "max_standby_archive_delay": "-1",
		})
	}
	return all
}

// lead starts the server as a primary.
func (n *node) lead(rule string) {
	n.Helper()
	n.settings = postgres.Settings{Name: n.name, Parameters: n.parameters(), Synchronous: rule}
	must(n, n.Configure(n.settings))
	must(n, n.Data.SetStandby(false))
	n.start()
}

func (n *node) upstream(of *node, term uint64) postgres.Upstream {
	return postgres.Upstream{Host: of.Listen, Address: of.Listen, Port: of.Port, Name: n.name, Slot: n.slot, Term: term}
}

// clone copies a primary, and has a slot there afterwards.
func (n *node) clone(of *node) {
	n.Helper()
	of.slots(n)
	must(n, n.Clone(n.Context(), n.upstream(of, 0), never, n.log))
}

// never lets no data be given up for a copy that is not whole.
func never(whole bool) error {
	if whole {
		return nil
	}
	return errors.New("the data stays")
}

func (n *node) slots(of ...*node) {
	n.Helper()
	s := n.session()
	defer s.Close()
	var names []string
	for _, o := range of {
		names = append(names, o.slot)
	}
	must(n, s.EnsureSlots(n.Context(), names))
}

// follow makes the server follow another one, or nobody; it is started or reloaded.
func (n *node) follow(of *node, term uint64) {
	n.Helper()
	n.settings = postgres.Settings{Name: n.name, Parameters: n.parameters(), Standby: true, Link: n.along}
	if of != nil {
		upstream := n.upstream(of, term)
		n.settings.Upstream = &upstream
	}
	must(n, n.Configure(n.settings))
	if n.process != nil {
		must(n, n.process.Reload())
		return
	}
	must(n, n.Data.SetStandby(true))
	n.start()
}

func (n *node) start() {
	n.Helper()
	var err error
	n.process, err = n.Start(n.Context(), n.log)
	must(n, err)
	ctx, cancel := context.WithTimeout(n.Context(), deadline)
	defer cancel()
	must(n, n.process.Ready(ctx))
}

// keepWAL makes checkpoints keep WAL.
func (n *node) keepWAL() {
	n.Helper()
	n.keepsWAL = true
	n.settings.Parameters = n.parameters()
	must(n, n.Configure(n.settings))
	must(n, n.process.Reload())
}

func (n *node) stop(mode postgres.StopMode) {
	ctx, cancel := context.WithTimeout(n.Context(), deadline)
	defer cancel()
	n.process.Stop(ctx, mode)
	n.process = nil
}

// session is a session of the package's own.
func (n *node) session() *postgres.Session {
	n.Helper()
	s, err := n.Connect(n.Context())
	must(n, err)
	return s
}

// dial is a user's session, as superuser.
func (n *node) dial() *pgx.Conn {
	n.Helper()
	conn, err := pgx.Connect(n.Context(),
		fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres sslmode=disable", n.Server.Run, n.Port))
	must(n, err)
	return conn
}

func (n *node) do(statements string) {
	n.Helper()
	conn := n.dial()
	defer conn.Close(context.Background())
	_, err := conn.Exec(n.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(n, err)
}

// ask runs a query and returns its one value.
func (n *node) ask(query string) string {
	n.Helper()
	conn := n.dial()
	defer conn.Close(context.Background())
	var value *string
	must(n, conn.QueryRow(n.Context(), "select ("+query+")::text").Scan(&value))
	if value == nil {
		return ""
	}
	return *value
}

func (n *node) state() postgres.State {
	n.Helper()
	s := n.session()
	defer s.Close()
	state, err := s.State(n.Context())
	must(n, err)
	return state
}

// streams waits until the standby streams.
func (n *node) streams() {
	n.Helper()
	n.eventually("it streams", func() bool { return n.state().Streaming })
}

// eventually waits until something is so.
func (n *node) eventually(what string, so func() bool) {
	n.Helper()
	for end := time.Now().Add(deadline); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatalf("%s: it did not come true that %s", n.name, what)
		}
	}
}

// within is a context for what must not take long.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
