package main

import "fmt"

const critical, warning, info = "critical", "warning", "info"

// alert is one alert, with what raises and ends it in promtool's test.
type alert struct {
	name, severity, after, expr string
	summary, todo               string
	// labels are those that the alert has in its test besides severity, shows what its annotations say there.
	labels, shows map[string]string
	// series are those of the test.
	series []series
	// again are further tests, for an alert that more than one thing raises.
	again []raising
	// never are series that raise none.
	never []series
}

// raising is what raises an alert, and what that one says then, as the fields of the same names in alert.
type raising struct {
	labels, shows map[string]string
	series        []series
}

// series has a value while the alert is to be raised, and another one afterwards.
type series struct{ name, raised, ended string }

// of are the labels of a SampleDB and of an instance in tests.
const (
	ofDatabase = `{namespace="shop", sampledb="x"}`
	ofInstance = `{namespace="shop", sampledb="x", instance="x-0"}`
)

var (
	databaseLabels = map[string]string{"namespace": "shop", "sampledb": "x"}
	instanceLabels = map[string]string{"namespace": "shop", "sampledb": "x", "instance": "x-0"}
)

// sampleDB and instance begin summaries.
const (
	sampleDB = "SampleDB {{ $labels.namespace }}/{{ $labels.sampledb }} "
	instance = "Instance {{ $labels.instance }} of {{ $labels.namespace }}/{{ $labels.sampledb }} "
)

// operatorUnread and operatorBack are what TobanOperatorAway says.
const (
	operatorUnread = "The operator's metrics can't be read"
	operatorBack   = "Look whether its Pod runs (kubectl -n toban-system get pods) and what it says (kubectl logs), " +
		"and whether Prometheus may read its metrics. What to do is in docs/monitoring.md, " +
		"\"An operator that is away\". Databases go on without it."
)

// aboutNumbers are the alerts about numbers.
var aboutNumbers = []alert{
	{
		name: "TobanOperatorAway", severity: critical, after: "10m",
		expr: `absent(up{job="toban-operator-metrics"} == 1)` + "\nor\n" +
			"max by (namespace, shard) (toban_operator_acts) == 0",
		summary: "{{ with $labels.shard }}No operator acts for shard {{ . }}{{ else }}" +
			operatorUnread + "{{ end }}",
		todo: operatorBack, shows: map[string]string{"summary": operatorUnread, "todo": operatorBack},
		series: []series{{`up{job="toban-operator-metrics"}`, "0", "1"}},
		again: []raising{{
			labels: map[string]string{"namespace": "toban-system", "shard": "1"},
			shows:  map[string]string{"summary": "No operator acts for shard 1", "todo": operatorBack},
			series: []series{
				{`up{job="toban-operator-metrics", instance="first"}`, "1", "1"},
				{`toban_operator_acts{namespace="toban-system", instance="first", shard="0"}`, "1", "1"},
				{`toban_operator_acts{namespace="toban-system", instance="first", shard="1"}`, "0", "0"},
				{`toban_operator_acts{namespace="toban-system", instance="second", shard="0"}`, "_", "0"},
				{`toban_operator_acts{namespace="toban-system", instance="second", shard="1"}`, "_", "1"},
			},
		}},
	},
	{
		name: "TobanInstanceUnread", severity: warning, after: "10m",
		expr:    `up{job="toban-instances"} == 0`,
		summary: instance + "does not answer Prometheus",
		todo: "Look whether its Pod runs, and whether its NetworkPolicy lets Prometheus in: the namespace " +
			"of Prometheus " +
			"needs the label toban.dev/metrics=read, or spec.metrics.from an item for it.",
		labels: with(instanceLabels, "job", "toban-instances"),
		series: []series{{`up{job="toban-instances", namespace="shop", sampledb="x", instance="x-0"}`, "0", "1"}},
	},
	{
		name: "TobanPostgreSQLSilent", severity: warning, after: "5m",
		expr:    "pg_up == 0",
		summary: instance + "has a server that does not answer",
		todo: "See kubectl describe sampledb and kubectl logs of the Pod. If it is the primary, " +
			"another one takes over.",
		labels: instanceLabels,
		series: []series{{"pg_up" + ofInstance, "0", "1"}},
	},
	{
		name: "TobanCollectorFails", severity: warning, after: "15m",
		expr:    `pg_scrape_collector_success{collector!~"query_.*"} == 0`,
		summary: instance + "can't read its metrics of {{ $labels.collector }}",
		todo:    "The server answers too slowly, or not at all: see whether its disk or processors are the limit.",
		labels:  with(instanceLabels, "collector", "locks"),
		series: []series{
			{`pg_scrape_collector_success{namespace="shop", sampledb="x", instance="x-0", collector="locks"}`, "0",
				"1"},
		},
	},
	{
		name: "TobanTwoPrimaries", severity: critical, after: "1m",
		expr:    "count by (namespace, sampledb) (toban_instance_primary == 1) > 1",
		summary: sampleDB + "has two instances that take themselves for the primary",
		todo: "Commits are acknowledged by one of them only. Look at kubectl toban status, and end the " +
			"Pod of the one " +
			"with the lower term (toban_instance_term).",
		labels: databaseLabels,
		series: []series{
			{"toban_instance_primary" + ofInstance, "1", "0"},
			{`toban_instance_primary{namespace="shop", sampledb="x", instance="x-1"}`, "1", "1"},
		},
	},
	{
		name: "TobanCommitsWait", severity: critical, after: "1m",
		expr:    "toban_instance_standbys_streaming + 1 < toban_instance_acknowledgements",
		summary: sampleDB + "has too few standbys that stream: commits wait",
		todo:    "Bring the standbys back: kubectl toban status says what each lacks.",
		labels:  instanceLabels,
		series: []series{
			{"toban_instance_standbys_streaming" + ofInstance, "0", "1"},
			{"toban_instance_acknowledgements" + ofInstance, "2", "2"},
		},
	},
	{
		name: "TobanCommitsCancelled", severity: warning, after: "0m",
		expr:    "increase(toban_instance_cancelled_commits_total[10m]) > 0",
		summary: instance + "has commits that were cancelled while they waited for standbys",
		todo: "Their clients were told that they have succeeded, but they may be on that instance alone, and a " +
			"failover would lose them. Find the client that cancels (the server's log has its process), and why " +
			"commits had to wait: kubectl toban status.",
		labels: instanceLabels,
		series: []series{{"toban_instance_cancelled_commits_total" + ofInstance, "0+1", "3"}},
	},
	{
		name: "TobanReplicationLag", severity: warning, after: "10m",
		expr:    "pg_replication_lag_seconds > 60",
		summary: instance + "replays WAL more than a minute late",
		todo: "Look for long queries on the standby that hold replay up, and whether its disk is the " +
			"limit. It shows old " +
			"data until then, and can't lead.",
		labels: instanceLabels,
		series: []series{{"pg_replication_lag_seconds" + ofInstance, "90", "0"}},
	},
	{
		name: "TobanConnectionsNearlyUsedUp", severity: warning, after: "5m",
		expr:    "toban:connections_used:ratio > 0.9",
		summary: instance + "has used more than nine tenths of its connections",
		todo: "Find out who has them (pg_stat_activity), let applications have fewer, use a pooler, or raise " +
			"max_connections, which restarts the instances.",
		labels: instanceLabels,
		series: []series{{"toban:connections_used:ratio" + ofInstance, "0.95", "0.5"}},
	},
	{
		name: "TobanLongTransaction", severity: warning, after: "5m",
		expr:    "pg_long_running_transactions_oldest_timestamp_seconds > 3600",
		summary: instance + "has a transaction that is older than an hour",
		todo: "It keeps VACUUM from removing dead rows. Find it in pg_stat_activity by xact_start, and end it with " +
			"pg_terminate_backend if nobody needs it.",
		labels: instanceLabels,
		series: []series{{"pg_long_running_transactions_oldest_timestamp_seconds" + ofInstance, "4000", "1"}},
	},
	{
		name: "TobanWraparoundNears", severity: critical, after: "10m",
		expr:    "max by (namespace, sampledb) (pg_database_wraparound_age_datfrozenxid_seconds) > 1e9",
		summary: sampleDB + "has used half of its transaction ids without freezing",
		todo: "See why autovacuum does not freeze: old transactions, prepared transactions, replication " +
			"slots with an old " +
			"xmin. Then VACUUM FREEZE the oldest tables. At two billion PostgreSQL refuses writes.",
		labels: databaseLabels,
		series: []series{{"pg_database_wraparound_age_datfrozenxid_seconds" + ofInstance, "1.1e9", "1e6"}},
	},
	{
		name: "TobanChecksumFailures", severity: critical, after: "0m",
		expr:    "pg_stat_database_checksum_failures > 0",
		summary: instance + "has read pages with a wrong checksum in {{ $labels.datname }}",
		todo: "Its disk has lost data. On a standby: delete its volume claim and Pod, and it is copied " +
			"anew. On the primary: " +
			"switch over first (kubectl toban switchover). It ends when the statistics are reset.",
		labels: with(instanceLabels, "datname", "app"),
		series: []series{
			{`pg_stat_database_checksum_failures{namespace="shop", sampledb="x", instance="x-0", datname="app"}`, "1",
				"0"},
		},
	},
	{
		name: "TobanBackupOld", severity: warning, after: "1h",
		expr:    "time() - toban_sampledb_last_backup_timestamp_seconds > 2 * 86400",
		summary: sampleDB + "has no backup of the last two days",
		todo: "See its DatabaseBackups (kubectl get databasebackups) and the condition Scheduled. If its " +
			"schedule is not " +
			"daily, change the two days in this alert.",
		labels: databaseLabels,
		series: []series{{"toban_sampledb_last_backup_timestamp_seconds" + ofDatabase, "-200000", "0"}},
	},
	{
		name: "TobanBackupMissing", severity: warning, after: "1d",
		expr: "toban_sampledb_instances_wanted\n" +
			"unless on (namespace, sampledb) toban_sampledb_last_backup_timestamp_seconds\n" +
			`unless on (namespace, sampledb) toban_sampledb_condition_reason{type="Archiving", reason="NoArchive"}`,
		summary: sampleDB + "has no complete backup",
		todo:    "See its DatabaseBackups (kubectl get databasebackups), and the conditions Archiving and Scheduled.",
		labels:  databaseLabels,
		series: []series{
			{"toban_sampledb_instances_wanted" + ofDatabase, "1", "1"},
			{"toban_sampledb_last_backup_timestamp_seconds" + ofDatabase, "_", "0"},
		},
	},
	{
		name: "TobanBackupNotVerified", severity: warning, after: "1h",
		expr:    "time() - toban_sampledb_last_verified_timestamp_seconds > 15 * 86400",
		summary: sampleDB + "has no backup that was verified in the last 15 days",
		todo: "See the condition Verified of its DatabaseBackups. The annotation toban.dev/verify on one " +
			"asks for its " +
			"verification.",
		labels: databaseLabels,
		series: []series{{"toban_sampledb_last_verified_timestamp_seconds" + ofDatabase, "-1500000", "0"}},
	},
	{
		name: "TobanDrillNotPassed", severity: warning, after: "0m",
		expr:    "toban_faultdrill_passed == 0",
		summary: sampleDB + "has not passed its last drill: {{ $labels.fault }} of a {{ $labels.role }}",
		todo: "See what it says (kubectl toban drill NAME, kubectl describe faultdrill). The alert " +
			"ends when a later drill of the same fault and role passes, or when the FaultDrill is deleted.",
		labels: with(with(databaseLabels, "fault", "ServerKilled"), "role", "Primary"),
		series: []series{
			{`toban_faultdrill_passed{namespace="shop", sampledb="x", fault="ServerKilled", role="Primary"}`, "0", "1"},
		},
	},
}

func with(labels map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range labels {
		out[k] = v
	}
	return out
}

// ratioOf is how full volumes are, with what they are for.
func ratioOf(metric, volume string) string {
	return fmt.Sprintf(`label_replace(%s_used_bytes / %s_size_bytes, "volume", "%s", "", "")`, metric, metric, volume)
}

// recorded are the recording rules.
var recorded = []map[string]string{
	{
		"record": "toban:connections_used:ratio",
		"expr": "sum by (namespace, sampledb, instance) (pg_stat_activity_count)\n/ on (namespace, " +
			"sampledb, instance)\n" +
			"(pg_settings_max_connections - pg_settings_superuser_reserved_connections)",
	},
	{
		"record": "toban:instances_to_spare",
		"expr":   "toban_instance_standbys_streaming + 1 - toban_instance_acknowledgements",
	},
	{
		"record": "toban:volume_used:ratio",
		"expr":   ratioOf("toban_instance_volume", "data") + "\nor\n" + ratioOf("toban_instance_wal_volume", "wal"),
	},
	{
		"record": "toban:transactions:rate5m",
		"expr": "sum by (namespace, sampledb, instance) " +
			"(rate(pg_stat_database_xact_commit[5m]) + rate(pg_stat_database_xact_rollback[5m]))",
	},
	{
		"record": "toban:cache_hits:ratio5m",
		"expr": "sum by (namespace, sampledb, instance) (rate(pg_stat_database_blks_hit[5m]))\n/\n" +
			"sum by (namespace, sampledb, instance) " +
			"(rate(pg_stat_database_blks_hit[5m]) + rate(pg_stat_database_blks_read[5m]))",
	},
}

// allAlerts are all of them.
func allAlerts() ([]alert, error) {
	about, err := aboutConditions()
	return append(about, aboutNumbers...), err
}

// runbook is where each condition's reasons are explained.
const runbook = "docs/monitoring.md#alerts"

func rulesOf(alerts []alert) []map[string]any {
	var out []map[string]any
	for _, a := range alerts {
		out = append(out, map[string]any{
			"alert": a.name, "expr": a.expr, "for": a.after, "labels": map[string]string{"severity": a.severity},
			"annotations": map[string]string{"summary": a.summary, "todo": a.todo, "runbook": runbook},
		})
	}
	return out
}
