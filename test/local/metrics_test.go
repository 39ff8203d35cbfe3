package local

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	myappv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/metrics"
	"toban.dev/internal/operator/shards"
	"toban.dev/internal/protocol"
	"toban.dev/test/monitoring"
)

// metricsOf are the samples that an instance serves, by their name with labels.
func (c *cluster) metricsOf(name string) map[string]float64 {
	c.Helper()
	ordinal, _ := naming.Ordinal(name)
	return c.metricsAt(c.host(ordinal))
}

// metricsAt are those that are served at an address.
func (c *cluster) metricsAt(host string) map[string]float64 {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
	defer cancel()
	address := net.JoinHostPort(host, strconv.Itoa(naming.PortMetrics))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	c.must(err)
	answer, err := http.DefaultClient.Do(request)
	c.must(err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	c.must(err)
	if answer.StatusCode != http.StatusOK {
		c.Fatalf("the metrics at %s: %s %s", host, answer.Status, text)
	}
	out := map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		if at := strings.LastIndexByte(line, ' '); at > 0 && line[0] != '#' {
			out[line[:at]], _ = strconv.ParseFloat(line[at+1:], 64)
		}
	}
	return out
}

// awaitMetric waits until an instance serves a value.
func (c *cluster) awaitMetric(name, series string, want float64) {
	c.Helper()
	var got map[string]float64
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		got = c.metricsOf(name)
		if value, there := got[series]; there && value == want {
			return
		}
	}
	value, there := got[series]
	c.Fatalf("%s of %s is %v (there: %t), want %v", series, name, value, there, want)
}

// The metrics are true of primary and standby, after a switchover too; all that is asked of PostgreSQL is answered; and
// a server that hangs hides nothing of what the agent knows.
func TestMetricsOfInstances(t *testing.T) {
	t.Parallel()
	c := formed(t, 2)
	leader := c.leader()
	standby := c.standby(leader)
	for _, name := range c.names() {
		c.awaitMetric(name, "pg_up", 1)
		got := c.metricsOf(name)
		asked := 0
		for series, value := range got {
			if strings.HasPrefix(series, "pg_scrape_collector_success") {
				asked++
				if value != 1 {
					t.Errorf("%s: %s is %v", name, series, value)
				}
			}
		}
		if asked < 14 || got[`pg_database_size_bytes{datname="postgres"}`] < 1<<20 ||
			got["pg_settings_max_connections"] != 30 || got["pg_settings_shared_buffers_bytes"] != 16<<20 {
			t.Errorf("%s: after %d questions it shows %v", name, asked, got)
		}
	}
	c.awaitMetric(leader, "toban_instance_primary", 1)
	c.awaitMetric(standby, "toban_instance_primary", 0)
	c.awaitMetric(standby, "pg_replication_is_replica", 1)
	c.awaitMetric(leader, "toban_instance_standbys_streaming", 1)
	c.awaitMetric(leader,
		`pg_stat_replication_pg_wal_lsn_diff{application_name="`+c.followerName(leader)+`",state="streaming"}`, 0)
	pid := c.postmaster(standby)
	c.must(syscall.Kill(pid, syscall.SIGSTOP))
	c.awaitMetric(standby, "pg_up", 0)
	if got := c.metricsOf(standby); got["toban_instance_term"] < 1 {
		t.Errorf("of a server that hangs it shows %v", got)
	}
	c.must(syscall.Kill(pid, syscall.SIGCONT))
	c.awaitMetric(standby, "pg_up", 1)
	c.await(standby, "streaming", streaming)
	before := c.metricsOf(leader)["toban_instance_term"]
	c.handOver(leader, standby)
	c.awaitMetric(standby, "toban_instance_primary", 1)
	c.awaitMetric(standby, "pg_replication_is_replica", 0)
	if after := c.metricsOf(standby)["toban_instance_term"]; after <= before {
		t.Errorf("the term was %v and is %v", before, after)
	}
}

// followerName is the application_name of the one that streams from an instance.
func (c *cluster) followerName(leader string) string {
	c.Helper()
	name, err := c.query(leader, "select application_name from pg_stat_replication where state = 'streaming'")
	c.must(err)
	return name
}

// Users' queries run with few rights, one that fails is told and hurts no other, and what they may read can be changed.
func TestQueriesOfUsers(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	leader := c.leader()
	c.exec(leader, "create table secrets (id int)", "insert into secrets values (1), (2)",
		"create function escape() returns int language plpgsql as $$ begin "+
			"execute 'reset session authorization'; execute 'set role postgres'; "+
			"return (select count(*) from pg_authid); end $$")
	query := func(name, sql string, labels ...string) protocol.MetricsQuery {
		return protocol.MetricsQuery{Name: name, Database: "postgres", SQL: sql, Labels: labels}
	}
	wanted := &protocol.Metrics{Queries: []protocol.MetricsQuery{
		query("sessions", "select state, count(*) from pg_stat_activity where state = 'active' group by 1", "state"),
		query("slow", "select pg_sleep(60)"),
		query("many", "select i as n, i::text as l from generate_series(1, 200) i", "l"),
		query("secrets", "select count(*) from public.secrets"),
		query("writes", "create table x (i int)"),
		query("escapes", "select public.escape() as n"),
		query("two", "select 1 as a; select 2 as b"),
		query("word", "select 'open' as state"),
	}}
	// The database postgres is closed to all but our own roles: users have databases of their own.
	c.exec(leader, "create role toban_metrics login", "grant connect on database postgres to toban_metrics")
	c.config.Metrics = wanted
	c.sync()
	c.awaitMetric(leader, `toban_query_sessions_count{state="active"}`, 1)
	problems := c.awaitProblems(leader)
	for name, want := range map[string]string{
		"slow": "statement timeout", "many": "more than 100 rows", "secrets": "permission denied",
		"writes": "read-only transaction", "escapes": "permission denied", "two": "multiple commands",
		"word": "no number",
	} {
		if !strings.Contains(problems[name], want) {
			t.Errorf("of %s it is told %q, want %q", name, problems[name], want)
		}
		c.awaitMetric(leader, `pg_scrape_collector_success{collector="query_`+name+`"}`, 0)
	}
	if len(problems) != 7 {
		t.Errorf("it is told %v", problems)
	}
	c.config.Metrics = &protocol.Metrics{AllData: true, Queries: wanted.Queries[3:4]}
	c.sync()
	c.awaitMetric(leader, "toban_query_secrets_count", 2)
	c.await(leader, "without problems", func(s protocol.Status) bool {
		return s.Queries != nil && len(s.Queries.Problems) == 0
	})
}

// awaitProblems are those of the queries, when some were told.
func (c *cluster) awaitProblems(leader string) map[string]string {
	c.Helper()
	out := map[string]string{}
	status := c.await(leader, "telling of queries", func(s protocol.Status) bool { return s.Queries != nil })
	for _, p := range status.Queries.Problems {
		out[p.Name] = p.Message
	}
	return out
}

// A Prometheus that scrapes two agents, a pooler and an operator takes the rules, and every expression of every rule
// and dashboard has an answer; of an alert, every metric that it names. The agents have volumes for their WAL.
func TestAPrometheusHasAllThatRulesAndDashboardsName(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not here: hack/deps.sh tests installs it")
	}
	bouncer := bouncerHere(t)
	c := apart(t, 2)
	c.form()
	c.archiveHere()
	c.pool(bouncer)
	c.pooledApp()
	leader := c.leader()
	c.exec(leader, "insert into t values (7)", "select pg_switch_wal()")
	c.awaitArchived(leader)
	session, err := c.connect(leader) // a client, of which there is a count
	c.must(err)
	defer session.Close(context.Background())
	operator := c.operatorMetrics()
	api := c.prometheus(program, operator)
	all, err := monitoring.Expressions("../..", "test", "db")
	c.must(err)
	for _, e := range all {
		questions := []string{e.Text}
		if e.Alert {
			questions = e.Metrics()
		}
		for _, q := range questions {
			if !rare[q] {
				c.awaitAnswer(api, e.Where, q)
			}
		}
	}
}

// rare are metrics that are there only in a state that this test does not make; others test them.
var rare = map[string]bool{"toban_instance_kept_wal_bytes": true}

// operatorMetrics serves the operator's metrics of a SampleDB that has everything.
func (c *cluster) operatorMetrics() string {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	m.Waits(1)
	m.Acts(0)
	now := metav1.Now()
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "test", Name: "db"}}
	db.Spec.Instances = 2
	m.Observe(db, v1.SampleDBStatus{
		ReadyInstances: 2,
		Conditions: []metav1.Condition{
			{Type: v1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1.ReasonReady},
			{Type: v1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1.ReasonPrimaryReady},
		},
		Backup: &v1.BackupStatus{Earliest: &now, LastBackupAt: &now, LastVerifiedAt: &now},
	})
	cache := oneOfEach{at: now}
	registry.MustRegister(&metrics.Drills{Reader: cache, Has: shards.Shard{}.Has},
		&metrics.Kinds{Reader: cache, Has: shards.Shard{}.Has})
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	c.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// oneOfEach is an operator's cache with one object of each kind, all of which are well, and ended at a moment.
type oneOfEach struct {
	client.Reader
	at metav1.Time
}

func (o oneOfEach) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	name := metav1.ObjectMeta{Namespace: "test", Name: "db"}
	ready := func(kind string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: kind}}
	}
	switch list := into.(type) {
	case *v1.FaultDrillList:
		list.Items = []v1.FaultDrill{{ObjectMeta: name,
			Spec:   v1.FaultDrillSpec{SampleDB: "db", Fault: v1.FaultServerKilled, Instance: v1.DrillPrimary},
			Status: v1.FaultDrillStatus{CompletedAt: &o.at, Conditions: ready(v1.ConditionPassed)},
		}}
	case *pgv1.PostgreSQLList:
		list.Items = []pgv1.PostgreSQL{{ObjectMeta: name,
			Status: pgv1.PostgreSQLStatus{Conditions: ready(pgv1.ConditionReady)}}}
	case *myappv1.MyAppList:
		list.Items = []myappv1.MyApp{{ObjectMeta: name, Spec: myappv1.MyAppSpec{Leader: true},
			Status: myappv1.MyAppStatus{Ready: "1/1", ReadyReplicas: 1, Leader: "db-7d9f",
				Conditions: ready(myappv1.ConditionReady)}}}
	case *v1.DatabaseBackupList:
		list.Items = []v1.DatabaseBackup{o.backup(name)}
	default:
		return fmt.Errorf("there is no %T", into)
	}
	return nil
}

// backup is one that is complete and was verified.
func (o oneOfEach) backup(name metav1.ObjectMeta) v1.DatabaseBackup {
	return v1.DatabaseBackup{ObjectMeta: name, Spec: v1.DatabaseBackupSpec{SampleDB: "db"},
		Status: v1.DatabaseBackupStatus{
			Phase: "Completed", Type: v1.BackupFull, StartedAt: &o.at, CompletedAt: &o.at, StoredSize: "1Mi",
			Progress: &v1.BackupProgress{Bytes: 1 << 20},
			Verification: &v1.VerificationStatus{
				CompletedAt: &o.at, RecoveryTime: &metav1.Duration{Duration: time.Second},
			},
			Conditions: []metav1.Condition{
				{Type: v1.ConditionComplete, Status: metav1.ConditionTrue, Reason: v1.ReasonCompleted},
				{Type: v1.ConditionVerified, Status: metav1.ConditionTrue, Reason: v1.ReasonVerified},
			},
		}}
}

// prometheus runs one that scrapes the cluster, its pooler and an operator each second, and returns the address of its
// API.
func (c *cluster) prometheus(program, operator string) string {
	c.Helper()
	targets := ""
	for i, name := range c.names() {
		targets += fmt.Sprintf("      - {targets: ['%s:%d'], labels: {namespace: test, sampledb: db, instance: %s}}\n",
			c.host(i), naming.PortMetrics, name)
	}
	rules, err := filepath.Abs("../../config/monitoring/rules.yaml")
	c.must(err)
	config := "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: " +
		"['" + rules + "']\nscrape_configs:\n" +
		"  - job_name: toban-instances\n    static_configs:\n" + targets +
		fmt.Sprintf("  - job_name: toban-poolers\n    static_configs:\n"+
			"      - {targets: ['%s:%d'], labels: {namespace: test, sampledb: db, pooler: %s}}\n",
			c.poolHost(), naming.PortMetrics, poolName) +
		"  - job_name: toban-operator-metrics\n    honor_labels: true\n    static_configs:\n      - {targets: ['" +
		operator + "']}\n"
	folder := c.T.TempDir()
	file := filepath.Join(folder, "prometheus.yml")
	c.must(os.WriteFile(file, []byte(config), 0o600))
	address := c.host(200) + ":9090"
	cmd := exec.CommandContext(c.Context(), program, "--config.file="+file, "--storage.tsdb.path="+folder,
		"--web.listen-address="+address, "--log.level=warn")
	log := &strings.Builder{}
	cmd.Stdout, cmd.Stderr = log, log
	c.must(cmd.Start())
	c.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if c.Failed() {
			c.Logf("Prometheus says %s", log)
		}
	})
	return "http://" + address
}

// awaitAnswer waits until a Prometheus has an answer to an expression.
func (c *cluster) awaitAnswer(api, where, expression string) {
	c.Helper()
	why := ""
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var answer struct {
			Error string
			Data  struct{ Result []any }
		}
		request, err := http.NewRequestWithContext(c.Context(), http.MethodGet,
			api+"/api/v1/query?query="+url.QueryEscape(expression), nil)
		c.must(err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			why = err.Error()
			continue
		}
		err = json.NewDecoder(response.Body).Decode(&answer)
		_ = response.Body.Close()
		if err == nil && len(answer.Data.Result) > 0 {
			return
		}
		why = fmt.Sprint(err, answer.Error)
	}
	c.Errorf("%s: %s has no answer: %s", where, expression, why)
}
