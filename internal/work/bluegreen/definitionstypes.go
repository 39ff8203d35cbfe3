package bluegreen

import (
	"fmt"
	"strings"

	"toban.dev/internal/work/upgrade"
)

// types are types and collations, and how values are converted.
func (l looks) types() []definition {
	return []definition{
		// The types of rows and arrays come with what they are of.
		{"type", `select t.oid::regtype::text as name, row(t.typtype, pg_get_userbyid(t.typowner), ` +
			l.rights("t.typacl", "T", "t.typowner") + `, t.typcategory, t.typispreferred, t.typnotnull,
			format_type(nullif(t.typbasetype, 0), t.typtypmod), t.typcollation::regcollation, t.typinput::regproc,
			t.typoutput::regproc, t.typlen, t.typbyval, t.typalign, t.typstorage, t.typsubscript::regproc,
			t.typdelim, t.typelem::regtype, t.typreceive::regproc, t.typsend::regproc, t.typmodin::regproc,
			t.typmodout::regproc, t.typanalyze::regproc,
			array(select enumlabel::text from pg_enum where enumtypid = t.oid order by enumsortorder),
			(select row(rngsubtype::regtype, rngmultitypid::regtype, rngcollation::regcollation,
				rngcanonical::regproc, rngsubdiff::regproc,
				(select opcname from pg_opclass where oid = rngsubopc))::text from pg_range where rngtypid = t.oid), ` +
			l.expression("t.typdefault") + `)::text as text
			from pg_type t join pg_namespace n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
			where coalesce(c.relkind = 'c', true) and not exists (select from pg_type e where e.typarray = t.oid)
			and ` + ofUser("pg_type", "t.oid") + ` and ` + inSchema},
		{"cast", `select format('from %s to %s', x.castsource::regtype, x.casttarget::regtype) as name,
			row(x.castfunc::regprocedure, x.castcontext, x.castmethod)::text as text from pg_cast x
			where ` + ofUser("pg_cast", "x.oid") + ` and ` + stays("x.castsource, x.casttarget")},
		{"conversion", `select format('%I.%I', n.nspname, x.conname) as name, row(pg_get_userbyid(x.conowner),
			x.conforencoding, x.contoencoding, x.conproc::regproc, x.condefault)::text as text
			from pg_conversion x join pg_namespace n on n.oid = x.connamespace
			where ` + ofUser("pg_conversion", "x.oid") + ` and ` + inSchema},
		// Of which version its rules are is each side's own. PostgreSQL 17 has another name for the locale. The
		// encoding is that of the database or none, and a copy of one for all encodings has the former after an
		// upgrade.
		{"collation", `select format('%I.%I', n.nspname, x.collname) as name, row(pg_get_userbyid(x.collowner),
			x.collprovider, x.collisdeterministic, x.collcollate, x.collctype,
			coalesce(to_jsonb(x) ->> 'colllocale', to_jsonb(x) ->> 'colliculocale'), x.collicurules)::text as text
			from pg_collation x join pg_namespace n on n.oid = x.collnamespace
			where ` + ofUser("pg_collation", "x.oid") + ` and ` + inSchema},
	}
}

// operators are these with their families and classes, and access methods.
func (l looks) operators() []definition {
	return []definition{
		{"operator", `select o.oid::regoperator::text as name, row(pg_get_userbyid(o.oprowner), o.oprcode::regproc,
			o.oprresult::regtype, o.oprcom::regoperator, o.oprnegate::regoperator, o.oprrest::regproc,
			o.oprjoin::regproc, o.oprcanmerge, o.oprcanhash)::text as text
			from pg_operator o join pg_namespace n on n.oid = o.oprnamespace
			where ` + ofUser("pg_operator", "o.oid") + ` and ` + inSchema},
		{"operator family", `select format('%I.%I using %s', n.nspname, f.opfname, m.amname) as name,
			row(pg_get_userbyid(f.opfowner))::text as text from pg_opfamily f
			join pg_namespace n on n.oid = f.opfnamespace join pg_am m on m.oid = f.opfmethod
			where ` + ofUser("pg_opfamily", "f.oid") + ` and ` + inSchema},
		{"operator class", `select format('%I.%I using %s', n.nspname, o.opcname, m.amname) as name,
			row(pg_get_userbyid(o.opcowner), f.opfname, o.opcintype::regtype, o.opckeytype::regtype,
			o.opcdefault)::text as text from pg_opclass o
			join pg_namespace n on n.oid = o.opcnamespace join pg_am m on m.oid = o.opcmethod
			join pg_opfamily f on f.oid = o.opcfamily where ` + ofUser("pg_opclass", "o.oid") + ` and ` + inSchema},
		// A user may add to a family of PostgreSQL's own.
		{"operator of a family", `select format('%s in %I.%I using %s', x.amopopr::regoperator, n.nspname, f.opfname,
			m.amname) as name, row(x.amopstrategy, x.amoppurpose, (select opfname from pg_opfamily s
				where s.oid = x.amopsortfamily))::text as text from pg_amop x
			join pg_opfamily f on f.oid = x.amopfamily join pg_am m on m.oid = x.amopmethod
			join pg_namespace n on n.oid = f.opfnamespace where ` + inSchema + ` and ` + ofUser("pg_amop", "x.oid") +
			` and ` + noMember("pg_opfamily", "f.oid") + ` and ` + noMember("pg_operator", "x.amopopr")},
		{"function of a family", `select format('%s %s %s in %I.%I using %s', x.amprocnum,
			x.amproclefttype::regtype, x.amprocrighttype::regtype, n.nspname, f.opfname, m.amname) as name,
			x.amproc::regprocedure::text as text
			from pg_amproc x join pg_opfamily f on f.oid = x.amprocfamily join pg_am m on m.oid = f.opfmethod
			join pg_namespace n on n.oid = f.opfnamespace where ` + inSchema + ` and ` + ofUser("pg_amproc", "x.oid") +
			` and ` + noMember("pg_opfamily", "f.oid") + ` and ` + noMember("pg_proc", "x.amproc::oid")},
		{"access method", `select m.amname::text as name, row(m.amhandler::regproc, m.amtype)::text as text
			from pg_am m where ` + ofUser("pg_am", "m.oid")},
	}
}

// search is text search.
func (l looks) search() []definition {
	return []definition{
		{"text search configuration", `select format('%I.%I', n.nspname, x.cfgname) as name,
			row(pg_get_userbyid(x.cfgowner), (select prsname from pg_ts_parser where oid = x.cfgparser),
			array(select format('%s %s %s', maptokentype, mapseqno, mapdict::regdictionary) collate "C"
				from pg_ts_config_map where mapcfg = x.oid order by 1))::text as text
			from pg_ts_config x join pg_namespace n on n.oid = x.cfgnamespace
			where ` + ofUser("pg_ts_config", "x.oid") + ` and ` + inSchema},
		{"text search dictionary", `select format('%I.%I', n.nspname, x.dictname) as name,
			row(pg_get_userbyid(x.dictowner), (select tmplname from pg_ts_template where oid = x.dicttemplate),
			x.dictinitoption)::text as text from pg_ts_dict x join pg_namespace n on n.oid = x.dictnamespace
			where ` + ofUser("pg_ts_dict", "x.oid") + ` and ` + inSchema},
		{"text search parser", `select format('%I.%I', n.nspname, x.prsname) as name, row(x.prsstart::regproc,
			x.prstoken::regproc, x.prsend::regproc, x.prsheadline::regproc, x.prslextype::regproc)::text as text
			from pg_ts_parser x join pg_namespace n on n.oid = x.prsnamespace
			where ` + ofUser("pg_ts_parser", "x.oid") + ` and ` + inSchema},
		{"text search template", `select format('%I.%I', n.nspname, x.tmplname) as name, row(x.tmplinit::regproc,
			x.tmpllexize::regproc)::text as text
			from pg_ts_template x join pg_namespace n on n.oid = x.tmplnamespace
			where ` + ofUser("pg_ts_template", "x.oid") + ` and ` + inSchema},
	}
}

// foreign is data of others. Options may have passwords: they are in a hash only.
func (l looks) foreign() []definition {
	return []definition{
		{"foreign-data wrapper", `select w.fdwname::text as name, row(pg_get_userbyid(w.fdwowner),
			w.fdwhandler::regproc, w.fdwvalidator::regproc, ` + l.rights("w.fdwacl", "F", "w.fdwowner") + `, ` +
			fmt.Sprintf(sorted, "w.fdwoptions") + `)::text as text from pg_foreign_data_wrapper w
			where ` + ofUser("pg_foreign_data_wrapper", "w.oid")},
		{"foreign server", `select v.srvname::text as name, row(pg_get_userbyid(v.srvowner), w.fdwname, v.srvtype,
			v.srvversion, ` + l.rights("v.srvacl", "S", "v.srvowner") + `, ` +
			fmt.Sprintf(sorted, "v.srvoptions") + `)::text as text from pg_foreign_server v
			join pg_foreign_data_wrapper w on w.oid = v.srvfdw where ` + ofUser("pg_foreign_server", "v.oid")},
		{"foreign table", `select format('%I.%I', n.nspname, c.relname) as name, row(v.srvname, ` +
			fmt.Sprintf(sorted, "f.ftoptions") + `)::text as text` + inTables + `
			join pg_foreign_table f on f.ftrelid = c.oid join pg_foreign_server v on v.oid = f.ftserver
			where ` + ofTable},
		{"user mapping", `select format('of %s on %I', case u.umuser when 0 then 'public'
			else quote_ident(pg_get_userbyid(u.umuser)) end, v.srvname) as name, ` +
			fmt.Sprintf(sorted, "u.umoptions") + `::text as text
			from pg_user_mapping u join pg_foreign_server v on v.oid = u.umserver
			where ` + ofUser("pg_foreign_server", "v.oid")},
	}
}

// links are publications of users. Their subscriptions are refused.
func (l looks) links() []definition {
	const notOurs = `not (p.pubname in ('` + nameForward + `', '` + nameBack + `')
		and pg_get_userbyid(p.pubowner) = current_user)`
	return []definition{
		{"publication", `select p.pubname::text as name, row(pg_get_userbyid(p.pubowner), p.puballtables, p.pubinsert,
			p.pubupdate, p.pubdelete, p.pubtruncate, p.pubviaroot, coalesce(to_jsonb(p) ->> 'puballsequences', 'false'),
			coalesce(to_jsonb(p) ->> 'pubgencols', 'n'), array(select (r.prrelid::regclass || ' ' || ` +
			columnNames("r.prattrs", "r.prrelid") + `::text || ' '
				|| coalesce(to_jsonb(r) ->> 'prexcept', 'false') || ' ' || ` +
			l.expression("coalesce(pg_get_expr(r.prqual, r.prrelid), '')") + `) collate "C"
				from pg_publication_rel r where r.prpubid = p.oid order by 1),
			array(select s.pnnspid::regnamespace::text collate "C" from pg_publication_namespace s
				where s.pnpubid = p.oid order by 1))::text as text from pg_publication p where ` + notOurs},
	}
}

// ofTemporary says of an object i, as pg_identify_object has it, that it is a temporary one or belongs to one: a
// trigger, a rule or a policy has no schema of its own.
const ofTemporary = `coalesce(i.schema, '') ~ '^pg_(toast_)?temp' or i.schema is null
	and i.identity ~ ' on pg_temp_[0-9]+\.([^".]+|"([^"]|"")+")$'`

// words are what is said about objects: comments, labels, and rights that future objects will have; and what rights
// PostgreSQL's own objects have, as far as somebody has changed them.
func (l looks) words() []definition {
	about := func(catalog, more, value string) string {
		return `select i.type || ' ' || i.identity` + more + ` as name, ` + value + ` as text
			from ` + catalog + ` d cross join lateral pg_identify_object(d.classoid, d.objoid, d.objsubid) i
			where (d.objoid >= 16384 or d.classoid = 'pg_namespace'::regclass
				and d.objoid = to_regnamespace('public'))
			and not (` + ofTemporary + `) and coalesce(i.schema, '') <> 'toban_sides' and i.identity <> 'toban_sides'
			and not (d.classoid = 'pg_namespace'::regclass and i.identity = 'toban')
			and not exists (select from pg_depend e where e.classid = d.classoid and e.objid = d.objoid
				and e.deptype = 'e')`
	}
	return []definition{
		// An upgrade gives this one to each schema public, also where that was dropped and made anew without.
		{"comment on", about("pg_description", "", "d.description") + ` and not (i.type = 'schema'
			and i.identity = 'public' and d.description = 'standard public schema')`},
		{"label of", about("pg_seclabel", " || ' by ' || d.provider", "d.label")},
		{"default privileges", `select format('of %s %s for %s', quote_ident(pg_get_userbyid(x.defaclrole)),
			coalesce('in ' || quote_ident(n.nspname), 'everywhere'), x.defaclobjtype) as name,
			array(select ` + oneRight + ` from aclexplode(x.defaclacl) a where ` + l.counted() + ` order by 1)::text
			as text from pg_default_acl x left join pg_namespace n on n.oid = x.defaclnamespace`},
		{"rights to PostgreSQL's own", l.own()},
	}
}

// ownRights is where the rights to one sort of PostgreSQL's own objects are.
type ownRights struct {
	catalog, oid, column, acl, owner, sort, name string
	// more is what initdb grants besides, above the rights to what an object is a part of, not what is left out.
	more, above, not string
}

// What initdb grants of the information schema is not noted in pg_init_privs.
const ofSchema = ` || array(select makeaclitem(0, 10, '%s', false) where x.%s = 'information_schema'%s)`

var allOwnRights = []ownRights{
	{"pg_class", "x.oid", "0", "x.relacl", "x.relowner", "r", "x.oid::regclass",
		fmt.Sprintf(ofSchema, "SELECT", "relnamespace::regnamespace::text",
			" and x.relname !~ '"+upgrade.ReadByNobody+"'"), "null",
		` and not (x.relnamespace::regnamespace::text = 'information_schema' and a.privilege_type = 'SELECT'
			and not a.is_grantable)`},
	{"pg_attribute", "x.attrelid", "x.attnum", "x.attacl", "10", "c", "x.attrelid::regclass || ' ' || x.attname",
		"", "(select relacl from pg_class where oid = x.attrelid)", ""},
	{"pg_proc", "x.oid", "0", "x.proacl", "x.proowner", "f", "x.oid::regprocedure", "", "null", ""},
	{"pg_type", "x.oid", "0", "x.typacl", "x.typowner", "T", "x.oid::regtype", "", "null", ""},
	{"pg_language", "x.oid", "0", "x.lanacl", "x.lanowner", "l", "x.lanname", "", "null", ""},
	{"pg_namespace", "x.oid", "0", "x.nspacl", "x.nspowner", "n", "x.nspname",
		fmt.Sprintf(ofSchema, "USAGE", "nspname", ""), "null", ""},
}

// own are the rights to PostgreSQL's own objects, as far as they differ from those in a new database. A right that
// everybody has besides is left out, and so is one to read in the information schema: an upgrade brings none of that
// schema along, and the check before it warns (SystemSettings).
func (l looks) own() string {
	// What one list of rights has and another one has not.
	only := func(sign, one, other, not string) string {
		from := func(list, not string) string {
			return "select '" + sign + "' || " + oneRight + " from aclexplode(" + list + ") a where " +
				l.counted() + not
		}
		return "(" + from(one, not) + " except " + from(other, "") + ")"
	}
	var queries []string
	for _, c := range allOwnRights {
		class := c.catalog
		if c.column != "0" {
			class = "pg_class"
		}
		notOf := noMember(class, c.oid)
		if class == "pg_language" { // plpgsql belongs to an extension that each database has from the beginning
			notOf = "true"
		}
		first := fmt.Sprintf("coalesce(p.initprivs, acldefault('%s', %s)%s)", c.sort, c.owner, c.more)
		not := fmt.Sprintf(`%s and not (a.grantee <> 0 and not a.is_grantable and exists (
			select from aclexplode(%s || %s::aclitem[]) e
			where e.grantee = 0 and e.privilege_type = a.privilege_type))`, c.not, c.acl, c.above)
		queries = append(queries, fmt.Sprintf(`select %s::text as name, array(%s union all %s order by 1)::text as text
			from %s x left join pg_init_privs p on p.classoid = 'pg_catalog.%[9]s'::regclass and p.objoid = %[5]s
			and p.objsubid = %[6]s where %[5]s < 16384 and %[7]s is not null
			and %[7]s::text is distinct from p.initprivs::text and %[8]s`, c.name, only("+", c.acl, first, not),
			only("-", first, c.acl, ""), c.catalog, c.oid, c.column, c.acl, notOf, class))
	}
	return "select name, text from (" + strings.Join(queries, " union all ") +
		") o where text <> '{}' and name <> 'public'"
}
