package sql

// WithoutTriggers has none of our roles that are no superusers run event triggers at login, which are a user's code: it
// could fail for ever on a standby, where it can't write, and with it each backup. Only a superuser may say so for
// them, and only by their roles (PostgreSQL 17 documentation, 19.11.1 and 38.1). It is to run on a primary, and writes
// only what is not so yet; where two sessions write at once, the later one leaves it to the next time. PostgreSQL
// before 17 has no such triggers.
const WithoutTriggers = `do $$ declare name text; begin
	if current_setting('server_version_num')::int < 170000 then
		return;
	end if;
	for name in select rolname from pg_catalog.pg_roles r
		where rolname in ('toban_replication', 'toban_backup', 'toban_link', 'toban_metrics', 'toban_pooler')
		and not exists (select from pg_catalog.pg_db_role_setting s
			where s.setrole = r.oid and s.setdatabase = 0 and 'event_triggers=off' = any(s.setconfig)) loop
		begin
			execute format('alter role %I set event_triggers = off', name);
		exception when others then
			raise log 'toban: event triggers at login are not kept from % yet: %', name, sqlerrm;
		end;
	end loop;
end $$`
