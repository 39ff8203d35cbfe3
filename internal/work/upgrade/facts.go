package upgrade

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/change/major"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/work/initjob"
	"toban.dev/internal/work/pod"
)

// What is asked once. An invalid database is one whose removal was cut off (datconnlimit -2).
const (
	queryPrepared = `select gid || ' (' || database || ')' from pg_prepared_xacts order by 1`
	querySlots    = `select slot_name::text from pg_replication_slots where slot_type = 'logical' and not temporary
		order by 1`
	queryRoles   = `select rolname::text from pg_roles where rolname ~ '^pg_' and oid >= 16384 order by 1`
	queryOutside = `select spcname || ': ' || pg_tablespace_location(oid) from pg_tablespace
		where oid >= 16384 and not starts_with(pg_tablespace_location(oid), $1 || '/') order by 1`
	// pg_dumpall leaves out what begins with pg_. Every version makes these memberships itself. Rights that were given
	// and taken back are the default ones, written out.
	queryLost = `select format('tablespace %s', spcname) from pg_tablespace cross join lateral (
			select acldefault('t', spcowner) as first) d where spcname ~ '^pg_' and spcacl is not null and exists (
				(select * from aclexplode(spcacl) except select * from aclexplode(first))
				union all (select * from aclexplode(first) except select * from aclexplode(spcacl)))
		union all select format('membership of %s in %s', m.rolname, r.rolname) from pg_auth_members a
			join pg_roles r on r.oid = a.roleid join pg_roles m on m.oid = a.member
			where r.rolname ~ '^pg_' and m.rolname ~ '^pg_' and not (m.rolname = 'pg_monitor'
			and r.rolname in ('pg_read_all_settings', 'pg_read_all_stats', 'pg_stat_scan_tables')) order by 1`
	// The planner goes by them, and nothing else.
	queryLostOptions = `select format('tablespace %s (%s)', spcname, o) from pg_tablespace, unnest(spcoptions) o
		where spcname ~ '^pg_' order by 1`
	queryDatabases = `select datname::text, datconnlimit = -2, not datallowconn, datlocprovider::text, datcollate,
		datctype, pg_database_size(oid) from pg_database order by 1`
)

// ReadByNobody is how those views and tables of the schema information_schema are called that initdb gives nobody to
// read. All others everybody may read.
const ReadByNobody = `^(_pg_.*|sql_parts|transforms)$`

// QueryDetaching are the partitions of a database that are detached only in part. An upgrade attaches them anew: in
// pg_dump they are like others.
const QueryDetaching = `select inhrelid::regclass::text from pg_inherits where inhdetachpending order by 1`

// What is asked in every database.
const (
	queryExtensions = `select extname::text, extversion from pg_extension`
	queryLibraries  = `select distinct probin from pg_proc p where probin is not null and p.oid >= 16384
		and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid
		and d.deptype = 'e') order by 1`
	// The types are those of pg_upgrade (check_for_reg_data_type_usage).
	queryReferences = `select format('%I.%I.%I (%s)', n.nspname, c.relname, a.attname, t.typname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
		join pg_type t on t.oid = a.atttypid
		where c.relkind in ('r', 'm', 'i') and not a.attisdropped and c.oid >= 16384
		and n.nspname !~ '^pg_temp_' and n.nspname !~ '^pg_toast_temp_'
		and t.typnamespace = 'pg_catalog'::regnamespace and t.typname in ('regcollation', 'regconfig', 'regdictionary',
		'regnamespace', 'regoper', 'regoperator', 'regproc', 'regprocedure') order by 1`
	// The options are those of ALTER TABLE … ALTER COLUMN … SET, and one of the server's own, which is not taken over.
	// Those of indexes are of their operator classes.
	queryOptions = `select format('%I.%I.%I (%s)', n.nspname, c.relname, a.attname, o)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid,
		unnest(a.attoptions) o
		where c.oid >= 16384 and c.relkind not in ('i', 'I') and a.attnum > 0 and not a.attisdropped
		and n.nspname !~ '^pg_temp_'
		and split_part(o, '=', 1) not in ('n_distinct', 'n_distinct_inherited', 'pg_attver') order by 1`
	// pg_dump leaves out what is in these schemas, but for what belongs to an extension.
	querySystem = `select format('%s %s', i.type, i.identity) from (
			select 'pg_class'::regclass as class, oid, relnamespace as schema from pg_class
				where relkind in ('r', 'p', 'v', 'm', 'S', 'f')
			union all select 'pg_proc'::regclass, oid, pronamespace from pg_proc
			union all select 'pg_type'::regclass, oid, typnamespace from pg_type where typtype in ('d', 'e', 'b', 'r')
				and typcategory <> 'A' or typtype = 'c' and exists (select from pg_class c
					where c.oid = typrelid and c.relkind = 'c')
			union all select 'pg_operator'::regclass, oid, oprnamespace from pg_operator
			union all select 'pg_collation'::regclass, oid, collnamespace from pg_collation
			union all select 'pg_ts_config'::regclass, oid, cfgnamespace from pg_ts_config
			union all select 'pg_ts_dict'::regclass, oid, dictnamespace from pg_ts_dict
			union all select 'pg_ts_parser'::regclass, oid, prsnamespace from pg_ts_parser
			union all select 'pg_ts_template'::regclass, oid, tmplnamespace from pg_ts_template
			union all select 'pg_conversion'::regclass, oid, connamespace from pg_conversion
			union all select 'pg_opclass'::regclass, oid, opcnamespace from pg_opclass
			union all select 'pg_opfamily'::regclass, oid, opfnamespace from pg_opfamily
			union all select 'pg_statistic_ext'::regclass, oid, stxnamespace from pg_statistic_ext) o
		cross join lateral pg_identify_object(o.class, o.oid, 0) i
		where o.oid >= 16384 and o.schema in ('pg_catalog'::regnamespace, to_regnamespace('information_schema'))
		and not exists (select from pg_depend d where d.classid = o.class and d.objid = o.oid
			and d.deptype in ('e', 'i')) order by 1`
	// pg_dump leaves out all rights to what is in it. What initdb gives is compared with (first), so that rights may be
	// taken back, and what everybody may do (above: in a column also what is given of its table) is no loss for one
	// role. Whether it is about somebody who may read more than everybody, is the argument.
	queryLostRights = `select format('rights to %s', o.name) from (
			select oid::regclass::text as name, relacl as acl, relowner as owner, acldefault('r', relowner)
				|| array(select makeaclitem(0, relowner, 'SELECT', false) where relname !~ '` + ReadByNobody + `')
				as first, null::aclitem[] as above, true as relation, relnamespace from pg_class
			union all select 'the schema information_schema', nspacl, nspowner, acldefault('n', nspowner)
				|| makeaclitem(0, nspowner, 'USAGE', false), null, false, oid from pg_namespace
			union all select attrelid::regclass || ' (' || quote_ident(attname) || ')', attacl, relowner,
				acldefault('c', relowner), relacl, false, relnamespace
				from pg_attribute join pg_class c on c.oid = attrelid
			union all select oid::regprocedure::text, proacl, proowner, acldefault('f', proowner), null, false,
				pronamespace from pg_proc
			union all select oid::regtype::text, typacl, typowner, acldefault('T', typowner), null, false, typnamespace
				from pg_type
		) as o (name, acl, owner, first, above, relation, schema)
		where o.schema = to_regnamespace('information_schema') and o.acl is not null and exists (select from (
				(select true as more, * from aclexplode(o.acl) except select true, * from aclexplode(o.first))
				union all (select false, * from aclexplode(o.first) except select false, * from aclexplode(o.acl))) a
			where a.grantee <> o.owner and not (a.grantee <> 0 and not a.is_grantable and exists (
				select from aclexplode(o.acl || o.above) e where e.grantee = 0 and e.privilege_type = a.privilege_type))
			and (o.relation and a.more and a.privilege_type = 'SELECT' and not a.is_grantable) = $1) order by 1`
	// Relations with numbers below 16384 are those that initdb makes. pg_upgrade takes the file of pg_largeobject over
	// as it is; the rest of these the new version writes anew.
	queryRelations = `select count(*), coalesce(sum(pg_total_relation_size(oid)) filter (where relkind in ('r', 'm')
		and oid < 16384 and relname <> 'pg_largeobject' and not relisshared), 0)::bigint from pg_class`
)

// ask asks the primary.
func (c *upgradeCheck) ask(ctx context.Context) error {
	config, err := pod.InitTLS(c.Authority, c.settings.Given)
	if err != nil {
		return err
	}
	conn, err := c.connect(ctx, config, "postgres")
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, q := range []struct {
		into  *[]string
		query string
		args  []any
	}{
		{&c.facts.Prepared, queryPrepared, nil}, {&c.facts.Slots, querySlots, nil}, {&c.facts.Roles, queryRoles, nil},
		{&c.facts.Outside, queryOutside, []any{c.options.Volume}}, {&c.facts.Lost, queryLost, nil},
		{&c.facts.Resets, queryLostOptions, nil},
	} {
		if *q.into, err = names(ctx, conn, q.query, q.args...); err != nil {
			return err
		}
	}
	if err := c.askDatabases(ctx, conn); err != nil {
		return err
	}
	for i := range c.facts.Databases {
		if d := &c.facts.Databases[i]; !d.Invalid && !d.Closed {
			if err := c.askIn(ctx, config, d); err != nil {
				return err
			}
		}
	}
	c.result.Databases, c.result.Relations = len(c.facts.Databases), c.facts.Relations
	return nil
}

func (c *upgradeCheck) connect(ctx context.Context, config *tls.Config, database string) (*pgx.Conn, error) {
	return initjob.Superuser(ctx, c.settings.Hosts, c.options.Port, config, database)
}

func names(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	return sql.Column[string](ctx, conn, "ask the primary", query, args...)
}

func (c *upgradeCheck) askDatabases(ctx context.Context, conn *pgx.Conn) error {
	rows := sql.Ask(ctx, conn, queryDatabases)
	var d major.DatabaseFacts
	var size int64
	_, err := pgx.ForEachRow(rows, []any{&d.Name, &d.Invalid, &d.Closed, &d.Provider, &d.Collate, &d.CType, &size},
		func() error {
			c.facts.Databases = append(c.facts.Databases, d)
			c.result.Bytes += size
			return nil
		})
	if err != nil {
		return fmt.Errorf("ask for the databases: %w", err)
	}
	return nil
}

// askIn asks in a database.
func (c *upgradeCheck) askIn(ctx context.Context, config *tls.Config, d *major.DatabaseFacts) error {
	conn, err := c.connect(ctx, config, d.Name)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, q := range []struct {
		into  *[]string
		query string
		args  []any
	}{
		{&d.Libraries, queryLibraries, nil}, {&d.References, queryReferences, nil}, {&d.Options, queryOptions, nil},
		{&d.System, querySystem, nil}, {&d.Detaching, QueryDetaching, nil}, {&d.Lost, queryLostRights, []any{false}},
		{&d.Resets, queryLostRights, []any{true}},
	} {
		if *q.into, err = names(ctx, conn, q.query, q.args...); err != nil {
			return err
		}
	}
	rows := sql.Ask(ctx, conn, queryExtensions)
	d.Extensions = map[string]string{}
	var name, version string
	if _, err := pgx.ForEachRow(rows, []any{&name, &version}, func() error {
		d.Extensions[name] = version
		return nil
	}); err != nil {
		return fmt.Errorf("ask for the extensions in %q: %w", d.Name, err)
	}
	var relations int
	var catalogs int64
	if err := conn.QueryRow(ctx, queryRelations).Scan(&relations, &catalogs); err != nil {
		return fmt.Errorf("count the relations in %q: %w", d.Name, err)
	}
	c.facts.Relations += relations
	c.result.Catalogs += catalogs
	return nil
}
