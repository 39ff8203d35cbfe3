package mixed

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
	downloads "toban.dev/test/releases"
)

// firstPoolers is a Toban of the time when poolers were new: they knew nothing of clients that only read.
var firstPoolers = release{version: "first-poolers", commit: "b36f3568fc3bfdbf53782122dcfdac122ec53049"}

// A pooler of another release than the agents, older or newer, holds its clients while the primary is changed, and goes
// to the next one after a failure. It is replaced before or after the agents, and runs beside them until then. In
// make test, test/local has poolers of the agents' own release.
func TestLongPoolersOfAnotherRelease(t *testing.T) {
	t.Parallel()
	now := today(t)
	old := firstPoolers.built(t)
	for i, pair := range []struct {
		name           string
		pooler, agents release
	}{{"an older pooler", old, now}, {"a newer pooler", now, old}} {
		t.Run(pair.name, func(t *testing.T) {
			c := newCluster(t, 60+i, pair.agents)
			c.startPooler(pair.pooler)
			load := c.load()
			for range 2 {
				c.must(load.UntilHeld(t.Context(), c.logs, func() {
					c.writes(load)
					c.switchover(c.whole())
					c.writes(load)
				}))
			}
			c.must(outside.HandsOver.Judge(load.Longest()))
			c.killAgent(c.whole())
			c.writes(load)
			c.must(load.LoseNothing(t.Context()))
			c.must(outside.Lost.Judge(load.Longest()))
		})
	}
}

// switchover has a leader hand over, and waits until another one leads.
func (c *cluster) switchover(leader string) {
	c.Helper()
	status, err := c.operator.Switchover(c.Context(), c.hostOf(leader), protocol.Switchover{Reason: "test"})
	c.must(err)
	if status.SwitchoverError != "" {
		c.Fatal(status.SwitchoverError)
	}
	c.leader(leader)
}

// serverName is what clients call the servers by.
const serverName = "db.test.svc"

func (c *cluster) poolHost() string { return fmt.Sprintf("127.12.%d.100", c.subnet) }

// startPooler starts a pooler of a release.
func (c *cluster) startPooler(of release) {
	c.Helper()
	bouncer, err := downloads.PgBouncer(c.Context())
	c.must(err)
	c.config.Pooler = true
	c.adoptIdentifier(c.whole())
	leaf, err := c.authority.Issue(naming.IdentityPooler, []string{c.poolHost()}, time.Now())
	c.must(err)
	c.write("pool/tls.crt", leaf.CertPEM)
	c.write("pool/tls.key", leaf.KeyPEM)
	settings := protocol.PoolSettings{
		Server: serverName, Authority: c.config.Authority, Mode: protocol.PoolTransaction,
		Connections: 10, MaxClients: 50,
	}
	for _, m := range c.config.Members {
		settings.Hosts = append(settings.Hosts, m.Host)
	}
	written, err := json.Marshal(settings)
	c.must(err)
	c.write("pool/pool.json", written)
	folder := filepath.Join(c.folder, "pool")
	run := filepath.Join(folder, "run")
	c.must(os.MkdirAll(run, 0o700))
	c.own(run)
	log := &text{}
	cmd := exec.Command(of.program, "pooler", "--name", "pool", "--settings", filepath.Join(folder, "pool.json"),
		"--certificate", folder, "--run", run, "--pgbouncer", bouncer, "--listen", c.poolHost())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	c.must(cmd.Start())
	c.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if c.Failed() {
			c.Logf("log of the pooler, of %s:\n%s", of.version, log)
		}
	})
}

// logs are those of the agents.
func (c *cluster) logs() (all []string) {
	for _, i := range c.instances {
		all = append(all, i.log.String())
	}
	return all
}

// load has clients write through the pooler.
func (c *cluster) load() *outside.Clients {
	c.Helper()
	conn, err := c.connect(c.whole())
	c.must(err)
	defer conn.Close(context.Background())
	for _, statement := range []string{
		"create role app login password 'of app'", "create database app owner app",
	} {
		_, err := conn.Exec(c.Context(), statement)
		c.must(err)
	}
	connect := func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, fmt.Sprintf(
			"host=%s port=%d user=app password='of app' dbname=app sslmode=require connect_timeout=40 "+
				"default_query_exec_mode=exec", c.poolHost(), naming.PortPostgreSQL))
	}
	c.await("a client that comes through the pooler", func(map[string]protocol.Status) bool {
		conn, err := connect(c.Context())
		if err != nil {
			return false
		}
		return conn.Close(context.Background()) == nil
	})
	load, err := outside.StartClients(c.Context(), 4, connect)
	c.must(err)
	c.Cleanup(load.Stop)
	return load
}

// writes waits until clients have written more rows.
func (c *cluster) writes(load *outside.Clients) {
	c.Helper()
	c.must(load.AwaitMore(c.Context(), deadline, 50))
}
