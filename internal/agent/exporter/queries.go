package exporter

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// most bounds how many databases, slots, standbys, and kinds of locks and sessions are shown. They are the same ones
// from one scrape to the next, as long as none of them goes.
const most = "50"

// sizesEvery is how often the sizes of the databases are measured: PostgreSQL looks at each of their files for that.
const sizesEvery = time.Minute

// query is one look at a view of PostgreSQL. The columns of its answer are first the labels, as text, and then the
// metrics, as double precision; null is not shown. The names are those of postgres_exporter, so that dashboards know
// them. Where it has labels by which the number of series has no bound (application_name, client_addr, usename), they
// are left out, and their rows are put together.
type query struct {
	// name is the value of the label collector of pg_scrape_collector_success.
	name string
	// since is the first major version of PostgreSQL that has it, until the last one, 0 for any.
	since, until int
	// every is for how long an answer is kept, 0 for as long as all of them.
	every   time.Duration
	labels  []string
	metrics []metric
	// sql is asked with most in place of MOST.
	sql string
}

// metric is a column. It is a counter if count is set, else a gauge.
type metric struct {
	name  string
	count bool
	help  string
}

func (q *query) text() string { return strings.ReplaceAll(q.sql, "MOST", most) }

// concerns says that a server of a major version has what the query asks for.
func (q *query) concerns(major int) bool {
	return major >= q.since && (q.until == 0 || major <= q.until)
}

func (m *metric) kind() prometheus.ValueType {
	if m.count {
		return prometheus.CounterValue
	}
	return prometheus.GaugeValue
}

func (m *metric) desc(labels []string) *prometheus.Desc {
	return prometheus.NewDesc(m.name, m.help, labels, nil)
}

// queries are all that are asked, by a role that may read statistics and nothing else (pg_monitor).
var queries = []query{
	{
		name: "static", labels: []string{"short_version", "version"},
		metrics: []metric{{"pg_static", false, "1; its labels have the version of the server."}},
		sql: `select split_part(current_setting('server_version'), ' ', 1), split_part(version(), ',', 1),
			1::float8`,
	},
	{
		name: "postmaster",
		metrics: []metric{
			{"pg_postmaster_start_time_seconds", false, "When the server was started, as a Unix time."},
			{"toban_instance_databases", false, "Databases of the server. Of 50 of them metrics are shown."},
		},
		sql: `select extract(epoch from pg_postmaster_start_time())::float8,
			(select count(*) from pg_database where not datistemplate)::float8`,
	},
	{
		name: "database", every: sizesEvery, labels: []string{"datname"},
		metrics: []metric{
			{"pg_database_size_bytes", false, "Size of a database on disk, at most a minute old."},
			{"pg_database_connection_limit", false, "Connections that a database allows, -1 for any number."},
		},
		sql: `select datname::text, pg_database_size(oid)::float8, datconnlimit::float8 from pg_database
			where not datistemplate and datallowconn order by oid limit MOST`,
	},
	{
		name: "database_wraparound", labels: []string{"datname"},
		metrics: []metric{
			{"pg_database_wraparound_age_datfrozenxid_seconds", false,
				"Transactions since the oldest one that is not frozen; the name says seconds, as " +
					"postgres_exporter does."},
			{"pg_database_wraparound_age_datminmxid_seconds", false,
				"Multixacts since the oldest one that is not frozen; the name says seconds, as " +
					"postgres_exporter does."},
		},
		sql: `select datname::text, age(datfrozenxid)::float8, mxid_age(datminmxid)::float8 from pg_database
			where datallowconn order by oid limit MOST`,
	},
	statDatabase,
	{
		name: "stat_bgwriter", until: 16,
		metrics: []metric{
			{"pg_stat_bgwriter_checkpoints_timed_total", true, "Checkpoints by time; until PostgreSQL 16."},
			{"pg_stat_bgwriter_checkpoints_req_total", true, "Checkpoints on request; until PostgreSQL 16."},
			{"pg_stat_bgwriter_checkpoint_write_time_total", true,
				"Milliseconds in which checkpoints wrote files; until PostgreSQL 16."},
			{"pg_stat_bgwriter_checkpoint_sync_time_total", true,
				"Milliseconds in which checkpoints synced files; until PostgreSQL 16."},
			{"pg_stat_bgwriter_buffers_checkpoint_total", true, "Buffers that checkpoints wrote; until PostgreSQL 16."},
			{"pg_stat_bgwriter_buffers_backend_total", true, "Buffers that sessions wrote; until PostgreSQL 16."},
			{"pg_stat_bgwriter_buffers_backend_fsync_total", true,
				"How often a session synced a file itself; until PostgreSQL 16."},
		},
		sql: `select checkpoints_timed::float8, checkpoints_req::float8, checkpoint_write_time, checkpoint_sync_time,
			buffers_checkpoint::float8, buffers_backend::float8, buffers_backend_fsync::float8 from pg_stat_bgwriter`,
	},
	{
		name: "stat_bgwriter_cleaning",
		metrics: []metric{
			{"pg_stat_bgwriter_buffers_clean_total", true, "Buffers that the background writer wrote."},
			{"pg_stat_bgwriter_maxwritten_clean_total", true,
				"How often the background writer stopped because it had written too many buffers."},
			{"pg_stat_bgwriter_buffers_alloc_total", true, "Buffers that were allocated."},
		},
		sql: `select buffers_clean::float8, maxwritten_clean::float8, buffers_alloc::float8 from pg_stat_bgwriter`,
	},
	{
		name: "stat_checkpointer", since: 17,
		metrics: []metric{
			{"pg_stat_checkpointer_num_timed_total", true, "Checkpoints by time; since PostgreSQL 17."},
			{"pg_stat_checkpointer_num_requested_total", true, "Checkpoints on request; since PostgreSQL 17."},
			{"pg_stat_checkpointer_restartpoints_timed_total", true, "Restartpoints by time; since PostgreSQL 17."},
			{"pg_stat_checkpointer_restartpoints_req_total", true, "Restartpoints on request; since PostgreSQL 17."},
			{"pg_stat_checkpointer_restartpoints_done_total", true, "Restartpoints that were done; since " +
				"PostgreSQL 17."},
			{"pg_stat_checkpointer_write_time_total", true,
				"Milliseconds in which checkpoints and restartpoints wrote files; since PostgreSQL 17."},
			{"pg_stat_checkpointer_sync_time_total", true,
				"Milliseconds in which checkpoints and restartpoints synced files; since PostgreSQL 17."},
			{"pg_stat_checkpointer_buffers_written_total", true,
				"Buffers that checkpoints and restartpoints wrote; since PostgreSQL 17."},
		},
		sql: `select num_timed::float8, num_requested::float8, restartpoints_timed::float8, restartpoints_req::float8,
			restartpoints_done::float8, write_time, sync_time, buffers_written::float8 from pg_stat_checkpointer`,
	},
	{
		name: "locks", labels: []string{"datname", "mode"},
		metrics: []metric{{"pg_locks_count", false, "Locks that are held or waited for, by database and mode."}},
		sql: `select datname::text, lower(mode), count(*)::float8 from pg_locks
			join pg_database on pg_database.oid = pg_locks.database group by 1, 2 order by 1, 2 limit 4 * MOST`,
	},
	{
		name: "stat_activity", labels: []string{"datname", "state"},
		metrics: []metric{
			{"pg_stat_activity_count", false, "Sessions of clients, by database and state."},
			{"pg_stat_activity_max_tx_duration", false, "Age in seconds of their longest transaction."},
		},
		sql: `select datname::text, coalesce(state, 'unknown'), count(*)::float8,
			coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8 from pg_stat_activity
			where backend_type = 'client backend' and pid <> pg_backend_pid() and datname is not null
			group by 1, 2 order by 1, 2 limit 4 * MOST`,
	},
	{
		name: "long_running_transactions",
		metrics: []metric{
			{"pg_long_running_transactions", false, "Transactions that run, of clients."},
			{"pg_long_running_transactions_oldest_timestamp_seconds", false,
				"Age in seconds of the oldest of them, 0 without any."},
		},
		sql: `select count(*)::float8, coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float8
			from pg_stat_activity where backend_type = 'client backend' and xact_start is not null
			and pid <> pg_backend_pid()`,
	},
	{
		name: "replication",
		metrics: []metric{
			{"pg_replication_lag_seconds", false,
				"How long ago what a standby has replayed last was committed; 0 if it has replayed all, or on a " +
					"primary."},
			{"pg_replication_is_replica", false, "1 on a standby, 0 on a primary."},
			{"pg_replication_last_replay_seconds", false,
				"How long ago the last transaction that a standby has replayed was committed."},
		},
		sql: `select case when not pg_is_in_recovery() then 0
			when pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() then 0
			else greatest(0, extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())) end::float8,
			pg_is_in_recovery()::int::float8, case when pg_is_in_recovery() then
			greatest(0, extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())) end::float8`,
	},
	{
		name: "stat_replication", labels: []string{"application_name", "state"},
		metrics: []metric{{"pg_stat_replication_pg_wal_lsn_diff", false,
			"Bytes of WAL that whoever streams from this server has not replayed yet."}},
		sql: `select application_name, state, max(case when pg_is_in_recovery()
			then pg_wal_lsn_diff(pg_last_wal_receive_lsn(), replay_lsn)
			else pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn) end)::float8
			from pg_stat_replication group by 1, 2 order by 1, 2 limit MOST`,
	},
	{
		name: "replication_slot", labels: []string{"slot_name", "slot_type"},
		metrics: []metric{
			{"pg_replication_slot_slot_is_active", false, "1 while somebody reads from a replication slot, else 0."},
			{"pg_replication_slot_safe_wal_size_bytes", false,
				"WAL that can be written until a slot may be lost; missing where it has no limit."},
			{"pg_replication_slots_pg_wal_lsn_diff", false, "Bytes of WAL that a slot keeps."},
		},
		sql: `select slot_name::text, slot_type, active::int::float8, safe_wal_size::float8,
			pg_wal_lsn_diff(case when pg_is_in_recovery() then pg_last_wal_receive_lsn()
			else pg_current_wal_lsn() end, restart_lsn)::float8 from pg_replication_slots order by 1 limit MOST`,
	},
	{
		name: "wal",
		metrics: []metric{
			{"pg_wal_segments", false, "Segments of WAL on the volume."},
			{"pg_wal_size_bytes", false, "Size of the WAL on the volume."},
		},
		sql: `select count(*)::float8, coalesce(sum(size), 0)::float8 from pg_ls_waldir()
			where name ~ '^[0-9A-F]{24}$'`,
	},
	settings,
}
