package mixed

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
	"toban.dev/test/local/single"
)

// deadline is for conditions that must come true: generous, for busy machines.
const deadline = 90 * time.Second

// cluster is a SampleDB of three instances without Kubernetes, whose agents may be of different releases.
type cluster struct {
	*testing.T
	folder    string
	subnet    int
	authority *pki.Authority
	operator  *protocol.Client
	config    protocol.Config
	owner     *syscall.Credential
	instances map[string]*instance
}

// instance is one of them, by the agent that it has or had last.
type instance struct {
	release release
	cmd     *exec.Cmd
	log     text
}

// text is what somebody writes, to be read meanwhile.
type text struct {
	mutex sync.Mutex
	said  bytes.Buffer
}

// Write takes more of it.
func (t *text) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.said.Write(p)
}

// String is all of it.
func (t *text) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.said.String()
}

// newCluster starts a cluster whose agents are of these releases in turn, and waits until it is whole.
func newCluster(t *testing.T, subnet int, of ...release) *cluster {
	t.Helper()
	c := &cluster{T: t, subnet: subnet, instances: map[string]*instance{}, owner: single.User(t)}
	folder, err := os.MkdirTemp("", "toban-db-") //nolint:usetesting // short: a socket's path has at most 107 bytes
	c.must(err)
	c.folder = folder
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	c.own(folder)
	c.authority, err = pki.NewAuthority(bytes.Repeat([]byte{7}, 32), "test", time.Now())
	c.must(err)
	operator, err := pki.NewAuthority(bytes.Repeat([]byte{9}, 32), "operator", time.Now())
	c.must(err)
	c.operator = protocol.NewClient(c.clientTLS(operator, naming.IdentityOperator), naming.PortAgent)
	c.config = protocol.Config{
		Cluster: "db", Namespace: "test", Major: single.Major(t), Durability: protocol.DurabilityQuorum,
		Authority: string(c.authority.CertPEM()), Operator: string(operator.CertPEM()),
		ServerNames: []string{serverName},
		Parameters:  map[string]string{"max_connections": "30", "shared_buffers": "16MB"},
	}
	for i := range 3 {
		c.config.Members = append(c.config.Members, protocol.Member{Name: naming.Instance("db", i), Host: c.host(i)})
	}
	key, err := c.authority.KeyPEM()
	c.must(err)
	c.write("ca/"+naming.KeyCA, c.authority.CertPEM())
	c.write("ca/"+naming.KeyCAKey, key)
	c.writeConfig()
	t.Cleanup(c.stopAll)
	for i, name := range c.names() {
		c.instances[name] = &instance{release: of[i%len(of)]}
		c.start(name)
	}
	c.adoptIdentifier(c.whole())
	return c
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) host(ordinal int) string { return fmt.Sprintf("127.12.%d.%d", c.subnet, ordinal+1) }

func (c *cluster) hostOf(name string) string {
	ordinal, _ := naming.Ordinal(name)
	return c.host(ordinal)
}

func (c *cluster) names() []string {
	var names []string
	for _, m := range c.config.Members {
		names = append(names, m.Name)
	}
	return names
}

func (c *cluster) own(path string) {
	c.Helper()
	if c.owner != nil {
		c.must(os.Chown(path, int(c.owner.Uid), int(c.owner.Gid)))
	}
}

func (c *cluster) write(name string, content []byte) {
	c.Helper()
	path := filepath.Join(c.folder, name)
	c.must(errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)))
}

// writeConfig writes the config as today's operator does, whatever release reads it.
func (c *cluster) writeConfig() {
	c.Helper()
	c.config = c.config.Revise()
	text, err := json.Marshal(c.config)
	c.must(err)
	c.write("config.json", text)
}

// adoptIdentifier tells all agents whose data it is, as the operator does.
func (c *cluster) adoptIdentifier(leader string) {
	c.Helper()
	status, err := c.status(leader)
	c.must(err)
	c.config.SystemIdentifier = status.SystemIdentifier
	c.writeConfig()
	for _, name := range c.names() {
		_, err := c.operator.Sync(c.Context(), c.hostOf(name), c.config)
		c.must(err)
	}
}

func (c *cluster) clientTLS(authority *pki.Authority, identity string) *tls.Config {
	c.Helper()
	leaf, err := authority.Issue(identity, nil, time.Now())
	c.must(err)
	pair, err := leaf.TLS()
	c.must(err)
	roots, err := pki.Pool(string(c.authority.CertPEM()))
	c.must(err)
	return pki.ClientTLS(func() (tls.Certificate, error) { return pair, nil }, roots, naming.IdentityInstance)
}

// start starts the agent of an instance.
func (c *cluster) start(name string) {
	c.Helper()
	i := c.instances[name]
	for _, sub := range []string{"volume", "run", "tmp"} {
		path := filepath.Join(c.folder, name, sub)
		c.must(os.MkdirAll(path, 0o700))
		c.own(path)
		c.own(filepath.Dir(path))
	}
	i.cmd = exec.Command(i.release.program, "agent", "--name", name, "--listen", c.hostOf(name),
		"--address", c.hostOf(name), "--config", filepath.Join(c.folder, "config.json"),
		"--authority", filepath.Join(c.folder, "ca"), "--volume", filepath.Join(c.folder, name, "volume"),
		"--run", filepath.Join(c.folder, name, "run"), "--termination-log", filepath.Join(c.folder, name, "last-words"))
	i.cmd.Dir, i.cmd.Env = c.folder, append(os.Environ(), "TMPDIR="+filepath.Join(c.folder, name, "tmp"))
	fmt.Fprintf(&i.log, "--- %s\n", i.release.version)
	i.cmd.Stdout, i.cmd.Stderr = &i.log, &i.log
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	c.must(i.cmd.Start())
}

// end ends the agent of an instance by a signal and waits for it.
func (c *cluster) end(name string, with syscall.Signal) {
	c.Helper()
	cmd := c.instances[name].cmd
	_ = cmd.Process.Signal(with)
	_ = cmd.Wait() // killed: that is an error, as wanted
	c.instances[name].cmd = nil
}

func (c *cluster) stopAll() {
	for _, i := range c.instances {
		if i.cmd != nil {
			_ = i.cmd.Process.Signal(syscall.SIGTERM)
			_ = i.cmd.Process.Signal(syscall.SIGCONT) // it may be frozen
		}
	}
	for name, i := range c.instances {
		if i.cmd != nil {
			_ = i.cmd.Wait()
		}
		if c.Failed() {
			c.Logf("log of %s:\n%s", name, &i.log)
		}
	}
}

func (c *cluster) status(name string) (protocol.Status, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return c.operator.Status(ctx, c.hostOf(name))
}

func leading(s protocol.Status) bool {
	return s.Role == protocol.RolePrimary && s.Ready && s.Election.Leading
}

func streaming(s protocol.Status) bool {
	return s.Role == protocol.RoleStandby && s.Ready && s.Streaming
}

// state is what the instances say at a moment, in words for who reads of a failure.
func (c *cluster) state() (found map[string]protocol.Status, words string) {
	found = map[string]protocol.Status{}
	var lines []string
	for _, name := range c.names() {
		s, err := c.status(name)
		if err == nil {
			found[name] = s
		}
		lines = append(lines, fmt.Sprintf("%s (%s): %s %s term %d %s %s %v", name, c.instances[name].release.version,
			s.Role, s.Reason, s.Term, s.Leader, s.Message, err))
	}
	return found, strings.Join(lines, "\n")
}

// await waits until the instances are as they should be.
func (c *cluster) await(what string, ok func(map[string]protocol.Status) bool) {
	c.Helper()
	words := ""
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var found map[string]protocol.Status
		if found, words = c.state(); ok(found) {
			return
		}
	}
	c.Fatalf("not in time: %s\n%s", what, words)
}

// leader waits for one instance that leads, other than one.
func (c *cluster) leader(not string) (leader string) {
	c.Helper()
	c.await("one that leads, not "+not, func(found map[string]protocol.Status) bool {
		leader = c.leads(found, not)
		return leader != ""
	})
	return leader
}

// leads is one that leads, but not a certain one, "" for none.
func (c *cluster) leads(found map[string]protocol.Status, not string) string {
	for _, name := range c.names() {
		if s, there := found[name]; there && leading(s) && name != not {
			return name
		}
	}
	return ""
}

// whole waits until one instance leads, all others stream from it, and all vote.
func (c *cluster) whole() (leader string) {
	c.Helper()
	c.await("one that leads, and all others stream from it", func(found map[string]protocol.Status) bool {
		standbys := 0
		for name, s := range found {
			if leading(s) && len(s.Standbys) == 2 && len(s.Voters) == 3 {
				leader = name
			}
			if streaming(s) {
				standbys++
			}
		}
		return leader != "" && standbys == 2
	})
	return leader
}

// connect opens a superuser session on an instance over TCP, with a certificate.
func (c *cluster) connect(name string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres connect_timeout=5",
		c.hostOf(name), naming.PortPostgreSQL))
	if err != nil {
		return nil, err
	}
	config.TLSConfig, config.Fallbacks = c.clientTLS(c.authority, naming.IdentityInit), nil
	return pgx.ConnectConfig(context.Background(), config)
}

// turn is who is to be replaced next, as the operator does it: standbys first, and among them by ordinal from the last.
// It is "" when all are of a release.
func (c *cluster) turn(to release, leader string) string {
	names := slices.DeleteFunc(c.names(), func(name string) bool { return c.instances[name].release == to })
	slices.Reverse(names)
	for _, name := range names {
		if name != leader {
			return name
		}
	}
	if len(names) > 0 {
		return leader
	}
	return ""
}
