package local

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/test/local/single"
	"toban.dev/test/releases"
)

// deadline is for conditions that must come true: generous, for busy machines.
const deadline = 90 * time.Second

// cluster is a SampleDB without Kubernetes.
type cluster struct {
	*testing.T
	folder    string
	subnet    int
	authority *pki.Authority
	operator  *protocol.Client
	config    protocol.Config
	agents    map[string]*exec.Cmd
	logs      map[string]*bytes.Buffer
	owner     *syscall.Credential
	// programs is the folder of a PostgreSQL that is not installed, "" for the one that is.
	programs string
	// said is the log of the last backup.
	said string
	// apart says that each instance has its WAL on a volume of its own.
	apart bool
	// wrap changes how an agent is started, nil for not.
	wrap func(name string, cmd *exec.Cmd)
}

var subnets atomic.Int32

// newCluster prepares a cluster; its agents are not started yet.
func newCluster(t *testing.T, instances int) *cluster {
	t.Helper()
	c := &cluster{
		T: t, subnet: int(subnets.Add(1)), agents: map[string]*exec.Cmd{},
		logs: map[string]*bytes.Buffer{}, owner: single.User(t),
	}
	var err error
	if c.folder, err = os.MkdirTemp("", //nolint:usetesting // short: a socket's path has at most 107 bytes
		"toban-db-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(c.folder) })
	c.own(c.folder)
	if c.authority, err = pki.NewAuthority(bytes.Repeat([]byte{7}, 32), "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	operator, err := pki.NewAuthority(bytes.Repeat([]byte{9}, 32), "operator", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.operator = protocol.NewClient(c.clientTLS(operator, naming.IdentityOperator), naming.PortAgent)
	c.config = protocol.Config{Cluster: "db", Namespace: "test", Major: single.Major(t),
		Authority: string(c.authority.CertPEM()), Operator: string(operator.CertPEM()),
		ServerNames: []string{serverName},
		Parameters:  map[string]string{"max_connections": "30", "shared_buffers": "16MB"}}
	for i := range instances {
		c.config.Members = append(c.config.Members, protocol.Member{Name: naming.Instance("db", i), Host: c.host(i)})
	}
	if major := releases.Wanted(); major > 0 {
		c.newer(major)
	}
	c.writeAuthority()
	t.Cleanup(c.stopAll)
	return c
}

// newer has a cluster run a newer PostgreSQL than is installed.
func (c *cluster) newer(major int) {
	c.Helper()
	found, err := releases.Programs(c.Context(), major)
	if err != nil {
		c.Skipf("not here: %v", err)
	}
	c.config.Major, c.programs = major, found
}

// client is a program of PostgreSQL, of the version that the cluster runs.
func (c *cluster) client(name string) string {
	c.Helper()
	if c.programs != "" {
		return filepath.Join(c.programs, name)
	}
	found, err := postgres.FindPrograms(c.Context(), c.config.Major)
	c.must(err)
	return filepath.Join(found.Dir, name)
}

// env is the environment of our program as a verb.
func (c *cluster) env(verb string, more ...string) []string {
	env := append(os.Environ(), agentVariable+"="+verb)
	if c.programs != "" {
		env = append(env, "PATH="+c.programs+":"+os.Getenv("PATH"))
	}
	return append(env, more...)
}

func (c *cluster) host(ordinal int) string { return fmt.Sprintf("127.10.%d.%d", c.subnet, ordinal+1) }

func (c *cluster) own(path string) {
	if c.owner != nil {
		if err := os.Chown(path, int(c.owner.Uid), int(c.owner.Gid)); err != nil {
			c.Fatal(err)
		}
	}
}

func (c *cluster) write(name string, content []byte) {
	c.Helper()
	path := filepath.Join(c.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		c.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) writeAuthority() {
	key, err := c.authority.KeyPEM()
	if err != nil {
		c.Fatal(err)
	}
	c.write("ca/"+naming.KeyCA, c.authority.CertPEM())
	c.write("ca/"+naming.KeyCAKey, key)
}

func (c *cluster) clientTLS(authority *pki.Authority, identity string) *tls.Config {
	show, roots := c.shows(authority, identity)
	return pki.ClientTLS(show, roots, naming.IdentityInstance)
}

// databaseTLS is how the init Job knows a server.
func (c *cluster) databaseTLS(host string) *tls.Config {
	show, roots := c.shows(c.authority, naming.IdentityInit)
	own := func() (*x509.CertPool, error) { return roots, nil }
	config, err := pki.DatabaseTLS(show, own, naming.IdentityInstance, c.config.Given)
	if err != nil {
		c.Fatal(err)
	}
	return pki.ForHost(config, host)
}

// shows is a certificate of an authority, and whom its holder trusts.
func (c *cluster) shows(authority *pki.Authority, identity string) (func() (tls.Certificate, error), *x509.CertPool) {
	leaf, err := authority.Issue(identity, nil, time.Now())
	if err != nil {
		c.Fatal(err)
	}
	roots, err := pki.Pool(string(c.authority.CertPEM()))
	if err != nil {
		c.Fatal(err)
	}
	return leaf.TLS, roots
}

// start starts an agent with the config as it is.
func (c *cluster) start(names ...string) {
	c.Helper()
	c.config = c.config.Revise()
	text, err := json.Marshal(c.config)
	if err != nil {
		c.Fatal(err)
	}
	c.write("config.json", text)
	for _, name := range names {
		c.startOne(name)
	}
}

func (c *cluster) startOne(name string) {
	ordinal, _ := naming.Ordinal(name)
	for _, sub := range []string{"volume", "run", "wal"} {
		path := filepath.Join(c.folder, name, sub)
		if err := os.MkdirAll(path, 0o700); err != nil {
			c.Fatal(err)
		}
		c.own(path)
		c.own(filepath.Dir(path))
	}
	cmd := c.agent(name, c.host(ordinal), filepath.Join(c.folder, name, "run"))
	if c.wrap != nil {
		c.wrap(name, cmd)
	}
	c.run(name, cmd)
}

// agent is one on an instance's volume, at an address.
func (c *cluster) agent(name, host, run string) *exec.Cmd {
	cmd := exec.Command(program, "--name", name, "--listen", host, "--address", host,
		"--config", filepath.Join(c.folder, "config.json"), "--authority", filepath.Join(c.folder, "ca"),
		"--certificate", filepath.Join(c.folder, "given"),
		"--volume", filepath.Join(c.folder, name, "volume"), "--run", run,
		"--termination-log", filepath.Join(run, "../last-words"))
	if c.apart {
		cmd.Args = append(cmd.Args, "--"+naming.FlagWALVolume, c.walDisk(name))
	}
	cmd.Env = c.env("1", naming.EnvRestored+"="+c.config.Restored,
		naming.EnvSurvivor+"="+c.config.Survivor)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	return cmd
}

// run runs an agent under a name.
func (c *cluster) run(name string, cmd *exec.Cmd) {
	cmd.Dir = c.folder
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.agents[name], c.logs[name] = cmd, log
}

// kill ends an agent by a signal and waits for it.
func (c *cluster) kill(name string, with syscall.Signal) {
	c.Helper()
	cmd := c.agents[name]
	if cmd == nil {
		c.Fatalf("%s does not run", name)
	}
	delete(c.agents, name)
	c.signal(cmd, with)
	_ = cmd.Wait() // killed: that is an error, as wanted
}

// signal sends a signal to an agent, behind what has started it.
func (c *cluster) signal(cmd *exec.Cmd, s syscall.Signal) {
	if c.wrap != nil {
		_ = syscall.Kill(-cmd.Process.Pid, s)
		return
	}
	_ = cmd.Process.Signal(s)
}

func (c *cluster) stopAll() {
	for name := range c.agents {
		c.signal(c.agents[name], syscall.SIGTERM)
	}
	for name, cmd := range c.agents {
		_ = cmd.Wait()
		if c.Failed() {
			c.Logf("log of %s:\n%s", name, c.logs[name])
		}
	}
}

// status asks an agent.
func (c *cluster) status(name string) (protocol.Status, error) {
	ordinal, _ := naming.Ordinal(name)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return c.operator.Status(ctx, c.host(ordinal))
}

// sync gives all running agents the config as it is.
func (c *cluster) sync() {
	c.Helper()
	c.config = c.config.Revise()
	for name := range c.agents {
		ordinal, _ := naming.Ordinal(name)
		if _, err := c.operator.Sync(c.Context(), c.host(ordinal), c.config); err != nil {
			c.Fatal(err)
		}
	}
}

// restart has an agent restart its server.
func (c *cluster) restart(name string) {
	c.Helper()
	ordinal, _ := naming.Ordinal(name)
	if _, err := c.operator.Restart(c.Context(), c.host(ordinal),
		protocol.Restart{Reason: "test", ConfigRevision: c.config.Revision}); err != nil {
		c.Fatal(err)
	}
}

// await waits until an instance is as it should be.
func (c *cluster) await(name, what string, ok func(protocol.Status) bool) protocol.Status {
	c.Helper()
	var status protocol.Status
	var err error
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if status, err = c.status(name); err == nil && ok(status) {
			return status
		}
	}
	text, _ := json.Marshal(status) // with what pointers lead to
	c.Fatalf("%s: not %s in time: %s, %v", name, what, text, err)
	return status
}

func primary(s protocol.Status) bool { return s.Role == protocol.RolePrimary && s.Ready }

func streaming(s protocol.Status) bool {
	return s.Role == protocol.RoleStandby && s.Ready && s.Streaming
}

// connect opens a superuser session on an instance over TCP, with a certificate.
func (c *cluster) connect(name string) (*pgx.Conn, error) {
	ordinal, _ := naming.Ordinal(name)
	return c.connectTo(context.Background(), c.host(ordinal))
}

// connectTo does so at an address.
func (c *cluster) connectTo(ctx context.Context, host string) (*pgx.Conn, error) {
	return c.connectIn(ctx, host, "postgres")
}

// connectIn does so in a database.
func (c *cluster) connectIn(ctx context.Context, host, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres dbname=%s connect_timeout=5",
		host, naming.PortPostgreSQL, database))
	if err != nil {
		return nil, err
	}
	config.TLSConfig, config.Fallbacks = c.databaseTLS(host), nil
	return pgx.ConnectConfig(ctx, config)
}

// exec runs SQL on an instance.
func (c *cluster) exec(name string, statements ...string) {
	c.Helper()
	conn, err := c.connect(name)
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			c.Fatalf("%s on %s: %v", sql, name, err)
		}
	}
}

// query is the one value that SQL gives on an instance, as text.
func (c *cluster) query(name, sql string) (string, error) {
	conn, err := c.connect(name)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	var value string
	return value, conn.QueryRow(context.Background(), sql).Scan(&value)
}

// awaitQuery waits until SQL gives a value on an instance.
func (c *cluster) awaitQuery(name, sql, want string) {
	c.Helper()
	var got string
	var err error
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if got, err = c.query(name, sql); err == nil && got == want {
			return
		}
	}
	c.Fatalf("%s on %s gives %q, %v; expected %q", sql, name, got, err, want)
}

// postmaster is the process id of an instance's server.
func (c *cluster) postmaster(name string) int {
	c.Helper()
	text, err := os.ReadFile(filepath.Join(c.folder, name, "volume/data/postmaster.pid"))
	if err != nil {
		c.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		c.Fatal(err)
	}
	return pid
}

// running says whether a process runs; one that only waits to be reaped does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}
