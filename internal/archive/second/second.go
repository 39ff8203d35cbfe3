// Package second copies an archive to a second store, and removes from the copy what need not be kept. It is an annex
// (docs/packages.md, "Core and annexes").
package second

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/wal"
)

const (
	// secondWorkers is how many objects are copied side by side: each takes up to 64 MiB of memory.
	secondWorkers = 4
	// secondTries is how often both stores are compared anew: because an object went before it could be copied, as
	// retention removes some, or because there is room now.
	secondTries = 3
	// mostLost and mostProblems bound what a run tells.
	mostLost, mostProblems = 8, 8
)

// errAnew says that both stores are to be compared anew.
var errAnew = errors.New("the stores have changed since they were listed")

// ErrNoArchive says that there is no archive of the SampleDB where one should be.
var ErrNoArchive = errors.New("there is no archive of this SampleDB")

// ErrNoCopy says that a folder in the second store is none that a copy may be made in.
var ErrNoCopy = errors.New("the folder in the second store is no copy of this archive: it is another archive, or the " +
	"first store itself. Give backup.secondStore another bucket or another prefix")

// Options say what is copied.
type Options struct {
	// First and Second are rooted at the archive and at its copy.
	First, Second bucket.Bucket
	// Owner is the UID of the SampleDB.
	Owner string
	// Policy is what is kept in the copy. Now is before the stores are listed. Newer is set for the archive of a former
	// major version: one that the first store does not have any more is only cleaned then.
	Policy keep.Policy
	// Listed is a moment before the stores are listed, by the clock of who copies; Policy.Now where it is zero, which
	// may be earlier: as old as it can be.
	Listed time.Time
	// Tell is called with how much was copied, and how much is to be.
	Tell func(done, total Amount)
}

// Amount is an amount of objects.
type Amount struct {
	Objects int
	Bytes   int64
}

func (a *Amount) add(size int64) { a.Objects++; a.Bytes += size }

// State is what a run has come to.
type State struct {
	// Copied is how much was. Until is when the first store was listed of which the copy has everything then, zero
	// where it lacks something or can't be restored, LSN up to where it can.
	Copied Amount
	Until  time.Time
	LSN    wal.LSN
	// Removed is how many objects were removed from the copy, Refused what the second store did not let be removed.
	Removed int
	Refused string
	// Lost are backups that only the copy has, of many the first. Problems is what was not copied, and why.
	Lost     []string
	Problems []string
	// Restorable is how many backups of each kind can be restored from the copy.
	Restorable map[string]int
}

// Copy copies what the second store lacks of an archive, and removes from it what need not be kept
// (docs/store.md, "A second store"). A run that is cut off has left a copy that can be restored.
func Copy(ctx context.Context, o Options) (State, error) {
	s := &second{Options: o}
	former := o.Policy.Newer != nil
	owner, err := readOwnerOf(ctx, o.First, o.Owner)
	switch {
	case errors.Is(err, ErrNoArchive) && former:
		if _, err = readOwnerOf(ctx, o.Second, o.Owner); errors.Is(err, ErrNoArchive) {
			return s.state, s.forget(ctx)
		}
	case err == nil:
		err = s.claim(ctx, owner)
	}
	if err != nil {
		return s.state, err
	}
	for try := 1; ; try++ {
		s.state.Problems, s.total = nil, Amount{}
		err := s.run(ctx)
		if err == nil || !errors.Is(err, errAnew) || try == secondTries {
			return s.state, err
		}
	}
}

// second is such a run.
type second struct {
	Options
	mutex sync.Mutex
	state State
	total Amount
}

// readOwnerOf reads whose archive it is, and sees that it is this SampleDB's.
func readOwnerOf(ctx context.Context, b bucket.Bucket, uid string) (format.Owner, error) {
	owner, err := format.ReadOwner(ctx, b)
	switch {
	case errors.Is(err, bucket.ErrNotExist):
		return owner, fmt.Errorf("%w: %s is missing", ErrNoArchive, format.FileArchive)
	case err != nil:
		return owner, err
	case owner.UID != uid:
		return owner, &format.TakenError{Owner: owner}
	}
	return owner, nil
}

// claim begins a copy, or sees that there is one (invariant 14). The first store is no copy: it has no copy.json.
func (s *second) claim(ctx context.Context, owner format.Owner) error {
	text, err := format.ReadWhole(ctx, s.Second, FileCopy)
	if errors.Is(err, bucket.ErrNotExist) {
		for o, err := range s.Second.List(ctx, "") {
			if err != nil {
				return fmt.Errorf("list the copy: %w", err)
			}
			return fmt.Errorf("%w (it has %s, and no %s)", ErrNoCopy, o.Name, FileCopy)
		}
		if text, err = json.Marshal(format.Owner{Format: format.Version, UID: owner.UID, Namespace: owner.Namespace,
			Name: owner.Name, SystemIdentifier: owner.SystemIdentifier}); err == nil {
			err = s.Second.Create(ctx, FileCopy, text)
		}
	}
	if err != nil {
		return fmt.Errorf("begin the copy: %w", err)
	}
	there, err := format.ParseOwner(text)
	if err != nil {
		return fmt.Errorf("read %s: %w", FileCopy, err)
	}
	if there.Same(owner) != nil {
		return fmt.Errorf("%w (it is the copy of %s)", ErrNoCopy, there)
	}
	return format.Reclaim(ctx, s.Second, owner) // copy.json says the same
}

// run compares both stores, copies, looks at the copy as a restore would, and removes.
func (s *second) run(ctx context.Context) error {
	plan, err := PlanCopy(s.First.List(ctx, ""), s.Second.List(ctx, ""))
	if err != nil {
		return err
	}
	for _, name := range plan.Differ {
		s.problem(fmt.Sprintf("%s has another size in the copy: remove the one that is wrong", name))
	}
	s.count(plan)
	full := s.copyAll(ctx, plan)
	if full != nil && !errors.Is(full, bucket.ErrFull) {
		return full
	}
	copied, err := book.Read(ctx, s.Second)
	if err != nil {
		return err
	}
	if full != nil {
		return s.makeRoom(ctx, copied, plan, full)
	}
	s.state.Restorable = copied.Restorable()
	if w, ok := copied.Window(copied.NewestTermHistory()); ok {
		s.state.LSN = w.To
		if len(s.state.Problems) == 0 {
			s.state.Until = s.Policy.Now
			if !s.Listed.IsZero() {
				s.state.Until = s.Listed
			}
		}
	}
	return s.remove(ctx, copied, plan)
}

// copyAll copies in the order of the plan.
func (s *second) copyAll(ctx context.Context, plan Plan) error {
	for _, t := range plan.Terms {
		if err := s.copyTerm(ctx, t); err != nil {
			return err
		}
	}
	return s.copyBackups(ctx, plan)
}

// makeRoom removes from a store that is full what need not be kept, so that the rest can be copied.
func (s *second) makeRoom(ctx context.Context, copied book.Catalogue, plan Plan, full error) error {
	before := s.state.Removed
	if err := s.remove(ctx, copied, plan); err != nil || s.state.Removed == before {
		return errors.Join(full, err)
	}
	return fmt.Errorf("%w: %w", errAnew, full)
}

// count is how much is to be copied.
func (s *second) count(plan Plan) {
	for _, t := range plan.Terms {
		for _, o := range t.Notes {
			s.total.add(o.Size)
		}
		for _, w := range t.WAL {
			s.total.add(w.Object.Size)
		}
	}
	for _, b := range plan.Backups {
		for _, o := range b.Objects {
			s.total.add(o.Size)
		}
		if b.Note.Name != "" {
			s.total.add(b.Note.Size)
		}
	}
	s.total.Objects += s.state.Copied.Objects
	s.total.Bytes += s.state.Copied.Bytes
}

// copyTerm copies what a term's WAL continues, and then the WAL.
func (s *second) copyTerm(ctx context.Context, t Term) error {
	for _, o := range t.Notes {
		if err := s.copyWAL(ctx, o); err != nil {
			return err
		}
	}
	var all []bucket.Object
	for _, w := range t.WAL {
		all = append(all, w.Object)
	}
	return s.each(ctx, all, s.copyWAL)
}

// each copies objects side by side, and begins in their order.
func (s *second) each(
	ctx context.Context, all []bucket.Object, one func(context.Context, bucket.Object) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(secondWorkers)
	for _, o := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return one(ctx, o) })
	}
	return group.Wait()
}

func (s *second) copyWAL(ctx context.Context, o bucket.Object) error {
	return s.copyObject(ctx, o, func(stored []byte) error { return checkCopied(o.Name, stored) })
}

// copyObject copies an object if it is what was written. One that is not is left out, and named.
func (s *second) copyObject(ctx context.Context, o bucket.Object, check func(stored []byte) error) error {
	stored, err := format.ReadMost(ctx, s.First, o.Name, bucket.MaxObject+1)
	if errors.Is(err, bucket.ErrNotExist) {
		return fmt.Errorf("%w: %s has gone", errAnew, o.Name)
	}
	if err != nil {
		return fmt.Errorf("read from the first store: %w", err)
	}
	if int64(len(stored)) != o.Size {
		err = &format.ObjectError{Name: o.Name, What: format.Truncated,
			Err: fmt.Errorf("it has %d of its %d bytes", len(stored), o.Size)}
	} else {
		err = check(stored)
	}
	var broken *format.ObjectError
	if errors.As(err, &broken) {
		s.problem("it is broken in the first store: " + broken.Error())
		return nil
	}
	if err != nil {
		return err
	}
	return s.create(ctx, o.Name, stored)
}

// create writes an object of the copy (invariant 13).
func (s *second) create(ctx context.Context, name string, stored []byte) error {
	err := s.Second.Create(ctx, name, stored)
	if errors.Is(err, bucket.ErrExists) {
		there, readErr := format.ReadMost(ctx, s.Second, name, bucket.MaxObject+1)
		if readErr == nil && bytes.Equal(there, stored) {
			return nil
		}
		if readErr == nil {
			s.problem(name + " differs in the copy: remove the one that is wrong")
			return nil
		}
		err = readErr
	}
	if err != nil {
		return fmt.Errorf("write to the second store: %s: %w", name, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.state.Copied.add(int64(len(stored)))
	if s.Tell != nil {
		s.Tell(s.state.Copied, s.total)
	}
	return nil
}

// problem notes what was not copied, of many the first.
func (s *second) problem(words string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.state.Problems) < mostProblems {
		s.state.Problems = append(s.state.Problems, words)
	}
}

// copyBackups copies the backups that can be restored with the WAL that the copy has (invariant 15).
func (s *second) copyBackups(ctx context.Context, plan Plan) error {
	if len(plan.Backups) == 0 {
		return nil
	}
	copied, err := book.ReadWAL(ctx, s.Second)
	if err != nil {
		return err
	}
	for _, b := range plan.Backups {
		why, err := s.copyBackup(ctx, b, copied, plan.Copied)
		if err != nil {
			return err
		}
		if why != "" {
			s.problem(fmt.Sprintf("the backup %s is not in the copy: %s", b.ID, why))
		}
	}
	return nil
}

// copyBackup copies one, and says why it can't be restored from the copy, "" where it can.
func (s *second) copyBackup(
	ctx context.Context, todo Backup, copied book.Catalogue, announced map[string]bool,
) (why string, err error) {
	note := format.FolderBase + todo.ID + "/" + format.FileBackup
	text, err := format.ReadMost(ctx, s.First, note, bucket.MaxObject)
	if errors.Is(err, bucket.ErrNotExist) {
		return "", fmt.Errorf("%w: %s has gone", errAnew, note)
	}
	if err != nil {
		return "", fmt.Errorf("read from the first store: %w", err)
	}
	var b format.Backup
	if err := json.Unmarshal(text, &b); err != nil || b.ID != todo.ID {
		return fmt.Sprintf("its %s can't be understood (%v)", format.FileBackup, err), nil
	}
	if lacks := LacksWAL(copied, b); lacks != "" {
		return "the archive lacks WAL that it needs: " + lacks, nil
	}
	if b.Parent != "" && !announced[b.Parent] {
		return "it is the change from " + b.Parent + ", which is not there", nil
	}
	known, err := objectsByName(ctx, b, s.First)
	if err != nil {
		return s.broken(err)
	}
	objects := slices.DeleteFunc(slices.Clone(todo.Objects), func(o bucket.Object) bool {
		_, ok := known[o.Name]
		return !ok // nobody needs it
	})
	if err := s.each(ctx, objects, func(ctx context.Context, o bucket.Object) error {
		return s.copyObject(ctx, o, func(stored []byte) error { return known[o.Name].Check(o.Name, stored) })
	}); err != nil || todo.Note.Name == "" {
		return "", err
	}
	if lost, err := s.lacks(ctx, b.Folder(), known); err != nil || lost != "" {
		return "the archive has lost " + lost, err
	}
	announced[b.ID] = true
	return "", s.create(ctx, note, text)
}

// broken is what is wrong with an object, if the error is about one.
func (s *second) broken(err error) (string, error) {
	var object *format.ObjectError
	if errors.As(err, &object) {
		return object.Error(), nil
	}
	return "", err
}

// lacks is an object of a backup that the copy does not have, "" for none.
func (s *second) lacks(ctx context.Context, folder string, known map[string]format.Object) (string, error) {
	left := map[string]bool{}
	for name := range known {
		left[name] = true
	}
	for o, err := range s.Second.List(ctx, folder) {
		if err != nil {
			return "", fmt.Errorf("list the copy: %w", err)
		}
		if o.Size == known[o.Name].Size {
			delete(left, o.Name)
		}
	}
	for name := range left {
		return name, nil
	}
	return "", nil
}

// objectsByName are all objects of a backup, by their names in the archive.
func objectsByName(ctx context.Context, b format.Backup, from bucket.Bucket) (map[string]format.Object, error) {
	all := map[string]format.Object{}
	for o, err := range book.Parts(ctx, b, from) {
		if err != nil {
			return nil, err
		}
		all[b.Folder()+o.Name] = o.Object
	}
	return all, nil
}

// remove removes from the copy what need not be kept.
func (s *second) remove(ctx context.Context, copied book.Catalogue, plan Plan) error {
	removal := PlanRemoval(copied, plan, s.Policy)
	s.state.Lost = removal.Lost[:min(len(removal.Lost), mostLost)]
	for _, batch := range keep.Batches(removal.Names) {
		err := s.Second.Delete(ctx, batch...)
		if errors.Is(err, bucket.ErrDenied) {
			s.state.Refused = fmt.Sprintf("the second store refuses to remove what is not to be kept (%v)", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("remove from the second store: %w", err)
		}
		s.state.Removed += len(batch)
	}
	return nil
}

// forget removes what says that there was a copy of an archive of which nothing is left.
func (s *second) forget(ctx context.Context) error {
	if err := s.Second.Delete(ctx, FileCopy); err != nil && !errors.Is(err, bucket.ErrDenied) {
		return fmt.Errorf("remove from the second store: %w", err)
	}
	return nil
}
