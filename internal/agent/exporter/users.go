package exporter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

const (
	// usersEvery is how often the users' queries are asked at most, and usersOld after how long an answer is shown no
	// more.
	usersEvery, usersOld = 30 * time.Second, 2 * time.Minute
	// usersPatience bounds one of them, with its session.
	usersPatience = 6 * time.Second
	// usersRows and usersColumns bound what one may answer, usersText what is told of why it has failed (bytes).
	usersRows, usersColumns, usersText = 100, 20, 300
)

// Users asks the queries of spec.metrics.queries, on a primary, beside the scrapes: none waits for them. A scrape has
// what they have answered last, and begins to ask anew where that is old.
type Users struct {
	// Connect opens a session of a role that may only read, Ensure makes that role.
	Connect func(ctx context.Context, database string) (*pgx.Conn, error)
	Ensure  func(ctx context.Context, reads string) error
	Config  func() protocol.Config
	// Report is told what became of them, where that is something else than before; nil is not known.
	Report func(*protocol.QueriesStatus)

	lock  sync.Mutex
	busy  bool
	asked time.Time // when they were asked last, zero for never
	of    *protocol.Metrics
	found []*found
	told  *protocol.QueriesStatus
}

// latest is what there is, and begins to ask where that is due.
func (u *Users) latest(status *protocol.Status) []*found {
	u.lock.Lock()
	defer u.lock.Unlock()
	wanted := u.Config().Metrics
	if status.Role != protocol.RolePrimary || wanted == nil || len(wanted.Queries) == 0 {
		u.found, u.of = nil, nil
		u.tell(nil)
		return nil
	}
	changed := !reflect.DeepEqual(u.of, wanted)
	if !u.busy && (changed || time.Since(u.asked) > usersEvery) {
		u.busy = true
		go u.ask(wanted)
	}
	if changed {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(u.found), func(f *found) bool { return time.Since(f.at) > usersOld })
}

// ask asks all of them, one after the other.
func (u *Users) ask(wanted *protocol.Metrics) {
	var all []*found
	status := &protocol.QueriesStatus{Asked: len(wanted.Queries)}
	err := u.ensure(wanted.AllData)
	for _, q := range wanted.Queries {
		f := &found{query: &query{name: "query_" + q.Name}, at: time.Now(), err: err}
		if err == nil {
			f.err = u.one(&q, f)
			f.took = time.Since(f.at)
		}
		if f.err != nil {
			f.rows = nil
			status.Problems = append(status.Problems, protocol.QueryProblem{Name: q.Name, Message: short(f.err)})
		}
		all = append(all, f)
	}
	u.lock.Lock()
	defer u.lock.Unlock()
	u.busy, u.asked, u.of, u.found = false, time.Now(), wanted, all
	u.tell(status)
}

// tell reports what is new.
func (u *Users) tell(status *protocol.QueriesStatus) {
	if !reflect.DeepEqual(u.told, status) {
		u.told = status
		u.Report(status)
	}
}

func (u *Users) ensure(allData bool) error {
	reads := postgres.ReadsStatistics
	if allData {
		reads = postgres.ReadsAllData
	}
	ctx, cancel := context.WithTimeout(context.Background(), usersPatience)
	defer cancel()
	return u.Ensure(ctx, reads)
}

// one asks a query in a session of its own.
func (u *Users) one(q *protocol.MetricsQuery, into *found) error {
	ctx, cancel := context.WithTimeout(context.Background(), usersPatience)
	defer cancel()
	conn, err := u.Connect(ctx, q.Database)
	if err != nil {
		return err
	}
	defer closeSoon(conn)
	// One statement, without a copy of it on the server; its answer comes as text, which any type has.
	rows, err := conn.Query(ctx, q.SQL, pgx.QueryExecModeExec, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return fmt.Errorf("ask %s: %w", q.Name, err)
	}
	defer rows.Close()
	for rows.Next() {
		if into.query.metrics == nil {
			if err := into.query.shape(q, rows); err != nil {
				return err
			}
		}
		if len(into.rows) == usersRows {
			return fmt.Errorf("it answers more than %d rows: add a LIMIT, or put rows together", usersRows)
		}
		r, err := into.query.parse(q, rows)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(into.rows, func(o row) bool { return slices.Equal(o.labels, r.labels) }) {
			return fmt.Errorf("two rows have the same labels %q: name more columns in labels, or put rows together",
				r.labels)
		}
		into.rows = append(into.rows, r)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("ask %s: %w", q.Name, err)
	}
	return nil
}

// column is what a column that is a metric may be called.
var column = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// shape says which columns are metrics and which are labels.
func (q *query) shape(of *protocol.MetricsQuery, rows pgx.Rows) error {
	var names []string
	for _, f := range rows.FieldDescriptions() {
		names = append(names, f.Name)
	}
	if len(names) > usersColumns {
		return fmt.Errorf("it has %d columns, and may have %d", len(names), usersColumns)
	}
	for i, name := range names {
		switch {
		case !column.MatchString(name):
			return fmt.Errorf("the column %q can't be the name of a metric: give it another one with AS", name)
		case slices.Contains(names[:i], name):
			return fmt.Errorf("two columns have the name %s: give them other ones with AS", name)
		case !slices.Contains(of.Labels, name):
			q.metrics = append(q.metrics, metric{
				name: "toban_query_" + of.Name + "_" + name, help: "Of the query " +
					"" + of.Name + " in spec.metrics.queries.",
			})
		}
	}
	for _, l := range of.Labels {
		if !slices.Contains(names, l) {
			return fmt.Errorf("it has no column %s, which is among its labels", l)
		}
	}
	if len(q.metrics) == 0 {
		return errors.New("all its columns are labels, and none a metric")
	}
	q.labels = of.Labels
	return nil
}

// parse reads a row. Its labels are in the order of the query's labels.
func (q *query) parse(of *protocol.MetricsQuery, rows pgx.Rows) (row, error) {
	r := row{labels: make([]string, len(of.Labels))}
	for i, raw := range rows.RawValues() {
		name := rows.FieldDescriptions()[i].Name
		if at := slices.Index(of.Labels, name); at >= 0 {
			r.labels[at] = label(string(raw))
			continue
		}
		value, err := asNumber(raw)
		if err != nil {
			return r, fmt.Errorf("the column %s has a value that is no number", name)
		}
		r.values = append(r.values, value)
	}
	return r, nil
}

// asNumber is a value as PostgreSQL writes it, nil for null. A boolean is 1 or 0.
func asNumber(raw []byte) (*float64, error) {
	var value float64
	switch text := string(raw); {
	case raw == nil:
		return nil, nil //nolint:nilnil // null
	case text == "t":
		value = 1
	case text == "f":
	default:
		var err error
		if value, err = strconv.ParseFloat(text, 64); err != nil {
			return nil, err //nolint:wrapcheck // the caller says what is wrong
		}
	}
	return &value, nil
}

// short is what is told of an error.
func short(err error) string {
	text := strings.Join(strings.Fields(label(err.Error())), " ")
	if len(text) > usersText {
		text = label(text[:usersText]) + "…"
	}
	return text
}
