package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// schema is one that is asked for.
type schema struct {
	name, as, kept string
	// owner is who has owned it in the copy, own its comment there, and heir who is to own it on the primary.
	owner, own, heir string
	// renamed says that a run before has given it its new name in the copy.
	renamed bool
	object  Object
}

func (r *run) bringSchemas(ctx context.Context) (objects []Object, err error) {
	var schemas []*schema
	for _, name := range r.Schemas {
		s, err := r.findSchema(ctx, name)
		if err != nil {
			return nil, err
		}
		schemas = append(schemas, s)
	}
	if err := r.loader.admit(ctx, r.Database); err != nil {
		return nil, err
	}
	for _, s := range schemas {
		if err := r.bringSchema(ctx, s); err != nil {
			return objects, err
		}
		objects = append(objects, s.object)
	}
	return objects, nil
}

// findSchema finds a schema in the copy, and refuses what can't be brought over.
func (r *run) findSchema(ctx context.Context, name string) (*schema, error) {
	s := &schema{name: name, as: named(name, r.Suffix), kept: named(name, r.keptSuffix()), object: Object{Name: name}}
	var at string
	var comment *string
	var extensions []string
	err := r.copy.QueryRow(ctx, `select n.nspname::text, pg_get_userbyid(n.nspowner)::text,
			obj_description(n.oid, 'pg_namespace'),
			array(select extname::text from pg_extension where extnamespace = n.oid order by 1)
		from pg_namespace n where n.nspname in ($1, $2) order by n.nspname = $2 desc`, name, s.as).
		Scan(&at, &s.owner, &comment, &extensions)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, r.missingSchema(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("look for the schema %s: %w", name, err)
	}
	s.object.warn(r.published)
	if s.heir, err = r.heir(ctx, s.owner); err != nil {
		return nil, err
	}
	// A mark in the copy is not forged: the copy is older than the suffix.
	m, own := r.readMark(comment)
	if s.own = own; m != nil {
		s.own = m.Comment
	}
	switch s.renamed = at == s.as; {
	case s.renamed && m == nil:
		return nil, refuse("the copy has a schema %s of its own: ask with another suffix", s.as)
	case strings.HasPrefix(name, "pg_") || name == "information_schema":
		return nil, refuse("%s is PostgreSQL's own: restore the schemas that you want back", name)
	case len(extensions) > 0:
		return nil, refuse("the extension %s is in schema %s, and its objects can't be there twice: ask for its tables",
			strings.Join(extensions, ", "), name)
	}
	return s, nil
}

func (r *run) missingSchema(ctx context.Context, name string) error {
	all, err := column(ctx, r.copy, `select nspname::text from pg_namespace
		where nspname !~ '^pg_' and nspname <> 'information_schema' order by 1`)
	if err != nil {
		return err
	}
	return refuse("there was no schema %s in database %s at that time. There were: %s", name, r.Database,
		strings.Join(all, ", "))
}

// schemaState is what stands on the primary under one of the names of a schema: whether it is there, its mark as far as
// that counts, and its own comment.
func (r *run) schemaState(ctx context.Context, s *schema, name string) (there bool, m *mark, own string, err error) {
	var owner string
	var comment *string
	err = r.primary.QueryRow(ctx, `select count(*) > 0, coalesce(max(pg_get_userbyid(nspowner)::text), ''),
		max(obj_description(oid, 'pg_namespace')) from pg_namespace where nspname = $1`, name).
		Scan(&there, &owner, &comment)
	if err != nil {
		return false, nil, "", fmt.Errorf("look for the schema %s: %w", name, err)
	}
	m, own = r.readMark(comment)
	return there, ofOurs(m, owner, s.heir), own, nil
}

// hasSwapped says that a run before has given a schema its former name, and what has come of it.
func (r *run) hasSwapped(ctx context.Context, s *schema) (bool, error) {
	_, m, _, err := r.schemaState(ctx, s, s.name)
	if err != nil {
		return false, err
	}
	if m != nil && m.Object != nil {
		s.object = *m.Object
		return true, nil
	}
	// Whoever had the schema has the one that was replaced: what its comment says counts for nothing.
	there, _, _, err := r.schemaState(ctx, s, s.kept)
	if err == nil && there && r.Replace {
		err = refuse("the schema %s is there and was not made by this restore: rename or drop it", s.kept)
	}
	return false, err
}

// bringSchema brings one schema over, or goes on where a run was cut off.
func (r *run) bringSchema(ctx context.Context, s *schema) error {
	if done, err := r.hasSwapped(ctx, s); done || err != nil {
		return err
	}
	there, m, _, err := r.schemaState(ctx, s, s.as)
	switch {
	case err != nil:
		return err
	case there && m == nil:
		return refuse("the schema %s is there and was not made by this restore: rename or drop it", s.as)
	case there && m.State == stateArrived && m.Object != nil:
		s.object = *m.Object
	default:
		if err := r.loadSchema(ctx, s, there); err != nil {
			if errors.Is(refusal(err), ErrRefused) { // nobody tries again, who would drop it
				_ = r.dropSchema(ctx, s) // the first error is told
			}
			return err
		}
	}
	if r.Replace {
		return r.swap(ctx, s)
	}
	return nil
}

// dropSchema drops a schema that is not complete.
func (r *run) dropSchema(ctx context.Context, s *schema) error {
	there, m, _, err := r.schemaState(ctx, s, s.as)
	if err != nil || !there || m == nil || m.State != stateWork {
		return err
	}
	return do(ctx, r.primary, "drop what a former try has left", "set lock_timeout = '30s'",
		"drop schema "+sql.Quote(s.as)+" cascade", "reset lock_timeout")
}

// loadSchema loads a schema beside the present one.
func (r *run) loadSchema(ctx context.Context, s *schema, there bool) error {
	if there {
		if err := r.dropSchema(ctx, s); err != nil {
			return err
		}
	}
	if !s.renamed {
		if err := do(ctx, r.copy, "rename the schema of the copy",
			"alter schema "+sql.Quote(s.name)+" rename to "+sql.Quote(s.as), "comment on schema "+sql.Quote(s.as)+
				" is "+
				sql.Literal(r.comment("", mark{State: stateWork, Comment: s.own}))); err != nil {
			return err
		}
	}
	r.passed("moved")
	r.step("dumps schema %s", s.name)
	if err := r.dump(ctx, s.as); err != nil {
		return err
	}
	entries, err := r.contents(ctx)
	if err != nil {
		return err
	}
	owners, err := r.mapOwners(ctx, &s.object, append(entries, entry{owner: s.owner}))
	if err != nil {
		return err
	}
	// Where somebody has made one of that name meanwhile, it fails.
	made := append([]string{"create schema " + sql.Quote(s.as)}, lend([]string{s.as}, owners)...)
	if err := do(ctx, r.primary, "make schema "+s.as, append(made,
		"comment on schema "+sql.Quote(s.as)+" is "+sql.Literal(r.comment("",
			mark{State: stateWork})))...); err != nil {
		return err
	}
	r.passed("staged")
	r.step("loads schema %s beside what is there", s.name)
	d := &dumped{entries, map[string]string{s.as: s.owner}, owners, r.primary, &s.object}
	if err := r.loadAll(ctx, d); err != nil {
		return err
	}
	if err := r.compareAll(ctx, d, s.as, s.name); err != nil {
		return err
	}
	s.object.As = s.as
	if err := do(ctx, r.primary, "give schema "+s.as+" its place", "comment on schema "+sql.Quote(s.as)+" is "+
		sql.Literal(r.comment(s.own, mark{State: stateArrived, Object: &s.object}))); err != nil {
		return err
	}
	r.passed("arrived " + s.name)
	return nil
}

// mapOwners finds who owns on the primary what is in the dump.
func (r *run) mapOwners(ctx context.Context, object *Object, entries []entry) (owners []string, err error) {
	roles, err := column(ctx, r.primary, "select rolname::text from pg_roles")
	if err != nil {
		return nil, err
	}
	r.owners = map[string]string{"": r.databaseOwner, "pg_database_owner": r.databaseOwner}
	for _, e := range entries {
		if r.owners[e.owner] == "" {
			r.owners[e.owner] = e.owner
			if !has(roles, e.owner) {
				r.owners[e.owner] = r.databaseOwner
				object.say("The owner %s is not there any more: what was his belongs to %s.", e.owner, r.databaseOwner)
			}
		}
		if owner := r.owners[e.owner]; !has(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return owners, nil
}

// lend are the statements that make schemas and let owners make objects in them for a while.
func lend(schemas, owners []string) (out []string) {
	for _, s := range schemas {
		out = append(out, "create schema if not exists "+sql.Quote(s))
		for _, o := range owners {
			out = append(out, "grant usage, create on schema "+sql.Quote(s)+" to "+sql.Quote(o))
		}
	}
	return out
}

// late are entries that come last, and without which the others are of use.
func late(e entry) bool {
	return has([]string{"ACL", "DEFAULT ACL", "COMMENT", "FK CONSTRAINT", "TRIGGER", "POLICY", "ROW SECURITY", "RULE",
		"MATERIALIZED VIEW DATA", "STATISTICS DATA"}, e.kind)
}

// never are entries that do not come along: what is made before, and what reaches out of a database.
func never(e entry) bool {
	return has([]string{"SCHEMA", "EXTENSION", "PUBLICATION", "PUBLICATION TABLE", "PUBLICATION TABLES IN SCHEMA",
		"SUBSCRIPTION", "SUBSCRIPTION TABLE", "EVENT TRIGGER", "DATABASE", "DATABASE PROPERTIES", "ENCODING",
		"STDSTRINGS", "SEARCHPATH", "SECURITY LABEL"}, e.kind) ||
		e.kind == "COMMENT" && strings.HasPrefix(e.tag, "- EXTENSION ")
}

// loadAll loads what is in the dump of schemas, takes back what was lent to the owners, and gives the schemas to
// theirs.
func (r *run) loadAll(ctx context.Context, d *dumped) error {
	first, last := r.sort(d.entries)
	if _, err := r.load(ctx, r.target, first, false); err != nil {
		return err
	}
	r.passed("loaded")
	var statements []string
	for schema, owner := range d.schemas {
		if owner != "pg_database_owner" {
			owner = r.ownerOf(owner)
		}
		statements = append(statements, "alter schema "+sql.Quote(schema)+" owner to "+sql.Quote(owner))
		for _, o := range d.owners {
			if o != owner {
				statements = append(statements, "revoke create on schema "+sql.Quote(schema)+" from "+sql.Quote(o))
			}
		}
	}
	if err := do(ctx, d.admin, "give the schemas to their owners", statements...); err != nil {
		return err
	}
	problems, err := r.load(ctx, r.target, last, true)
	if len(problems) > 0 {
		d.object.say("Not all came along: %s.", strings.Join(problems, "; "))
	}
	return err
}

// sort parts what must come along from what may, of which the rights to schemas come first.
func (r *run) sort(entries []entry) (first, last []entry) {
	beside := len(r.Schemas) > 0 && !r.Replace
	var access []entry
	for _, e := range entries {
		switch e.owner = r.ownerOf(e.owner); {
		case never(e), beside && late(e) && e.kind != "MATERIALIZED VIEW DATA" && e.kind != "STATISTICS DATA":
		case e.kind == "ACL" && strings.HasPrefix(e.tag, "- SCHEMA "):
			access = append(access, e)
		case late(e):
			last = append(last, e)
		default:
			first = append(first, e)
		}
	}
	return first, append(access, last...)
}

// dumped is what is in a dump of schemas, and where it goes.
type dumped struct {
	entries []entry
	// schemas are those in which the owners may make objects for a while, with their owners in the copy.
	schemas map[string]string
	owners  []string
	// admin is a superuser's session in the database.
	admin  *pgx.Conn
	object *Object
}

// compareAll counts the rows of all tables of a schema, and compares them with those of the present schema.
func (r *run) compareAll(ctx context.Context, d *dumped, as, name string) error {
	rows, err := d.admin.Query(ctx, `select relname::text, pg_get_userbyid(relowner)::text from pg_class
		where relnamespace = $1::text::regnamespace and relkind in ('r', 'p') and not relispartition
		order by 1`, sql.Quote(as))
	if err != nil {
		return fmt.Errorf("look for the tables of %s: %w", as, err)
	}
	var tables []*table
	var one, owner string
	if _, err = pgx.ForEachRow(rows, []any{&one, &owner}, func() error {
		tables = append(tables, &table{relation: relation{name, one}, loaded: relation{as, one}, owner: owner})
		return nil
	}); err != nil {
		return fmt.Errorf("look for the tables of %s: %w", as, err)
	}
	d.object.Compared = name != as
	for _, t := range tables {
		if name != as {
			if t.present, err = r.findPresent(ctx, t.relation); err != nil {
				return err
			}
		}
		r.step("compares %s", t)
		if err := r.compare(ctx, t); err != nil {
			return err
		}
		o := t.object
		d.object.Rows += o.Rows
		d.object.Present += o.Present
		d.object.OnlyRestored += o.OnlyRestored
		d.object.OnlyPresent += o.OnlyPresent
		d.object.Different += o.Different
		if t.present == nil && name != as {
			d.object.OnlyRestored += o.Rows
			o.Compared = true
		}
		d.object.Compared = d.object.Compared && o.Compared
		if o.Says != "" && len(d.object.Says) < 1000 {
			d.object.say("%s: %s", t, o.Says)
		}
	}
	return nil
}

// swap gives the restored schema the name of the present one, which keeps its rows under another.
func (r *run) swap(ctx context.Context, s *schema) error {
	there, _, own, err := r.schemaState(ctx, s, s.name)
	if err != nil {
		return err
	}
	if there {
		if err := r.checkDependents(ctx, s); err != nil {
			return err
		}
	}
	statements := []string{"set lock_timeout = '30s'", "begin"}
	s.object.As = s.name
	if there {
		s.object.Kept = s.kept
		statements = append(statements, "alter schema "+sql.Quote(s.name)+" rename to "+sql.Quote(s.kept),
			"comment on schema "+sql.Quote(s.kept)+" is "+
				sql.Literal(r.comment(own, mark{State: stateKept, Object: &s.object})))
	}
	statements = append(statements, "alter schema "+sql.Quote(s.as)+" rename to "+sql.Quote(s.name),
		"comment on schema "+sql.Quote(s.name)+" is "+
			sql.Literal(r.comment(s.own, mark{State: stateArrived, Object: &s.object})),
		"commit", "reset lock_timeout")
	if err := do(ctx, r.primary, "give schema "+s.as+" the name "+s.name, statements...); err != nil {
		_ = do(ctx, r.primary, "roll back", "rollback") // the first error is told
		return err
	}
	r.passed("replaced")
	return nil
}

// dependents are objects outside of a schema that depend on what is in it.
const dependents = `
	with inside as (
		select 'pg_class'::regclass::oid as classid, oid from pg_class where relnamespace = $1::text::regnamespace
		union all select 'pg_proc'::regclass, oid from pg_proc where pronamespace = $1::text::regnamespace
		union all select 'pg_type'::regclass, oid from pg_type where typnamespace = $1::text::regnamespace
		union all select 'pg_operator'::regclass, oid from pg_operator where oprnamespace = $1::text::regnamespace
		union all select 'pg_collation'::regclass, oid from pg_collation where collnamespace = $1::text::regnamespace
	)
	select distinct i.type || ' ' || i.identity
	from pg_depend d join inside on d.refclassid = inside.classid and d.refobjid = inside.oid
	cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) i
	cross join lateral pg_identify_object_as_address(d.classid, d.objid, 0) a
	where d.deptype in ('n', 'a') and coalesce(i.schema, a.object_names[1]) <> $2
		and coalesce(i.schema, a.object_names[1]) !~ '^pg_toast' order by 1`

// checkDependents refuses to take a schema away from what depends on it.
func (r *run) checkDependents(ctx context.Context, s *schema) error {
	found, err := column(ctx, r.primary, dependents, sql.Quote(s.name), s.name)
	if err != nil || len(found) == 0 {
		return err
	}
	names := slices.Clone(found[:min(len(found), 5)])
	if len(found) > 5 {
		names = append(names, fmt.Sprintf("and %d more", len(found)-5))
	}
	return refuse("%d objects outside of schema %s depend on it, and would stay with the replaced one: %s. What is "+
		"restored stays as %s: drop them and try again, or put single tables in their place", len(found), s.name,
		strings.Join(names, ", "), s.as)
}
