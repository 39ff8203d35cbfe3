// Package initjob_test runs the init Job's work against a real PostgreSQL on
// this machine, with the certificates and the access rules of a SampleDB.
package initjob_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// server is a PostgreSQL that listens on a port of its own.
type server struct {
	folder, programs string
	port             uint16
	authority        *pki.Authority
	run              *syscall.Credential
	process          *exec.Cmd
}

const (
	access = "local all all trust\n" +
		"hostssl all postgres all cert map=toban\n" +
		"hostssl all all all scram-sha-256\n"
	identities = "toban \"" + naming.IdentityInit + "\" postgres\n"
	settings   = "listen_addresses = '127.0.0.1'\nssl = on\nssl_cert_file = 'tls.crt'\nssl_key_file = 'tls.key'\n" +
		"ssl_ca_file = 'ca.crt'\nfsync = off\nshared_buffers = 16MB\nmax_connections = 20\nlogging_collector = off\n"
)

// start makes a new server and stops it at the end of the test.
func start(t *testing.T) *server {
	t.Helper()
	s := &server{programs: programs(t), port: freePort(t), run: credential(t)}
	// A folder of t.TempDir is closed to other users, and PostgreSQL does not run as root.
	folder, err := os.MkdirTemp("", "toban-initjob-") //nolint:usetesting // see above
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	s.folder = filepath.Join(folder, "data")
	must(t, os.Mkdir(s.folder, 0o700))
	s.own(t, s.folder)
	out, err := s.command("initdb", "-D", s.folder, "-U", "postgres", "--no-sync", "--locale=C.UTF-8", "--auth=trust").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.configure(t)
	s.up(t)
	t.Cleanup(func() { s.down(t) })
	return s
}

func (s *server) configure(t *testing.T) {
	t.Helper()
	var err error
	s.authority, err = pki.NewAuthority([]byte(strings.Repeat("s", 32)), "test", time.Now())
	must(t, err)
	leaf, err := s.authority.Issue(naming.IdentityInstance, []string{"localhost"}, time.Now())
	must(t, err)
	for name, text := range map[string]string{
		"tls.crt": string(leaf.CertPEM), "tls.key": string(leaf.KeyPEM), "ca.crt": string(s.authority.CertPEM()),
		"pg_hba.conf": access, "pg_ident.conf": identities,
		"postgresql.auto.conf": settings + fmt.Sprintf("port = %d\nunix_socket_directories = '%s'\n", s.port, s.folder),
	} {
		path := filepath.Join(s.folder, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		s.own(t, path)
	}
}

// up starts the server and waits until it takes writes.
func (s *server) up(t *testing.T) {
	t.Helper()
	log, err := os.Create(filepath.Join(filepath.Dir(s.folder), "log"))
	must(t, err)
	defer log.Close()
	s.process = s.command("postgres", "-D", s.folder)
	s.process.Stdout, s.process.Stderr = log, log
	must(t, s.process.Start())
	deadline := time.Now().Add(30 * time.Second)
	for {
		conn, err := s.dial(t.Context(), "postgres", "postgres", "")
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

// down stops the server at once, as a crash does, and waits for its end.
func (s *server) down(t *testing.T) {
	t.Helper()
	if s.process == nil {
		return
	}
	must(t, s.process.Process.Signal(syscall.SIGQUIT))
	_ = s.process.Wait() // an immediate shutdown is no success by its own account
	s.process = nil
}

func (s *server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.programs, name), args...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.run, Pdeathsig: syscall.SIGQUIT}
	return c
}

func (s *server) own(t *testing.T, path string) {
	t.Helper()
	if s.run != nil {
		must(t, os.Chown(path, int(s.run.Uid), int(s.run.Gid)))
	}
}

// tls is that of the init Job.
func (s *server) tls(t *testing.T, identity string) *tls.Config {
	t.Helper()
	leaf, err := s.authority.Issue(naming.IdentityInit, nil, time.Now())
	must(t, err)
	roots, err := pki.Pool(string(s.authority.CertPEM()))
	must(t, err)
	return pki.ClientTLS(leaf.TLS, roots, identity)
}

// dial connects over the Unix socket, where everyone is trusted, or with a
// password over TCP.
func (s *server) dial(ctx context.Context, database, role, password string) (*pgx.Conn, error) {
	host, mode := s.folder, "disable"
	if password != "" {
		host, mode = "127.0.0.1", "require"
	}
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d sslmode=%s", host, s.port, mode))
	if err != nil {
		return nil, err
	}
	config.Database, config.User, config.Password = database, role, password
	return pgx.ConnectConfig(ctx, config)
}

// ask runs a query as superuser and returns its one value as text.
func (s *server) ask(t *testing.T, database, query string, args ...any) string {
	t.Helper()
	conn, err := s.dial(t.Context(), database, "postgres", "")
	must(t, err)
	defer conn.Close(t.Context())
	var out any
	must(t, conn.QueryRow(t.Context(), query, args...).Scan(&out))
	return fmt.Sprint(out)
}

// do runs statements as superuser.
func (s *server) do(t *testing.T, database, statements string) {
	t.Helper()
	conn, err := s.dial(t.Context(), database, "postgres", "")
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	must(t, err)
}

// programs is the folder with the newest PostgreSQL of this machine.
func programs(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	must(t, err)
	if len(found) == 0 {
		t.Fatal("PostgreSQL's programs are not on this machine: hack/deps.sh installs them")
	}
	sort.Strings(found)
	return filepath.Dir(found[len(found)-1])
}

// credential is whom to run the server as: itself, or nobody special where this is root.
func credential(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	who, err := user.Lookup("postgres")
	if err != nil {
		who, err = user.Lookup("nobody")
	}
	must(t, err)
	uid, err := strconv.ParseUint(who.Uid, 10, 32)
	must(t, err)
	gid, err := strconv.ParseUint(who.Gid, 10, 32)
	must(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func freePort(t *testing.T) uint16 {
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

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
