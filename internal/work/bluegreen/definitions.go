package bluegreen

import (
	"fmt"
	"slices"
	"strings"
)

// definition is how one sort of objects in a database is looked at: a query with the name of each as name, and what it
// is as text.
type definition struct{ sort, query string }

// locking are the sorts of which PostgreSQL locks the relations that an object is about, when it writes what that is,
// until the transaction ends: those of all views at once would be more locks than there may be, and hold clients up.
var locking = []string{"rule", "function"}

// looks says what can be compared of two servers, which goes by their versions.
type looks struct {
	// alike says that both are of one major version: only then is an expression, as that of a view, a default or a
	// check, written in the same way on both.
	alike bool
	// without are the rights that one of them does not know.
	without string
	// major is the version of the side that serves.
	major int
}

// maintainSince is the first major version with the right MAINTAIN. Whoever has all rights gets it by an upgrade.
const maintainSince = 17

func looksOf(serving, following int) looks {
	l := looks{alike: serving == following, without: "''", major: serving}
	if min(serving, following) < maintainSince {
		l.without = "'MAINTAIN'"
	}
	return l
}

// Queries are all by which two sides of some major versions are asked for what is defined, in databases and besides.
func Queries(serving, following int) string {
	all := []string{queryShared}
	for _, d := range looksOf(serving, following).definitions() {
		all = append(all, d.query)
	}
	return strings.Join(all, ";\n")
}

// definitions are those of all sorts, in their order. What is PostgreSQL's own, and what belongs to an extension, is
// left out, because it goes by the version; of PostgreSQL's own objects the rights are looked at. No query here reads a
// table of a user, or runs code of one.
func (l looks) definitions() []definition {
	return slices.Concat(l.relations(), l.ofTables(), l.routines(), l.types(), l.operators(), l.search(), l.foreign(),
		l.links(), l.words())
}

// expression is what PostgreSQL writes for an expression.
func (l looks) expression(call string) string {
	if l.alike {
		return call
	}
	return "''"
}

// rights are those of an object, also where they are the default ones, in an order of their own.
func (l looks) rights(acl, sort, owner string) string {
	return fmt.Sprintf(`array(select %s from aclexplode(coalesce(%s, acldefault('%s', %s))) a where %s order by 1)`,
		oneRight, acl, sort, owner, l.counted())
}

// oneRight is one right of aclexplode a. Both sides sort alike, whatever the libraries of their images do.
const oneRight = `format('%s %s %s %s', pg_get_userbyid(a.grantor),
	case a.grantee when 0 then 'public' else pg_get_userbyid(a.grantee) end, a.privilege_type, a.is_grantable)
	collate "C"`

// counted says of a right a that it is a user's.
func (l looks) counted() string {
	return `a.privilege_type <> ` + l.without + ` and (a.grantee = 0 or pg_get_userbyid(a.grantee) not in ` +
		ownRoles + `)`
}

// ofUser says of an object that it is a user's and in no extension.
func ofUser(catalog, oid string) string {
	return fmt.Sprintf(`%s >= 16384 and %s`, oid, noMember(catalog, oid))
}

func noMember(catalog, oid string) string {
	return fmt.Sprintf(`not exists (select from pg_depend z where z.classid = 'pg_catalog.%s'::regclass
		and z.objid = %s and z.deptype = 'e')`, catalog, oid)
}

// inSchema says of a schema n that it is no temporary one, and none in which Toban keeps what is about one side alone
// (ofUsers). Tables in a schema toban are known by their names.
const inSchema = `n.nspname <> 'toban_sides' and n.nspname !~ '^pg_(toast|temp)'`

// stays says of types that none of them is a temporary one.
func stays(types string) string {
	return `not exists (select from pg_type e join pg_namespace n on n.oid = e.typnamespace where e.oid in (` + types +
		`) and not (` + inSchema + `))`
}

// tobans says of a schema n that it is the one that Toban has in the database postgres.
const tobans = `(current_database() = 'postgres' and n.nspname = 'toban' and pg_get_userbyid(n.nspowner) = 'postgres')`

// ofTable says of a relation c in a schema n that it is a user's and in no extension.
var ofTable = ofUser("pg_class", "c.oid") + ` and ` + inSchema + ` and not ` + kept

const (
	inTables = ` from pg_class c join pg_namespace n on n.oid = c.relnamespace `
	onTable  = `format('%s on %I.%I', quote_ident(`
	sorted   = `array(select unnest(%s) collate "C" order by 1)`
)

// settings are those of an array. Of those that are lists of names, an upgrade writes the names anew, each with quotes
// where it needs them and with a blank between two, while SET … FROM CURRENT keeps them as somebody has once written
// them: here they have neither.
func settings(array string) string {
	return `array(select case when o ~ '^(search_path|temp_tablespaces|unix_socket_directories|` +
		`(local|session|shared)_preload_libraries)='
		then regexp_replace(regexp_replace(btrim(o), '\s*([,=])\s*', '\1', 'g'),
			'"(\$user|[a-z_][a-z0-9_$]*)"', '\1', 'g')
		else o end collate "C" from unnest(` + array + `) o order by 1)`
}

// columnNames are the names of columns of a relation, by their numbers.
func columnNames(numbers, relation string) string {
	return fmt.Sprintf(`array(select coalesce(u.attname::text, '') from unnest(%s::int2[]) with ordinality as z (n, o)
		left join pg_attribute u on u.attrelid = %s and u.attnum = z.n order by z.o)`, numbers, relation)
}

// relations are schemas, tables and what else has columns, and the columns.
func (l looks) relations() []definition {
	return []definition{
		{"schema", `select quote_ident(n.nspname) as name, row(pg_get_userbyid(n.nspowner), ` +
			l.rights("n.nspacl", "n", "n.nspowner") + `)::text as text from pg_namespace n
			where (n.oid >= 16384 or n.nspname = 'public') and ` + noMember("pg_namespace", "n.oid") + ` and ` +
			inSchema + ` and not ` + tobans},
		// VACUUM FULL removes a TOAST table that is not needed any more.
		{"relation", `select format('%I.%I', n.nspname, c.relname) as name, row(c.relkind, c.relpersistence,
			pg_get_userbyid(c.relowner), case c.relkind when 'S' then ` + l.rights("c.relacl", "s", "c.relowner") +
			` else ` + l.rights("c.relacl", "r", "c.relowner") + ` end, c.relrowsecurity, c.relforcerowsecurity,
			c.relreplident, ` + fmt.Sprintf(sorted, "c.reloptions") + `,
			coalesce((select ` + fmt.Sprintf(sorted, "t.reloptions") + ` from pg_class t
				where t.oid = c.reltoastrelid), '{}'), m.amname, s.spcname,
			c.reloftype::regtype, c.relispartition, ` + l.expression("pg_get_expr(c.relpartbound, c.oid)") + `, ` +
			l.expression("pg_get_partkeydef(c.oid)") + `, array(select inhparent::regclass::text from pg_inherits
				where inhrelid = c.oid order by inhseqno), (select row(seqtypid::regtype, seqstart, seqincrement,
				seqmax, seqmin, seqcache, seqcycle)::text from pg_sequence where seqrelid = c.oid),
			array(select (refobjid::regclass || ' ' || refobjsubid) collate "C" from pg_depend where c.relkind = 'S'
				and classid = 'pg_class'::regclass and objid = c.oid and deptype in ('a', 'i')
				and refclassid = 'pg_class'::regclass order by 1))::text as text` + inTables + `
			left join pg_am m on m.oid = c.relam left join pg_tablespace s on s.oid = c.reltablespace
			where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and ` + ofTable},
		// PostgreSQL 17.12 keeps in an option pg_attver where a column was made: it is left behind.
		{"column", `select format('%I.%I.%I', n.nspname, c.relname, x.attname) as name, row(x.attnum,
			format_type(x.atttypid, x.atttypmod), x.attnotnull,
			case when not c.relispartition then x.attidentity end, x.attgenerated, x.atthasdef,
			x.attcollation::regcollation, x.attstorage, x.attcompression, coalesce(x.attstattarget, -1),
			x.attislocal, x.attinhcount,
			array(select o collate "C" from unnest(x.attoptions) o where not starts_with(o, 'pg_attver=')
				order by 1), ` +
			fmt.Sprintf(sorted, "x.attfdwoptions") + `, ` + l.rights("x.attacl", "c", "c.relowner") + `, ` +
			l.expression("(select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = c.oid "+
				"and adnum = x.attnum)") + `)::text as text` + inTables + `
			join pg_attribute x on x.attrelid = c.oid and x.attnum > 0 and not x.attisdropped
			where c.relkind in ('r', 'p', 'v', 'm', 'f', 'c') and ` + ofTable},
	}
}

// ofTables is what tables have. An index that is not valid is left behind by an upgrade, and so is no difference; that
// of a partitioned table comes along, and may be valid on one side only, where a partition is a foreign table. NOT NULL
// is looked at with the columns: PostgreSQL 18 has a constraint for each besides.
func (l looks) ofTables() []definition {
	return []definition{
		{"index", `select format('%I.%I', n.nspname, x.relname) as name, row(c.relname, m.amname, i.indisunique,
			i.indnullsnotdistinct, i.indisprimary, i.indisexclusion, i.indimmediate,
			i.indisreplident, s.spcname, ` + fmt.Sprintf(sorted, "x.reloptions") + `, i.indnkeyatts, ` +
			columnNames("i.indkey", "c.oid") + `, i.indoption::text, i.indcollation::regcollation[],
			array(select opcname from unnest(i.indclass) with ordinality as k (n, o)
				join pg_opclass on pg_opclass.oid = k.n order by k.o),
			(select inhparent::regclass from pg_inherits where inhrelid = x.oid), ` +
			l.expression("pg_get_indexdef(x.oid)") + `)::text as text` + inTables + `
			join pg_index i on i.indrelid = c.oid join pg_class x on x.oid = i.indexrelid
			left join pg_am m on m.oid = x.relam left join pg_tablespace s on s.oid = x.reltablespace
			where (i.indisvalid or x.relkind = 'I') and c.relkind in ('r', 'p', 'm') and ` + ofTable},
		{"constraint", `select format('%I on %I.%I', k.conname, n.nspname, c.relname) as name, row(k.contype,
			k.condeferrable, k.condeferred, k.convalidated, coalesce(to_jsonb(k) ->> 'conenforced', 'true'),
			case when k.confrelid > 0 then k.confrelid::regclass end, k.confupdtype, k.confdeltype, k.confmatchtype,
			k.connoinherit, ` + columnNames("k.conkey", "k.conrelid") + `, ` + columnNames("k.confkey",
			"k.confrelid") + `, ` + columnNames("k.confdelsetcols", "k.conrelid") + `, ` +
			l.expression("pg_get_constraintdef(k.oid)") + `)::text as text` + inTables + `
			join pg_constraint k on k.conrelid = c.oid where k.contype <> 'n' and k.conparentid = 0 and ` + ofTable},
		{"constraint", `select format('%I on %s', k.conname, k.contypid::regtype) as name, row(k.convalidated, ` +
			l.expression("pg_get_constraintdef(k.oid)") + `)::text as text from pg_constraint k
			join pg_namespace n on n.oid = k.connamespace
			where k.contypid > 0 and k.contype <> 'n' and ` + ofUser("pg_type", "k.contypid") + ` and ` + inSchema},
		{"trigger", `select format('%I on %I.%I', t.tgname, n.nspname, c.relname) as name,
			row(t.tgfoid::regprocedure, t.tgtype, t.tgenabled, t.tgdeferrable, t.tginitdeferred, t.tgargs,
			t.tgoldtable, t.tgnewtable, case when t.tgconstrrelid > 0 then t.tgconstrrelid::regclass end,
			` + columnNames("t.tgattr", "c.oid") + `, ` +
			l.expression("pg_get_triggerdef(t.oid)") + `)::text as text` + inTables + `
			join pg_trigger t on t.tgrelid = c.oid where not t.tgisinternal and ` + ofTable},
		{"rule", `select format('%I on %I.%I', r.rulename, n.nspname, c.relname) as name, row(r.ev_type,
			r.ev_enabled, r.is_instead, ` + l.expression("pg_get_ruledef(r.oid)") + `)::text as text` + inTables + `
			join pg_rewrite r on r.ev_class = c.oid where ` + ofTable},
		{"policy", `select format('%I on %I.%I', p.polname, n.nspname, c.relname) as name, row(p.polcmd,
			p.polpermissive, array(select case r when 0 then 'public' else pg_get_userbyid(r) end
				from unnest(p.polroles) r order by 1), ` + l.expression("pg_get_expr(p.polqual, c.oid)") + `, ` +
			l.expression("pg_get_expr(p.polwithcheck, c.oid)") + `)::text as text` + inTables + `
			join pg_policy p on p.polrelid = c.oid where ` + ofTable},
		{"statistics object", `select format('%I.%I', n.nspname, s.stxname) as name, row(s.stxrelid::regclass,
			pg_get_userbyid(s.stxowner), s.stxkind, coalesce(s.stxstattarget, -1), ` +
			columnNames("s.stxkeys", "s.stxrelid") + `, ` + l.expression("pg_get_statisticsobjdef(s.oid)") +
			`)::text as text from pg_statistic_ext s join pg_namespace n on n.oid = s.stxnamespace
			where ` + ofUser("pg_statistic_ext", "s.oid") + ` and ` + inSchema},
	}
}

// routines are functions and procedures, with aggregates, and what runs them.
func (l looks) routines() []definition {
	return []definition{
		{"function", `select p.oid::regprocedure::text as name, row(p.prokind, pg_get_userbyid(p.proowner), ` +
			l.rights("p.proacl", "f", "p.proowner") + `, g.lanname, p.procost, p.prorows, p.provariadic::regtype,
			p.prosupport::regproc, p.prosecdef, p.proleakproof, p.proisstrict, p.proretset, p.provolatile,
			p.proparallel, p.prorettype::regtype, p.proallargtypes::regtype[], p.proargmodes, p.proargnames,
			p.pronargdefaults, p.protrftypes::regtype[], p.prosrc, p.probin, ` + settings("p.proconfig") + `, ` +
			l.expression("case p.prokind when 'a' then '' else pg_get_functiondef(p.oid) end") + `)::text as text
			from pg_proc p join pg_namespace n on n.oid = p.pronamespace join pg_language g on g.oid = p.prolang
			where ` + ofUser("pg_proc", "p.oid") + ` and ` + inSchema + ` and not (` + tobans + `
			and p.proname = 'verifier')`},
		{"aggregate", `select a.aggfnoid::regprocedure::text as name, row(a.aggkind, a.aggnumdirectargs,
			a.aggtransfn::regproc, a.aggfinalfn::regproc, a.aggcombinefn::regproc, a.aggserialfn::regproc,
			a.aggdeserialfn::regproc, a.aggmtransfn::regproc, a.aggminvtransfn::regproc, a.aggmfinalfn::regproc,
			a.aggfinalextra, a.aggmfinalextra, a.aggfinalmodify, a.aggmfinalmodify, a.aggsortop::regoperator,
			a.aggtranstype::regtype, a.aggtransspace, a.aggmtranstype::regtype, a.aggmtransspace, a.agginitval,
			a.aggminitval)::text as text from pg_aggregate a join pg_proc p on p.oid = a.aggfnoid
			join pg_namespace n on n.oid = p.pronamespace where ` + ofUser("pg_proc", "p.oid") + ` and ` + inSchema},
		{"language", `select g.lanname::text as name, row(pg_get_userbyid(g.lanowner), g.lanpltrusted,
			g.lanplcallfoid::regproc, g.laninline::regproc, g.lanvalidator::regproc, ` +
			l.rights("g.lanacl", "l", "g.lanowner") + `)::text as text from pg_language g
			where ` + ofUser("pg_language", "g.oid")},
		{"transform", `select format('for %s language %s', f.trftype::regtype, g.lanname) as name,
			row(f.trffromsql::regprocedure, f.trftosql::regprocedure)::text as text
			from pg_transform f join pg_language g on g.oid = f.trflang where ` + ofUser("pg_transform", "f.oid") +
			` and ` + stays("f.trftype")},
		{"event trigger", `select e.evtname::text as name, row(e.evtevent, pg_get_userbyid(e.evtowner),
			e.evtfoid::regprocedure, e.evtenabled, ` + fmt.Sprintf(sorted, "e.evttags") + `)::text as text
			from pg_event_trigger e join pg_proc p on p.oid = e.evtfoid join pg_namespace n on n.oid = p.pronamespace
			where ` + noMember("pg_event_trigger", "e.oid") + ` and ` + inSchema},
		// Its version may be a newer one on the other side, and pg_upgrade gives it to the superuser.
		{"extension", `select x.extname::text as name, row(` + l.expression("pg_get_userbyid(x.extowner)") +
			`, n.nspname)::text as text
			from pg_extension x join pg_namespace n on n.oid = x.extnamespace`},
	}
}
