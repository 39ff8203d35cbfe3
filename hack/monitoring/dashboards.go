package main

import "fmt"

// dashboard is one of Grafana's.
type dashboard struct {
	name, title string
	// one says that it is about one SampleDB, which is chosen at its top.
	one    bool
	panels []panel
}

// panel shows expressions. A stat shows their last value, a graph all.
type panel struct {
	title, unit string
	stat        bool
	lines       []line
}

// line is an expression with its name in the legend.
type line struct{ expr, legend string }

const (
	// chosen are the labels of the SampleDB that is chosen in the dashboard.
	chosen = `{namespace="$namespace", sampledb="$sampledb"}`
	byDB   = "{{namespace}}/{{sampledb}}"
	byPod  = "{{instance}}"
	byApp  = "{{namespace}}/{{myapp}}"
	byPool = "{{pooler}}"
	// byDrill names the last drill of a fault and a role.
	byDrill = byDB + ": {{fault}} of {{role}}"
)

// dashboards are all of them.
var dashboards = []dashboard{
	{name: "fleet", title: "Toban: all databases", panels: []panel{
		{"Databases", "short", true, []line{{"count(toban_sampledb_stopped)", ""}}},
		{"Without a primary", "short", true, []line{{"count(toban_sampledb_primary_known) - " +
			"sum(toban_sampledb_primary_known)", ""}}},
		{"Instances ready of those wanted", "percentunit", true,
			[]line{{"sum(toban_sampledb_instances_ready) / sum(toban_sampledb_instances_wanted)", ""}}},
		{"Conditions that are not true", "short", false,
			[]line{{"sum by (type) (toban_sampledb_condition != bool 1)", "{{type}}"}}},
		{"Transactions per second", "ops", false,
			[]line{{"sum by (namespace, sampledb) (toban:transactions:rate5m)", byDB}}},
		{"Connections used", "percentunit", false,
			[]line{{"max by (namespace, sampledb) (toban:connections_used:ratio)", byDB}}},
		{"Volumes used", "percentunit", false,
			[]line{{"max by (namespace, sampledb) (toban:volume_used:ratio)", byDB}}},
		{"Replication lag", "s", false,
			[]line{{"max by (namespace, sampledb) (pg_replication_lag_seconds)", byDB}}},
		{"Instances to spare before commits wait", "short", false, []line{{"toban:instances_to_spare", byDB}}},
		{"Failovers and switchovers: the term", "short", false,
			[]line{{"max by (namespace, sampledb) (toban_instance_term)", byDB}}},
	}},
	{name: "database", title: "Toban: one database", one: true, panels: []panel{
		{"Primary", "short", true, []line{{"toban_instance_primary" + chosen + " == 1", byPod}}},
		{"Ready instances", "short", true, []line{{"sum(toban_instance_ready" + chosen + ")", ""}}},
		{"Instances to spare before commits wait", "short", true, []line{{"toban:instances_to_spare" + chosen, ""}}},
		{"Oldest transaction", "s", true,
			[]line{{"max(pg_long_running_transactions_oldest_timestamp_seconds" + chosen + ")", ""}}},
		{"Role: 1 is the primary", "short", false, []line{{"toban_instance_primary" + chosen, byPod}}},
		{"Term", "short", false, []line{{"toban_instance_term" + chosen, byPod}}},
		{"Transactions per second", "ops", false, []line{{"toban:transactions:rate5m" + chosen, byPod}}},
		{"Rows written per second", "ops", false, []line{
			{"sum by (instance) (rate(pg_stat_database_tup_inserted" + chosen + "[5m]))", byPod + " inserted"},
			{"sum by (instance) (rate(pg_stat_database_tup_updated" + chosen + "[5m]))", byPod + " updated"},
			{"sum by (instance) (rate(pg_stat_database_tup_deleted" + chosen + "[5m]))", byPod + " deleted"},
		}},
		{"Sessions", "short", false, []line{
			{"sum by (instance, state) (pg_stat_activity_count" + chosen + ")", byPod + " {{state}}"},
			{"max(pg_settings_max_connections" + chosen + ")", "max_connections"},
		}},
		{"Locks", "short", false, []line{{"sum by (instance, mode) " +
			"(pg_locks_count" + chosen + ")", byPod + " {{mode}}"}}},
		{"Blocks found in shared buffers", "percentunit", false, []line{{"toban:cache_hits:ratio5m" + chosen, byPod}}},
		{"Temporary files, bytes per second", "Bps", false,
			[]line{{"sum by (instance) (rate(pg_stat_database_temp_bytes" + chosen + "[5m]))", byPod}}},
		{"Replication lag", "s", false, []line{{"pg_replication_lag_seconds" + chosen, byPod}}},
		{"Bytes that standbys have not replayed", "bytes", false,
			[]line{{"pg_stat_replication_pg_wal_lsn_diff" + chosen, "{{application_name}}"}}},
		{"WAL written per second", "Bps", false,
			[]line{{"rate(toban_instance_wal_position_bytes" + chosen + "[5m])", byPod}}},
		{"WAL on the volumes", "bytes", false, []line{{"pg_wal_size_bytes" + chosen, byPod}}},
		{"WAL kept by replication slots", "bytes", false,
			[]line{{"pg_replication_slots_pg_wal_lsn_diff" + chosen, byPod + " {{slot_name}}"}}},
		{"Volumes", "bytes", false, []line{
			{"toban_instance_volume_used_bytes" + chosen, byPod + " used"},
			{"toban_instance_volume_size_bytes" + chosen, byPod + " size"},
		}},
		{"Volumes for the WAL", "bytes", false, []line{
			{"toban_instance_wal_volume_used_bytes" + chosen, byPod + " used"},
			{"toban_instance_wal_volume_size_bytes" + chosen, byPod + " size"},
		}},
		{"Volumes used", "percentunit", false,
			[]line{{"toban:volume_used:ratio" + chosen, byPod + " {{volume}}"}}},
		{"Sizes of databases", "bytes", false,
			[]line{{"max by (datname) (pg_database_size_bytes" + chosen + ")", "{{datname}}"}}},
		{"Age of the oldest transaction id that is not frozen", "short", false,
			[]line{{"max by (datname) " +
				"(pg_database_wraparound_age_datfrozenxid_seconds" + chosen + ")", "{{datname}}"}}},
		{"Time for a scrape, by collector", "s", false,
			[]line{{"sum by (instance, collector) (pg_scrape_collector_duration_seconds" + chosen + ")",
				byPod + " {{collector}}"}}},
		{"Pooler: clients", "short", false, []line{
			{"sum by (pooler) (pgbouncer_pools_client_active_connections" + chosen + ")", byPool + " active"},
			{"sum by (pooler) (pgbouncer_pools_client_waiting_connections" + chosen + ")", byPool + " waiting"},
		}},
		{"Pooler: connections to servers", "short", false, []line{
			{"sum by (pooler) (pgbouncer_pools_server_active_connections" + chosen + ")", byPool + " active"},
			{"sum by (pooler) (pgbouncer_pools_server_idle_connections" + chosen + ")", byPool + " idle"},
			{"sum by (pooler) (pgbouncer_pools_server_login_connections" + chosen + ")", byPool + " being opened"},
		}},
		{"Pooler: how long the first client has waited", "s", false,
			[]line{{"max by (pooler) (pgbouncer_pools_client_maxwait_seconds" + chosen + ")", byPool}}},
		{"Pooler: clients that wait, on average", "short", false,
			[]line{{"sum by (pooler) (rate(pgbouncer_stats_client_wait_seconds_total" + chosen + "[5m]))", byPool}}},
		{"Pooler: transactions per second", "ops", false, []line{
			{"sum by (pooler) (rate(pgbouncer_stats_sql_transactions_pooled_total" + chosen + "[5m]))", byPool}}},
		{"Pooler: time of a query, on average", "s", false, []line{
			{"sum by (pooler) (rate(pgbouncer_stats_queries_duration_seconds_total" + chosen + "[5m]))\n/\n" +
				"sum by (pooler) (rate(pgbouncer_stats_queries_pooled_total" + chosen + "[5m]))", byPool}}},
		{"Pooler: bytes per second", "Bps", false, []line{
			{"sum by (pooler) (rate(pgbouncer_stats_received_bytes_total" + chosen + "[5m]))", byPool + " received"},
			{"sum by (pooler) (rate(pgbouncer_stats_sent_bytes_total" + chosen + "[5m]))", byPool + " sent"},
		}},
		{"Pooler: 1 takes transactions, 0 holds clients", "short", false, []line{
			{"toban_pooler_open" + chosen + " * pgbouncer_up" + chosen, byPool}}},
	}},
	{name: "backups", title: "Toban: backups", panels: []panel{
		{"Oldest last backup", "s", true, []line{{"max(time() - toban_sampledb_last_backup_timestamp_seconds)", ""}}},
		{"Longest since a verification", "s", true,
			[]line{{"max(time() - toban_sampledb_last_verified_timestamp_seconds)", ""}}},
		{"Last backups without success", "short", true,
			[]line{{`sum(toban_databasebackup_condition{type="Complete"} != bool 1)`, ""}}},
		{"Last verifications without success", "short", true,
			[]line{{`sum(toban_databasebackup_condition{type="Verified"} != bool 1)`, ""}}},
		{"Since the last backup", "s", false,
			[]line{{"time() - toban_sampledb_last_backup_timestamp_seconds", byDB}}},
		{"Since a backup was verified", "s", false,
			[]line{{"time() - toban_sampledb_last_verified_timestamp_seconds", byDB}}},
		{"Restorable: how far back", "s", false,
			[]line{{"time() - toban_sampledb_restorable_since_timestamp_seconds", byDB}}},
		{"WAL that is not archived yet", "bytes", false, []line{{"toban_instance_archive_lag_bytes", byDB}}},
		{"How long it has waited", "s", false, []line{{"toban_instance_archive_lag_seconds", byDB}}},
		{"WAL archived per second", "Bps", false,
			[]line{{"rate(toban_instance_archive_position_bytes[5m])", byDB}}},
		{"DatabaseBackups by their phase", "short", false,
			[]line{{"sum by (phase) (toban_databasebackup_phase)", "{{phase}}"}}},
		{"What the last verification says a restore takes", "s", false,
			[]line{{"toban_databasebackup_recovery_seconds", byDB}}},
		{"How long the last complete backup has taken", "s", false,
			[]line{{"toban_databasebackup_duration_seconds", byDB + " {{type}}"}}},
		{"Its data, and what it took in the archive", "bytes", false, []line{
			{"toban_databasebackup_size_bytes", byDB + " {{type}}"},
			{"toban_databasebackup_stored_bytes", byDB + " {{type}} in the archive"},
		}},
	}},
	{name: "applications", title: "Toban: applications and their databases", panels: []panel{
		{"MyApps", "short", true, []line{{`count(toban_myapp_condition{type="Ready"})`, ""}}},
		{"MyApps that are not ready", "short", true,
			[]line{{`sum(toban_myapp_condition{type="Ready"} != bool 1)`, ""}}},
		{"PostgreSQLs", "short", true, []line{{`count(toban_postgresql_condition{type="Ready"})`, ""}}},
		{"PostgreSQLs that are not ready", "short", true,
			[]line{{`sum(toban_postgresql_condition{type="Ready"} != bool 1)`, ""}}},
		{"Why conditions of MyApps are not true", "short", false, []line{{whyNot("myapp"), "{{type}}: {{reason}}"}}},
		{"Why conditions of PostgreSQLs are not true", "short", false,
			[]line{{whyNot("postgresql"), "{{type}}: {{reason}}"}}},
		{"Pods that are ready", "short", false, []line{{"toban_myapp_replicas_ready", byApp}}},
		{"Pods that are missing", "short", false,
			[]line{{"toban_myapp_replicas_wanted - toban_myapp_replicas_ready", byApp}}},
		{"1 is led", "short", false, []line{{"toban_myapp_leader_known", byApp}}},
	}},
	{name: "drills", title: "Toban: drills", panels: []panel{
		{"Last drills that have not passed", "short", true,
			[]line{{"count(toban_faultdrill_passed == 0) or vector(0)", ""}}},
		{"Databases with a drill", "short", true,
			[]line{{"count(count by (namespace, sampledb) (toban_faultdrill_passed))", ""}}},
		{"Longest outage", "s", true, []line{{"max(toban_faultdrill_outage_seconds)", ""}}},
		{"Since the last drill", "s", true,
			[]line{{"time() - max(toban_faultdrill_completed_timestamp_seconds)", ""}}},
		{"Longest time without an acknowledged write", "s", false,
			[]line{{"toban_faultdrill_outage_seconds", byDrill}}},
		{"1 is passed", "short", false, []line{{"toban_faultdrill_passed", byDrill}}},
		{"Since the last drill of a fault", "s", false,
			[]line{{"time() - toban_faultdrill_completed_timestamp_seconds", byDrill}}},
		{"Failovers and switchovers: the term", "short", false,
			[]line{{"max by (namespace, sampledb) (toban_instance_term)", byDB}}},
	}},
}

// whyNot counts the conditions of a kind that are not true by their reasons, and has 0 for the reasons of those that
// are.
func whyNot(kind string) string {
	return fmt.Sprintf("sum by (type, reason) (\n"+
		"  max by (namespace, %[1]s, type, reason) (toban_%[1]s_condition_reason)\n"+
		"  * on (namespace, %[1]s, type) group_left ()\n"+
		"  max by (namespace, %[1]s, type) (toban_%[1]s_condition != bool 1)\n)", kind)
}

// Widths and heights in Grafana's grid, which has 24 columns.
const columns, statWidth, statHeight, graphWidth, graphHeight = 24, 6, 4, 12, 8

// grafana is the dashboard as Grafana imports it (schema version 39, Grafana 10 and later).
func (d dashboard) grafana() map[string]any {
	variables := []any{map[string]any{"name": "datasource", "type": "datasource", "query": "prometheus",
		"label": "Prometheus"}}
	if d.one {
		variables = append(variables, variable("namespace", "label_values(toban_instance_ready, namespace)"),
			variable("sampledb", `label_values(toban_instance_ready{namespace="$namespace"}, sampledb)`))
	}
	var panels []any
	x, y, high := 0, 0, 0
	for i, p := range d.panels {
		w, h := graphWidth, graphHeight
		if p.stat {
			w, h = statWidth, statHeight
		}
		if x+w > columns || high != h {
			x, y = 0, y+high
		}
		high = h
		panels = append(panels, p.grafana(i+1, map[string]int{"x": x, "y": y, "w": w, "h": h}))
		x += w
	}
	return map[string]any{
		"uid": "toban-" + d.name, "title": d.title, "tags": []string{"toban", "postgresql"}, "schemaVersion": 39,
		"editable": true, "refresh": "30s", "time": map[string]string{"from": "now-6h", "to": "now"},
		"templating": map[string]any{"list": variables}, "panels": panels,
	}
}

func variable(name, query string) map[string]any {
	return map[string]any{
		"name": name, "type": "query", "refresh": 2, "query": query, "definition": query,
		"datasource": source,
	}
}

var source = map[string]string{"type": "prometheus", "uid": "${datasource}"}

func (p panel) grafana(id int, place map[string]int) map[string]any {
	kind := "timeseries"
	if p.stat {
		kind = "stat"
	}
	var targets []any
	for i, l := range p.lines {
		targets = append(targets, map[string]any{
			"refId": string(rune('A' + i)), "expr": l.expr, "legendFormat": l.legend, "instant": p.stat,
			"datasource": source,
		})
	}
	out := map[string]any{
		"id": id, "title": p.title, "type": kind, "gridPos": place, "datasource": source, "targets": targets,
		"fieldConfig": map[string]any{"defaults": map[string]any{"unit": p.unit, "min": 0}, "overrides": []any{}},
	}
	if p.stat && p.lines[0].legend != "" {
		out["options"] = map[string]any{"textMode": "name"}
	}
	return out
}
