package outside

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Writer writes a numbered row every 10 ms over one connection, opens a new one
// when that breaks, and remembers every row of which it was told that it is
// committed.
type Writer struct {
	access Access
	acks   []ack
	// next is the number of the next row, and since how many were acknowledged before Resume.
	next  int64
	since int
	stop  context.CancelFunc
	done  chan struct{}
}

type ack struct {
	id int64
	at time.Time
}

const (
	writeEvery = 10 * time.Millisecond
	// writeTimeout bounds one write, so that a connection to a server that is gone
	// without a word is given up.
	writeTimeout = 2 * time.Second
)

// StartWriter makes the Writer's table anew and starts to write.
func StartWriter(ctx context.Context, access Access) (*Writer, error) {
	err := access.Patient().Do(ctx, "DROP TABLE IF EXISTS acknowledged; "+
		"CREATE TABLE acknowledged (id bigint PRIMARY KEY, at timestamptz DEFAULT now())")
	if err != nil {
		return nil, err
	}
	w := &Writer{access: access, next: 1}
	w.Resume(ctx)
	return w, nil
}

// Resume writes on, after Stop. What the Writer tells of rows and outages is then about what comes; lost are also rows
// of before.
func (w *Writer) Resume(ctx context.Context) {
	running, stop := context.WithCancel(ctx)
	w.since, w.stop, w.done = len(w.acks), stop, make(chan struct{})
	go w.run(running)
}

// Stop ends the writing and waits for its end.
func (w *Writer) Stop() {
	w.stop()
	<-w.done
}

func (w *Writer) run(ctx context.Context) {
	defer close(w.done)
	var conn *pgx.Conn
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for ; ; w.next++ {
		select {
		case <-ctx.Done():
			hangUp(conn)
			return
		case <-tick.C:
		}
		conn = w.write(ctx, conn, w.next)
	}
}

// write tries one row and returns the connection for the next one. A row that
// fails may be there or not; its number is not used again.
func (w *Writer) write(ctx context.Context, conn *pgx.Conn, id int64) *pgx.Conn {
	once, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if conn == nil {
		fresh, err := w.access.Connect(once)
		if err != nil {
			return nil
		}
		conn = fresh
	}
	if _, err := conn.Exec(once, "INSERT INTO acknowledged (id) VALUES ($1)", id); err != nil {
		hangUp(conn)
		return nil
	}
	w.acks = append(w.acks, ack{id: id, at: time.Now()})
	return conn
}

func hangUp(conn *pgx.Conn) {
	if conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx)
}

// Acknowledged is the number of rows of which the Writer was told that they are
// committed. Only after Stop.
func (w *Writer) Acknowledged() int { return len(w.acks) - w.since }

// Outage is the longest time between two acknowledged rows. Only after Stop.
func (w *Writer) Outage() time.Duration { return longestGap(w.acks[w.since:]) }

func longestGap(acks []ack) time.Duration {
	var longest time.Duration
	for i := 1; i < len(acks); i++ {
		longest = max(longest, acks[i].at.Sub(acks[i-1].at))
	}
	return longest
}

// Use has a Writer that was stopped look for its rows by another access: of another place, or with another password or
// authority.
func (w *Writer) Use(access Access) { w.access = access }

// Lost are the acknowledged rows that are not there. Only after Stop.
func (w *Writer) Lost(ctx context.Context) ([]int64, error) {
	conn, err := w.access.Patient().Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, "SELECT id FROM acknowledged")
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	return missing(w.acks, ids), nil
}

func missing(acks []ack, there []int64) []int64 {
	found := make(map[int64]bool, len(there))
	for _, id := range there {
		found[id] = true
	}
	var lost []int64
	for _, a := range acks {
		if !found[a.id] {
			lost = append(lost, a.id)
		}
	}
	return lost
}
