package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/postgres/sql"
)

// Job is what is to be done, and over which connections.
type Job struct {
	Connect Connect
	Parts   []Part
	// UpdateExtensions says that extensions are updated; else those that are older are only named.
	UpdateExtensions bool
	// Patience is how long to go on while no server takes writes.
	Patience time.Duration
	Log      *slog.Logger
	// At, where it is set, is told every point that the work has passed. Tests end the process there.
	At func(point string)
}

// Result is what came of the work.
type Result struct {
	// Done says that all parts have come to their end; what could not be done is named below.
	Done bool `json:"done"`
	// Rebuilt is how many indexes were rebuilt, Checked how many of them amcheck has looked at before, and Broken how
	// many of those were really out of order.
	Rebuilt int `json:"rebuilt,omitempty"`
	Checked int `json:"checked,omitempty"`
	Broken  int `json:"broken,omitempty"`
	// Duplicates are unique indexes that can't be rebuilt because rows have the same key, Failures others, with why.
	Duplicates []string `json:"duplicates,omitempty"`
	Failures   []string `json:"failures,omitempty"`
	// Partitioned are tables whose rows may be in a wrong partition.
	Partitioned []string `json:"partitioned,omitempty"`
	// Analyzed is how many tables have got statistics.
	Analyzed int `json:"analyzed,omitempty"`
	// Updated are the extensions that were updated, Older those that are older than what the image has.
	Updated []string `json:"updated,omitempty"`
	Older   []string `json:"older,omitempty"`
	// Error is why the work could not come to its end, "" where it did.
	Error string `json:"error,omitempty"`
}

// bound keeps the result short enough for a termination message.
func (r *Result) bound() {
	for _, list := range []*[]string{&r.Duplicates, &r.Failures, &r.Partitioned, &r.Updated, &r.Older} {
		*list = cut(*list)
		for i, words := range *list {
			if runes := []rune(words); len(runes) > longest {
				(*list)[i] = string(runes[:longest]) + "…"
			}
		}
	}
}

// longest is how long what is told of one thing may be (characters).
const longest = 150

// work is one try.
type work struct {
	Job
	connect   Connect
	log       *slog.Logger
	main      *pgx.Conn
	record    *record
	databases []string
	open      map[string]*pgx.Conn
	result    Result
}

// retry is how long to wait before the next try.
const retry = time.Second

// Run does the parts. It starts again, from the first thing that is not done, where the connection is lost.
func (j *Job) Run(ctx context.Context) (Result, error) {
	began := time.Now()
	var before Result
	for {
		w := &work{Job: *j, connect: j.Connect, log: j.Log, open: map[string]*pgx.Conn{}, result: before}
		err := w.do(ctx)
		w.close()
		before = Result{
			Rebuilt: w.result.Rebuilt, Checked: w.result.Checked, Broken: w.result.Broken,
			Analyzed: w.result.Analyzed, Updated: w.result.Updated,
		}
		code := sql.Code(err)
		lost := err != nil && (code == "" || transient(code)) && !errors.Is(err, errFull) && !errors.Is(err, errForeign)
		if w.record != nil {
			began = time.Now() // it was there: the patience is for a server that is not
		}
		if !lost || ctx.Err() != nil || time.Since(began) > j.Patience {
			if err != nil {
				w.result.Error = sql.Explain(err, sql.ShownCode)
			}
			w.result.Done = err == nil
			w.result.bound()
			return w.result, err
		}
		j.Log.Info("not yet, trying again", "reason", err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}

// do does all that is not done yet.
func (w *work) do(ctx context.Context) error {
	var err error
	if w.main, err = w.connect(ctx, maintenance); err != nil {
		return err
	}
	if err := lock(ctx, w.main); err != nil {
		return err
	}
	if err := w.tell(ctx, Progress{}); err != nil {
		return err
	}
	if w.record, err = openRecord(ctx, w.main); err != nil {
		return err
	}
	if w.databases, err = databases(ctx, w.main); err != nil {
		return err
	}
	for _, part := range []Part{Statistics, Indexes, Extensions} {
		if !w.wants(part) {
			continue
		}
		if err := map[Part]func(context.Context) error{
			Statistics: w.makeStatistics, Indexes: w.rebuildIndexes, Extensions: w.updateExtensions,
		}[part](ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *work) wants(part Part) bool {
	for _, p := range w.Parts {
		if p == part {
			return true
		}
	}
	return false
}

// errBusy is waited out: the other Job ends, or its session does.
var errBusy = errors.New("another Job of the same kind is at work")

// lock keeps a second Job out while this session lasts.
func lock(ctx context.Context, conn *pgx.Conn) error {
	const key = 0x746f62616e66 // "tobanf"
	held, err := sql.Value[bool](ctx, conn, "lock out other Jobs", "select pg_try_advisory_lock($1)", int64(key))
	if err != nil {
		return err
	}
	if !held {
		return errBusy
	}
	return nil
}

// in is the session in a database.
func (w *work) in(ctx context.Context, database string) (*pgx.Conn, error) {
	if conn := w.open[database]; conn != nil && !conn.IsClosed() {
		return conn, nil
	}
	conn, err := w.connect(ctx, database)
	if err != nil {
		return nil, err
	}
	w.open[database] = conn
	return conn, nil
}

// tell says how far the work is, in the name of its session: the agent sees it there, and it ends with the session.
func (w *work) tell(ctx context.Context, p Progress) error {
	return sql.Do(ctx, w.main, "say how far the work is", "select set_config('application_name', $1, false)",
		application+p.String())
}

func (w *work) passed(point string) {
	if w.At != nil {
		w.At(point)
	}
}

func (w *work) close() {
	for _, conn := range w.open {
		sql.HangUp(conn)
	}
	if w.main != nil {
		sql.HangUp(w.main)
	}
}
