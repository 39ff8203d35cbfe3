package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// archive is where backups and WAL go: a folder.
type archive struct {
	bucket   bucket.Bucket
	encoder  *format.Encoder
	decoder  *format.Decoder
	source   *source
	archiver *write.Archiver
	last     format.Backup
	log      io.Writer
	system   string // the identifier of the database system
}

func (b *bench) openArchive(ctx context.Context) error {
	session, err := b.server.Connect(ctx)
	if err != nil {
		return err
	}
	encoder, err := format.NewEncoder("")
	if err != nil {
		return err
	}
	control, err := b.server.Control(ctx)
	if err != nil {
		return err
	}
	b.archive = &archive{system: control.SystemIdentifier, bucket: bucket.OpenFolder(b.at("bucket")), encoder: encoder,
		decoder: &format.Decoder{}, log: io.Discard, source: &source{b.server, session}}
	return b.emptyArchive(ctx)
}

// emptyArchive begins the archive anew, with the WAL from now on.
func (b *bench) emptyArchive(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(b.at("bucket")), os.MkdirAll(b.at("bucket"), 0o700)); err != nil {
		return err
	}
	return b.archive.begin(ctx)
}

// begin is an archiver that has not looked yet. The term history begins where the WAL is now.
func (a *archive) begin(ctx context.Context) error {
	now, err := a.source.Flushed(ctx)
	if err != nil {
		return err
	}
	a.archiver, err = write.NewArchiver(write.ArchiverOptions{
		Bucket: a.bucket, Encoder: a.encoder, Source: a.source,
		Owner:       format.Owner{UID: "bench", Namespace: "bench", Name: "bench", SystemIdentifier: a.system},
		TermHistory: []ha.TermStart{{Term: 1, LSN: now / wal.SegmentSize * wal.SegmentSize, Timeline: 1}},
	})
	return err
}

// upTo archives until an LSN is in the archive.
func (a *archive) upTo(ctx context.Context, lsn wal.LSN) error {
	for a.archiver.State().Archived < lsn {
		if _, err := a.archiver.Step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// source is the WAL of the server.
type source struct {
	server  *postgres.Server
	session *postgres.Session
}

// Flushed is of write.Source.
func (s *source) Flushed(ctx context.Context) (wal.LSN, error) {
	return s.session.FlushedWAL(ctx)
}

// Oldest is of write.Source.
func (s *source) Oldest(ctx context.Context) (wal.LSN, error) {
	return s.session.OldestWAL(ctx)
}

// Open is of write.Source.
func (s *source) Open(name string) (write.File, error) { return s.server.Data.WAL().Open(name) }

// History is of write.Source; the first timeline has none.
func (s *source) History(wal.Timeline) ([]byte, error) { return nil, os.ErrNotExist }

// catchUp measures how fast WAL gets into the archive that has waited.
func (b *bench) catchUp(ctx context.Context) error {
	if err := b.emptyArchive(ctx); err != nil {
		return err
	}
	from, err := b.archive.source.Flushed(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "writing %d GiB of WAL\n", b.wal)
	to := from
	for i := 0; to < from+wal.LSN(b.wal)<<30; i++ {
		if err := b.tool(ctx, "pgbench", "--no-vacuum", "--client=4", "--transactions=2000",
			"--builtin=simple-update"); err != nil {
			return err
		}
		sql := fmt.Sprintf("create table w%d as select i, md5(i::text) from generate_series(1, 2000000) "+
			"i; drop table w%d", i, i)
		if err := b.tool(ctx, "psql", "--quiet", "--command", sql); err != nil {
			return err
		}
		if to, err = b.archive.source.Flushed(ctx); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := b.archive.upTo(ctx, to); err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("\ncatching up with %d MB of WAL: %.1f s, %.0f MB/s\n",
		(to-from)/1e6, took.Seconds(), float64(to-from)/1e6/took.Seconds())
	return nil
}

// lag measures how far behind the archive is while pgbench writes.
func (b *bench) lag(ctx context.Context) error {
	begin, err := b.archive.source.Flushed(ctx)
	if err != nil {
		return err
	}
	archiving, stop := context.WithCancel(ctx)
	defer stop()
	go b.archive.archiver.Run(archiving, 500*time.Millisecond)
	ended := make(chan error, 1)
	go func() {
		ended <- b.tool(ctx, "pgbench", "--no-vacuum", "--client=4", fmt.Sprintf("--time=%d", int(b.load.Seconds())))
	}()
	var lags []time.Duration
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			end := b.archive.archiver.State().Flushed
			slices.Sort(lags)
			at := func(share float64) float64 { return lags[int(float64(len(lags)-1)*share)].Seconds() }
			fmt.Printf("lag under pgbench, %d MB of WAL in %s: p50 %.2f s, p99 %.2f s, most %.2f s (%d samples)\n",
				(end-begin)/1e6, b.load, at(0.5), at(0.99), at(1), len(lags))
			return err
		case <-tick.C:
			lag := time.Duration(0)
			if s := b.archive.archiver.State(); s.Lag() > 0 && !s.ArchivedAt.IsZero() {
				lag = time.Since(s.ArchivedAt)
			}
			lags = append(lags, lag)
		}
	}
}
