package pooler

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is what Prometheus is told of a pooler: what the pooler knows itself, and what PgBouncer answers when
// somebody scrapes. Those of PgBouncer have the names that pgbouncer_exporter gives them.
type Metrics struct {
	// State is how the pooler is, Ask what PgBouncer answers to a command.
	State func() State
	Ask   func(ctx context.Context, command string) ([]map[string]string, error)
	Log   *slog.Logger
}

var (
	bouncerUp  = prometheus.NewDesc("pgbouncer_up", "1 while PgBouncer answers, else 0.", nil, nil)
	poolerOpen = prometheus.NewDesc("toban_pooler_open", "1 while transactions may begin, 0 while clients are held.",
		nil, nil)
	poolerTerm = prometheus.NewDesc("toban_pooler_term",
		"The term of the instance to which server connections go; missing before the first.", nil, nil)
)

// shown are metrics that a command of PgBouncer's console shows in columns. The labels are columns, too.
type shown struct {
	command string
	labels  []string
	columns []column
}

type column struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	// value is of a row.
	value func(row map[string]string) float64
}

// commands are those that are asked (PgBouncer 1.24 documentation, "usage", "SHOW POOLS" and "SHOW STATS_TOTALS").
var commands = []shown{
	{"SHOW POOLS", poolLabels, []column{
		pool("client_active_connections", "Clients that have a server connection, or need none.", count("cl_active")),
		pool("client_waiting_connections", "Clients that wait for a server connection.", count("cl_waiting")),
		pool("client_maxwait_seconds", "How long the first of these has waited.", func(row map[string]string) float64 {
			return number(row["maxwait"]) + number(row["maxwait_us"])*microseconds
		}),
		pool("server_active_connections", "Server connections that a client has.", count("sv_active")),
		pool("server_idle_connections", "Server connections that no client has.", count("sv_idle")),
		pool("server_login_connections", "Server connections that are being opened.", count("sv_login")),
	}},
	{"SHOW STATS_TOTALS", statsLabels, []column{
		total("sql_transactions_pooled_total", "Transactions.", count("xact_count")),
		total("queries_pooled_total", "Queries.", count("query_count")),
		total("received_bytes_total", "What clients have sent.", count("bytes_received")),
		total("sent_bytes_total", "What clients were sent.", count("bytes_sent")),
		total("server_in_transaction_seconds_total", "Time in transactions.", duration("xact_time")),
		total("queries_duration_seconds_total", "Time in queries.", duration("query_time")),
		total("client_wait_seconds_total", "Time that clients have waited for a server connection.",
			duration("wait_time")),
	}},
}

var poolLabels, statsLabels = []string{"database", "user"}, []string{"database"}

func pool(name, help string, value func(map[string]string) float64) column {
	return column{prometheus.NewDesc("pgbouncer_pools_"+name, help, poolLabels, nil), prometheus.GaugeValue, value}
}

func total(name, help string, value func(map[string]string) float64) column {
	return column{prometheus.NewDesc("pgbouncer_stats_"+name, help, statsLabels, nil), prometheus.CounterValue, value}
}

func count(column string) func(map[string]string) float64 {
	return func(row map[string]string) float64 { return number(row[column]) }
}

func duration(column string) func(map[string]string) float64 {
	return func(row map[string]string) float64 { return number(row[column]) * microseconds }
}

// microseconds is the unit of PgBouncer's durations, in seconds.
const microseconds = 1e-6

// number is a column's value, 0 where it is none.
func number(text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0
	}
	return n
}

// Describe is prometheus.Collector's.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- bouncerUp
	descriptions <- poolerOpen
	descriptions <- poolerTerm
	for _, c := range commands {
		for _, column := range c.columns {
			descriptions <- column.desc
		}
	}
}

// Collect is prometheus.Collector's. While PgBouncer does not answer, there is nothing of it but that.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	now := m.State()
	gauge(poolerOpen, truth(now.Open()))
	if now.Route.Term > 0 {
		gauge(poolerTerm, float64(now.Route.Term))
	}
	up := true
	for _, c := range commands {
		rows, err := m.Ask(context.Background(), c.command)
		if err != nil {
			m.Log.Warn("PgBouncer does not say how it is", "error", err.Error())
			up = false
			break
		}
		c.collect(rows, metrics)
	}
	gauge(bouncerUp, truth(up))
}

func (c shown) collect(rows []map[string]string, metrics chan<- prometheus.Metric) {
	for _, row := range rows {
		if row["database"] == consoleDatabase {
			continue
		}
		var labels []string
		for _, label := range c.labels {
			labels = append(labels, row[label])
		}
		for _, column := range c.columns {
			metrics <- prometheus.MustNewConstMetric(column.desc, column.kind, column.value(row), labels...)
		}
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// handler serves the metrics.
func (m *Metrics) handler() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
