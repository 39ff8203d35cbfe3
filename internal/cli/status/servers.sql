SET ROLE pg_monitor;
WITH here AS (
  SELECT pg_is_in_recovery() AS standby,
         CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END AS lsn)
SELECT json_build_object(
         'at', clock_timestamp(),
         'role', CASE WHEN standby THEN 'standby' ELSE 'primary' END,
         'startedAt', pg_postmaster_start_time(),
         'lsn', lsn,
         'connections', (SELECT count(*) FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()),
         'maxConnections', current_setting('max_connections')::int,
         'oldestTransactionSeconds', (SELECT coalesce(max(extract(epoch FROM clock_timestamp() - began)), 0)::float8 FROM (
            SELECT xact_start AS began FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
             UNION ALL SELECT prepared FROM pg_prepared_xacts) AS t),
         'wraparoundPercent', (SELECT 100 * max(greatest(age(datfrozenxid), mxid_age(datminmxid)))::float8 / 2147483648
            FROM pg_database),
         'lastCheckpoint', (SELECT checkpoint_time FROM pg_control_checkpoint()),
         'standbys', (SELECT coalesce(json_agg(s ORDER BY s.name), '[]') FROM (
            SELECT substring(application_name FROM '^[a-z0-9-]+') AS name, state,
                   greatest(pg_wal_lsn_diff(lsn, replay_lsn), 0)::bigint AS bytes,
                   extract(epoch FROM replay_lag)::float8 AS seconds
              FROM pg_stat_replication WHERE application_name <> 'pg_basebackup') AS s),
         'slots', (SELECT coalesce(json_agg(s ORDER BY s.name), '[]') FROM (
            SELECT slot_name AS name, slot_type AS type, active, coalesce(wal_status, '') AS wal,
                   greatest(pg_wal_lsn_diff(lsn, restart_lsn), 0)::bigint AS bytes
              FROM pg_replication_slots) AS s))
  FROM here;
