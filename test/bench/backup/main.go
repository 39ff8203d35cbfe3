// Command backup measures backups and restores of a database of a few GB against the machine's own
// limit, pg_basebackup and pgBackRest, and how fast WAL gets into the archive. It must not run as root,
// needs PostgreSQL's programs, pgbench, zstd and pgbackrest, and an otherwise idle machine:
// hack/bench-backup.sh sees to that.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"toban.dev/internal/postgres"
)

type options struct {
	scale, rounds, wal int
	load               time.Duration
	folder, plot       string
}

func main() {
	var o options
	flag.IntVar(&o.scale, "scale", 150, "pgbench's scale: 15 MB each")
	flag.IntVar(&o.rounds, "n", 3, "how often to back up and restore with each")
	flag.IntVar(&o.wal, "wal", 2, "how much WAL to catch up with, in GiB")
	flag.DurationVar(&o.load, "load", time.Minute, "for how long to measure the lag under pgbench")
	flag.StringVar(&o.folder, "folder", "/var/tmp/toban-bench",
		"folder for all, on the disk that is measured; it must not be there")
	flag.StringVar(&o.plot, "plot", "", "file for an SVG of the shares of the limits; none by default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "backup:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if err := os.Mkdir(o.folder, 0o700); err != nil {
		return fmt.Errorf("make a folder of its own: %w", err)
	}
	defer func() { _ = os.RemoveAll(o.folder) }()
	b := &bench{options: o}
	if err := b.begin(ctx); err != nil {
		return err
	}
	defer b.end(ctx)
	for _, step := range []func(context.Context) error{b.fill, b.roundsOfAll, b.catchUp, b.lag} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bench is one run.
type bench struct {
	options
	server  *postgres.Server
	process *postgres.Process
	archive *archive
	bytes   int64 // of the data directory without WAL
	times   []timed
}

// roundsOfAll measures each tool in turn, so that a slow change of the machine does not hit one alone.
func (b *bench) roundsOfAll(ctx context.Context) error {
	for i := range b.rounds {
		for _, m := range b.measures() {
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", i+1, b.rounds, m.name)
			if err := b.clean(); err != nil {
				return err
			}
			if m.prepare != nil {
				if err := m.prepare(ctx); err != nil {
					return fmt.Errorf("%s: %w", m.name, err)
				}
			}
			began := time.Now()
			if err := m.do(ctx); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			b.note(m, time.Since(began))
		}
	}
	return b.report()
}

// clean removes what was restored before, so that there is always as much room.
func (b *bench) clean() error {
	if err := os.RemoveAll(b.restored()); err != nil {
		return err
	}
	return os.MkdirAll(b.restored(), 0o700)
}

func (b *bench) restored() string { return filepath.Join(b.folder, "restored") }
