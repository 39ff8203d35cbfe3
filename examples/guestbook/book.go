package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// attempt bounds one try of something short: a server whose node is gone does not say so.
	attempt = 2 * time.Second
	// firstPause and lastPause are between two tries.
	firstPause, lastPause = 50 * time.Millisecond, time.Second
	// shown is how many entries a page has.
	shown = 100
)

// PostgreSQL's words for what is decided upon here.
const (
	undefinedTable   = "42P01"
	uniqueViolation  = "23505"
	readOnly         = "25006" // a standby, or a primary that has handed over
	lockNotAvailable = "55P03"
	oneEntryEach     = "one_entry_each"
)

// entry is what a visitor has left.
type entry struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Message string    `json:"message"`
	Place   string    `json:"place,omitempty"`
	At      time.Time `json:"at"`
}

// errWrittenAlready is version 3's answer to a second entry.
var errWrittenAlready = errors.New("there is an entry of that name already")

// book is the guest book in its database.
type book struct {
	pool    *pgxpool.Pool
	version int
	// patience is how long something is tried again.
	patience time.Duration
}

// dialer notices by itself, within some ten seconds, that a server is gone while a migration waits for it.
var dialer = net.Dialer{
	KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
}

// openBook prepares connections; the first one is made when it is needed, so that the database may come later.
func openBook(ctx context.Context, version int, patience time.Duration) (*book, error) {
	config, err := pgxpool.ParseConfig("") // PGHOST and the others
	if err != nil {
		return nil, fmt.Errorf("understand the PG… variables: %w", err)
	}
	if config.ConnConfig.ConnectTimeout == 0 || config.ConnConfig.ConnectTimeout > attempt {
		config.ConnConfig.ConnectTimeout = attempt
	}
	config.ConnConfig.DialFunc = dialer.DialContext
	config.ConnConfig.RuntimeParams["application_name"] = "guestbook"
	config.BeforeConnect = readAuthority
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("prepare connections: %w", err)
	}
	return &book{pool: pool, version: version, patience: patience}, nil
}

// readAuthority reads the file that PGSSLROOTCERT names for each connection, as libpq does: pgx itself reads it once,
// and would not know another authority before a restart.
func readAuthority(_ context.Context, config *pgx.ConnConfig) error {
	now, err := pgx.ParseConfig("")
	if err != nil {
		return fmt.Errorf("read the authority of the database: %w", err)
	}
	config.TLSConfig = now.TLSConfig
	return nil
}

func (b *book) close() { b.pool.Close() }

// hasPlace says whether this version knows where visitors come from.
func (b *book) hasPlace() bool { return b.version >= 2 }

// add writes an entry. Done again with the same id it changes nothing, so it is safe to repeat it when the
// answer to the first try got lost.
func (b *book) add(ctx context.Context, e entry) error {
	columns, values := "id, name, message", []any{e.ID, e.Name, e.Message}
	places := "$1, $2, $3"
	if b.hasPlace() {
		columns, places, values = columns+", place", places+", $4", append(values, e.Place)
	}
	insert := "INSERT INTO entry (" + columns + ") VALUES (" + places + ") ON CONFLICT (id) DO NOTHING"
	err := b.retry(ctx, briefly(func(ctx context.Context) error {
		_, err := b.pool.Exec(ctx, insert, values...)
		return err
	}))
	var refused *pgconn.PgError
	if errors.As(err, &refused) && refused.Code == uniqueViolation && refused.ConstraintName == oneEntryEach {
		return errWrittenAlready
	}
	if err != nil {
		return fmt.Errorf("write the entry: %w", err)
	}
	return nil
}

// newest are the last entries, the newest first.
func (b *book) newest(ctx context.Context) ([]entry, error) {
	place := "''"
	if b.hasPlace() {
		place = "place"
	}
	query := "SELECT id, name, message, " + place + ", written_at FROM entry ORDER BY written_at DESC, id LIMIT $1"
	var all []entry
	err := b.retry(ctx, briefly(func(ctx context.Context) error {
		rows, err := b.pool.Query(ctx, query, shown)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
		return err
	}))
	if err != nil {
		return nil, fmt.Errorf("read the entries: %w", err)
	}
	return all, nil
}

// ready is nil when the database answers and has the schema that this version needs.
func (b *book) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	newest, err := b.schema(ctx)
	if err != nil {
		return err
	}
	if newest < b.version {
		return fmt.Errorf("the schema has version %d and this is version %d: run guestbook migrate", newest, b.version)
	}
	return nil
}

// retry does something again and again while it fails for a reason that passes. It must be something that can
// be done twice: after an error nobody knows whether a COMMIT happened.
func (b *book) retry(ctx context.Context, do func(context.Context) error) error {
	end := time.Now().Add(b.patience)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do(ctx)
		if err == nil || !passes(err) || ctx.Err() != nil || time.Now().Add(pause).After(end) {
			return err
		}
		if gone(err) {
			b.pool.Reset() // the other connections lead to the same server
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// briefly bounds what is done.
func briefly(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, attempt)
		defer cancel()
		return do(ctx)
	}
}

// gone says whether an error means that the server is not the one to talk to any more. What PostgreSQL did not
// say itself is the network's.
func gone(err error) bool {
	var refused *pgconn.PgError
	return !errors.As(err, &refused) || refused.Code == readOnly
}

// passes says whether an error is one of a failover, a restart or a moment.
func passes(err error) bool {
	var refused *pgconn.PgError
	if gone(err) || !errors.As(err, &refused) {
		return true
	}
	class := refused.Code[:2]
	switch {
	case class == "08", class == "40", class == "53": // connection, deadlock, no room
		return true
	case strings.HasPrefix(refused.Code, "57P"): // it stops or starts
		return true
	}
	return refused.Code == lockNotAvailable
}

// is says whether PostgreSQL has refused something with a code.
func is(err error, code string) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == code
}
