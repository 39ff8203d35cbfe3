package drill

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// guardEvery is how often the query is asked that says when to give up.
const guardEvery = time.Second

// guard asks a query of the user beside the clients. A query that can't be asked says nothing.
type guard struct {
	way   Way
	query string
	said  atomic.Bool
}

// run asks until ctx ends.
func (g *guard) run(ctx context.Context) {
	g.way.again(ctx, guardEvery, g.ask, func(context.Context, error) {})
}

// ask asks once, in a transaction that can't write: pgx sends one statement at a time, so it can't end that.
func (g *guard) ask(ctx context.Context, conn *pgx.Conn, _ int64) error {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("ask when to give up: %w", err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var yes *bool
	err = tx.QueryRow(ctx, g.query).Scan(&yes)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("ask when to give up: %w", err)
	}
	if yes != nil && *yes {
		g.said.Store(true)
	}
	return nil
}

// guard is who asks the query of the user, nil where there is none. It is asked once before anything else, so that one
// that can't be answered is told of before something is broken.
func (d *drill) guard(ctx context.Context) (*guard, error) {
	if d.AbortWhen == "" {
		return nil, nil //nolint:nilnil // nobody asks
	}
	g := &guard{way: d.Ways[min(1, len(d.Ways)-1)], query: d.AbortWhen}
	var refused error
	err := d.retry(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := g.ask(ctx, conn, 0)
		if err != nil && !conn.IsClosed() { // the server has answered: it will not do so otherwise
			refused = fmt.Errorf("the query of spec.abortWhen can't be used: %w", err)
			return nil
		}
		return err
	})
	return g, errors.Join(err, refused)
}

// givesUp says that the query has said so.
func (g *guard) givesUp() bool { return g != nil && g.said.Load() }
