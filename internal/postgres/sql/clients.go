package sql

// Application is how the names begin by which our own sessions are told from those of a person who is the superuser.
const Application = "toban"

// Clients says of a row of pg_stat_activity that it is a session which may write, and is none of ours: neither of a
// role that nobody else can log in as, nor the superuser's with a name of ours. A person with psql who is postgres is a
// client. One of which it is not known yet whose it is (PostgreSQL 18) is none: see Process.EndLogins of package
// postgres. Users' queries for metrics can't write.
const Clients = `backend_type in ('client backend', 'walsender') and state is distinct from 'starting'
	and not coalesce(usename in ('toban_replication', 'toban_backup', 'toban_link', 'toban_metrics')
		or usename = 'postgres' and starts_with(application_name, '` + Application + `'), false)`
