// Package exporter serves what Prometheus wants to know of an instance: statistics of its PostgreSQL server by the
// names of postgres_exporter, and what its agent knows (docs/monitoring.md). It asks the server only when somebody
// scrapes, by one session at a time that ends after each look. It is an annex (docs/packages.md, "Core and annexes"),
// and the agent waits for nothing here.
package exporter

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"toban.dev/internal/agent/serve"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

const (
	// fresh is for how long an answer of the server is given again, whoever asks.
	fresh = 5 * time.Second
	// patience bounds one look at the server, with all its queries. A hung server costs a scrape that much.
	patience = 3 * time.Second
)

// Exporter is the metrics of an instance.
type Exporter struct {
	// Connect opens a session that may read statistics.
	Connect func(ctx context.Context) (*pgx.Conn, error)
	// Status is how the instance is, Config what it is told.
	Status func() protocol.Status
	Config func() protocol.Config
	Log    *slog.Logger
	// Users asks the users' own queries.
	Users *Users

	// lock is held by who looks at the server: all others wait for what that one finds.
	lock   sync.Mutex
	seen   time.Time // when that was, zero for never
	up     bool
	found  map[string]*found // by the name of the query
	failed string            // why the server could not be asked, "" where it could
}

// found is the answer to a query.
type found struct {
	query *query
	at    time.Time
	took  time.Duration
	rows  []row
	err   error
}

// row is a row of an answer; a value that is nil is null.
type row struct {
	labels []string
	values []*float64
}

// New answers for an instance.
func New(of serve.Measured) http.Handler {
	e := &Exporter{
		Connect: of.Server.ConnectStatistics, Status: of.Status.Get, Config: of.Config, Log: of.Log,
		Users: &Users{
			Connect: of.Server.ConnectMetrics, Ensure: of.Server.EnsureMetricsRole, Config: of.Config,
			Report: func(asked *protocol.QueriesStatus) {
				of.Status.Change(func(s *protocol.Status) { s.Queries = asked })
			},
		},
	}
	return e.Handler()
}

// Handler answers GET /metrics.
func (e *Exporter) Handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(e)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m := e.Config().Metrics; m != nil && m.None {
			http.Error(w, "spec.metrics.none turns the metrics off", http.StatusNotFound)
			return
		}
		metrics.ServeHTTP(w, r)
	})
}

var (
	upDesc = prometheus.NewDesc("pg_up",
		"1 if the server answers, 0 if it does not within three seconds, or none runs.", nil, nil)
	successDesc = prometheus.NewDesc("pg_scrape_collector_success",
		"1 if the metrics of a collector could be read, else 0; query_NAME is a query of spec.metrics.queries.",
		[]string{"collector"}, nil)
	tookDesc = prometheus.NewDesc("pg_scrape_collector_duration_seconds",
		"How long that took.", []string{"collector"}, nil)
)

// Describe has every metric, but for those of the users' own queries.
func (e *Exporter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upDesc, successDesc, tookDesc} {
		ch <- d
	}
	for _, q := range queries {
		for _, m := range q.metrics {
			ch <- m.desc(q.labels)
		}
	}
	for _, o := range own {
		ch <- o.desc
	}
}

// Collect gives what there is: what the agent knows always, what the server says if it answers.
func (e *Exporter) Collect(ch chan<- prometheus.Metric) {
	status := e.Status()
	for _, o := range own {
		o.collect(&status, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(o.desc, o.kind, value, labels...)
		})
	}
	e.lock.Lock()
	defer e.lock.Unlock()
	if time.Since(e.seen) > fresh {
		e.look()
		e.seen = time.Now()
	}
	ch <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, number(e.up))
	for _, f := range e.found {
		f.collect(ch)
	}
	for _, f := range e.Users.latest(&status) {
		f.collect(ch)
	}
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (f *found) collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(successDesc, prometheus.GaugeValue, number(f.err == nil), f.query.name)
	ch <- prometheus.MustNewConstMetric(tookDesc, prometheus.GaugeValue, f.took.Seconds(), f.query.name)
	for _, r := range f.rows {
		for i, m := range f.query.metrics {
			if r.values[i] != nil {
				ch <- prometheus.MustNewConstMetric(m.desc(f.query.labels), m.kind(), *r.values[i], r.labels...)
			}
		}
	}
}

// look asks the server. What it does not answer in time is not known: nothing is shown of it.
func (e *Exporter) look() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	before := e.found
	e.found = nil
	conn, err := e.Connect(ctx)
	e.complain(err)
	if err != nil {
		e.up = postgres.TooManyClients(err) // one that has no room for another session lives
		return
	}
	defer closeSoon(conn)
	e.up = true // it has let a session in, and taken a statement; which queries it answers in time is said for each
	e.found = map[string]*found{}
	for _, q := range queries {
		if !q.concerns(e.Config().Major) {
			continue
		}
		if b := before[q.name]; b != nil && b.err == nil && time.Since(b.at) < q.every {
			e.found[q.name] = b
			continue
		}
		e.found[q.name] = ask(ctx, conn, &q)
	}
}

// complain logs what keeps the server from being asked, once.
func (e *Exporter) complain(err error) {
	why := ""
	if err != nil {
		why = err.Error()
	}
	if why != e.failed && why != "" {
		e.Log.Info("the server can't be asked for its metrics", "error", why)
	}
	e.failed = why
}

// ask asks one query.
func ask(ctx context.Context, conn *pgx.Conn, q *query) *found {
	f := &found{query: q, at: time.Now()}
	f.rows, f.err = read(ctx, conn, q)
	f.took = time.Since(f.at)
	return f
}

func read(ctx context.Context, conn *pgx.Conn, q *query) ([]row, error) {
	rows, err := conn.Query(ctx, q.text(), pgx.QueryExecModeExec)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", q.name, err)
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (row, error) {
		one := row{make([]string, len(q.labels)), make([]*float64, len(q.metrics))}
		var into []any
		for i := range one.labels {
			into = append(into, &one.labels[i])
		}
		for i := range one.values {
			into = append(into, &one.values[i])
		}
		err := r.Scan(into...)
		for i := range one.labels {
			one.labels[i] = label(one.labels[i])
		}
		return one, err
	})
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", q.name, err)
	}
	return all, nil
}

// label is a text as Prometheus takes it.
func label(text string) string { return strings.ToValidUTF8(text, "?") }

// closeSoon ends a session. Nothing is lost with it.
func closeSoon(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}
