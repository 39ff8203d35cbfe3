package restore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/wal"
)

func (r *Recovery) putHistory(ctx context.Context, object string) error {
	stored, err := transfer.Download(ctx, r.Bucket, object, historyLimit)
	if err != nil {
		return err
	}
	content, err := format.Decode(r.Decoder, object, stored, historyLimit)
	if err != nil {
		return err
	}
	plain, _, _ := format.PlainName(filepath.Base(object))
	return putFile(r.WAL, plain, content)
}

// putFile writes a file that appears whole: the server may look at any time. It need not be
// on disk: after a crash it is fetched again.
func putFile(folder, name string, content []byte) error {
	temporary := filepath.Join(folder, ".toban."+name)
	if err := os.WriteFile(temporary, content, 0o600); err != nil {
		return fmt.Errorf("put %s there: %w", name, err)
	}
	if err := os.Rename(temporary, filepath.Join(folder, name)); err != nil {
		return fmt.Errorf("put %s there: %w", name, err)
	}
	return nil
}

// feed puts segments there, in order but side by side, each as soon as the limit
// allows it, until stop says so or all are.
func (r *Recovery) feed(ctx context.Context, stop func(index int) bool) error {
	group, grouped := errgroup.WithContext(ctx)
	group.SetLimit(r.Workers)
	for r.next < len(r.Plan.Segments) && !stop(r.next) {
		if err := r.awaitLimit(grouped, r.Plan.Segments[r.next].Segment.Start()); err != nil {
			break // the group knows why, or ctx, or what follows is withheld
		}
		index, before, after := r.next, r.before, make(chan struct{})
		r.next, r.before = index+1, after
		group.Go(func() error {
			put, err := r.putSegment(grouped, r.Plan.Segments[index], before, after)
			if put {
				r.finished(index)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (r *Recovery) finished(index int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.done[index] = true
	for r.done[r.fed] {
		delete(r.done, r.fed)
		r.fed++
	}
}

func (r *Recovery) raise(limit wal.LSN) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if limit > r.limit {
		r.limit = limit
		close(r.moved)
		r.moved = make(chan struct{})
	}
}

func (r *Recovery) awaitLimit(ctx context.Context, start wal.LSN) error {
	for {
		r.mutex.Lock()
		limit, moved, withheld := r.limit, r.moved, r.withheld
		r.mutex.Unlock()
		if withheld != nil {
			return withheld
		}
		if start < limit {
			return ctx.Err()
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// segments reads the WAL of the plan.
func (r *Recovery) segments() book.SegmentReader {
	return book.SegmentReader{Bucket: r.Bucket, Decoder: r.Decoder, System: r.Backup.SystemIdentifier, Again: r.Again}
}

// putSegment puts a segment where the server looks for it, when it is known of all before it which tablespaces they
// make; then it closes after. What is withheld is not put there.
func (r *Recovery) putSegment(ctx context.Context, s book.PlannedSegment, before <-chan struct{}, after chan<- struct{},
) (put bool, err error) {
	content, err := r.segments().Read(ctx, s)
	if err != nil {
		return false, err
	}
	select {
	case <-before:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if put = r.isWithheld() == nil; put && r.Tablespace != nil {
		if content, err = r.withhold(s.Segment.Start(), content); err != nil {
			return false, err
		}
		put = len(content) > 0
	}
	close(after)
	if !put {
		return false, nil
	}
	return true, putFile(r.WAL, s.File, content)
}

// withhold is the content of a segment up to where a tablespace is made that may not be, with zeros behind it: nothing
// follows there for the server. It is empty where the record that makes it began before. A server that has to replay it
// before it is consistent is of no use: then it is an error. What was made before the backup began is not replayed.
func (r *Recovery) withhold(start wal.LSN, content []byte) ([]byte, error) {
	for _, t := range r.tablespaces.Segment(start, content) {
		if t.Begin < r.Backup.StartLSN {
			continue
		}
		err := r.Tablespace(t)
		switch {
		case err == nil:
			continue
		case t.Begin < r.Backup.StopLSN:
			return nil, err
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		r.withheld = err
		close(r.moved) // the feed ends
		r.moved = make(chan struct{})
		if t.Begin < start {
			return nil, nil
		}
		clear(content[t.Begin.Since(start):])
		return content, nil
	}
	return content, nil
}

// isWithheld is why WAL is withheld from the server, nil while none is.
func (r *Recovery) isWithheld() error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.withheld
}

// Position is what a server in recovery says of itself.
type Position struct {
	InRecovery bool
	// LSN is the end of the last record replayed, 0 if it is not known. Before the server takes connections,
	// it may be the start of the segment that it reads.
	LSN wal.LSN
	// Waits says that it waits for more WAL, Paused that it does not go on by itself.
	Waits, Paused bool
	Commit        time.Time
}

// Replayer is a server in recovery. An error means that nothing is known.
type Replayer interface {
	Position(ctx context.Context) (Position, error)
}

// The times of Run.
const (
	lookInterval  = 100 * time.Millisecond
	stuckPatience = 30 * time.Second
	// silentPatience is how long a server may replay one segment before it takes connections.
	silentPatience = 10 * time.Minute
)
