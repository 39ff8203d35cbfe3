package tablerestore

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// move moves tables of the copy into schemas of their own, which pg_dump then dumps. It does so once, also if the copy
// is used again.
func (r *run) move(ctx context.Context, tables []*table) error {
	statements := []string{}
	stages := map[string]bool{}
	for _, t := range tables {
		if t.at.Schema == t.Schema {
			apart, err := t.apart(ctx)
			if err != nil {
				return err
			}
			statements = append(statements, apart...)
		}
		for _, m := range t.family {
			stage := r.stageOf(m.Schema)
			if !stages[stage] {
				stages[stage] = true
				statements = append(statements, "create schema if not exists "+sql.Quote(stage), "comment on schema "+
					sql.Quote(stage)+" is "+sql.Literal(r.comment("", mark{State: stateWork, Comment: m.Schema})))
			}
			if m.at.Schema != stage {
				statements = append(statements,
					"alter table "+m.at.sql()+" set schema "+sql.Quote(stage),
					"alter table "+sql.Quote(stage, m.Name)+" owner to "+sql.Quote(t.family[0].owner))
			}
		}
	}
	if err := do(ctx, r.copy, "move the tables of the copy", statements...); err != nil {
		return err
	}
	r.passed("moved")
	return nil
}

// apart are the statements that take a table from those of which it is a part.
func (t *table) apart(ctx context.Context) ([]string, error) {
	rows := sql.Ask(ctx, t.run.copy, `select n.nspname::text, p.relname::text, c.relispartition
		from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
		join pg_namespace n on n.oid = p.relnamespace where i.inhrelid = $1`, t.oid)
	var out []string
	var parent relation
	var partition bool
	_, err := pgx.ForEachRow(rows, []any{&parent.Schema, &parent.Name, &partition}, func() error {
		if partition {
			out = append(out, "alter table "+parent.sql()+" detach partition "+t.at.sql())
		} else {
			out = append(out, "alter table "+t.at.sql()+" no inherit "+parent.sql())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for what %s is a part of: %w", t, err)
	}
	return out, nil
}

// stageSchemas are the schemas in which tables are until all is there, with those that they come from.
func (r *run) stageSchemas(tables []*table) map[string]string {
	out := map[string]string{}
	for _, t := range tables {
		for _, m := range t.family {
			out[r.stageOf(m.Schema)] = m.Schema
		}
	}
	return out
}

// stage makes the schemas on the primary, for the owners of the tables.
func (r *run) stage(ctx context.Context, tables []*table) error {
	statements := []string{}
	for stage, schema := range r.stageSchemas(tables) {
		statements = append(statements, "create schema "+sql.Quote(stage), "comment on schema "+sql.Quote(stage)+" is "+
			sql.Literal(r.comment("", mark{State: stateWork, Comment: schema})))
	}
	for _, t := range tables {
		for stage := range r.stageSchemas(tables) {
			statements = append(statements, "grant usage, create on schema "+sql.Quote(stage)+" to "+sql.Quote(t.owner))
		}
	}
	if err := do(ctx, r.primary, "make room for the tables", statements...); err != nil {
		return err
	}
	r.passed("staged")
	return nil
}

// dropStages drops what a run has left that was cut off, and at the end the schemas that are empty.
func (r *run) dropStages(ctx context.Context) error {
	stages, err := r.stages(ctx, r.primary)
	if err != nil {
		return err
	}
	for stage := range stages {
		if err := do(ctx, r.primary, "drop what a former try has left",
			"set lock_timeout = '30s'", "drop schema "+sql.Quote(stage)+" cascade", "reset lock_timeout"); err != nil {
			return err
		}
	}
	return nil
}

// wanted says which entries of the dump come along with a table beside the present one: no triggers, foreign keys,
// policies, rules and grants.
func wanted(e entry) bool {
	switch e.kind {
	case "TABLE", "TABLE ATTACH", "SEQUENCE", "SEQUENCE OWNED BY", "SEQUENCE SET", "DEFAULT", "TABLE DATA",
		"CONSTRAINT", "CHECK CONSTRAINT", "INDEX", "INDEX ATTACH", "STATISTICS DATA":
		return true
	case "COMMENT":
		_, what, _ := strings.Cut(e.tag, " ") // behind the schema
		return strings.HasPrefix(what, "TABLE ") || strings.HasPrefix(what, "COLUMN ") ||
			strings.HasPrefix(what, "INDEX ")
	}
	return false
}

// besides says which come along with a table that takes its former place.
func besides(e entry) bool {
	switch e.kind {
	case "TRIGGER", "POLICY", "ROW SECURITY", "RULE", "ACL":
		return true
	case "COMMENT":
		return !wanted(e)
	}
	return false
}

// pick are the entries that are wanted, with owners of the primary.
func pick(entries []entry, want func(entry) bool, owner func(string) string) (out []entry) {
	for _, e := range entries {
		if want(e) {
			e.owner = owner(e.owner)
			out = append(out, e)
		}
	}
	return out
}

// arrive gives a table that is complete its place, all of it at once.
func (t *table) arrive(ctx context.Context, used map[string]unique) error {
	inPlace := t.present == nil && t.run.Replace
	t.object.As = t.as.String()
	if inPlace {
		t.object.As = t.relation.String()
	}
	statements := []string{"begin", "set local lock_timeout = '30s'"}
	for _, m := range t.family {
		stage := t.run.stageOf(m.Schema)
		name := m.Name
		if !inPlace {
			if used[m.Schema] == nil {
				used[m.Schema] = unique{}
			}
			renames, err := t.run.renames(ctx, stage, m.Name, used[m.Schema])
			if err != nil {
				return err
			}
			statements = append(statements, renames...)
			name = t.as.Name
			if m.oid != t.oid {
				name = used[m.Schema].named(m.Name, t.run.Suffix)
			}
			statements = append(statements, "alter table "+sql.Quote(stage, m.Name)+" rename to "+sql.Quote(name))
		}
		statements = append(statements, "alter table "+sql.Quote(stage, name)+" set schema "+sql.Quote(m.Schema))
		if owner := t.run.owners.of(m.owner); owner != t.owner {
			statements = append(statements, "alter table "+sql.Quote(m.Schema, name)+" owner to "+sql.Quote(owner))
		}
	}
	as := t.as
	if inPlace {
		as = t.relation
	}
	own := ""
	if t.comment != nil {
		own = *t.comment
	}
	statements = append(statements, "comment on table "+as.sql()+" is "+
		sql.Literal(t.run.comment(own, mark{State: stateArrived, Object: &t.object})), "commit")
	if err := do(ctx, t.run.primary, "give "+t.object.As+" its place", statements...); err != nil {
		_ = do(ctx, t.run.primary, "roll back", "rollback") // the first error is told
		return err
	}
	t.run.passed("arrived " + t.relation.String())
	return nil
}

// renames are the statements that give the indexes and the sequences of a table the suffix.
func (r *run) renames(ctx context.Context, stage, name string, used unique) (out []string, err error) {
	rows := sql.Ask(ctx, r.primary, `
		with t as (select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname = $1 and c.relname = $2)
		select c.relname::text, c.relkind::text from pg_class c
		where c.oid in (select indexrelid from pg_index, t where indrelid = t.oid)
			or c.relkind = 'S' and c.oid in (select objid from pg_depend, t where classid = 'pg_class'::regclass
				and refclassid = 'pg_class'::regclass and refobjid = t.oid and deptype in ('a', 'i'))
		order by 1`, stage, name)
	var one, kind string
	_, err = pgx.ForEachRow(rows, []any{&one, &kind}, func() error {
		what := map[bool]string{true: "sequence", false: "index"}[kind == "S"]
		out = append(out, "alter "+what+" "+sql.Quote(stage, one)+" rename to "+sql.Quote(used.named(one, r.Suffix)))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for the indexes of %s: %w", name, err)
	}
	return out, nil
}
