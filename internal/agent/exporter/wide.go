package exporter

// statDatabase has many columns.
var statDatabase = query{
	name: "stat_database", labels: []string{"datid", "datname"},
	metrics: []metric{
		{"pg_stat_database_numbackends", false, "Sessions in a database."},
		{"pg_stat_database_xact_commit", true, "Transactions that were committed."},
		{"pg_stat_database_xact_rollback", true, "Transactions that were rolled back."},
		{"pg_stat_database_blks_read", true, "Blocks that were read from the operating system."},
		{"pg_stat_database_blks_hit", true, "Blocks that were found in shared buffers."},
		{"pg_stat_database_tup_returned", true, "Rows that were read."},
		{"pg_stat_database_tup_fetched", true, "Rows that were fetched by index scans."},
		{"pg_stat_database_tup_inserted", true, "Rows that were inserted."},
		{"pg_stat_database_tup_updated", true, "Rows that were updated."},
		{"pg_stat_database_tup_deleted", true, "Rows that were deleted."},
		{"pg_stat_database_conflicts", true, "Queries that were cancelled because of recovery, on a standby."},
		{"pg_stat_database_temp_files", true, "Temporary files that queries made."},
		{"pg_stat_database_temp_bytes", true, "Bytes that were written to temporary files."},
		{"pg_stat_database_deadlocks", true, "Deadlocks that were found."},
		{"pg_stat_database_checksum_failures", true, "Pages with a wrong checksum that were found."},
		{"pg_stat_database_blk_read_time", true, "Milliseconds for reads of blocks, with track_io_timing."},
		{"pg_stat_database_blk_write_time", true, "Milliseconds for writes of blocks, with track_io_timing."},
		{"pg_stat_database_active_time_seconds_total", true, "Seconds in which sessions executed statements."},
		{"pg_stat_database_stats_reset", true, "When these counters were last reset, as a Unix time."},
	},
	sql: `select datid::text, datname::text, numbackends::float8, xact_commit::float8, xact_rollback::float8,
		blks_read::float8, blks_hit::float8, tup_returned::float8, tup_fetched::float8, tup_inserted::float8,
		tup_updated::float8, tup_deleted::float8, conflicts::float8, temp_files::float8, temp_bytes::float8,
		deadlocks::float8, checksum_failures::float8, blk_read_time, blk_write_time, active_time / 1000,
		extract(epoch from stats_reset)::float8
		from pg_stat_database where datname is not null order by datid limit MOST`,
}

// settings are those that dashboards compare with.
var settings = query{
	name: "settings",
	metrics: []metric{
		{"pg_settings_max_connections", false, "The parameter max_connections."},
		{"pg_settings_superuser_reserved_connections", false, "The parameter superuser_reserved_connections."},
		{"pg_settings_max_worker_processes", false, "The parameter max_worker_processes."},
		{"pg_settings_max_parallel_workers", false, "The parameter max_parallel_workers."},
		{"pg_settings_shared_buffers_bytes", false, "The parameter shared_buffers."},
		{"pg_settings_effective_cache_size_bytes", false, "The parameter effective_cache_size."},
		{"pg_settings_maintenance_work_mem_bytes", false, "The parameter maintenance_work_mem."},
		{"pg_settings_work_mem_bytes", false, "The parameter work_mem."},
		{"pg_settings_max_wal_size_bytes", false, "The parameter max_wal_size."},
		{"pg_settings_random_page_cost", false, "The parameter random_page_cost."},
		{"pg_settings_seq_page_cost", false, "The parameter seq_page_cost."},
		{"pg_settings_autovacuum_freeze_max_age", false, "The parameter autovacuum_freeze_max_age."},
	},
	sql: `select current_setting('max_connections')::float8,
		current_setting('superuser_reserved_connections')::float8, current_setting('max_worker_processes')::float8,
		current_setting('max_parallel_workers')::float8, pg_size_bytes(current_setting('shared_buffers'))::float8,
		pg_size_bytes(current_setting('effective_cache_size'))::float8,
		pg_size_bytes(current_setting('maintenance_work_mem'))::float8,
		pg_size_bytes(current_setting('work_mem'))::float8, pg_size_bytes(current_setting('max_wal_size'))::float8,
		current_setting('random_page_cost')::float8, current_setting('seq_page_cost')::float8,
		current_setting('autovacuum_freeze_max_age')::float8`,
}
