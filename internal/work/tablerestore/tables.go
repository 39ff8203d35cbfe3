package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"toban.dev/internal/postgres/sql"
)

// bringTables brings tables over: all of them are looked at before anything is changed.
func (r *run) bringTables(ctx context.Context) ([]Object, error) {
	tables, err := r.findTables(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.dropStages(ctx); err != nil {
		return nil, err
	}
	var missing []*table
	for _, t := range tables {
		if done, err := t.arrived(ctx); err != nil {
			return nil, err
		} else if !done {
			missing = append(missing, t)
		}
	}
	if err := r.bringMissing(ctx, missing); err != nil {
		if errors.Is(refusal(err), ErrRefused) { // nobody tries again, who would drop it
			_ = r.dropStages(ctx) // the first error is told
		}
		return nil, err
	}
	if r.Replace {
		if err := r.replaceTables(ctx, tables); err != nil {
			return objectsOf(tables), err
		}
	}
	return objectsOf(tables), nil
}

func objectsOf(tables []*table) (out []Object) {
	for _, t := range tables {
		out = append(out, t.object)
	}
	return out
}

// findTables finds all tables, and refuses what can't be brought over.
func (r *run) findTables(ctx context.Context) (tables []*table, err error) {
	stages, err := r.stages(ctx, r.copy)
	if err != nil {
		return nil, err
	}
	parts := map[string]string{}
	for _, text := range r.Tables {
		r.step("looks for table %s", text)
		t, err := r.findTable(ctx, text, stages)
		if err != nil {
			return nil, err
		}
		for _, m := range t.family {
			if other := parts[m.String()]; other != "" {
				return nil, refuse("%s comes along with %s: ask for one of them", m.relation, other)
			}
			parts[m.String()] = t.String()
		}
		t.as, t.loaded = relation{t.Schema, named(t.Name, r.Suffix)}, relation{r.stageOf(t.Schema), t.Name}
		t.kept = relation{t.Schema, named(t.Name, r.keptSuffix())}
		if t.present, err = r.findPresent(ctx, t.relation); err != nil {
			return nil, err
		}
		if err := t.checkSchemas(ctx); err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	return tables, r.owners.ofTables(ctx, tables)
}

// checkSchemas refuses tables whose schemas are not there any more.
func (t *table) checkSchemas(ctx context.Context) error {
	for _, m := range t.family {
		there, err := sql.Value[bool](ctx, t.run.primary, "look for the schema "+m.Schema,
			"select exists (select from pg_namespace where nspname = $1)", m.Schema)
		if err != nil {
			return err
		}
		if !there {
			return refuse("the schema %s of %s is not there any more: restore the schema, or create it", m.Schema,
				m.relation)
		}
	}
	return nil
}

// arrived says that a run before has brought a table over, and what has come of it.
func (t *table) arrived(ctx context.Context) (bool, error) {
	if m := t.present.markOf(t); m != nil && m.State == stateArrived && m.Object != nil {
		t.object, t.inPlace = *m.Object, true
		return true, nil
	}
	p, err := t.run.findPresent(ctx, t.as)
	if err != nil || p == nil {
		if err == nil && t.run.Replace {
			return t.hasReplaced(ctx)
		}
		return false, err
	}
	m := p.markOf(t)
	if m == nil || m.State != stateArrived || m.Object == nil {
		return false, refuse("%s is there and was not made by this restore: rename or drop it", t.as)
	}
	t.object = *m.Object
	return true, nil
}

// bringMissing brings over what is not there yet.
func (r *run) bringMissing(ctx context.Context, tables []*table) error {
	if len(tables) == 0 {
		return nil
	}
	entries, err := r.dumpTables(ctx, tables)
	if err != nil {
		return err
	}
	if err := r.stage(ctx, tables); err != nil {
		return err
	}
	r.step("loads it beside what is there")
	if _, err := r.dump.load(ctx, r.Database, pick(entries, wanted, r.owners.of), false); err != nil {
		return err
	}
	r.passed("loaded")
	for _, t := range tables {
		r.step("compares %s", t)
		if err := t.compare(ctx); err != nil {
			return err
		}
		if t.present == nil && r.Replace {
			if err := t.complete(ctx, entries); err != nil {
				return err
			}
		}
	}
	return r.arriveAll(ctx, tables)
}

// dumpTables dumps tables of the copy, and lists what is in the dump.
func (r *run) dumpTables(ctx context.Context, tables []*table) ([]entry, error) {
	for _, t := range tables {
		if err := t.checkNeeds(ctx); err != nil {
			return nil, err
		}
		if err := r.checkLargeObjects(ctx, t.oids(), t.String(), &t.object); err != nil {
			return nil, err
		}
	}
	if err := r.move(ctx, tables); err != nil {
		return nil, err
	}
	var schemas []string
	for stage := range r.stageSchemas(tables) {
		schemas = append(schemas, stage)
	}
	r.step("dumps what is restored")
	if err := r.dump.write(ctx, schemas...); err != nil {
		return nil, err
	}
	return r.dump.contents(ctx)
}

// arriveAll gives the tables that are complete their places.
func (r *run) arriveAll(ctx context.Context, tables []*table) error {
	used := map[string]unique{}
	for _, t := range tables {
		if used[t.Schema] == nil {
			used[t.Schema] = unique{}
		}
		used[t.Schema][t.as.Name] = true
	}
	for _, t := range tables {
		if err := t.arrive(ctx, used); err != nil {
			return err
		}
		t.inPlace = t.present == nil && r.Replace
	}
	return r.dropStages(ctx)
}

// complete gives a table that takes its former place all that belongs to it.
func (t *table) complete(ctx context.Context, entries []entry) error {
	if err := t.constrain(ctx); err != nil {
		return err
	}
	of := pick(entries, besides, t.run.owners.of)
	stages := t.run.stageSchemas([]*table{t})
	mine := of[:0]
	for _, e := range of {
		if schema, _, _ := strings.Cut(e.tag, " "); stages[schema] != "" && t.mentions(e) {
			mine = append(mine, e)
		}
	}
	problems, err := t.run.dump.load(ctx, t.run.Database, mine, true)
	if len(problems) > 0 {
		t.say("Not all came along: %s.", strings.Join(problems, "; "))
	}
	return err
}

// mentions says that an entry is of one of a table's family.
func (t *table) mentions(e entry) bool {
	for _, m := range t.family {
		if strings.Contains(" "+e.tag+" ", " "+m.Name+" ") {
			return true
		}
	}
	return false
}

// constrain adds the foreign keys that a table had: those that do not hold as NOT VALID.
func (t *table) constrain(ctx context.Context) error {
	rows, err := t.run.copy.Query(ctx, `select n.nspname::text, c.relname::text, f.conname::text,
			pg_get_constraintdef(f.oid)
		from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_namespace n on n.oid = c.relnamespace
		where f.contype = 'f' and f.conparentid = 0 and f.conrelid = any ($1) order by 1, 2, 3`, t.oids())
	if err != nil {
		return fmt.Errorf("look for the foreign keys of %s: %w", t, err)
	}
	var statements, names []string
	var schema, name, key, definition string
	for rows.Next() {
		if err := rows.Scan(&schema, &name, &key, &definition); err != nil {
			return fmt.Errorf("look for the foreign keys of %s: %w", t, err)
		}
		names = append(names, key)
		statements = append(statements, "alter table "+sql.Quote(schema, name)+" add constraint "+sql.Quote(key)+" "+
			definition)
	}
	if err := rows.Err(); err != nil || len(names) == 0 {
		return err
	}
	conn, end, err := t.run.loader.session(ctx, t.owner, t.run.Database)
	if err != nil {
		return err
	}
	defer end()
	for i, statement := range statements {
		err := do(ctx, conn, "add a foreign key", statement)
		if sql.Code(err) == "23503" {
			if err = do(ctx, conn, "add a foreign key", statement+" not valid"); err == nil {
				t.say("Rows of it have no partner by the foreign key %s, which is NOT VALID: look for them, then "+
					"ALTER TABLE %s VALIDATE CONSTRAINT %s.", names[i], t.sql(), sql.Quote(names[i]))
				continue
			}
		}
		if err != nil && !final(sql.Code(err)) {
			return err
		}
		if err != nil {
			t.say("The foreign key %s did not come along: %s.", names[i], sql.Explain(err, sql.ShownMessage))
		}
	}
	return nil
}

func (t *table) oids() (out []uint32) {
	for _, m := range t.family {
		out = append(out, m.oid)
	}
	return out
}
