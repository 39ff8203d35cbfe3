// Package single starts one PostgreSQL of this machine for a test: with the certificates and the access rules of a
// SampleDB, and without an agent.
package single

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// Server is a PostgreSQL that listens on a port of its own on 127.0.0.1.
type Server struct {
	// Programs is the folder with PostgreSQL's programs.
	Programs string
	Port     uint16
	// Authority has issued the server's certificate.
	Authority *pki.Authority

	folder  string
	run     *syscall.Credential
	process *exec.Cmd
}

const (
	access = "local all all trust\n" +
		"hostssl all postgres all cert map=toban\n" +
		"hostssl all all all scram-sha-256\n"
	identities = "toban \"" + naming.IdentityInit + "\" postgres\n"
	settings   = "listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = 'tls.crt'\nssl_key_file = 'tls.key'\n" +
		"ssl_ca_file = 'ca.crt'\nfsync = off\nshared_buffers = 16MB\nmax_connections = 20\nlogging_collector = off\n"
)

// Start makes a new server and stops it at the end of the test.
func Start(t testing.TB) *Server {
	t.Helper()
	return StartOf(t, programs(t))
}

// StartOf does so with the programs in a folder.
func StartOf(t testing.TB, programs string) *Server {
	t.Helper()
	s := &Server{Programs: programs, Port: freePort(t), run: User(t)}
	// A folder of t.TempDir is closed to other users, and PostgreSQL does not run as root.
	folder, err := os.MkdirTemp("", "toban-single-") //nolint:usetesting // see above
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	s.folder = filepath.Join(folder, "data")
	must(t, os.Mkdir(s.folder, 0o700))
	s.own(t, s.folder)
	out, err := s.command("initdb", "-D", s.folder, "-U", "postgres", "--no-sync", "--locale=C.UTF-8",
		"--auth=trust").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.configure(t)
	s.Up(t)
	t.Cleanup(func() { s.Down(t) })
	return s
}

func (s *Server) configure(t testing.TB) {
	t.Helper()
	var err error
	s.Authority, err = pki.NewAuthority([]byte(strings.Repeat("s", 32)), "test", time.Now())
	must(t, err)
	s.certify(t)
	for name, text := range map[string]string{
		"ca.crt": string(s.Authority.CertPEM()), "pg_hba.conf": access, "pg_ident.conf": identities,
		"postgresql.auto.conf": settings + fmt.Sprintf("port = %d\nunix_socket_directories = '%s'\n", s.Port, s.folder),
	} {
		path := filepath.Join(s.folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		s.own(t, path)
	}
}

// certify gives the server a certificate of its authority.
func (s *Server) certify(t testing.TB) {
	t.Helper()
	leaf, err := s.Authority.Issue(naming.IdentityInstance, []string{"localhost", "127.0.0.1"}, time.Now())
	must(t, err)
	for name, text := range map[string][]byte{"tls.crt": leaf.CertPEM, "tls.key": leaf.KeyPEM} {
		path := filepath.Join(s.folder, name)
		must(t, os.WriteFile(path, text, 0o600))
		s.own(t, path)
	}
}

// Certify has the server that runs show a certificate of another authority.
func (s *Server) Certify(t testing.TB, authority *pki.Authority) {
	t.Helper()
	s.Authority = authority
	s.certify(t)
	s.Do(t, "postgres", "SELECT pg_reload_conf()")
}

// Up starts the server and waits until it takes writes.
func (s *Server) Up(t testing.TB) {
	t.Helper()
	log, err := os.Create(s.log())
	must(t, err)
	defer log.Close()
	s.process = s.command("postgres", "-D", s.folder)
	s.process.Stdout, s.process.Stderr = log, log
	must(t, s.process.Start())
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := s.Dial(t.Context(), "postgres", "postgres", "")
		if err == nil {
			_ = conn.Close(t.Context())
			return
		}
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("the server does not start: %v\n%s", err, text)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *Server) log() string { return filepath.Join(filepath.Dir(s.folder), "log") }

// Loud has the sessions of a superuser that begin from now on log all that they do, each in every way there is.
const Loud = `alter role postgres set log_statement = 'all'; alter role postgres set log_min_duration_statement = 0;
	alter role postgres set log_transaction_sample_rate = 1; alter role postgres set log_min_error_statement = 'debug5';
	alter role postgres set debug_print_parse = on; alter role postgres set debug_print_plan = on;`

// Secret is how a verifier begins, which no log is to have.
const Secret = "SCRAM-SHA-256$"

// Log is what the server has logged since it was started last.
func (s *Server) Log(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(s.log())
	must(t, err)
	return string(text)
}

// Down stops the server at once, as a crash does, and waits for its end.
func (s *Server) Down(t testing.TB) {
	t.Helper()
	if s.process == nil {
		return
	}
	must(t, s.process.Process.Signal(syscall.SIGQUIT))
	_ = s.process.Wait() // an immediate shutdown is no success by its own account
	s.process = nil
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.Programs, name), args...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.run, Pdeathsig: syscall.SIGQUIT}
	return c
}

func (s *Server) own(t testing.TB, path string) {
	t.Helper()
	if s.run != nil {
		must(t, os.Chown(path, int(s.run.Uid), int(s.run.Gid)))
	}
}

// Dial connects over the Unix socket, where everyone is trusted, or with a
// password over TCP.
func (s *Server) Dial(ctx context.Context, database, role, password string) (*pgx.Conn, error) {
	host, mode := s.folder, "disable"
	if password != "" {
		host, mode = "127.0.0.1", "require"
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d sslmode=%s", host, s.Port, mode))
	if err != nil {
		return nil, err
	}
	config.Database, config.User, config.Password = database, role, password
	return pgx.ConnectConfig(ctx, config)
}

// Ask runs a query as superuser and returns its one value as text.
func (s *Server) Ask(t testing.TB, database, query string, args ...any) string {
	t.Helper()
	conn, err := s.Dial(t.Context(), database, "postgres", "")
	must(t, err)
	defer conn.Close(t.Context())
	var out any
	must(t, conn.QueryRow(t.Context(), query, args...).Scan(&out))
	return fmt.Sprint(out)
}

// Do runs statements as superuser.
func (s *Server) Do(t testing.TB, database, statements string) {
	t.Helper()
	conn, err := s.Dial(t.Context(), database, "postgres", "")
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
}

// programs is the folder with the newest PostgreSQL of this machine.
func programs(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	must(t, err)
	if len(found) == 0 {
		t.Fatal("PostgreSQL's programs are not on this machine: hack/deps.sh installs them")
	}
	sort.Strings(found)
	return filepath.Dir(found[len(found)-1])
}

func freePort(t testing.TB) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends at once
	must(t, err)
	defer l.Close()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("the address is %v", l.Addr())
	}
	return uint16(address.Port)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
