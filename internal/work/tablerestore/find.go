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

// table is one that is asked for.
type table struct {
	run *run
	relation
	// at is where it is in the copy now: in its schema, or in that of a run that was cut off.
	at       relation
	oid      uint32
	comment  *string
	unlogged bool
	// family is itself and all its partitions, or the tables that inherit from it.
	family []member
	// owner is who owns what is restored, on the primary.
	owner string
	// present is the table of that name on the primary, nil for none.
	present *present
	// loaded is what has been loaded, before it has its place.
	loaded relation
	// as is the name of the restored one beside the present one, kept that of what it replaces.
	as, kept relation
	object   Object
	// uncounted says that its owner may not see all of its rows.
	uncounted bool
	// inPlace says that the restored one has the name of the former.
	inPlace bool
}

type member struct {
	relation
	oid   uint32
	at    relation
	owner string
}

// present is a table on the primary.
type present struct {
	oid   uint32
	owner string
	kind  string
	mark  *mark
}

func (t *table) say(format string, args ...any) { t.object.say(format, args...) }

func (o *Object) say(format string, args ...any) {
	o.Says = strings.TrimSpace(o.Says + " " + fmt.Sprintf(format, args...))
}

// warn says what a publication of all tables does with those that a restore makes.
func (o *Object) warn(published bool) {
	if published {
		o.say("A publication FOR ALL TABLES has sent its rows too: a subscriber without such a table stops until " +
			"it has one.")
	}
}

// stages are the schemas of a run that was cut off, with those that their tables come from.
func (r *run) stages(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	out := map[string]string{}
	rows := sql.Ask(ctx, conn, `select nspname::text, pg_get_userbyid(nspowner)::text,
			obj_description(oid, 'pg_namespace')
		from pg_namespace where starts_with(nspname, $1)`, "toban_"+r.Suffix+"_")
	var name, owner string
	var comment *string
	_, err := pgx.ForEachRow(rows, []any{&name, &owner, &comment}, func() error {
		m, _ := r.readMark(comment)
		if m = ofOurs(m, owner); m == nil {
			return refuse("the schema %s is there and was not made by this restore: rename or drop it", sql.Quote(name))
		}
		out[name] = m.Comment
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for what a former try has left: %w", err)
	}
	return out, nil
}

// findTable finds a table that is asked for in the copy.
func (r *run) findTable(ctx context.Context, text string, stages map[string]string) (*table, error) {
	want, err := parseTable(text)
	if err != nil {
		return nil, err
	}
	t := &table{run: r, relation: want, object: Object{Name: want.String()}}
	var kind, persistence string
	var extension *string
	err = r.copy.QueryRow(ctx, `select c.oid, n.nspname::text, c.relkind::text, c.relpersistence::text,
			obj_description(c.oid, 'pg_class'),
			(select e.extname::text from pg_depend d join pg_extension e on e.oid = d.refobjid
				where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
				and d.refclassid = 'pg_extension'::regclass)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relname = $1 and n.nspname in ($2, $3)`, want.Name, want.Schema, r.stageOf(want.Schema)).
		Scan(&t.oid, &t.at.Schema, &kind, &persistence, &t.comment, &extension)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, r.missing(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("look for table %s: %w", want, err)
	}
	t.object.warn(r.published)
	t.at.Name, t.unlogged = want.Name, persistence == "u"
	switch {
	case want.Schema == "pg_catalog" || want.Schema == "information_schema" || want.Schema == "pg_toast":
		return nil, refuse("%s is PostgreSQL's own: restore the tables that you want back", want)
	case extension != nil:
		return nil, refuse("%s is a table of the extension %s: CREATE EXTENSION makes it", want, *extension)
	case kind != "r" && kind != "p":
		return nil, refuseKind(want, kind)
	}
	return t, t.findFamily(ctx, stages)
}

// refuseKind says what to do about what is no table.
func refuseKind(want relation, kind string) error {
	words := map[string][2]string{
		"v": {"a view", "ask for the tables that it reads, or for its schema"},
		"m": {"a materialized view", "ask for the tables that it reads, or for its schema"},
		"f": {"a foreign table", "its rows are on another server, and in no backup of this one"},
		"S": {"a sequence", "ask for the table that it belongs to, or set it with setval"},
		"i": {"an index", "ask for its table"}, "I": {"an index", "ask for its table"},
		"c": {"a type", "ask for its schema"},
	}[kind]
	return refuse("%s is %s, not a table: %s", want, words[0], words[1])
}

// missing refuses a table that is not in the copy, and names those that may be meant.
func (r *run) missing(ctx context.Context, want relation) error {
	all, err := column(ctx, r.copy, `select n.nspname || '.' || c.relname
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'p') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') order by 1`)
	if err != nil {
		return err
	}
	near := nearest(want, all)
	if len(near) == 0 {
		return refuse("there was no table %s in database %s at that time: name one that was there, or another time",
			want, r.Database)
	}
	return refuse("there was no table %s in database %s at that time. There were: %s", want, r.Database,
		strings.Join(near, ", "))
}

// nearest are the tables that are called nearly as the wanted one, or so in another schema.
func nearest(want relation, all []string) (out []string) {
	slices.SortStableFunc(all, func(a, b string) int { return away(want, a) - away(want, b) })
	for _, name := range all {
		if away(want, name) <= 2 && len(out) < 5 {
			out = append(out, name)
		}
	}
	return out
}

// away is how far a table's name is from the wanted one: 0 for the same one in another schema.
func away(want relation, full string) int {
	_, name, _ := strings.Cut(full, ".")
	return min(distance(strings.ToLower(want.Name), strings.ToLower(name)),
		distance(strings.ToLower(want.String()), strings.ToLower(full)))
}

// distance is how many characters have to be put in, left out or changed (Levenshtein).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		last := row[0]
		row[0] = i + 1
		for j := range y {
			change := last
			if x[i] != y[j] {
				change++
			}
			last = row[j+1]
			row[j+1] = min(change, last+1, row[j]+1)
		}
	}
	return row[len(y)]
}

// family finds the partitions of a table, or the tables that inherit from it, and itself first.
const family = `
	with recursive f (oid, depth) as (
		select $1::oid, 0 union select i.inhrelid, depth + 1 from f join pg_inherits i on i.inhparent = f.oid)
	select c.oid, n.nspname::text, c.relname::text, c.relkind::text, pg_get_userbyid(c.relowner)::text,
		c.relpersistence = 'u'
	from (select oid, min(depth) depth from f group by oid) f join pg_class c using (oid)
	join pg_namespace n on n.oid = c.relnamespace order by f.depth, n.nspname, c.relname`

func (t *table) findFamily(ctx context.Context, stages map[string]string) error {
	rows := sql.Ask(ctx, t.run.copy, family, t.oid)
	var m member
	var kind string
	var unlogged bool
	to := []any{&m.oid, &m.at.Schema, &m.at.Name, &kind, &m.owner, &unlogged}
	_, err := pgx.ForEachRow(rows, to, func() error {
		if m.relation = m.at; stages[m.at.Schema] != "" {
			m.Schema = stages[m.at.Schema]
		}
		if kind == "f" {
			return refuse("%s, a part of %s, is a foreign table, and its rows are in no backup: ask for its other "+
				"parts", m.relation, t.relation)
		}
		t.unlogged = t.unlogged || unlogged
		t.family = append(t.family, m)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for the partitions of %s: %w", t, err)
	}
	if t.unlogged {
		t.say("It is unlogged: a backup has no rows of such a table.")
	}
	return nil
}

// findPresent looks for a table of the primary.
func (r *run) findPresent(ctx context.Context, name relation) (*present, error) {
	var p present
	var comment *string
	err := r.primary.QueryRow(ctx, `select c.oid, pg_get_userbyid(c.relowner)::text, c.relkind::text,
			obj_description(c.oid, 'pg_class')
		from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = $2`,
		name.Schema, name.Name).Scan(&p.oid, &p.owner, &p.kind, &comment)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // it is not there
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s: %w", name, err)
	}
	p.mark, _ = r.readMark(comment)
	return &p, nil
}
