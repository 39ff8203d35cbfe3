package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres/sql"
)

// database is one that comes back as a whole.
type database struct {
	run *run
	// as is its name while it is loaded.
	as string
	// properties is its row of pg_database in the copy, of which each version has other columns.
	properties map[string]any
	owner      string
	comment    *string
	object     Object
}

func (d *database) property(name string) string {
	if text, is := d.properties[name].(string); is {
		return text
	}
	return ""
}

func (r *run) bringDatabase(ctx context.Context) ([]Object, error) {
	d := &database{run: r, as: named(r.Database, r.Suffix), object: Object{Name: r.Database}}
	d.object.As = d.as
	if r.Replace {
		d.object.As = r.Database
	}
	if err := d.find(ctx); err != nil {
		return nil, err
	}
	names := []string{d.as}
	if r.Replace {
		names = []string{r.Database, d.as}
	}
	for _, name := range names {
		there, m, err := r.databaseState(ctx, name)
		switch {
		case err != nil:
			return nil, err
		case m != nil && m.State == stateArrived && m.Object != nil:
			return []Object{*m.Object}, nil
		case there && name == r.Database && r.Replace:
			return nil, refuse("the database %s is there, and another can't take its place under its sessions: "+
				"restore it beside, stop the applications, then ALTER DATABASE … RENAME both", r.Database)
		}
	}
	if err := d.create(ctx); err != nil {
		return nil, err
	}
	if err := d.load(ctx); err != nil {
		if errors.Is(refusal(err), ErrRefused) { // nobody tries again, who would drop it
			_ = r.dropDatabase(ctx, d.as) // the first error is told
		}
		return nil, err
	}
	return []Object{d.object}, nil
}

// find reads what the database was like.
func (d *database) find(ctx context.Context) error {
	r := d.run
	err := r.copy.QueryRow(ctx, `select to_jsonb(d) || jsonb_build_object('encoding', pg_encoding_to_char(d.encoding)),
			pg_get_userbyid(d.datdba)::text, shobj_description(d.oid, 'pg_database')
		from pg_database d where d.datname = current_database()`).Scan(&d.properties, &d.owner, &d.comment)
	if err != nil {
		return fmt.Errorf("look at the database %s: %w", r.Database, err)
	}
	owner, err := r.owners.heir(ctx, d.owner)
	if err != nil {
		return err
	}
	if owner == "" {
		return refuse("the owner %s of database %s is not there any more: create the role", d.owner, r.Database)
	}
	if r.owners.database = owner; owner != d.owner {
		d.object.say("The owner %s is not there any more: it belongs to %s.", d.owner, owner)
	}
	return nil
}

// databaseState is a database of the primary: whether it is there, and its mark as far as that counts.
func (r *run) databaseState(ctx context.Context, name string) (there bool, m *mark, err error) {
	var owner string
	var comment *string
	err = r.primary.QueryRow(ctx, `select count(*) > 0, coalesce(max(pg_get_userbyid(datdba)::text), ''),
		max(shobj_description(oid, 'pg_database')) from pg_database where datname = $1`, name).
		Scan(&there, &owner, &comment)
	if err != nil {
		return false, nil, fmt.Errorf("look for the database %s: %w", name, err)
	}
	m, _ = r.readMark(comment)
	return there, ofOurs(m, owner, r.owners.database), nil
}

// dropDatabase drops a database that is not complete.
func (r *run) dropDatabase(ctx context.Context, name string) error {
	there, m, err := r.databaseState(ctx, name)
	switch {
	case err != nil || !there:
		return err
	case m == nil || m.State != stateWork:
		return refuse("the database %s is there and was not made by this restore: rename or drop it", name)
	}
	return do(ctx, r.primary, "drop what a former try has left", "drop database "+sql.Quote(name)+" with (force)")
}

// create makes an empty one. Until it has its mark it belongs to the role of this run, which is one too, and then
// to the superuser: who owns it could put code into it before its extensions are made.
func (d *database) create(ctx context.Context) error {
	if err := d.run.dropDatabase(ctx, d.as); err != nil {
		return err
	}
	create := fmt.Sprintf("create database %s template template0 owner %s encoding %s lc_collate %s lc_ctype %s",
		sql.Quote(d.as), sql.Quote(d.run.loader.name), sql.Literal(d.property("encoding")),
		sql.Literal(d.property("datcollate")),
		sql.Literal(d.property("datctype")))
	locale := d.property("datlocale") + d.property("daticulocale") // the name until version 16
	switch d.property("datlocprovider") {
	case "i":
		create += " locale_provider icu icu_locale " + sql.Literal(locale)
		if rules := d.property("daticurules"); rules != "" {
			create += " icu_rules " + sql.Literal(rules)
		}
	case "b":
		create += " locale_provider builtin builtin_locale " + sql.Literal(locale)
	case "c":
		create += " locale_provider libc"
	}
	if err := do(ctx, d.run.primary, "make database "+d.as, create); err != nil {
		return err
	}
	d.run.passed("created")
	if err := do(ctx, d.run.primary, "make database "+d.as,
		"comment on database "+sql.Quote(d.as)+" is "+sql.Literal(d.run.comment("", mark{State: stateWork})),
		"alter database "+sql.Quote(d.as)+" owner to "+sql.Quote(naming.RoleSuperuser),
		"revoke connect on database "+sql.Quote(d.as)+" from public"); err != nil {
		return err
	}
	d.run.passed("staged")
	return nil
}

// load loads all that is in it.
func (d *database) load(ctx context.Context) error {
	d.run.step("dumps database %s", d.run.Database)
	if err := d.run.dump.write(ctx); err != nil {
		return err
	}
	entries, err := d.run.dump.contents(ctx)
	if err != nil {
		return err
	}
	owners, err := d.run.owners.ofEntries(ctx, &d.object, entries)
	if err != nil {
		return err
	}
	admin, err := d.run.Primary(ctx, d.as)
	if err != nil {
		return err
	}
	defer sql.HangUp(admin)
	d.run.target = d.as
	to := &dumped{entries: entries, schemas: map[string]string{}, owners: owners, admin: admin, object: &d.object}
	if err := d.run.prepareDatabase(ctx, to); err != nil {
		return err
	}
	if err := do(ctx, d.run.primary, "give the database "+d.as+" to its owner",
		"alter database "+sql.Quote(d.as)+" owner to "+sql.Quote(d.run.owners.database)); err != nil {
		return err
	}
	d.run.passed("prepared")
	d.run.step("loads database %s", d.run.Database)
	if err := d.run.loadAll(ctx, to); err != nil {
		return err
	}
	for schema := range to.schemas {
		if err := d.run.compareAll(ctx, to, schema, schema); err != nil {
			return err
		}
	}
	if err := d.run.loader.dropOwned(ctx, admin); err != nil {
		return err
	}
	sql.HangUp(admin)
	return d.open(ctx)
}

// prepareDatabase makes the schemas and the extensions, while nobody's code is in the database.
func (r *run) prepareDatabase(ctx context.Context, d *dumped) error {
	rows := sql.Ask(ctx, r.copy, `select nspname::text, pg_get_userbyid(nspowner)::text from pg_namespace
		where nspname !~ '^pg_' and nspname <> 'information_schema'`)
	var name, owner string
	var schemas []string
	if _, err := pgx.ForEachRow(rows, []any{&name, &owner}, func() error {
		d.schemas[name], schemas = owner, append(schemas, name)
		return nil
	}); err != nil {
		return fmt.Errorf("look for the schemas: %w", err)
	}
	statements := lend(schemas, d.owners)
	if !slices.Contains(schemas, "public") {
		statements = append(statements, "drop schema public")
	}
	if err := do(ctx, d.admin, "make the schemas", statements...); err != nil {
		return err
	}
	extensions := sql.Ask(ctx, r.copy, `select e.extname::text, n.nspname::text, e.extversion from pg_extension e
		join pg_namespace n on n.oid = e.extnamespace where e.extname <> 'plpgsql' order by e.oid`)
	type extension struct{ Name, Schema, Version string }
	found, err := pgx.CollectRows(extensions, pgx.RowToStructByPos[extension])
	if err != nil {
		return fmt.Errorf("look for the extensions: %w", err)
	}
	for _, e := range found {
		if err := do(ctx, d.admin, fmt.Sprintf("make extension %s %s", e.Name, e.Version),
			fmt.Sprintf("create extension if not exists %s schema %s version %s", sql.Quote(e.Name),
				sql.Quote(e.Schema),
				sql.Quote(e.Version))); err != nil {
			return err
		}
	}
	return nil
}

// open gives the database its rights, its limit and its name.
func (d *database) open(ctx context.Context) error {
	settings, err := sql.Value[int](ctx, d.run.copy, "look for settings of the database",
		`select count(*) from pg_db_role_setting s
		join pg_database d on d.oid = s.setdatabase where d.datname = current_database()`)
	if err != nil {
		return err
	}
	if settings > 0 {
		d.object.say("It had settings by ALTER DATABASE … SET or ALTER ROLE … IN DATABASE: they do not come along.")
	}
	statements := []string{"begin"}
	grants, err := d.grants(ctx)
	if err != nil {
		return err
	}
	own := ""
	if d.comment != nil {
		own = *d.comment
	}
	statements = append(statements, grants...)
	statements = append(statements,
		fmt.Sprintf("alter database %s connection limit %v", sql.Quote(d.as), d.properties["datconnlimit"]),
		"comment on database "+sql.Quote(d.as)+" is "+sql.Literal(d.run.comment(own, mark{State: stateArrived,
			Object: &d.object})))
	if d.run.Replace {
		statements = append(statements, "alter database "+sql.Quote(d.as)+" rename to "+sql.Quote(d.run.Database))
	}
	if err := do(ctx, d.run.primary, "open database "+d.as, append(statements, "commit")...); err != nil {
		_ = do(ctx, d.run.primary, "roll back", "rollback") // the first error is told
		return err
	}
	d.run.passed("arrived " + d.run.Database)
	return nil
}

// grants are the rights that roles had on the database, of those that are there.
func (d *database) grants(ctx context.Context) ([]string, error) {
	found, err := column(ctx, d.run.copy, `select format('%s%s', lower(a.privilege_type), case when a.grantee = 0
			then ' public' else ' ' || pg_get_userbyid(a.grantee) end)
		from pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
		where d.datname = current_database() order by 1`)
	if err != nil {
		return nil, err
	}
	roles, err := column(ctx, d.run.primary, "select rolname::text from pg_roles")
	if err != nil {
		return nil, err
	}
	out := []string{"revoke all on database " + sql.Quote(d.as) + " from public"}
	for _, one := range found {
		right, role, _ := strings.Cut(one, " ")
		switch {
		case role == "public":
			out = append(out, "grant "+right+" on database "+sql.Quote(d.as)+" to public")
		case slices.Contains(roles, role):
			out = append(out, "grant "+right+" on database "+sql.Quote(d.as)+" to "+sql.Quote(role))
		}
	}
	return out, nil
}
