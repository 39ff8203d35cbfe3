package bluegreen

// rightsTo are rights to something shared, as oneRight has them, but for those of Toban's roles.
func rightsTo(acl, sort, owner string) string {
	return `array(select ` + oneRight + ` from aclexplode(coalesce(` + acl + `, acldefault('` + sort + `', ` + owner +
		`))) a where a.grantee = 0 or pg_get_userbyid(a.grantee) not in ` + ownRoles + ` order by 1)`
}

// notTobans says of an object i of a catalog with words about shared ones that it is none of Toban's roles, and none of
// PostgreSQL's own of which an upgrade brings no words along.
const notTobans = `not (classoid = 'pg_authid'::regclass and pg_get_userbyid(objoid) in ` + ownRoles + `)
	and not (objoid < 16384 and (i.identity ~ '^pg_' or i.identity = 'template0'))`

// queryShared is what a server has besides what is in its databases, by names, each with a hash of what it is. Of
// memberships those are left out that PostgreSQL has itself. The version of a database's collation is each side's own.
// PostgreSQL 17 has another name for its locale. Where a tablespace is goes by the volume, and of the options of
// PostgreSQL's own ones an upgrade brings nothing along: the check before it warns (SystemSettings).
var queryShared = `
	select 'role ' || rolname, md5(row(rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication,
		rolconnlimit, rolpassword, rolvaliduntil, rolbypassrls)::text)
	from pg_authid where oid >= 16384 and rolname not in ` + ownRoles + `
	union all
	select format('membership of %s in %s', m.rolname, r.rolname),
		md5(string_agg(row(a.admin_option, a.inherit_option, a.set_option, g.rolname)::text, ',' order by g.rolname))
	from pg_auth_members a join pg_authid r on r.oid = a.roleid join pg_authid m on m.oid = a.member
	join pg_authid g on g.oid = a.grantor
	where a.oid >= 16384 and m.rolname not in ` + ownRoles + ` and r.rolname not in ` + ownRoles + `
	group by m.rolname, r.rolname
	union all
	select 'database ' || datname, md5(row(pg_get_userbyid(datdba), pg_encoding_to_char(encoding), datlocprovider,
		datcollate, datctype, coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale'), daticurules,
		datconnlimit, t.spcname, ` + rightsTo("datacl", "d", "datdba") + `)::text)
	from pg_database d join pg_tablespace t on t.oid = d.dattablespace
	where datallowconn and not datistemplate or datname = 'template1'
	union all
	select 'tablespace ' || spcname, md5(row(pg_get_userbyid(spcowner),
		case when spcname !~ '^pg_' then array(select unnest(spcoptions) collate "C" order by 1) end, ` +
	rightsTo("spcacl", "t", "spcowner") + `)::text) from pg_tablespace
	union all
	select format('settings of %s in %s', coalesce(r.rolname, 'all roles'), coalesce(d.datname, 'all databases')),
		md5(` + settings("setconfig") + `::text)
	from pg_db_role_setting s left join pg_authid r on r.oid = s.setrole
	left join pg_database d on d.oid = s.setdatabase
	where coalesce(r.rolname, '') not in ` + ownRoles + `
	union all
	select 'rights to the parameter ' || parname, md5(string_agg(` + oneRight + `, ',' order by
		pg_get_userbyid(a.grantor), pg_get_userbyid(a.grantee), a.privilege_type collate "C"))
	from pg_parameter_acl, aclexplode(paracl) a left join pg_authid g on g.oid = a.grantee
	where coalesce(g.rolname, '') not in ` + ownRoles + ` group by parname
	union all
	select 'comment on ' || i.type || ' ' || i.identity, md5(description)
	from pg_shdescription, pg_identify_object(classoid, objoid, 0) i where ` + notTobans + `
	union all
	select format('label of %s %s by %s', i.type, i.identity, provider), md5(label)
	from pg_shseclabel, pg_identify_object(classoid, objoid, 0) i where ` + notTobans
