SET ROLE pg_monitor;
SELECT json_build_object(
         'at', clock_timestamp(),
         'role', CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END,
         'connections', (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
         'maxConnections', current_setting('max_connections')::int);
SELECT coalesce(json_agg(s), '[]') FROM (
  SELECT coalesce(state, 'starting') AS state,
         CASE WHEN state = 'active' THEN wait_event_type || ':' || wait_event END AS wait, count(*) AS sessions
    FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
   GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2) AS s;
SELECT coalesce(json_agg(s), '[]') FROM (
  SELECT pid, usename AS "user", datname AS database, application_name AS application,
         coalesce(client_hostname, host(client_addr), 'local') AS client, state,
         wait_event_type || ':' || wait_event AS wait,
         extract(epoch FROM clock_timestamp() - xact_start)::float8 AS "transactionSeconds",
         extract(epoch FROM clock_timestamp() - state_change)::float8 AS "statementSeconds",
         left(query, 500) AS statement
    FROM pg_stat_activity
   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle'
   ORDER BY xact_start NULLS LAST, pid LIMIT 30) AS s;
SELECT coalesce(json_agg(s), '[]') FROM (
  SELECT w.pid, extract(epoch FROM clock_timestamp() - w.state_change)::float8 AS "waitSeconds",
         (SELECT l.mode || ' on ' || l.locktype || coalesce(' ' || l.relation::regclass::text, '')
            FROM pg_locks AS l WHERE l.pid = w.pid AND NOT l.granted LIMIT 1) AS lock,
         left(w.query, 500) AS statement,
         (SELECT json_agg(json_build_object('pid', b.pid, 'user', b.usename, 'database', b.datname,
                   'application', b.application_name, 'state', b.state,
                   'transactionSeconds', extract(epoch FROM clock_timestamp() - b.xact_start)::float8,
                   'statementSeconds', extract(epoch FROM clock_timestamp() - b.state_change)::float8,
                   'statement', left(b.query, 500)))
            FROM pg_stat_activity AS b WHERE b.pid = ANY (pg_blocking_pids(w.pid))) AS by
    FROM pg_stat_activity AS w
   WHERE w.wait_event_type = 'Lock' AND cardinality(pg_blocking_pids(w.pid)) > 0
   ORDER BY w.state_change LIMIT 30) AS s;
SELECT count(*) > 0 AS readable, coalesce(max(format('%I.pg_stat_statements', n.nspname)), '') AS statements
  FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
 WHERE e.extname = 'pg_stat_statements' AND has_schema_privilege(n.oid, 'USAGE')
   AND 'pg_stat_statements' = ANY (regexp_split_to_array(current_setting('shared_preload_libraries'), '[ ,"]+'))
\gset
\if :readable
SELECT coalesce(json_agg(s), '[]') FROM (
  SELECT r.rolname AS "user", d.datname AS database, t.calls, t.total_exec_time / 1000 AS "totalSeconds",
         t.mean_exec_time / 1000 AS "meanSeconds", t.rows, left(t.query, 500) AS statement
    FROM :statements AS t LEFT JOIN pg_roles AS r ON r.oid = t.userid LEFT JOIN pg_database AS d ON d.oid = t.dbid
   ORDER BY t.total_exec_time DESC LIMIT 10) AS s;
\endif
