// Package scrub reads all that is in an archive again within a period, a part each time. It is an annex
// (docs/packages.md, "Core and annexes").
package scrub

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/wal"
)

const (
	// mostFindings bounds how many broken objects are remembered. Where there are more, no further ones are read.
	mostFindings = 8
	// firstShare is for how long the first run reads as much as if the last had been so long ago.
	firstShare = 7 * 24 * time.Hour
	// underWay is for how long WAL may still be on its way that comes before what is there.
	underWay = time.Hour
)

// errKeyOfObject says that an object is none that the key opens.
var errKeyOfObject = errors.New("the key does not open it")

// Finding is an object that is not what was written, or WAL that is not there.
type Finding struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
	// Newest says that the newest backup, or WAL from it on, can't be restored because of it.
	Newest bool `json:"newest,omitempty"`
}

// State is what one run leaves for the next. Its zero value is that before the first.
type State struct {
	// Position is from where on the next run reads: objects lie on a ring, each at the hash of its name. So every run
	// reads a sample of the whole archive, and what is written or removed meanwhile changes nobody's place.
	Position uint64
	// At is when the last run began, Round when the ring was last begun with. Whole is since when every object that
	// was there has been read, zero before the first round has ended.
	At, Round, Whole time.Time
	// Findings are what was found broken, of many the first; More is how many there are besides.
	Findings []Finding
	More     int
	// Objects and Bytes are how many the last run has read, Total the size of all that there is to read.
	Objects      int
	Bytes, Total int64
}

// Options say what is read again.
type Options struct {
	// Bucket is rooted at the archive.
	Bucket  bucket.Bucket
	Decoder *format.Decoder
	// Secret is what only the database system knows, by which its encrypted WAL is stamped. Without it no stamps are
	// compared.
	Secret []byte
	// Period is within which every object is to be read. Budget is how many bytes a run may read, 0 for as many as
	// that takes. It is exceeded by one object at most, and by those that were found broken before.
	Period time.Duration
	Budget int64
	// Pinned are the ids of backups that retention may have kept with the WAL that they need themselves alone.
	Pinned []string
	Now    time.Time
	// Workers read side by side; 0 is GOMAXPROCS.
	Workers int
}

type scrubbing struct {
	Options
	catalogue list
	state     State
	known     map[string]bool // found broken before
}

// candidate is an object to read.
type candidate struct {
	name   string
	offset uint64 // how far behind the position it lies on the ring
	size   int64
	check  func(context.Context) error
}

// ReadOn reads on in an archive where the last run has stopped, and sees that each object is what was written. What was
// found broken before is read again. The error says that it could not read; the state is then that up to there.
func ReadOn(ctx context.Context, o Options, last State) (State, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	s := &scrubbing{Options: o, known: map[string]bool{}}
	s.state = State{Position: last.Position, At: o.Now, Round: last.Round, Whole: last.Whole}
	if last.Round.IsZero() {
		s.state.Round = o.Now
	}
	for _, f := range last.Findings {
		s.known[f.Name] = true
	}
	err := s.run(ctx, last)
	if err != nil {
		// What was not looked at is as it was.
		last.Position, last.Round, last.Whole = s.state.Position, s.state.Round, s.state.Whole
		return last, fmt.Errorf("read the archive again: %w", err)
	}
	return s.state, nil
}

func (s *scrubbing) run(ctx context.Context, last State) error {
	catalogue, err := book.Read(ctx, s.Bucket)
	if err != nil {
		return err
	}
	s.catalogue = list{catalogue}
	if err := s.listed(ctx); err != nil {
		return err
	}
	width := share(last.At, s.Now, s.Period)
	again, next, err := s.choose(ctx, width)
	if err != nil {
		return err
	}
	if _, err := s.read(ctx, again); err != nil {
		return err
	}
	to, all := s.within(next, width)
	done, err := s.read(ctx, all)
	if done < len(all) { // up to the first that was not read
		s.advance(all[done].offset)
		return err
	}
	s.advance(to)
	return err
}

// share is how much of the ring a run reads, less one: one of as many parts as there are such times in the period.
func share(last, now time.Time, period time.Duration) uint64 {
	elapsed := firstShare
	if !last.IsZero() {
		elapsed = max(now.Sub(last), time.Minute)
	}
	parts := uint64(max(period/elapsed, 1))
	if parts == 1 {
		return math.MaxUint64
	}
	return math.MaxUint64/parts + 1
}

// onRing is where on the ring an object lies.
func onRing(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint64(sum[:])
}

// choose lists what was found broken before, and what is next on the ring, in its order.
func (s *scrubbing) choose(ctx context.Context, width uint64) (again, next []candidate, err error) {
	for c, err := range s.candidates(ctx) {
		if err != nil {
			if err := s.note(err); err != nil {
				return nil, nil, err
			}
			continue
		}
		s.state.Total += c.size
		c.offset = onRing(c.name) - s.state.Position
		switch {
		case s.known[c.name]:
			again = append(again, c)
		case c.offset <= width:
			next = append(next, c)
		}
	}
	slices.SortFunc(next, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.offset, b.offset), cmp.Compare(a.name, b.name))
	})
	return again, next, nil
}

// within are those of the next objects that the budget allows, and how far on the ring that leads.
func (s *scrubbing) within(next []candidate, width uint64) (to uint64, all []candidate) {
	size := int64(0)
	for i, c := range next {
		if s.Budget > 0 && size >= s.Budget {
			return c.offset - 1, next[:i]
		}
		size += c.size
	}
	return width, next
}

// advance moves the position behind an offset. A round ends where the ring does.
func (s *scrubbing) advance(offset uint64) {
	from := s.state.Position
	s.state.Position = from + offset + 1
	if s.state.Position <= from { // once around, at most
		s.state.Whole, s.state.Round = s.state.Round, s.Now
	}
}

// read reads objects side by side, and says how many were: not all where it fails, or where too much is broken.
func (s *scrubbing) read(ctx context.Context, all []candidate) (done int, err error) {
	for some := range slices.Chunk(all, s.Workers) {
		if len(s.state.Findings) >= mostFindings && !s.known[some[0].name] {
			return done, nil
		}
		errs := make([]error, len(some))
		var group errgroup.Group
		for i, c := range some {
			group.Go(func() error { errs[i] = c.check(ctx); return ctx.Err() })
		}
		if err := group.Wait(); err != nil {
			return done, err
		}
		for i, c := range some {
			if err := s.confirm(ctx, errs[i]); err != nil {
				return done, err
			}
			done++
			s.state.Objects++
			s.state.Bytes += c.size
		}
	}
	return done, nil
}

// confirm notes what is wrong with an object, unless it was removed meanwhile, as retention does.
func (s *scrubbing) confirm(ctx context.Context, problem error) error {
	var object *format.ObjectError
	if errors.As(problem, &object) && object.What == format.Missing {
		there, err := s.stillNeeded(ctx, object.Name)
		if err != nil || !there {
			return err
		}
	}
	return s.note(problem)
}

// stillNeeded says that an object which can't be had is not one that was removed: of a backup there is still its
// backup.json, which goes first; WAL is still in the listing.
func (s *scrubbing) stillNeeded(ctx context.Context, name string) (bool, error) {
	if id, ok := format.BackupOf(name); ok {
		_, err := transfer.Download(ctx, s.Bucket, format.FolderBase+id+"/"+format.FileBackup, format.SmallLimit)
		var object *format.ObjectError
		if errors.As(err, &object) {
			return false, nil
		}
		return err == nil, err
	}
	for o, err := range s.Bucket.List(ctx, name) {
		return err == nil && o.Name == name, err
	}
	return false, nil
}

// note adds a finding; an error that is about no object is given back.
func (s *scrubbing) note(problem error) error {
	var object *format.ObjectError
	if problem == nil {
		return nil
	}
	if !errors.As(problem, &object) {
		return problem
	}
	what := object.What
	if object.Err != nil {
		what += ": " + object.Err.Error()
	}
	s.find(Finding{object.Name, what, s.catalogue.touchesNewest(object.Name)})
	return nil
}

func (s *scrubbing) find(f Finding) {
	switch {
	case slices.ContainsFunc(s.state.Findings, func(o Finding) bool { return o.Name == f.Name }):
	case len(s.state.Findings) >= mostFindings:
		s.state.More++
	default:
		s.state.Findings = append(s.state.Findings, f)
	}
}

// candidates are all objects whose content is checked. What is read to list them is a finding where it is broken.
func (s *scrubbing) candidates(ctx context.Context) iter.Seq2[candidate, error] {
	return func(yield func(candidate, error) bool) {
		for _, b := range s.catalogue.Backups {
			if !s.ofBackup(ctx, b, yield) {
				return
			}
		}
		for _, term := range s.catalogue.Terms {
			if !s.ofTerm(term, yield) {
				return
			}
		}
	}
}

func (s *scrubbing) ofBackup(ctx context.Context, b format.Backup, yield func(candidate, error) bool) bool {
	for o, err := range book.Parts(ctx, b, s.Bucket) {
		if err == nil && o.List {
			continue // that its pieces are known is its check
		}
		var c candidate
		if err == nil {
			c = candidate{name: b.Folder() + o.Name, size: o.Size, check: func(ctx context.Context) error {
				_, err := book.ReadStored(ctx, s.Bucket, b.Folder(), o.Object)
				return err
			}}
		}
		if !yield(c, err) {
			return false
		}
	}
	return true
}

func (s *scrubbing) ofTerm(t *book.Term, yield func(candidate, error) bool) bool {
	for _, w := range t.WAL {
		if !yield(candidate{name: w.Object.Name, size: w.Object.Size, check: func(ctx context.Context) error {
			return s.checkWAL(ctx, w)
		}}, nil) {
			return false
		}
	}
	for timeline, o := range t.Histories {
		if !yield(candidate{name: o.Name, size: o.Size, check: func(ctx context.Context) error {
			_, err := s.open(ctx, o.Name, timeline.HistoryFile())
			return err
		}}, nil) {
			return false
		}
	}
	return true
}

// checkWAL sees that an object has the WAL of its place.
func (s *scrubbing) checkWAL(ctx context.Context, w book.WAL) error {
	content, err := s.open(ctx, w.Object.Name, w.Piece.String())
	if err != nil {
		return err
	}
	return format.CheckWAL(w.Object.Name, w.Piece, content)
}

// open reads an object that is compressed, and compares its stamp if it has one.
func (s *scrubbing) open(ctx context.Context, name, plain string) ([]byte, error) {
	stored, err := transfer.Download(ctx, s.Bucket, name, format.SealedLimit)
	if err != nil {
		return nil, err
	}
	content, err := format.Decode(s.Decoder, name, stored, wal.SegmentSize)
	var object *format.ObjectError
	if err != nil && !errors.As(err, &object) {
		return nil, &format.ObjectError{Name: name, What: format.Altered,
			Err: fmt.Errorf("%w: %w", errKeyOfObject, err)}
	}
	if err != nil {
		return nil, err
	}
	there, here := format.StampOf(stored), format.StampWith(s.Secret, plain, content)
	if there != "" && here != "" && !hmac.Equal([]byte(there), []byte(here)) {
		return nil, &format.ObjectError{Name: name, What: format.Altered,
			Err: errors.New("its stamp is not that of the database which wrote it")}
	}
	return content, nil
}
