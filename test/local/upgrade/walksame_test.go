package upgrade_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rightsOf is who has which right by an ACL, in words, with what it means where it is null.
func rightsOf(acl, kind, owner string) string {
	return fmt.Sprintf(`(select string_agg(one, ' ' order by one) from (select format('%%s:%%s:%%s:%%s',
		pg_get_userbyid(x.grantor), case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end,
		x.privilege_type, x.is_grantable) as one
		from aclexplode(coalesce(%s, acldefault(%s, %s))) x) y)`, acl, kind, owner)
}

const ofNobodyElse = `n.nspname not in ('pg_catalog', 'information_schema', 'toban_sides') and n.nspname !~ '^pg_'`

// factQueries say what a database has, as a person sees it: names, each with what it is. Two sides that are the same
// have the same. What a materialized view has is left out: one that is refreshed in the last seconds is not carried
// (docs/bluegreen.md).
var factQueries = []string{
	`select 'schema ' || nspname, concat_ws(' ', pg_get_userbyid(nspowner), ` + rightsOf("nspacl", "'n'", "nspowner") +
		`) from pg_namespace n where ` + ofNobodyElse,
	`select 'relation ' || c.oid::regclass, concat_ws(' ', relkind, relpersistence, pg_get_userbyid(relowner),
		relrowsecurity, relforcerowsecurity, relreplident, relispartition, pg_get_expr(relpartbound, c.oid), reloptions,
		` + rightsOf("relacl", `(case relkind when 'S' then 's' else 'r' end)::"char"`, "relowner") + `)
	from pg_class c join pg_namespace n on n.oid = relnamespace
	where ` + ofNobodyElse + ` and relkind in ('r', 'p', 'v', 'm', 'S')`,
	`select format('column %s.%s', c.oid::regclass, attname), concat_ws(' ', format_type(atttypid, atttypmod),
		attnotnull, attgenerated, attidentity, attcollation::regcollation, attstorage, pg_get_expr(adbin, adrelid),
		attacl)
	from pg_attribute a join pg_class c on c.oid = attrelid join pg_namespace n on n.oid = relnamespace
	left join pg_attrdef d on adrelid = attrelid and adnum = attnum
	where ` + ofNobodyElse + ` and relkind in ('r', 'p') and attnum > 0 and not attisdropped`,
	// What is not null is a constraint from PostgreSQL 18 on.
	`select format('constraint %s of %s', conname, conrelid::regclass), concat_ws(' ', pg_get_constraintdef(o.oid),
		convalidated)
	from pg_constraint o join pg_namespace n on n.oid = connamespace where ` + ofNobodyElse + ` and contype <> 'n'`,
	`select 'index ' || indexrelid::regclass, concat_ws(' ', pg_get_indexdef(indexrelid), indisvalid, indisreplident)
	from pg_index join pg_class c on c.oid = indexrelid join pg_namespace n on n.oid = relnamespace
	where ` + ofNobodyElse,
	`select format('trigger %s of %s', tgname, tgrelid::regclass), concat_ws(' ', pg_get_triggerdef(t.oid), tgenabled)
	from pg_trigger t join pg_class c on c.oid = tgrelid join pg_namespace n on n.oid = relnamespace
	where ` + ofNobodyElse + ` and not tgisinternal`,
	`select 'function ' || p.oid::regprocedure, concat_ws(' ', pg_get_functiondef(p.oid), pg_get_userbyid(proowner),
		` + rightsOf("proacl", "'f'", "proowner") + `)
	from pg_proc p join pg_namespace n on n.oid = pronamespace where ` + ofNobodyElse + ` and prokind in ('f', 'p')`,
	`select 'type ' || t.oid::regtype, concat_ws(' ', pg_get_userbyid(typowner), ` +
		rightsOf("typacl", "'T'", "typowner") + `, array(select enumlabel from pg_enum where enumtypid = t.oid
		order by enumsortorder)) from pg_type t join pg_namespace n on n.oid = typnamespace
	where ` + ofNobodyElse + ` and typtype in ('e', 'd')`,
	`select format('policy %s of %s.%s', policyname, schemaname, tablename), p::text from pg_policies p`,
	`select format('default rights of %s in %s to %s', pg_get_userbyid(defaclrole), defaclnamespace::regnamespace,
		defaclobjtype), ` + rightsOf("defaclacl", "defaclobjtype", "defaclrole") + ` from pg_default_acl`,
	`select 'sequence ' || c.oid::regclass, concat_ws(' ', seqtypid::regtype, seqstart, seqincrement, seqmin, seqmax,
		seqcycle) from pg_sequence join pg_class c on c.oid = seqrelid join pg_namespace n on n.oid = relnamespace
	where ` + ofNobodyElse,
	`select 'large object ' || m.oid, concat_ws(' ', pg_get_userbyid(lomowner), ` +
		rightsOf("lomacl", "'L'", "lomowner") + `, md5(lo_get(m.oid))) from pg_largeobject_metadata m`,
	`select 'extension ' || extname, extversion from pg_extension`,
	`select 'comment on ' || pg_describe_object(classoid, objoid, objsubid), description from pg_description
	where objoid >= 16384 and pg_describe_object(classoid, objoid, objsubid) !~ 'toban_sides'`,
}

// sharedQueries are about what all databases share.
var sharedQueries = []string{
	`select 'role ' || rolname, concat_ws(' ', rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin,
		rolreplication, rolconnlimit, rolpassword, rolvaliduntil, rolbypassrls)
	from pg_authid where rolname !~ '^(pg|toban)_'`,
	`select format('membership of %s in %s by %s', member::regrole, roleid::regrole, grantor::regrole),
		concat_ws(' ', admin_option, inherit_option, set_option)
	from pg_auth_members where member::regrole::text !~ '^(pg|toban)_'`,
	`select format('settings of %s in %s', setrole::regrole, setdatabase::text = '0'), array(select unnest(setconfig)
		order by 1)::text from pg_db_role_setting where setrole::regrole::text !~ '^toban_'`,
	`select 'database ' || datname, concat_ws(' ', pg_get_userbyid(datdba), datconnlimit, datcollate, datctype,
		encoding, ` + rightsOf("datacl", "'d'", "datdba") + `)
	from pg_database where datallowconn and not datistemplate`,
	`select 'parameter ' || parname, ` + rightsOf("paracl", "'p'", "10") + ` from pg_parameter_acl`,
}

// facts are all that the databases of a server have, row for row.
func (st *stand) facts(ctx context.Context) (map[string]string, error) {
	all := map[string]string{}
	for _, database := range []string{"postgres", "shop"} {
		conn, err := st.side(st.name).Connect(ctx, database)
		if err != nil {
			return nil, err
		}
		defer hangUp(conn)
		queries := factQueries
		if database == "postgres" {
			queries = slices.Concat(sharedQueries, factQueries)
		}
		for _, query := range queries {
			if err := gatherFacts(ctx, conn, query, database, all); err != nil {
				return nil, err
			}
		}
		if err := rows(ctx, conn, database, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func gatherFacts(ctx context.Context, conn *pgx.Conn, query, database string, into map[string]string) error {
	found, err := conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	var name string
	var is *string
	if _, err := pgx.ForEachRow(found, []any{&name, &is}, func() error {
		if is == nil {
			is = new(string)
		}
		into[database+": "+name] = *is
		return nil
	}); err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// rows has all rows of all tables, and where sequences are.
func rows(ctx context.Context, conn *pgx.Conn, database string, into map[string]string) error {
	named := map[string]string{}
	if err := gatherFacts(ctx, conn, `select c.oid::regclass::text, relkind::text
		from pg_class c join pg_namespace n on n.oid = relnamespace
		where `+ofNobodyElse+` and relkind in ('r', 'S')`, "", named); err != nil {
		return err
	}
	var queries []string
	for name, kind := range named {
		name = strings.TrimPrefix(name, ": ")
		quoted := "'" + strings.ReplaceAll(name, "'", "''") + "'"
		if kind == "S" {
			queries = append(queries, fmt.Sprintf("select 'value of ' || %s, last_value || ' ' || is_called from %s",
				quoted, name))
			continue
		}
		queries = append(queries, fmt.Sprintf("select 'rows of ' || %s, count(*) || ' ' || coalesce(md5(string_agg("+
			"r::text, e'\\n' order by r::text collate \"C\")), '') from %s r", quoted, name))
	}
	for _, query := range queries {
		if err := gatherFacts(ctx, conn, query, database, into); err != nil {
			return err
		}
	}
	return nil
}

// same fails where two sides at rest differ in anything. A server that has died goes on with other values of its
// sequences than the last ones, which are higher: then they are not compared.
func (w *walk) same(a, b *stand, died bool) {
	w.Helper()
	one, err := a.facts(w.ctx)
	must(w, err)
	other, err := b.facts(w.ctx)
	must(w, err)
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(one)) {
		if died && strings.Contains(name, ": value of ") {
			continue
		}
		if is, there := other[name]; !there || is != one[name] {
			differ = append(differ, fmt.Sprintf("%s: on %s %q, on %s %q (there: %t)", name, a.name, one[name], b.name,
				is, there))
		}
	}
	for name, is := range other {
		if _, there := one[name]; !there {
			differ = append(differ, fmt.Sprintf("%s: only on %s: %q", name, b.name, is))
		}
	}
	if len(differ) > 0 {
		w.Fatalf("the sides differ:\n%s", strings.Join(differ, "\n"))
	}
	w.note("both sides are the same: %d facts", len(one))
}

// hasAll looks whether a side has all that was acknowledged.
func (w *walk) hasAll(on *stand) {
	w.Helper()
	conn, err := on.side(on.name).Connect(w.ctx, "shop")
	must(w, err)
	defer hangUp(conn)
	for _, c := range w.writers {
		must(w, c.has(w.ctx, conn))
	}
	must(w, w.migrator.has(w.ctx, conn))
	for table, sequence := range map[string]string{"app.tickets": "app.counter", "app.orders": "app.orders_id_seq",
		"app.audit": "app.audit_id_seq"} {
		var behind int
		must(w, conn.QueryRow(w.ctx, "select count(*) from "+table+" where id > (select last_value from "+sequence+")").
			Scan(&behind))
		if behind > 0 {
			w.Errorf("%s is behind %d rows of %s on %s", sequence, behind, table, on.name)
		}
	}
}
