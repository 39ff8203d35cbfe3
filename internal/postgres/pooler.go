package postgres

import (
	"context"
	"fmt"
)

// RolePooler is the role by which poolers look up how clients are known. It logs in by certificate to the database
// postgres, and can call the function toban.verifier there, and do nothing else.
const RolePooler = "toban_pooler"

// VerifierQuery is what a pooler asks for a client: PgBouncer's auth_query. A row has the name of the role and its
// SCRAM verifier; no row says that the role can't log in through a pooler.
const VerifierQuery = "select name, verifier from toban.verifier($1)"

// verifierSource is the function's: no superuser and no role of ours logs in through a pooler.
const verifierSource = `
	select rolname, rolpassword from pg_catalog.pg_authid
	where rolname = who and rolcanlogin and not rolsuper and not rolreplication
		and rolname not like 'toban\_%' and (rolvaliduntil is null or rolvaliduntil > now())
		and rolpassword like 'SCRAM-SHA-256$%'
`

// Only what is not as it should be is written.
const (
	ensurePooler = `do $do$ begin
		if not exists (select from pg_roles where rolname = 'toban_pooler') then
			create role toban_pooler login noinherit;
		end if;
		if exists (select from pg_roles where rolname = 'toban_pooler' and (rolsuper or rolcreaterole or rolcreatedb
			or rolreplication or rolbypassrls or not rolcanlogin)) then
			alter role toban_pooler nosuperuser nocreaterole nocreatedb noreplication nobypassrls login;
		end if;
		if not has_database_privilege('toban_pooler', 'postgres', 'connect') then
			grant connect on database postgres to toban_pooler;
		end if;
		if not exists (select from pg_namespace where nspname = 'toban') then
			create schema toban;
		end if;
		if not exists (select from pg_proc where oid = to_regprocedure('toban.verifier(text)')
			and prosrc = $source$%[1]s$source$) then
			create or replace function toban.verifier(who text) returns table (name name, verifier text)
				language sql stable security definer set search_path = pg_catalog as $source$%[1]s$source$;
			revoke all on function toban.verifier(text) from public;
			grant usage on schema toban to toban_pooler;
			grant execute on function toban.verifier(text) to toban_pooler;
		end if;
	end $do$`
	dropPooler = `do $do$ begin
		if exists (select from pg_roles where rolname = 'toban_pooler') then
			drop function if exists toban.verifier(text);
			drop owned by toban_pooler;
			drop role toban_pooler;
		end if;
	end $do$`
)

// EnsurePooler makes the role of poolers with what it needs in the database postgres, in which the session is; or it
// removes them, where none is wanted.
func (s *Session) EnsurePooler(ctx context.Context, wanted bool) error {
	statement := dropPooler
	if wanted {
		statement = fmt.Sprintf(ensurePooler, verifierSource)
		if err := withoutMembers(ctx, s.conn); err != nil {
			return err
		}
	}
	if _, err := s.conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("see to the role %s: %w", RolePooler, err)
	}
	return withoutTriggers(ctx, s.conn)
}
