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

// WithoutMembers has nobody be a member of those of our roles that are made late: who may make roles may have made one
// of that name before, and is its member. The sessions of members end: they may have become that role already. It is to
// run on a primary before such a role gets a right, as a statement of its own, and writes only what is not so yet.
const WithoutMembers = `do $$ declare sessions int[]; one record; begin
	if not exists (select from pg_catalog.pg_auth_members where roleid in (select oid from pg_catalog.pg_roles
		where rolname in ('toban_link', 'toban_metrics', 'toban_pooler'))) then
		return;
	end if;
	sessions := array(select a.pid from pg_catalog.pg_stat_activity a
		join pg_catalog.pg_roles u on u.oid = a.usesysid and not u.rolsuper
		join pg_catalog.pg_roles r on r.rolname in ('toban_link', 'toban_metrics', 'toban_pooler')
			and r.oid <> u.oid and pg_catalog.pg_has_role(u.oid, r.oid, 'member'));
	for one in select distinct r.rolname as ours, m.rolname as member from pg_catalog.pg_auth_members g
		join pg_catalog.pg_roles r on r.oid = g.roleid join pg_catalog.pg_roles m on m.oid = g.member
		where r.rolname in ('toban_link', 'toban_metrics', 'toban_pooler') loop
		execute format('revoke %I from %I cascade', one.ours, one.member);
	end loop;
	commit; -- who logs in from now on is none
	perform pg_catalog.pg_terminate_backend(pid) from unnest(sessions) pid;
end $$`
