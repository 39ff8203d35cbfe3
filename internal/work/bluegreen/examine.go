package bluegreen

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/work/upgrade"
)

// schema has what a link needs in each database.
const schema = "toban_sides"

// ofUsers says of a relation c in a schema n that it is neither PostgreSQL's nor Toban's. Those of extensions are
// carried as all others.
const ofUsers = `c.oid >= 16384 and n.nspname not in ('pg_catalog', 'information_schema', 'toban_sides')
	and n.nspname !~ '^pg_(toast|temp)' and not ` + kept

// kept says of a relation c in a schema n that it is one of those in which Toban keeps what is about one side alone
// (packages database and finish). They are known by their owner, and are in the database postgres only, where no
// application may make anything: elsewhere a schema that is called toban is a user's.
const kept = `(current_database() = 'postgres' and n.nspname = 'toban' and pg_get_userbyid(n.nspowner) = 'postgres'
	and pg_get_userbyid(c.relowner) = 'postgres' and c.relname in ('claim', 'rebuilt', 'analyzed'))`

// What is asked once.
const (
	queryPrepared = `select gid || ' (' || database || ')' from pg_prepared_xacts order by 1`
	querySlots    = `select slot_name::text from pg_replication_slots where slot_type = 'logical' and not temporary
		order by 1`
	// An origin of a subscription is either that of a link, or the subscription itself is refused. The second number is
	// that of a table whose rows are being copied.
	queryOrigins = `select roname::text from pg_replication_origin o where not exists (select from pg_subscription s
		where o.roname ~ ('^pg_' || s.oid || '(_[0-9]+)?$')) order by 1`
	// Which databases are not followed (databases). One whose removal was cut off has nothing any more. template0 is
	// PostgreSQL's own as long as nobody gets in. Whether template1 has something is looked for there.
	queryTemplates = `select datname::text from pg_database where datistemplate and datconnlimit <> -2
		and (datallowconn or datname <> 'template0') and datname <> 'template1' order by 1`
	queryClosed = `select datname::text from pg_database where not datallowconn and datconnlimit <> -2
		and (not datistemplate or datname = 'template1') order by 1`
	queryTemplate = `select exists (select from pg_database where datname = 'template1' and datistemplate
		and datallowconn and datconnlimit <> -2)`
	// The types are PostgreSQL's own of processes, those of workers of links, which are counted by databases, and those
	// of queries, which do without. All others are background workers of extensions.
	queryWorkers = `select backend_type from pg_stat_activity where backend_type is not null
		and backend_type !~ '^(autovacuum|logical replication|parallel) ' and backend_type not in ('archiver',
		'background writer', 'checkpointer', 'client backend', 'io worker', 'logger', 'not initialized',
		'slotsync worker', 'standalone backend', 'startup', 'walreceiver', 'walsender', 'walsummarizer', 'walwriter')
		order by 1`
	// The session that asks has a value of its own. Toban's roles have no event triggers, and change no schema.
	queryUnnoticed = `select 'event_triggers in the configuration' from (
			select setting, row_number() over (order by seqno desc) as n from pg_file_settings
			where name = 'event_triggers' and applied) as last where n = 1 and not setting::bool
		union all select format('event_triggers of %s in %s', coalesce('the role ' || r.rolname, 'all roles'),
			coalesce('the database ' || d.datname, 'all databases'))
		from pg_db_role_setting s left join pg_roles r on r.oid = s.setrole
		left join pg_database d on d.oid = s.setdatabase cross join unnest(s.setconfig) as c
		where coalesce(r.rolname, '') not in ` + ownRoles + ` and case split_part(c, '=', 1)
			when 'event_triggers' then not split_part(c, '=', 2)::bool else false end order by 1`
	// A link that is there has its slots already.
	queryFree = `select current_setting('max_replication_slots')::int
		- (select count(*)::int from pg_replication_slots where slot_name !~ '^toban_to_(green|blue)_')`
)

// identity is a valid index that is a primary key, or the replica identity. One that is checked late finds no row.
const (
	primaryKey = `exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary and i.indimmediate
		and i.indisvalid)`
	chosenIndex = `exists (select from pg_index i where i.indrelid = c.oid and i.indisreplident and i.indimmediate
		and i.indisvalid)`
)

// What is asked in each database. The types are those without an equality in an index (typcache.c, eq_opr).
const (
	queryNoIdentity = `select format('%I.%I', n.nspname, c.relname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where ` + ofUsers + ` and c.relkind = 'r' and c.relpersistence = 'p' and (c.relreplident = 'n'
		or c.relreplident = 'd' and not ` + primaryKey + `
		or c.relreplident = 'i' and not ` + chosenIndex + `) order by 1`
	queryIncomparable = `select format('%I.%I (%I %s)', n.nspname, c.relname, a.attname, format_type(a.atttypid, null))
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
		join pg_type t on t.oid = a.atttypid left join pg_type b on b.oid = t.typbasetype
		where ` + ofUsers + ` and c.relkind = 'r' and c.relreplident = 'f' and not ` + primaryKey + `
		and (t.oid = any ($1::regtype[]) or t.typelem = any ($1::regtype[]) and t.typlen = -1
		or b.oid = any ($1::regtype[]))
		order by 1`
	incomparable = `{json,xml,point,line,lseg,box,path,polygon,circle}`
	// Generated columns are not sent. The columns of an index come first, and then what it only includes. Where a whole
	// row says which one it is, whoever follows looks for it by the primary key; where there is none, by any index that
	// is not partial and begins with a column that is sent (FindUsableIndexForReplicaIdentityFull of PostgreSQL 16 and
	// later): with a generated one behind that, which is null there, no row is found. Else such columns are left out.
	queryGenerated = `select format('%I.%I (%I)', n.nspname, c.relname, a.attname)` + fromGenerated + `
		and exists (select from pg_index i
			where i.indrelid = c.oid and a.attnum = any ((i.indkey::int2[])[0:i.indnkeyatts - 1])
			and case c.relreplident when 'd' then i.indisprimary when 'i' then i.indisreplident
			when 'f' then case when ` + primaryKey + ` then i.indisprimary else i.indpred is null and exists (
				select from pg_attribute k where k.attrelid = c.oid and k.attnum = i.indkey[0]
				and k.attgenerated = '') end end) order by 1`
	queryGeneratedRows = `select format('%I.%I (%I)', n.nspname, c.relname, a.attname)` + fromGenerated + `
		and c.relreplident = 'f' order by 1`
	fromGenerated = ` from pg_class c join pg_namespace n on n.oid = c.relnamespace
		join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated <> ''
		where ` + ofUsers + ` and c.relkind = 'r'`
	// Each type of a column is taken apart: arrays, domains, ranges and rows.
	queryNumbers = `with recursive columns as (
			select n.nspname, c.relname, a.attname, a.atttypid
			from pg_class c join pg_namespace n on n.oid = c.relnamespace
			join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
			where ` + ofUsers + ` and c.relkind = 'r'),
		parts (type, part) as (
			select distinct atttypid, atttypid from columns
			union select p.type, x.part from parts p join pg_type t on t.oid = p.part cross join lateral (
				values (t.typelem), (t.typbasetype)
				union all select rngsubtype from pg_range where t.oid in (rngtypid, rngmultitypid)
				union all select atttypid from pg_attribute where attrelid = t.typrelid and attnum > 0) as x (part))
		select format('%I.%I (%I %s)', nspname, relname, attname, format_type(atttypid, null)) from columns
		where atttypid in (select type from parts where part = any ('{xid,xid8,pg_snapshot,txid_snapshot}'::regtype[]))
		order by 1`
	queryUnlogged = `select format('%I.%I', n.nspname, c.relname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where ` + ofUsers + ` and c.relkind in ('r', 'S') and c.relpersistence = 'u' order by 1`
	queryForced = `select format('%I.%I', n.nspname, c.relname)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where ` + ofUsers + ` and c.relkind = 'r' and c.relrowsecurity and c.relforcerowsecurity order by 1`
	queryAlways = `select format('%I on %I.%I', t.tgname, n.nspname, c.relname)
		from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_namespace n on n.oid = c.relnamespace
		where ` + ofUsers + ` and not t.tgisinternal and t.tgenabled in ('A', 'R')
		union all select format('%I on %I.%I', r.rulename, n.nspname, c.relname)
		from pg_rewrite r join pg_class c on c.oid = r.ev_class join pg_namespace n on n.oid = c.relnamespace
		where ` + ofUsers + ` and r.ev_enabled in ('A', 'R') order by 1`
	querySubscriptions = `select subname::text from pg_subscription s join pg_database d on d.oid = s.subdbid
		where d.datname = current_database() and not (subname in ('` + nameForward + `', '` + nameBack + `')
		and ` + ourSubscription + `) order by 1`
	queryDisabled = `select wanted from unnest(array['toban_sides_end', 'toban_sides_drop']) as wanted
		where exists (select from pg_namespace n where n.nspname = '` + schema + `' and ` + isMarked + `)
		and not exists (select from pg_event_trigger where evtname = wanted and evtenabled = 'A') order by 1`
	queryExtensions = `select extname::text from pg_extension order by 1`
	queryLarge      = `select count(*) from pg_largeobject_metadata`
)

// queryRows is what has rows in a database, or may have: what is empty may be written to as well. Tables of extensions
// are left out: each side has what CREATE EXTENSION has put there.
const queryRows = `select format('%I.%I', n.nspname, c.relname)
	from pg_class c join pg_namespace n on n.oid = c.relnamespace
	where ` + ofUsers + ` and c.relkind in ('r', 'm', 'S') and not exists (select from pg_depend d
		where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
	union all select 'large objects' where exists (select from pg_largeobject_metadata) order by 1`

// isMarked says of a schema n that it is that of an upgrade.
const isMarked = `(` + isOwn + ` and coalesce(obj_description(n.oid, 'pg_namespace'), '') ~ '^` + markPrefix + `')`

const queryNoLanguage = `not exists (select from pg_language where lanname = 'plpgsql')`

// queryTaken says that the schema is not that of an upgrade, or a publication not that of a link, and that the language
// of the notes is not there.
const queryTaken = `select ` + foreignPublication + ` or exists (select from pg_namespace n
	where n.nspname = '` + schema + `' and not ` + isMarked + `),
	` + queryNoLanguage

// Examine finds out what there is on a side that is not carried.
func Examine(ctx context.Context, side Side) (f bluegreen.CarryFacts, err error) {
	conn, err := side.Connect(ctx, "postgres")
	if err != nil {
		return f, err
	}
	defer sql.HangUp(conn)
	f.Newest = side.Newest
	if f.From, err = majorOf(ctx, conn); err != nil {
		return f, err
	}
	for _, q := range []struct {
		into  *[]string
		query string
	}{{&f.Prepared, queryPrepared}, {&f.Slots, querySlots}, {&f.Origins, queryOrigins},
		{&f.Templates, queryTemplates}, {&f.Closed, queryClosed}, {&f.Workers, queryWorkers},
		{&f.Unnoticed, queryUnnoticed}} {
		*q.into, err = sql.Column[string](ctx, conn, "look for what is not carried", q.query)
		if err != nil {
			return f, err
		}
	}
	if err := conn.QueryRow(ctx, queryFree).Scan(&f.FreeSlots); err != nil {
		return f, fmt.Errorf("ask how many slots there may be: %w", err)
	}
	if f.Limits, err = limits(ctx, conn); err != nil {
		return f, err
	}
	if err := inTemplate(ctx, side, conn, &f); err != nil {
		return f, err
	}
	f.Databases, err = gather(ctx, side, func(conn *pgx.Conn, d database) (bluegreen.CarryDatabase, error) {
		return examine(ctx, conn, d.Name)
	})
	return f, err
}

// inTemplate finds out what has rows in template1, where that is a template, so that it is not followed, and whether it
// has no plpgsql, which an upgrade makes there anew.
func inTemplate(ctx context.Context, side Side, conn *pgx.Conn, f *bluegreen.CarryFacts) error {
	is, err := sql.Value[bool](ctx, conn, "look whether template1 is a template", queryTemplate)
	if err != nil || !is {
		return err
	}
	f.InTemplate, err = in(ctx, side, database{Name: "template1"}, func(conn *pgx.Conn, _ database) ([]string, error) {
		lacks, err := sql.Value[bool](ctx, conn, "look for plpgsql", "select "+queryNoLanguage)
		if err != nil {
			return nil, err
		}
		f.BareTemplate = lacks
		return sql.Column[string](ctx, conn, "look for rows", queryRows)
	})
	return err
}

// carries says what there is on a side that is not carried, as an error.
func carries(ctx context.Context, side Side) error {
	facts, err := Examine(ctx, side)
	if err != nil {
		return err
	}
	return refuse(facts)
}

// carriesAll says what there is in one database that is not carried, as an error. The newest is that of the side.
func carriesAll(ctx context.Context, conn *pgx.Conn, newest int) error {
	found, err := examine(ctx, conn, conn.Config().Database)
	if err != nil {
		return err
	}
	return refuse(bluegreen.CarryFacts{From: bluegreen.OldestToFollowBack, Newest: newest, FreeSlots: 1,
		Databases: []bluegreen.CarryDatabase{found}})
}

// limits are those that say how many databases a server can follow.
func limits(ctx context.Context, conn *pgx.Conn) (map[string]int, error) {
	all := map[string]int{}
	var name string
	var setting int
	rows := sql.Ask(ctx, conn, "select name, setting::int from pg_settings where name = any ($1)",
		slices.Collect(maps.Keys(bluegreen.Rooms)))
	_, err := pgx.ForEachRow(rows, []any{&name, &setting}, func() error { all[name] = setting; return nil })
	if err != nil {
		return nil, fmt.Errorf("ask how many databases can be followed: %w", err)
	}
	return all, nil
}

// hasRoom says as an error that the following side is too small for a number of databases. It may be of another version
// than the serving one, and not have the same limits.
func (s Subscriber) hasRoom(ctx context.Context, databases int) error {
	f, err := on(ctx, s.Following, func(conn *pgx.Conn) (f bluegreen.CarryFacts, err error) {
		if f.Limits, err = limits(ctx, conn); err != nil {
			return f, err
		}
		f.Workers, err = sql.Column[string](ctx, conn, "look for background workers", queryWorkers)
		return f, err
	})
	if err != nil {
		return err
	}
	return refuse(bluegreen.CarryFacts{From: bluegreen.OldestToFollowBack, FreeSlots: databases, Limits: f.Limits,
		Workers: f.Workers, Databases: make([]bluegreen.CarryDatabase, databases)})
}

func refuse(facts bluegreen.CarryFacts) error {
	refusals := bluegreen.CheckCarry(facts)
	if len(refusals) == 0 {
		return nil
	}
	r := refusals[0]
	return InTheWay{r.Reason, fmt.Sprintf("%s: %s", r.Message, strings.Join(r.Objects, ", "))}
}

// examine asks in one database.
func examine(ctx context.Context, conn *pgx.Conn, name string) (bluegreen.CarryDatabase, error) {
	d := bluegreen.CarryDatabase{Name: name}
	for _, q := range []struct {
		into  *[]string
		query string
		args  []any
	}{
		{&d.NoIdentity, queryNoIdentity, nil}, {&d.Incomparable, queryIncomparable, []any{incomparable}},
		{&d.Generated, queryGenerated, nil}, {&d.GeneratedRows, queryGeneratedRows, nil},
		{&d.Numbers, queryNumbers, nil}, {&d.Unlogged, queryUnlogged, nil}, {&d.Forced, queryForced, nil},
		{&d.Detaching, upgrade.QueryDetaching, nil},
		{&d.Always, queryAlways, nil}, {&d.Disabled, queryDisabled, nil},
		{&d.Subscriptions, querySubscriptions, nil}, {&d.Extensions, queryExtensions, nil},
	} {
		var err error
		*q.into, err = sql.Column[string](ctx, conn, "look for what is not carried", q.query, q.args...)
		if err != nil {
			return d, err
		}
	}
	if err := conn.QueryRow(ctx, queryLarge).Scan(&d.LargeObjects); err != nil {
		return d, fmt.Errorf("count large objects: %w", err)
	}
	var err error
	if d.OwnSlots, err = notedSlots(ctx, conn); err != nil {
		return d, err
	}
	if err := conn.QueryRow(ctx, queryTaken).Scan(&d.Taken, &d.NoLanguage); err != nil {
		return d, fmt.Errorf("look for the schema %s: %w", schema, err)
	}
	return d, nil
}
