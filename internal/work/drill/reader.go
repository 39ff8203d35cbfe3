package drill

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// reader reads from one standby which the newest row of a client is, and sees how old that answer is.
type reader struct {
	way   Way
	table string
	of    *client

	mutex  sync.Mutex
	counts bool // from when on it counts
	seen   Client
}

// run reads until ctx ends.
func (r *reader) run(ctx context.Context) { r.way.again(ctx, readEvery, r.read, r.failed) }

// read asks once. An instance that is a primary by now answers as a primary does: that is none of a standby.
func (r *reader) read(ctx context.Context, conn *pgx.Conn, _ int64) error {
	asked := time.Now()
	var standby bool
	var newest int64
	err := conn.QueryRow(ctx, "SELECT pg_is_in_recovery(), (SELECT coalesce(max(n), 0) FROM "+r.table+
		" WHERE way = $1)", r.of.way.Name).Scan(&standby, &newest)
	if err != nil {
		return fmt.Errorf("read the newest row of a standby: %w", err)
	}
	age := r.of.age(newest, asked)
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.counts || !standby {
		return nil
	}
	if r.seen.Reads++; age > 0 {
		r.seen.StaleReads++
	}
	r.seen.Staleness = max(r.seen.Staleness, age)
	return nil
}

func (r *reader) failed(ctx context.Context, err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if ctx.Err() != nil || !r.counts {
		return
	}
	if r.seen.Errors++; r.seen.FirstError == "" {
		r.seen.FirstError = err.Error()
	}
}

// begin has what is read count from now on.
func (r *reader) begin() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.counts = true
}

// ofStandbys is what all of them have seen, as one.
func ofStandbys(readers []*reader) Client {
	out := Client{Way: wayStandbys}
	for _, r := range readers {
		r.mutex.Lock()
		out.Reads, out.StaleReads = out.Reads+r.seen.Reads, out.StaleReads+r.seen.StaleReads
		out.Staleness, out.Errors = max(out.Staleness, r.seen.Staleness), out.Errors+r.seen.Errors
		if out.FirstError == "" {
			out.FirstError = r.seen.FirstError
		}
		r.mutex.Unlock()
	}
	return out
}
