// Command outage writes to any PostgreSQL server while somebody breaks it, and says for how long no write was
// acknowledged, and whether one that was is gone. It knows nothing of Toban, so that other operators can be measured
// by the same clients: docs/measurements.md. The server is that of the variables of psql (PGHOST, PGUSER, PGPASSWORD,
// …).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// pause is between two writes of one client.
	pause = 10 * time.Millisecond
	// impatience bounds one write, so that a connection to a server that is gone without a word is given up.
	impatience = 2 * time.Second
	// patience is for the look at the end: the server may still be on its way back.
	patience = 5 * time.Minute
	table    = "outage_acknowledged"
)

// ack is a row of which a client was told that it is committed.
type ack struct {
	client, row int
	at          time.Time
}

func main() {
	clients := flag.Int("clients", 4, "how many write")
	each := flag.Duration("for", time.Minute, "how long they write; Ctrl-C ends it earlier")
	fresh := flag.Bool("reconnect", false, "open a new connection for each write")
	flag.Parse()
	if err := run(*clients, *each, *fresh); err != nil {
		fmt.Fprintln(os.Stderr, "outage:", err)
		os.Exit(1)
	}
}

func run(clients int, each time.Duration, fresh bool) error {
	config, err := pgx.ParseConfig("")
	if err != nil {
		return fmt.Errorf("read the variables of psql: %w", err)
	}
	ctx := context.Background()
	err = with(ctx, config, "DROP TABLE IF EXISTS "+table, "CREATE TABLE "+table+
		" (client integer, row integer, PRIMARY KEY (client, row))")
	if err != nil {
		return fmt.Errorf("make the table %s (set PGHOST, PGUSER, PGPASSWORD and PGDATABASE): %w", table, err)
	}
	writing, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	writing, end := context.WithTimeout(writing, each)
	defer end()
	fmt.Fprintf(os.Stderr, "%d clients write for %v: break the server now\n", clients, each)
	acks := writeAll(writing, config, clients, fresh)
	lost, err := lookUp(ctx, config, acks)
	if err != nil {
		return err
	}
	gap, at := longestGap(acks)
	fmt.Printf("no write acknowledged for %.2f s, from %s on; %d acknowledged, %d of them lost\n",
		gap.Seconds(), at.Format("15:04:05.00"), len(acks), lost)
	if lost > 0 {
		return errors.New("acknowledged rows are lost")
	}
	return nil
}

// writeAll has clients write until the context ends.
func writeAll(ctx context.Context, config *pgx.ConnConfig, clients int, fresh bool) []ack {
	var all []ack
	var mutex sync.Mutex
	var group sync.WaitGroup
	for client := range clients {
		group.Go(func() {
			acks := write(ctx, config, client, fresh)
			mutex.Lock()
			defer mutex.Unlock()
			all = append(all, acks...)
		})
	}
	group.Wait()
	slices.SortFunc(all, func(a, b ack) int { return a.at.Compare(b.at) })
	return all
}

// write is one client: a row that fails may be there or not, and its number is not used again.
func write(ctx context.Context, config *pgx.ConnConfig, client int, fresh bool) []ack {
	var acks []ack
	var conn *pgx.Conn
	for row := 0; ctx.Err() == nil; row++ {
		once, cancel := context.WithTimeout(context.WithoutCancel(ctx), impatience)
		var err error
		if conn == nil {
			conn, err = pgx.ConnectConfig(once, config)
		}
		if err == nil {
			_, err = conn.Exec(once, "INSERT INTO "+table+" VALUES ($1, $2)", client, row)
		}
		if err == nil {
			acks = append(acks, ack{client, row, time.Now()})
		}
		if conn != nil && (fresh || err != nil) {
			_ = conn.Close(once) // it is broken, or not needed any more
			conn = nil
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return acks
}

// longestGap is the longest time between two acknowledged rows, and when it began.
func longestGap(acks []ack) (longest time.Duration, from time.Time) {
	for i := 1; i < len(acks); i++ {
		if gap := acks[i].at.Sub(acks[i-1].at); gap > longest {
			longest, from = gap, acks[i-1].at
		}
	}
	return longest, from
}

// lookUp counts the acknowledged rows that are not there.
func lookUp(ctx context.Context, config *pgx.ConnConfig, acks []ack) (lost int, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var there map[[2]int]bool
		if there, err = rows(ctx, config); err == nil {
			for _, a := range acks {
				if !there[[2]int{a.client, a.row}] {
					lost++
				}
			}
			return lost, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("look up the rows: %w", err)
		case <-time.After(time.Second):
		}
	}
}

func rows(ctx context.Context, config *pgx.ConnConfig) (map[[2]int]bool, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	found, err := conn.Query(ctx, "SELECT client, row FROM "+table)
	if err != nil {
		return nil, err
	}
	all := map[[2]int]bool{}
	var client, row int
	_, err = pgx.ForEachRow(found, []any{&client, &row}, func() error {
		all[[2]int{client, row}] = true
		return nil
	})
	return all, err
}

// with runs statements in one session.
func with(ctx context.Context, config *pgx.ConnConfig, statements ...string) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
