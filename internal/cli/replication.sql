SET ROLE pg_monitor;
SELECT json_build_object(
         'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
         'lsn', CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() END,
         'standbys', (SELECT coalesce(json_agg(s ORDER BY s.name), '[]') FROM (
            SELECT substring(application_name FROM '^[a-z0-9-]+') AS name, state, sync_state AS sync,
                   coalesce(greatest(pg_wal_lsn_diff(CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_lsn() END,
                                                     replay_lsn), 0), 0)::bigint AS bytes,
                   extract(epoch FROM replay_lag)::float8 AS seconds
              FROM pg_stat_replication WHERE application_name <> 'pg_basebackup') AS s));
