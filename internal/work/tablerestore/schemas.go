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
	run            *run
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
	for _, s := range schemas {
		if err := s.bring(ctx); err != nil {
			return objects, err
		}
		objects = append(objects, s.object)
	}
	return objects, nil
}

// findSchema finds a schema in the copy, and refuses what can't be brought over.
func (r *run) findSchema(ctx context.Context, name string) (*schema, error) {
	s := &schema{run: r, name: name, as: named(name, r.Suffix), kept: named(name, r.keptSuffix()),
		object: Object{Name: name}}
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
	if s.heir, err = r.owners.heir(ctx, s.owner); err != nil {
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

// state is what stands on the primary under one of the names of a schema: whether it is there, its mark as far as
// that counts, and its own comment.
func (s *schema) state(ctx context.Context, name string) (there bool, m *mark, own string, err error) {
	var owner string
	var comment *string
	err = s.run.primary.QueryRow(ctx, `select count(*) > 0, coalesce(max(pg_get_userbyid(nspowner)::text), ''),
		max(obj_description(oid, 'pg_namespace')) from pg_namespace where nspname = $1`, name).
		Scan(&there, &owner, &comment)
	if err != nil {
		return false, nil, "", fmt.Errorf("look for the schema %s: %w", name, err)
	}
	m, own = s.run.readMark(comment)
	return there, ofOurs(m, owner, s.heir), own, nil
}

// hasSwapped says that a run before has given a schema its former name, and what has come of it.
func (s *schema) hasSwapped(ctx context.Context) (bool, error) {
	_, m, _, err := s.state(ctx, s.name)
	if err != nil {
		return false, err
	}
	if m != nil && m.Object != nil {
		s.object = *m.Object
		return true, nil
	}
	// Whoever had the schema has the one that was replaced: what its comment says counts for nothing.
	there, _, _, err := s.state(ctx, s.kept)
	if err == nil && there && s.run.Replace {
		err = refuse("the schema %s is there and was not made by this restore: rename or drop it", s.kept)
	}
	return false, err
}

// bring brings one schema over, or goes on where a run was cut off.
func (s *schema) bring(ctx context.Context) error {
	if done, err := s.hasSwapped(ctx); done || err != nil {
		return err
	}
	there, m, _, err := s.state(ctx, s.as)
	switch {
	case err != nil:
		return err
	case there && m == nil:
		return refuse("the schema %s is there and was not made by this restore: rename or drop it", s.as)
	case there && m.State == stateArrived && m.Object != nil:
		s.object = *m.Object
	default:
		if err := s.load(ctx, there); err != nil {
			if errors.Is(refusal(err), ErrRefused) { // nobody tries again, who would drop it
				_ = s.drop(ctx) // the first error is told
			}
			return err
		}
	}
	if s.run.Replace {
		return s.swap(ctx)
	}
	return nil
}

// drop drops a schema that is not complete.
func (s *schema) drop(ctx context.Context) error {
	there, m, _, err := s.state(ctx, s.as)
	if err != nil || !there || m == nil || m.State != stateWork {
		return err
	}
	return do(ctx, s.run.primary, "drop what a former try has left", "set lock_timeout = '30s'",
		"drop schema "+sql.Quote(s.as)+" cascade", "reset lock_timeout")
}

// load loads a schema beside the present one.
func (s *schema) load(ctx context.Context, there bool) error {
	if there {
		if err := s.drop(ctx); err != nil {
			return err
		}
	}
	if err := s.checkLargeObjects(ctx); err != nil {
		return err
	}
	if !s.renamed {
		if err := do(ctx, s.run.copy, "rename the schema of the copy",
			"alter schema "+sql.Quote(s.name)+" rename to "+sql.Quote(s.as), "comment on schema "+sql.Quote(s.as)+
				" is "+
				sql.Literal(s.run.comment("", mark{State: stateWork, Comment: s.own}))); err != nil {
			return err
		}
	}
	s.run.passed("moved")
	s.run.step("dumps schema %s", s.name)
	if err := s.run.dump.write(ctx, s.as); err != nil {
		return err
	}
	entries, err := s.run.dump.contents(ctx)
	if err != nil {
		return err
	}
	owners, err := s.run.owners.ofEntries(ctx, &s.object, append(entries, entry{owner: s.owner}))
	if err != nil {
		return err
	}
	// Where somebody has made one of that name meanwhile, it fails.
	made := append([]string{"create schema " + sql.Quote(s.as)}, lend([]string{s.as}, owners)...)
	if err := do(ctx, s.run.primary, "make schema "+s.as, append(made,
		"comment on schema "+sql.Quote(s.as)+" is "+sql.Literal(s.run.comment("",
			mark{State: stateWork})))...); err != nil {
		return err
	}
	s.run.passed("staged")
	s.run.step("loads schema %s beside what is there", s.name)
	d := &dumped{entries, map[string]string{s.as: s.owner}, owners, s.run.primary, &s.object}
	if err := s.run.loadAll(ctx, d); err != nil {
		return err
	}
	if err := s.run.compareAll(ctx, d, s.as, s.name); err != nil {
		return err
	}
	s.object.As = s.as
	if err := do(ctx, s.run.primary, "give schema "+s.as+" its place", "comment on schema "+sql.Quote(s.as)+" is "+
		sql.Literal(s.run.comment(s.own, mark{State: stateArrived, Object: &s.object}))); err != nil {
		return err
	}
	s.run.passed("arrived " + s.name)
	return nil
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
	return slices.Contains([]string{"ACL", "DEFAULT ACL", "COMMENT", "FK CONSTRAINT", "TRIGGER", "POLICY",
		"ROW SECURITY", "RULE", "MATERIALIZED VIEW DATA", "STATISTICS DATA"}, e.kind)
}

// never are entries that do not come along: what is made before, and what reaches out of a database.
func never(e entry) bool {
	return slices.Contains([]string{"SCHEMA", "EXTENSION", "PUBLICATION", "PUBLICATION TABLE",
		"PUBLICATION TABLES IN SCHEMA", "SUBSCRIPTION", "SUBSCRIPTION TABLE", "EVENT TRIGGER", "DATABASE",
		"DATABASE PROPERTIES", "ENCODING", "STDSTRINGS", "SEARCHPATH", "SECURITY LABEL"}, e.kind) ||
		e.kind == "COMMENT" && strings.HasPrefix(e.tag, "- EXTENSION ")
}

// loadAll loads what is in the dump of schemas, takes back what was lent to the owners, and gives the schemas to
// theirs.
func (r *run) loadAll(ctx context.Context, d *dumped) error {
	first, last := r.sort(d.entries)
	if _, err := r.dump.load(ctx, r.target, first, false); err != nil {
		return err
	}
	r.passed("loaded")
	var statements, lent []string
	for schema, owner := range d.schemas {
		if owner != "pg_database_owner" {
			owner = r.owners.of(owner)
		}
		statements = append(statements, "alter schema "+sql.Quote(schema)+" owner to "+sql.Quote(owner))
		for _, o := range d.owners {
			if o != owner {
				statements = append(statements, "revoke create on schema "+sql.Quote(schema)+" from "+sql.Quote(o))
				lent = append(lent, o)
			}
		}
	}
	if err := do(ctx, d.admin, "give the schemas to their owners", statements...); err != nil {
		return err
	}
	if err := r.dropPlanted(ctx, d, lent); err != nil {
		return err
	}
	problems, err := r.dump.load(ctx, r.target, last, true)
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
		switch e.owner = r.owners.of(e.owner); {
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
	rows := sql.Ask(ctx, d.admin, `select relname::text, pg_get_userbyid(relowner)::text from pg_class
		where relnamespace = $1::text::regnamespace and relkind in ('r', 'p') and not relispartition
		order by 1`, sql.Quote(as))
	var tables []*table
	var one, owner string
	_, err := pgx.ForEachRow(rows, []any{&one, &owner}, func() error {
		tables = append(tables, &table{run: r, relation: relation{name, one}, loaded: relation{as, one}, owner: owner})
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for the tables of %s: %w", as, err)
	}
	d.object.Compared = name != as
	if name != as {
		if err := r.onlyPresent(ctx, d.object, as, name); err != nil {
			return err
		}
	}
	for _, t := range tables {
		if name != as {
			if t.present, err = r.findPresent(ctx, t.relation); err != nil {
				return err
			}
		}
		r.step("compares %s", t)
		if err := t.compare(ctx); err != nil {
			return err
		}
		o := t.object
		d.object.Rows += o.Rows
		d.object.Present += o.Present
		d.object.OnlyRestored += o.OnlyRestored
		d.object.OnlyPresent += o.OnlyPresent
		d.object.Different += o.Different
		if t.present == nil && name != as && !t.uncounted {
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
func (s *schema) swap(ctx context.Context) error {
	there, _, own, err := s.state(ctx, s.name)
	if err != nil {
		return err
	}
	if there {
		if err := s.checkDependents(ctx); err != nil {
			return err
		}
	}
	statements := []string{"set lock_timeout = '30s'", "begin"}
	s.object.As = s.name
	if there {
		s.object.Kept = s.kept
		statements = append(statements, "alter schema "+sql.Quote(s.name)+" rename to "+sql.Quote(s.kept),
			"comment on schema "+sql.Quote(s.kept)+" is "+
				sql.Literal(s.run.comment(own, mark{State: stateKept, Object: &s.object})))
	}
	statements = append(statements, "alter schema "+sql.Quote(s.as)+" rename to "+sql.Quote(s.name),
		"comment on schema "+sql.Quote(s.name)+" is "+
			sql.Literal(s.run.comment(s.own, mark{State: stateArrived, Object: &s.object})),
		"commit", "reset lock_timeout")
	if err := do(ctx, s.run.primary, "give schema "+s.as+" the name "+s.name, statements...); err != nil {
		_ = do(ctx, s.run.primary, "roll back", "rollback") // the first error is told
		return err
	}
	s.run.passed("replaced")
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
func (s *schema) checkDependents(ctx context.Context) error {
	found, err := column(ctx, s.run.primary, dependents, sql.Quote(s.name), s.name)
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
