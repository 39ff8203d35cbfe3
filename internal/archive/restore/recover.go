package restore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/wal"
)

// RecoverOptions say which WAL a server is given.
type RecoverOptions struct {
	// Bucket is rooted at the archive.
	Bucket  bucket.Bucket
	Decoder *format.Decoder
	// Plan is the WAL from the start of the backup to the target.
	Plan book.WALPlan
	// Again, if set, plans a segment anew of which an object is gone: while the archive is written to, a part
	// is replaced by a longer one.
	Again func(ctx context.Context, s wal.Segment) ([]book.PlannedObject, error)
	// Backup is what the server begins with.
	Backup format.Backup
	// WAL is the folder pg_wal.
	WAL    string
	Target book.Target
	// From is where a recovery goes on that was interrupted: segments before that are not put
	// there again. 0 for a new one.
	From wal.LSN
	// Ahead is how many segments are put there beyond the replay; 0 is 32, which is 512 MiB.
	Ahead uint64
	// Workers download side by side; 0 is Streams. Each needs about 70 MiB.
	Workers int
	// Tablespace, if set, is called with each tablespace that the WAL makes, before the server can replay that. Where
	// it returns an error, the WAL from there on is withheld from the server; the recovery ends with that error, unless
	// the target comes before.
	Tablespace func(wal.Tablespace) error
	// Short says that a recovery to the end may end where WAL is withheld: it has been to its target.
	Short bool
	// Progress, if set, is called about ten times a second.
	Progress func(Recovered)
}

// Recovered is how far a recovery has come.
type Recovered struct {
	// LSN is the end of the last record replayed, 0 while the server does not say. Fed is up to where WAL
	// was put there without a hole, End where the plan ends.
	LSN, Fed, End wal.LSN
	// Commit is the time of the last transaction replayed, zero if there was none.
	Commit time.Time
	// Ended says that the server has left recovery: it has reached the target and was promoted.
	Ended bool
}

// since is how much is replayed of the WAL from an LSN on.
func (r Recovered) since(start wal.LSN) transfer.Progress {
	replayed, all := min(r.LSN.Since(start), math.MaxInt64), min(r.End.Since(start), math.MaxInt64)
	return transfer.Progress{Done: int64(replayed), Total: int64(all)}
}

// ShortError says that all WAL was replayed, and that the target is not in it. PostgreSQL then waits
// for more WAL for ever; promoted, it would end with "recovery ended before configured recovery target was
// reached" (xlogrecovery.c). For a time after the last transaction, the data is nevertheless what is wanted:
// start the server again with the settings of no target, and end there.
type ShortError struct {
	Target  book.Target
	Reached Recovered
}

// Error says how far it came.
func (e *ShortError) Error() string {
	last := "there was no transaction"
	if !e.Reached.Commit.IsZero() {
		last = "the last transaction is of " + e.Reached.Commit.UTC().Format(format.TimeFormat)
	}
	return fmt.Sprintf("all WAL up to %s is replayed, and %s was not reached: %s", e.Reached.LSN, e.Target, last)
}

// StuckError says that a server does not replay WAL that it has. That is broken, though its objects could be opened.
type StuckError struct {
	At      wal.LSN
	Objects []string
}

// Error names the objects.
func (e *StuckError) Error() string {
	return fmt.Sprintf("the server does not replay what follows %s: what it reads is made of %q", e.At, e.Objects)
}

// errPaused says that a server has paused its recovery. No target asks for that: it was configured with less than the
// primary had from there on (RecoveryRequiresIntParameter in xlogrecovery.c).
var errPaused = errors.New("the server has paused the replay")

// Recovery gives a server the WAL that it replays. Nothing is removed here: the server
// does that with what it has replayed, at its restartpoints.
type Recovery struct {
	RecoverOptions
	mutex sync.Mutex
	limit wal.LSN       // up to where segments may begin that are put there
	moved chan struct{} // closed when the limit is raised
	next  int           // the first segment that is not being put there yet
	done  map[int]bool  // by index in the plan
	fed   int           // the first that is not there, of those from the beginning
	// tablespaces goes through the segments by their order, before is closed when it has been through all before the
	// next one. withheld is why WAL is withheld, nil while none is.
	tablespaces wal.Tablespaces
	before      chan struct{}
	withheld    error
}

// NewRecovery plans; nothing is done yet.
func NewRecovery(o RecoverOptions) *Recovery {
	if o.Ahead == 0 {
		o.Ahead = 32
	}
	if o.Workers <= 0 {
		o.Workers = transfer.Streams()
	}
	r := &Recovery{
		RecoverOptions: o, moved: make(chan struct{}), done: map[int]bool{}, before: make(chan struct{}),
		tablespaces: wal.Tablespaces{Pages: format.Pages},
	}
	close(r.before)
	for r.next < len(o.Plan.Segments) && o.Plan.Segments[r.next].Segment.End() <= o.From {
		r.next++
	}
	r.fed = r.next
	return r
}

// Prepare puts there what the server looks for when it starts: the history files and the
// first segments. The server must not run.
func (r *Recovery) Prepare(ctx context.Context) error {
	for _, history := range r.Plan.Histories {
		if err := r.putHistory(ctx, history); err != nil {
			return fmt.Errorf("prepare the recovery: %w", err)
		}
	}
	first := max(r.Backup.StartLSN, r.From)
	if r.next < len(r.Plan.Segments) {
		first = max(first, r.Plan.Segments[r.next].Segment.Start())
	}
	r.raise(first.Add(wal.SegmentSize))
	if err := r.feed(ctx, func(index int) bool { return r.Plan.Segments[index].Segment.Start() > first }); err != nil {
		return fmt.Errorf("prepare the recovery: %w", err)
	}
	return nil
}

// historyLimit is how large a history file may be, in bytes.
const historyLimit = 1 << 20

// Run feeds a server that was started after Prepare, until it has left recovery at its
// target, or, where the target is the end, until all is replayed: then it is the caller's to promote it. An error
// is a *ShortError, a *StuckError, an *ObjectError, or why ctx has ended: it should be
// one of WhileRunning.
func (r *Recovery) Run(ctx context.Context, server Replayer) (Recovered, error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	// Nothing is put there any more when it returns: a restore that follows removes what is not of the backup.
	defer func() {
		cancel()
		<-ended
	}()
	// Before it is consistent, the server needs all up to the stop of the backup, and may not say how far it is.
	r.raise(r.Backup.StartLSN.Add(r.Ahead * wal.SegmentSize))
	fed := make(chan error, 1)
	go func() {
		defer close(ended)
		fed <- r.feed(ctx, func(int) bool { return false })
	}()
	reached, err := r.watch(ctx, server, fed)
	if err != nil {
		return reached, fmt.Errorf("recover to %s: %w", r.Target, err)
	}
	return reached, nil
}

func (r *Recovery) watch(ctx context.Context, server Replayer, fed chan error) (Recovered, error) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	end := waiting{recovery: r}
	reached := r.reached(Position{})
	for {
		select {
		case err := <-fed:
			if err != nil {
				return reached, err
			}
			end.allFed, fed = true, nil
		case <-ctx.Done():
			return reached, context.Cause(ctx)
		case <-ticker.C:
		}
		position, err := server.Position(ctx)
		if err != nil {
			continue // it does not answer yet; if its process has ended, ctx ends
		}
		r.raise(position.LSN.Add(r.Ahead * wal.SegmentSize))
		reached = r.reached(position)
		if r.Progress != nil {
			r.Progress(reached)
		}
		if over, err := end.poll(position); over || err != nil {
			return reached, err
		}
	}
}

// reached is the state of the recovery.
func (r *Recovery) reached(p Position) Recovered {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	at := Recovered{LSN: p.LSN, Commit: p.Commit, End: r.end(), Ended: p.LSN != 0 && !p.InRecovery}
	if r.fed < len(r.Plan.Segments) {
		at.Fed = r.Plan.Segments[r.fed].Segment.Start()
	} else {
		at.Fed = at.End
	}
	return at
}

// end is where the WAL of the plan ends.
func (r *Recovery) end() wal.LSN {
	if len(r.Plan.Segments) == 0 {
		return 0
	}
	last := r.Plan.Segments[len(r.Plan.Segments)-1]
	end := last.Segment.Start()
	for _, o := range last.Objects {
		end = max(end, last.Segment.Start().Add(uint64(o.To)))
	}
	return end
}

// waiting finds out whether the server has replayed all that it was given.
type waiting struct {
	recovery *Recovery
	allFed   bool
	at       wal.LSN
	since    time.Time
}

// poll says whether the recovery is over.
func (w *waiting) poll(p Position) (over bool, err error) {
	r := w.recovery
	if p.LSN != 0 && !p.InRecovery {
		return true, nil
	}
	if p.Paused {
		return false, errPaused
	}
	if !w.allFed || !p.Waits {
		if w.allFed && r.isWithheld() != nil && w.stays(p.LSN, silentPatience) { // it lets nobody in, and says no more
			return false, r.isWithheld()
		}
		if !w.allFed || r.isWithheld() == nil {
			w.since = time.Time{}
		}
		return false, nil
	}
	more, err := r.more(p.LSN)
	if err != nil {
		return false, err
	}
	if more { // it has not looked yet, or does not like what it sees
		return false, w.stuck(p.LSN)
	}
	return w.atEnd(p)
}

// atEnd says what it means that all is replayed that there is.
func (w *waiting) atEnd(p Position) (over bool, err error) {
	r := w.recovery
	withheld, short := r.isWithheld(), &ShortError{r.Target, r.reached(p)}
	switch {
	case withheld != nil && r.Target.LSN != 0 && p.LSN >= r.Target.LSN:
		return false, short
	case withheld != nil && !r.Short:
		return false, withheld
	case r.Target.Latest():
		return true, nil
	}
	return false, short
}

// stays says that the server has stayed where it is for so long.
func (w *waiting) stays(at wal.LSN, patience time.Duration) bool {
	if w.since.IsZero() || w.at != at {
		w.at, w.since = at, time.Now()
	}
	return time.Since(w.since) >= patience
}

// stuck is an error when the server has stayed where it is for long.
func (w *waiting) stuck(at wal.LSN) error {
	if !w.stays(at, stuckPatience) {
		return nil
	}
	if err := w.recovery.isWithheld(); err != nil {
		return err
	}
	e := &StuckError{At: at}
	for _, s := range w.recovery.Plan.Segments {
		if s.Segment.Start() <= at && at < s.Segment.End() {
			for _, o := range s.Objects {
				e.Objects = append(e.Objects, o.Name)
			}
		}
	}
	return e
}

// more says whether a whole record follows an LSN in the WAL that was put there. The wait of the server alone does not
// prove that there is none: it waits before it looks again.
func (r *Recovery) more(at wal.LSN) (bool, error) {
	more, err := r.recordFollows(at)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil // replayed and removed: there is more
	}
	if err != nil {
		return false, fmt.Errorf("look for the end of WAL: %w", err)
	}
	return more, nil
}

// recordFollows is more. A record begins with its length (xlogrecord.h); behind the last there are zeros, or the end of
// the plan. One may have been cut off by a crash: then others follow, on the page that overwrites it.
func (r *Recovery) recordFollows(at wal.LSN) (bool, error) {
	begin, end := format.Pages.Record(at), r.end()
	head, err := r.word(begin)
	if err != nil || head == nil {
		return false, err
	}
	length := binary.LittleEndian.Uint32(head)
	if length == 0 {
		return false, nil
	}
	last := format.Pages.RecordEnd(begin, length)
	page, err := format.Pages.Overwritten(begin, min(last, end), r.word)
	if err != nil || page == 0 {
		return err == nil && last <= end, err
	}
	return r.recordFollows(page)
}

// word is what four bytes of WAL there are from an LSN on, nil where the plan has none.
func (r *Recovery) word(at wal.LSN) ([]byte, error) {
	const length = wal.OverwritesHead
	if at.Add(length) > r.end() {
		return nil, nil
	}
	for _, s := range slices.Backward(r.Plan.Segments) {
		if at < s.Segment.Start() || at >= s.Segment.End() {
			continue
		}
		file, err := os.Open(filepath.Join(r.WAL, s.File))
		if err != nil {
			return nil, err
		}
		defer file.Close()
		var word [length]byte
		_, err = file.ReadAt(word[:], int64(at-s.Segment.Start())) //nolint:gosec // less than a segment
		return word[:], err
	}
	return nil, nil
}
