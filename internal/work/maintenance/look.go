package maintenance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Report is what was found of sort orders.
type Report struct {
	// Databases and Collations are those whose version on record is not the actual one, the first of each; More is how
	// many others there are. Of collations only those that an index depends on are told.
	Databases  []Version `json:"databases,omitempty"`
	Collations []Version `json:"collations,omitempty"`
	More       int       `json:"more,omitempty"`
	// Unrecorded are those that have no version on record: in which order their indexes are is not known.
	Unrecorded []Version `json:"unrecorded,omitempty"`
	// Indexes is how many depend on what changed, or on what is not known, and are not rebuilt yet; Largest the size of
	// the largest (bytes). Dependent is how many depend on any order that a library may change.
	Indexes   int   `json:"indexes,omitempty"`
	Largest   int64 `json:"largest,omitempty"`
	Dependent int   `json:"dependent,omitempty"`
	// Partitioned are tables whose rows may be in a wrong partition.
	Partitioned []string `json:"partitioned,omitempty"`
	// Cramped says that the volume may have no room to rebuild the largest. The agent says so.
	Cramped bool `json:"cramped,omitempty"`
	// Progress is how far a Job is that works on it, nil where none does.
	Progress *Progress `json:"progress,omitempty"`
	// Problem is why it is not known, "" where it is.
	Problem string `json:"problem,omitempty"`
}

// Progress is how far the work is.
type Progress struct {
	Done    int    `json:"done,omitempty"`
	Total   int    `json:"total,omitempty"`
	Current string `json:"current,omitempty"`
}

// Changed says that some index may be out of order.
func (r Report) Changed() bool {
	return len(r.Databases)+len(r.Collations) > 0 || r.Indexes > 0 && !r.unknown()
}

// unknown says that nothing is on record for all that the indexes depend on.
func (r Report) unknown() bool { return len(r.Unrecorded) > 0 }

// Look compares, in every database, the versions on record with those of the libraries.
func Look(ctx context.Context, connect Connect) (Report, error) {
	conn, err := connect(ctx, maintenance)
	if err != nil {
		return Report{}, err
	}
	defer sql.HangUp(conn)
	var out Report
	if out.Progress, err = readProgress(ctx, conn); err != nil {
		return Report{}, err
	}
	done, err := lookAtRecord(ctx, conn)
	if err != nil {
		return Report{}, err
	}
	names, err := databases(ctx, conn)
	if err != nil {
		return Report{}, err
	}
	for _, name := range names {
		found, err := survey(ctx, connect, name, done)
		if err != nil {
			return Report{}, err
		}
		out.add(found)
	}
	out.bound()
	return out, nil
}

// surveyed is what was found in a database.
type surveyed struct {
	name        string
	oid         uint32
	collations  map[uint32]*collation
	indexes     []index // all that depend on a collation
	due         []index // those that are to be rebuilt, the most important first
	partitioned []string
}

// survey looks into a database.
func survey(ctx context.Context, connect Connect, name string, done *record) (surveyed, error) {
	out := surveyed{name: name}
	conn, err := connect(ctx, name)
	if err != nil {
		return out, err
	}
	defer sql.HangUp(conn)
	const own = "select oid from pg_database where datname = current_database()"
	if err := conn.QueryRow(ctx, own).Scan(&out.oid); err != nil {
		return out, fmt.Errorf("look into database %s: %w", name, err)
	}
	if out.collations, err = readCollations(ctx, conn); err != nil {
		return out, fmt.Errorf("look into database %s: %w", name, err)
	}
	if out.indexes, err = readIndexes(ctx, conn, name, out.collations); err != nil {
		return out, err
	}
	for _, i := range out.indexes {
		if out.isDue(i, done) {
			out.due = append(out.due, i)
		}
	}
	slices.SortStableFunc(out.due, before)
	if stale := out.stale(); len(stale) > 0 {
		if out.partitioned, err = readPartitioned(ctx, conn, stale); err != nil {
			return out, err
		}
	}
	return out, nil
}

// isDue says that an index may be out of order. One that was rebuilt is as the versions were then, whatever the version
// on record is.
func (d *surveyed) isDue(i index, done *record) bool {
	if b, noted := done.rebuilt[[2]uint32{d.oid, i.oid}]; noted && b.filenode == i.filenode {
		return b.versions != i.versions
	}
	return slices.ContainsFunc(i.collations, func(oid uint32) bool { return d.collations[oid].stale() })
}

// stale are the collations whose version on record is not the actual one.
func (d *surveyed) stale() (oids []uint32) {
	for oid, c := range d.collations {
		if c.stale() {
			oids = append(oids, oid)
		}
	}
	slices.Sort(oids)
	return oids
}

// before orders indexes: first those by which PostgreSQL keeps rows apart, then small ones.
func before(a, b index) int {
	rank := func(i index) int {
		switch {
		case i.primary:
			return 0
		case i.unique:
			return 1
		case i.exclusion:
			return 2
		}
		return 3
	}
	return cmp.Or(rank(a)-rank(b), cmp.Compare(a.size, b.size), strings.Compare(a.name, b.name))
}

// add takes over what was found in a database.
func (r *Report) add(d surveyed) {
	for _, oid := range d.stale() {
		c := d.collations[oid]
		v := c.version(d.name)
		switch {
		case oid != defaultCollation && !c.used: // nothing is in its order
		case c.unrecorded():
			r.Unrecorded = append(r.Unrecorded, v)
		case oid == defaultCollation:
			r.Databases = append(r.Databases, v)
		default:
			r.Collations = append(r.Collations, v)
		}
	}
	for _, i := range d.due {
		r.Indexes++
		r.Largest = max(r.Largest, i.size)
	}
	r.Dependent += len(d.indexes)
	for _, table := range d.partitioned {
		r.Partitioned = append(r.Partitioned, d.name+"."+table)
	}
}

// bound keeps what is told short, whatever there is.
func (r *Report) bound() {
	for _, list := range []*[]Version{&r.Databases, &r.Collations, &r.Unrecorded} {
		if more := len(*list) - named; more > 0 {
			*list, r.More = (*list)[:named], r.More+more
		}
	}
	r.Partitioned = cut(r.Partitioned)
}

// application is how a session of the work calls itself, with its progress behind: that ends with the session.
const application = "toban finish: "

// readProgress is how far a Job is, nil where none works. Others may call their sessions the same, but not as this
// role.
func readProgress(ctx context.Context, conn *pgx.Conn) (*Progress, error) {
	names, err := sql.Column[string](ctx, conn, "look whether a Job works",
		`select substr(application_name, length($1) + 1) from pg_stat_activity
		where starts_with(application_name, $1) and usename = current_user and pid <> pg_backend_pid()`, application)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return parseProgress(names[0]), nil
}

// parseProgress reads what Progress.String has written.
func parseProgress(words string) *Progress {
	counts, current, _ := strings.Cut(words, " ")
	done, total, _ := strings.Cut(counts, "/")
	p := &Progress{Current: current}
	p.Done, _ = strconv.Atoi(done) // 0 where somebody has written another
	p.Total, _ = strconv.Atoi(total)
	return p
}

// String is the progress as the name of a session has it.
func (p Progress) String() string { return fmt.Sprintf("%d/%d %s", p.Done, p.Total, p.Current) }

// Works says that a Job is at work.
func Works(ctx context.Context, connect Connect) (bool, error) {
	conn, err := connect(ctx, maintenance)
	if err != nil {
		return false, err
	}
	defer sql.HangUp(conn)
	p, err := readProgress(ctx, conn)
	return p != nil, err
}
