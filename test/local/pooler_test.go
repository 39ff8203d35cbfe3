package local

import (
	"cmp"
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
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/pki/pkitest"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
	"toban.dev/test/releases"
)

const (
	poolName = "pool"
	// poolConnections is how many connections a pooler opens to one database.
	poolConnections = 8
)

// pooled is a formed cluster with a pooler, a database and a user of it.
func pooled(t *testing.T, instances int) *cluster {
	t.Helper()
	bouncer := bouncerHere(t)
	c := formed(t, instances)
	c.pool(bouncer)
	return c
}

// bouncerHere is the program of PgBouncer.
func bouncerHere(t *testing.T) string {
	t.Helper()
	bouncer, err := releases.PgBouncer(t.Context())
	if err != nil {
		t.Skipf("not here: %v", err)
	}
	return bouncer
}

// pool gives a cluster a pooler, a database and a user of it.
func (c *cluster) pool(bouncer string) {
	c.Helper()
	leader := c.whole()
	c.exec(leader, "create role app login password 'of app'", "create database app owner app",
		"create role root2 login superuser password 'of root2'")
	c.config.Pooler = true
	c.sync()
	c.awaitQuery(leader, "select count(*)::text from pg_roles where rolname = 'toban_pooler'", "1")
	c.startPooler(bouncer)
}

func (c *cluster) poolHost() string { return fmt.Sprintf("127.10.%d.100", c.subnet) }

// startPooler starts a pooler of the cluster.
func (c *cluster) startPooler(bouncer string) {
	c.Helper()
	c.writePoolCertificate()
	c.runPooler(bouncer, poolName, c.poolHost(), protocol.PoolSettings{})
}

// runPooler runs a pooler of a name, which listens on an address. Settings are those of its own; without Hosts, it asks
// all instances.
func (c *cluster) runPooler(bouncer, name, listen string, settings protocol.PoolSettings) {
	c.Helper()
	settings.Authority, settings.Given = c.config.Authority, c.config.Given
	settings.Server, settings.Mode = serverName, protocol.PoolTransaction
	settings.Connections, settings.MaxClients = poolConnections, cmp.Or(settings.MaxClients, 200)
	if settings.Hosts == nil {
		for _, m := range c.config.Members {
			settings.Hosts = append(settings.Hosts, m.Host)
		}
	}
	text, err := json.Marshal(settings)
	c.must(err)
	c.write(name+"/pool.json", text)
	run := filepath.Join(c.folder, name, "run")
	c.must(os.MkdirAll(run, 0o700))
	c.own(run)
	cmd := exec.Command(program, "--name", name, "--settings", filepath.Join(c.folder, name, "pool.json"),
		"--certificate", filepath.Join(c.folder, poolName), "--run", run, "--pgbouncer", bouncer, "--listen", listen)
	cmd.Env = c.env("pooler")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	c.run(name, cmd)
}

// writePoolCertificate issues the pooler a new certificate.
func (c *cluster) writePoolCertificate() {
	c.Helper()
	leaf, err := c.authority.Issue(naming.IdentityPooler, []string{c.poolHost(), c.readPoolHost()}, time.Now())
	c.must(err)
	c.write("pool/tls.crt", leaf.CertPEM)
	c.write("pool/tls.key", leaf.KeyPEM)
}

// throughPool opens a session through the pooler.
func (c *cluster) throughPool(user, password, database string) (*pgx.Conn, error) {
	return c.throughPoolAt(c.poolHost(), user, password, database)
}

// throughPoolAt opens a session through the pooler that listens on an address.
func (c *cluster) throughPoolAt(host, user, password, database string) (*pgx.Conn, error) {
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=%s dbname=%s connect_timeout=40",
		host, naming.PortPostgreSQL, user, database))
	if err != nil {
		return nil, err
	}
	config.Password, config.Fallbacks = password, nil
	roots, err := pki.Pool(c.config.Authority)
	if err != nil {
		return nil, err
	}
	config.TLSConfig.RootCAs, config.TLSConfig.InsecureSkipVerify = roots, false
	config.TLSConfig.ServerName = host
	return pgx.ConnectConfig(context.Background(), config)
}

// pooledApp opens a session of the application through the pooler, once the pooler is there.
func (c *cluster) pooledApp() *pgx.Conn {
	c.Helper()
	var conn *pgx.Conn
	var err error
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if conn, err = c.throughPool("app", "of app", "app"); err == nil {
			c.Cleanup(func() { _ = conn.Close(context.Background()) })
			return conn
		}
	}
	c.Fatalf("the pooler lets nobody in: %v", err)
	return nil
}

// Clients of a pooler see no error while the primary is changed on purpose.
func TestClientsOfAPoolerWaitWhileThePrimaryIsChanged(t *testing.T) {
	t.Parallel()
	c := pooled(t, 3)
	load := c.loadPool(8)
	for range 2 {
		c.holdsUnderWrites(load, 200, func() {
			before := c.whole()
			c.switchover(before)
			c.leader(before)
		})
	}
	c.holdsUnderWrites(load, 200, func() { c.restarts(c.whole()) })
	c.losesNothing(load)
	c.sawNoError(load)
	c.inTime(load, outside.HandsOver)
}

// A lone server restarts without an error, too: its clients wait.
func TestALoneServerBehindAPoolerRestarts(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	load := c.loadPool(4)
	c.holdsUnderWrites(load, 100, func() { c.restarts("db-0") })
	c.losesNothing(load)
	c.sawNoError(load)
	c.inTime(load, outside.Restarts)
}

// A pooler that hangs keeps no primary from being changed, and goes to the new one when it goes on.
func TestAPoolerThatHangsDelaysNoHandOverForLong(t *testing.T) {
	t.Parallel()
	c := pooled(t, 2)
	session := c.pooledApp()
	before := c.whole()
	pid := c.agents[poolName].Process.Pid
	c.must(syscall.Kill(pid, syscall.SIGSTOP))
	c.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	c.switchover(before)
	c.must(syscall.Kill(pid, syscall.SIGCONT))
	c.awaitLog(poolName, "goes to another leader", 2) // the first one is that of its start
	var server string
	// PgBouncer, which did not hang, may have had no new server for it, and refuses clients for a moment then.
	c.until("a session has a server", func() error {
		err := session.QueryRow(t.Context(), "select current_setting('cluster_name')").Scan(&server)
		if err == nil {
			return nil
		}
		another, failed := c.throughPool("app", "of app", "app")
		if failed == nil {
			session = another
		}
		return err
	})
	if server == before {
		t.Errorf("the session is on %s, which has handed over", server)
	}
}

// A certificate that is replaced is shown to the next client, and ends no session.
func TestAPoolerTakesAnotherCertificate(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	session := c.pooledApp()
	serial := func(of *pgx.Conn) string {
		shown, ok := of.PgConn().Conn().(*tls.Conn)
		if !ok {
			t.Fatal("a session without TLS")
		}
		return shown.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	before := serial(session)
	c.writePoolCertificate()
	for end := time.Now().Add(deadline); ; time.Sleep(100 * time.Millisecond) {
		conn, err := c.throughPool("app", "of app", "app")
		c.must(err)
		now := serial(conn)
		_ = conn.Close(context.Background())
		if now != before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the former certificate is shown")
		}
	}
	_, err := session.Exec(t.Context(), "select 1")
	c.must(err)
}

// A company's authority issues certificates for more than this database. A pooler takes one for that of a server only
// by its name.
func TestAPoolerKnowsServersByTheirName(t *testing.T) {
	t.Parallel()
	bouncer := bouncerHere(t)
	c := newCluster(t, 1)
	root := pkitest.NewRoot(t, "company")
	c.config.Certificate = &protocol.Certificate{Secret: "shop-tls", Names: []string{serverName}}
	c.config.Given = string(root.PEM)
	named := root.Issue(t, []string{serverName, c.host(0)})
	c.give(named)
	c.form()
	c.exec("db-0", createReader)
	uri := called(knowing(c.uri(), c.authorities(root.PEM)), c.host(0))
	c.awaitShown("db-0", uri, pkitest.Leaf(t, named))
	c.pool(bouncer)
	c.works(c.pooledApp(), "of a pooler, with a certificate that has the name")

	other := root.Issue(t, []string{c.host(0)})
	c.config.Certificate = &protocol.Certificate{Secret: "shop-tls"}
	c.sync()
	c.give(other)
	c.awaitShown("db-0", uri, pkitest.Leaf(t, other))
	c.exec("db-0", "select pg_terminate_backend(pid) from pg_stat_activity where usename in ('app', 'toban_pooler')")
	if conn, err := c.throughPool("app", "of app", "app"); err == nil {
		t.Error("the pooler has taken a server whose certificate has another name")
		c.must(conn.Close(t.Context()))
	}
	c.awaitLog(poolName, "not present in server certificate", 1)
	c.give(named)
	c.until("the pooler takes the server by its name again", func() error {
		conn, err := c.throughPool("app", "of app", "app")
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), "select 1")
		return err
	})
}

// heldLine is what a pooler's log says when its clients wait. Who asks in the moment before that, after a failure, may
// get an error (docs/connections.md, "What is not held").
const heldLine = "no transaction is under way, and none begins"

// timesHeld is how often the pooler's clients have been held so far.
func (c *cluster) timesHeld() int { return strings.Count(c.logs[poolName].String(), heldLine) }

// After a failure, sessions without a transaction go on, and a transaction under way gets an error.
func TestSessionsOfAPoolerSurviveAFailure(t *testing.T) {
	t.Parallel()
	c := pooled(t, 3)
	idle, busy := c.pooledApp(), c.pooledApp()
	load := c.loadPool(4)
	c.goesOn(load, 100)
	open, err := busy.Begin(t.Context())
	c.must(err)
	_, err = open.Exec(t.Context(), "insert into written values (-1)")
	c.must(err)
	leader, held := c.leader(), c.timesHeld()
	c.kill(leader, syscall.SIGKILL)
	c.until("a transaction on the server that was killed ends", func() error { // which lives for a moment still
		if _, err := open.Exec(t.Context(), "select 1"); err == nil {
			return errors.New("it goes on")
		}
		return nil
	})
	c.awaitLog(poolName, heldLine, held+1)
	var server string
	c.must(idle.QueryRow(t.Context(), "select current_setting('cluster_name')").Scan(&server))
	if server == leader {
		t.Errorf("the session is on %s, which was killed", server)
	}
	c.goesOn(load, 100)
	c.losesNothing(load)
	c.inTime(load, outside.Lost)
}

// While nobody leads, a client waits, and gets an error in the end.
func TestAClientOfAPoolerDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	session := c.pooledApp()
	began, held := time.Now(), c.timesHeld()
	c.kill("db-0", syscall.SIGKILL)
	c.awaitLog(poolName, heldLine, held+1)
	asked, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	_, err := session.Exec(asked, "select 1")
	took := time.Since(began)
	if err == nil || asked.Err() != nil || took < protocol.HoldLimit/2 {
		t.Errorf("with nobody there, it got %v after %s", err, took)
	}
}

// A pooler leaves a primary that hangs: clients with a transaction there get an error when another one leads.
func TestAPoolerLeavesAPrimaryThatHangs(t *testing.T) {
	t.Parallel()
	c := pooled(t, 3)
	idle, busy := c.pooledApp(), c.pooledApp()
	leader := c.leader()
	open, err := busy.Begin(t.Context())
	c.must(err)
	_, err = open.Exec(t.Context(), "select 1")
	c.must(err)
	c.freezeAll(leader)
	ended := make(chan error, 1)
	go func() { _, err := open.Exec(context.Background(), "select 1"); ended <- err }()
	next := c.leader(leader)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a primary that hangs answers")
		}
	case <-time.After(deadline):
		t.Error("a client waits for a primary that hangs, though another leads")
	}
	var server string
	c.must(idle.QueryRow(t.Context(), "select current_setting('cluster_name')").Scan(&server))
	if server != next {
		t.Errorf("the session is on %s, and %s leads", server, next)
	}
}

// A transaction that takes longer than the patience does not keep a primary from being changed.
func TestALongTransactionDelaysNoHandOverForLong(t *testing.T) {
	t.Parallel()
	c := pooled(t, 2)
	busy, waits := c.pooledApp(), c.pooledApp()
	open, err := busy.Begin(t.Context())
	c.must(err)
	_, err = open.Exec(t.Context(), "select 1")
	c.must(err)
	before := c.leader()
	c.switchover(before)
	var server string
	c.must(waits.QueryRow(t.Context(), "select current_setting('cluster_name')").Scan(&server))
	if server == before {
		t.Errorf("the session is on %s, which has handed over", server)
	}
	if _, err := open.Exec(t.Context(), "select 1"); err == nil {
		t.Error("a transaction goes on though its server has stopped")
	}
	c.awaitLog(before, outside.PoolersSlow, 1)
}

// Passwords are the server's, who may log in is its matter, and a pooler's own certificate opens nothing else.
func TestWhoLogsInThroughAPooler(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	c.pooledApp()
	refused := func(what, user, password, database string) {
		t.Helper()
		if conn, err := c.throughPool(user, password, database); err == nil {
			_ = conn.Close(context.Background())
			t.Errorf("%s gets in", what)
		}
	}
	plain, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=app password='of app' dbname=app sslmode=disable",
		c.poolHost(), naming.PortPostgreSQL))
	c.must(err)
	if _, err := pgx.ConnectConfig(t.Context(), plain); err == nil {
		t.Error("a client without TLS gets in")
	}
	refused("a wrong password", "app", "wrong", "app")
	refused("a superuser", "root2", "of root2", "app")
	refused("postgres", "postgres", "", "postgres")
	refused("the pooler's own role", "toban_pooler", "", "postgres")
	_, err = c.throughPool("toban_pooler", "", "app")
	if err == nil || !strings.Contains(err.Error(), "login rejected") {
		t.Errorf("PgBouncer itself does not refuse the pooler's own role: %v", err)
	}
	c.exec(c.leader(), "create role pgbouncer login password 'of pgbouncer'")
	refused("a role that is called like PgBouncer's own", "pgbouncer", "of pgbouncer", "app")
	refused("a client of PgBouncer's own database", "pgbouncer", "of pgbouncer", "pgbouncer")
	refused("a client of PgBouncer's own database", "app", "of app", "pgbouncer")
	refused("a client of the database postgres", "app", "of app", "postgres")
	leader := c.leader()
	c.exec(leader, "alter role app password 'another'")
	refused("the former password", "app", "of app", "app")
	conn, err := c.throughPool("app", "another", "app")
	c.must(err)
	_ = conn.Close(context.Background())
	c.exec(leader, "alter role app valid until '2020-01-01'")
	refused("a role that has expired", "app", "another", "app")

	own, err := c.asPooler("postgres")
	c.must(err)
	defer own.Close(context.Background())
	for _, sql := range []string{
		"select rolpassword from pg_authid", "create table x (n int)", "create temp table x (n int)",
		"select pg_read_file('/etc/hostname')", "set role postgres",
	} {
		if _, err := own.Exec(t.Context(), sql); err == nil {
			t.Errorf("a pooler may do: %s", sql)
		}
	}
	var found int
	c.must(own.QueryRow(t.Context(), "select count(*) from toban.verifier('postgres')").Scan(&found))
	if found != 0 {
		t.Error("a pooler is told the verifier of postgres")
	}
	if _, err := c.asPooler("app"); err == nil {
		t.Error("a pooler gets into the application's database")
	}
}

// What a pooler serves to Prometheus is true.
func TestMetricsOfAPooler(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	busy := c.pooledApp()
	open, err := busy.Begin(t.Context())
	c.must(err)
	for range 5 {
		_, err = open.Exec(t.Context(), "select 1")
		c.must(err)
	}
	status, err := c.status(c.leader())
	c.must(err)
	got := c.metricsAt(c.poolHost())
	for series, want := range map[string]float64{
		"pgbouncer_up": 1, "toban_pooler_open": 1, "toban_pooler_term": float64(status.Term),
		`pgbouncer_pools_client_active_connections{database="app",user="app"}`:  1,
		`pgbouncer_pools_client_waiting_connections{database="app",user="app"}`: 0,
		`pgbouncer_pools_server_active_connections{database="app",user="app"}`:  1,
	} {
		if value, there := got[series]; !there || value != want {
			t.Errorf("%s is %v (there: %t), want %v", series, value, there, want)
		}
	}
	for _, series := range []string{
		`pgbouncer_stats_queries_pooled_total{database="app"}`, `pgbouncer_stats_sent_bytes_total{database="app"}`,
		`pgbouncer_stats_queries_duration_seconds_total{database="app"}`,
	} {
		if got[series] <= 0 {
			t.Errorf("%s is %v", series, got[series])
		}
	}
	for series := range got {
		if strings.Contains(series, `database="pgbouncer"`) {
			t.Errorf("PgBouncer's own database is a pool: %s", series)
		}
	}
}

// However many clients there are, the server has few connections, and lets others in.
func TestManyClientsOfAPoolerTakeFewConnections(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	first := c.pooledApp()
	for range 120 {
		conn, err := c.throughPool("app", "of app", "app")
		c.must(err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(t.Context(), "select 1")
		c.must(err)
	}
	var sessions int
	c.must(first.QueryRow(t.Context(), `select count(*) from pg_stat_activity
		where usename in ('app', 'toban_pooler')`).Scan(&sessions))
	if sessions > poolConnections+2 {
		t.Errorf("121 clients have %d connections, want %d at most", sessions, poolConnections+2)
	}
	c.exec(c.leader(), "select 1")
}

// Where the spec has no pooler any more, its role is gone.
func TestAPoolerThatIsGoneLeavesNoRole(t *testing.T) {
	t.Parallel()
	c := pooled(t, 1)
	c.pooledApp()
	c.config.Pooler = false
	c.sync()
	c.awaitQuery(c.leader(), "select count(*)::text from pg_roles where rolname = 'toban_pooler'", "0")
}

// asPooler logs in to a server with a pooler's certificate.
func (c *cluster) asPooler(database string) (*pgx.Conn, error) {
	host := c.host(0)
	config, err := pgx.ParseConfig(fmt.Sprintf("host=%s port=%d user=toban_pooler dbname=%s connect_timeout=5",
		host, naming.PortPostgreSQL, database))
	if err != nil {
		return nil, err
	}
	config.TLSConfig, config.Fallbacks = pki.ForHost(c.clientTLS(c.authority, naming.IdentityPooler), host), nil
	return pgx.ConnectConfig(context.Background(), config)
}

// switchover has a leader hand over, and waits until it does not lead any more.
func (c *cluster) switchover(leader string) {
	c.Helper()
	ordinal, _ := naming.Ordinal(leader)
	status, err := c.operator.Switchover(c.Context(), c.host(ordinal), protocol.Switchover{Reason: "test"})
	c.must(err)
	if status.SwitchoverError != "" {
		c.Fatal(status.SwitchoverError)
	}
	c.leader(leader)
}

// freezeAll freezes an instance: its agent and all processes of its server.
func (c *cluster) freezeAll(name string) {
	c.Helper()
	agent := c.agents[name].Process.Pid
	pids := append([]int{agent}, c.processes(name)...)
	for _, pid := range pids {
		c.must(syscall.Kill(pid, syscall.SIGSTOP))
	}
	c.Cleanup(func() {
		for _, pid := range slices.Backward(pids) {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
}
