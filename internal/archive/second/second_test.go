package second

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/keep/keeptest"
	"toban.dev/internal/wal"
)

// listing is one of names, each with a size after a colon, 1 without.
func listing(names ...string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		slices.Sort(names)
		for _, text := range names {
			name, size, _ := strings.Cut(text, ":")
			o := bucket.Object{Name: name, Size: 1}
			if size != "" {
				_, _ = fmt.Sscan(size, &o.Size)
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// inOrder are the objects of a plan in the order in which they are copied.
func (p Plan) inOrder() (names []string) {
	for _, t := range p.Terms {
		for _, o := range t.Notes {
			names = append(names, o.Name)
		}
		for _, w := range t.WAL {
			names = append(names, w.Object.Name)
		}
	}
	for _, b := range p.Backups {
		for _, o := range b.Objects {
			names = append(names, o.Name)
		}
		if b.Note.Name != "" {
			names = append(names, b.Note.Name)
		}
	}
	return names
}

func TestWhatIsCopiedAndInWhichOrder(t *testing.T) {
	const (
		lineage1, lineage2 = "wal/00000001/lineage.json", "wal/00000002/lineage.json"
		segment3           = "wal/00000001/000000010000000000000003.zst"
		part4a             = "wal/00000001/000000010000000000000004.00000000-00000100.zst"
		part4b             = "wal/00000001/000000010000000000000004.00000100-00000200.zst"
		late               = "wal/00000002/000000020000000000000004.zst"
		history            = "wal/00000002/00000002.history.zst"
		gap                = "wal/00000002/gap-0000000003000000-0000000004000000"
		b1, piece1         = "base/b1/backup.json", "base/b1/base.tar.00000.zst"
		b2, piece2         = "base/b2/backup.json", "base/b2/base.tar.00000.zst"
		manifest2          = "base/b2/backup_manifest.zst"
	)
	all := []string{format.FileArchive, lineage1, lineage2, segment3, part4a, part4b, late, history, gap, b1, piece1,
		b2,
		piece2, manifest2}
	for name, c := range map[string]struct {
		archive, copied []string
		want            []string
		alone, differ   []string
	}{
		"all, the WAL first, and each backup.json last": {
			all, []string{FileCopy, format.FileArchive},
			[]string{lineage1, segment3, part4a, part4b, lineage2, history, gap, late,
				piece1, b1, manifest2, piece2, b2}, nil, nil},
		"nothing where the copy has all": {all, append(slices.Clone(all), FileCopy), nil, nil, nil},
		"what is missing, where it was cut off": {
			all, []string{FileCopy, format.FileArchive, lineage1, segment3, part4a, piece1, b1, piece2},
			[]string{part4b, lineage2, history, gap, late, manifest2, b2}, nil, nil},
		"what the copy has lost of a backup": {
			all, slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == piece2 }),
			[]string{piece2}, nil, nil},
		"no backup that has not ended": {
			[]string{format.FileArchive, piece1, piece2, b2}, []string{format.FileArchive},
			[]string{piece2, b2}, nil, nil},
		"nothing that has a name which nobody knows": {
			[]string{format.FileArchive, "probe-x", "wal/00000001/what", "else/x"}, []string{format.FileArchive},
			nil, nil, nil},
		"what only the copy has is known": {
			[]string{format.FileArchive, lineage1},
			[]string{format.FileArchive, FileCopy, lineage1, segment3, b1, piece1}, nil,
			[]string{segment3, b1, piece1}, nil},
		"what differs is named, and not touched": {
			[]string{format.FileArchive, segment3 + ":7", part4a}, []string{format.FileArchive, segment3 + ":8"},
			[]string{part4a}, nil, []string{segment3}},
		"an archive that is empty": {nil, []string{FileCopy, b1}, nil, []string{b1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := PlanCopy(listing(c.archive...), listing(c.copied...))
			if err != nil {
				t.Fatal(err)
			}
			if got := p.inOrder(); !slices.Equal(got, c.want) {
				t.Errorf("it copies\n%s\nwanted\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			for _, name := range c.alone {
				if !p.Alone[name] {
					t.Errorf("it does not know that only the copy has %s", name)
				}
			}
			if len(p.Alone) != len(c.alone) || !slices.Equal(p.Differ, c.differ) {
				t.Errorf("only the copy has %v, and %v differ", p.Alone, p.Differ)
			}
		})
	}
}

func TestAListingThatBreaksOffIsNoPlan(t *testing.T) {
	broken := errors.New("the connection was lost")
	off := func(yield func(bucket.Object, error) bool) {
		_ = yield(bucket.Object{Name: format.FileArchive, Size: 1}, nil) && yield(bucket.Object{}, broken)
	}
	if _, err := PlanCopy(off, listing(format.FileArchive)); !errors.Is(err, broken) {
		t.Errorf("of the archive: %v", err)
	}
	if _, err := PlanCopy(listing(format.FileArchive), off); !errors.Is(err, broken) {
		t.Errorf("of the copy: %v", err)
	}
}

// copying is an archive with its copy.
type copying struct {
	*keeptest.Written
	copy   *buckettest.Memory
	policy keep.Policy
}

func newCopying(t *testing.T) *copying {
	s := keeptest.NewWritten(t, nil)
	if err := format.Claim(t.Context(), s.Bucket, archivetest.Owner); err != nil {
		t.Fatal(err)
	}
	c := &copying{s, buckettest.NewMemory(), keep.Policy{Count: 2, Now: s.Bucket.Clock.Add(2 * time.Hour)}}
	c.copy.Clock = s.Bucket.Clock
	return c
}

func (c *copying) run() (State, error) {
	return Copy(c.Context(), Options{
		First: c.Bucket, Second: c.copy, Owner: archivetest.Owner.UID, Policy: c.policy,
	})
}

func (c *copying) mustRun() State {
	c.Helper()
	state, err := c.run()
	if err != nil {
		c.Fatal(err)
	}
	return state
}

// seeRestorable fails where something of a copy could not be restored.
func seeRestorable(t *testing.T, b *buckettest.Memory) book.Catalogue {
	t.Helper()
	return keeptest.SeeRestorable(t, b, LacksWAL)
}

// TestACopyThatIsCutOffGoesOn ends a run before and after each of its writes. Whatever was copied by then can be
// restored, reaches no less far than before, and nothing is copied twice.
func TestACopyThatIsCutOffGoesOn(t *testing.T) {
	for _, after := range []bool{false, true} {
		for cut := 1; cutOff(t, cut, after); cut++ {
			if t.Failed() {
				t.Fatalf("at the write %d, after it: %v", cut, after)
			}
		}
	}
}

// cutOff ends a run at a write, and has another one go on; false where the run has fewer writes.
func cutOff(t *testing.T, cut int, after bool) bool {
	t.Helper()
	c := newCopying(t)
	killed := errors.New("killed")
	var writes atomic.Int64 // objects are copied side by side
	c.copy.Fault = func(bool) error {
		if writes.Load() >= int64(cut) {
			return killed
		}
		return nil
	}
	counting := &writing{
		Memory: c.copy, wrote: map[string]int{}, before: func() { writes.Add(1) }, after: after,
	}
	options := Options{First: c.Bucket, Second: counting, Owner: archivetest.Owner.UID, Policy: c.policy}
	_, err := Copy(t.Context(), options)
	reach := reachOf(seeRestorable(t, c.copy))
	c.copy.Fault = func(bool) error { return nil }
	if err == nil {
		if cut < len(c.Bucket.Objects) {
			t.Errorf("it has ended after %d writes, of %d objects", cut, len(c.Bucket.Objects))
		}
		return false
	}
	state, err := Copy(t.Context(), options)
	left := keeptest.Missing(c.Bucket, c.copy)
	if err != nil || len(left) > 0 || len(state.Problems) > 0 || state.Until.IsZero() {
		t.Errorf("it lacks %v, %+v, %v", left, state, err)
	}
	if now := reachOf(seeRestorable(t, c.copy)); now < reach || now != reachOf(seeRestorable(t, c.Bucket)) {
		t.Errorf("it reaches to %s, and has reached to %s", now, reach)
	}
	for name, times := range counting.wrote {
		if times > 1 {
			t.Errorf("%s was copied %d times", name, times)
		}
	}
	return true
}

// reachOf is up to where an archive can be restored, 0 for nowhere.
func reachOf(c book.Catalogue) wal.LSN {
	w, _ := c.Window(c.NewestTermHistory())
	return w.To
}

// writing counts what is created in a bucket, and calls before each time. after: what is to fail fails when it was
// done.
type writing struct {
	*buckettest.Memory
	wrote  map[string]int
	before func()
	after  bool
}

func (w *writing) Create(ctx context.Context, name string, content []byte) error {
	if !w.after {
		w.before()
	}
	err := w.Memory.Create(ctx, name, content)
	if w.after {
		w.before()
		if err == nil {
			w.Mutex.Lock()
			err = w.Fault(true)
			w.Mutex.Unlock()
		}
	}
	w.Mutex.Lock()
	defer w.Mutex.Unlock()
	if _, there := w.Objects[name]; there && !strings.HasPrefix(name, "probe-") && !errors.Is(err, bucket.ErrExists) {
		w.wrote[name]++
	}
	return err
}

func TestWhatGoesFromACopy(t *testing.T) {
	gone := func(prefix string) func(*copying) {
		return func(c *copying) {
			for name := range c.Bucket.Objects {
				if strings.HasPrefix(name, prefix) {
					delete(c.Bucket.Objects, name)
				}
			}
		}
	}
	third := func(c *copying) { // a backup more, so that of two only the newer ones are kept
		c.Backup("b3", 8)
		c.policy.Now = c.Bucket.Clock.Add(2 * time.Hour)
	}
	for name, c := range map[string]struct {
		change  []func(*copying)
		backups string
		lost    []string
		wrong   error
	}{
		"nothing where nothing has changed":  {nil, "b1 b2", nil, nil},
		"nothing where the archive is empty": {[]func(*copying){gone("")}, "b1 b2", nil, ErrNoArchive},
		"nothing where it does not say any more whose it is": {
			[]func(*copying){gone(format.FileArchive)}, "b1 b2", nil, ErrNoArchive},
		"nothing where all but that has gone, and it is said": {
			[]func(*copying){gone("base/"), gone("wal/")}, "b1 b2", []string{"b1", "b2"}, nil},
		"nothing where a backup has gone that is to be kept": {
			[]func(*copying){gone("base/b2/")}, "b1 b2", []string{"b2"}, nil},
		"nothing of what the archive still has": {[]func(*copying){third}, "b1 b2 b3", nil, nil},
		"what retention has removed":            {[]func(*copying){third, gone("base/b1/")}, "b2 b3", nil, nil},
		"no more than that, where others have gone too": {
			[]func(*copying){third, gone("base/b1/"), gone("base/b2/")}, "b2 b3", []string{"b2"}, nil},
		"nothing of a backup of which the archive has lost some": {
			[]func(*copying){third, gone("base/b1/base")}, "b1 b2 b3", nil, nil},
		"nothing of the WAL of a backup that the archive has": {
			[]func(*copying){third, gone("wal/00000001/000000010000000000000003")}, "b1 b2 b3", nil, nil},
		"what goes is not that of a pinned one": {
			[]func(*copying){third, gone("base/b1/"), func(c *copying) { c.policy.Pinned = []string{"b1"} }},
			"b1 b2 b3", []string{"b1"}, nil},
		"nothing where there is no policy": {
			[]func(*copying){third, gone("base/b1/"), func(c *copying) { c.policy.Count = 0 }}, "b1 b2 b3", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCopying(t)
			x.mustRun()
			for _, change := range c.change {
				change(x)
			}
			state, err := x.run()
			if !errors.Is(err, c.wrong) {
				t.Fatalf("it says %v", err)
			}
			var there []string
			for _, b := range seeRestorable(t, x.copy).Backups {
				there = append(there, b.ID)
			}
			if strings.Join(there, " ") != c.backups || !slices.Equal(state.Lost, c.lost) {
				t.Errorf("the copy has %v, and the archive has lost %v", there, state.Lost)
			}
		})
	}
}

func TestAStoreThatDoesNotLetBeRemovedKeepsNothingFromBeingCopied(t *testing.T) {
	c := newCopying(t)
	c.mustRun()
	c.Backup("b3", 8)
	c.policy.Now = c.Bucket.Clock.Add(2 * time.Hour)
	for name := range c.Bucket.Objects {
		if strings.HasPrefix(name, "base/b1/") {
			delete(c.Bucket.Objects, name)
		}
	}
	state, err := Copy(t.Context(), Options{First: c.Bucket, Second: guardedCopy{c.copy},
		Owner: archivetest.Owner.UID, Policy: c.policy})
	if err != nil || state.Refused == "" || state.Until.IsZero() || len(keeptest.Missing(c.Bucket, c.copy)) > 0 {
		t.Errorf("%+v, %v", state, err)
	}
}

// In a store that is full what need not be kept makes room for what is new. What must be kept does not.
func TestACopyThatIsFullMakesRoom(t *testing.T) {
	for _, kept := range []bool{false, true} {
		c := newCopying(t)
		c.mustRun()
		c.Backup("b3", 8)
		c.policy.Now = c.Bucket.Clock.Add(2 * time.Hour)
		if !kept { // somebody keeps less, for want of room
			c.policy.Count = 1
		}
		for name := range c.Bucket.Objects {
			if strings.HasPrefix(name, "base/b1/") {
				delete(c.Bucket.Objects, name)
			}
		}
		limited := &fullCopy{c.copy, len(c.copy.Objects)}
		state, err := Copy(t.Context(), Options{First: c.Bucket, Second: limited,
			Owner:  archivetest.Owner.UID,
			Policy: c.policy})
		if there := len(seeRestorable(t, c.copy).Backups); there != 2 || kept != errors.Is(err, bucket.ErrFull) ||
			kept == (len(keeptest.Missing(c.Bucket, c.copy)) == 0) {
			t.Errorf("kept %v: it has %d backups: %+v, %v", kept, there, state, err)
		}
	}
}

// fullCopy has room for so many objects.
type fullCopy struct {
	*buckettest.Memory
	room int
}

func (f *fullCopy) Create(ctx context.Context, name string, content []byte) error {
	f.Mutex.Lock()
	_, there := f.Objects[name]
	full := !there && len(f.Objects) >= f.room
	f.Mutex.Unlock()
	if full {
		return bucket.ErrFull
	}
	return f.Memory.Create(ctx, name, content)
}

// guardedCopy lets nothing be removed.
type guardedCopy struct{ *buckettest.Memory }

func (guardedCopy) Delete(context.Context, ...string) error { return bucket.ErrDenied }

func TestWhereNoCopyIsMade(t *testing.T) {
	c := newCopying(t)
	if _, err := Copy(t.Context(), Options{First: c.Bucket, Second: c.Bucket,
		Owner:  archivetest.Owner.UID,
		Policy: c.policy}); !errors.Is(err, ErrNoCopy) {
		t.Errorf("the first store is taken for its copy: %v", err)
	}
	if len(c.Bucket.Objects) == 0 || c.Bucket.Objects[FileCopy].Content != nil {
		t.Error("something was written there, or removed")
	}
	other := newCopying(t)
	owner := archivetest.Owner
	owner.UID = "another"
	c.copy.Objects[FileCopy] = buckettest.Stored{Content: []byte(`{"format":1,"uid":"another","systemIdentifier":"7"}`)}
	if _, err := c.run(); !errors.Is(err, ErrNoCopy) {
		t.Errorf("another's copy is taken: %v", err)
	}
	if _, err := Copy(t.Context(), Options{First: other.Bucket, Second: other.copy, Owner: owner.UID,
		Policy: c.policy}); !errors.Is(err, format.ErrTaken) {
		t.Errorf("another's archive is copied: %v", err)
	}
	if len(other.copy.Objects) > 0 {
		t.Error("something of it was written")
	}
}

// What is broken in the archive is not copied, and a backup that needs it is not announced. The rest is.
func TestWhatIsBrokenIsNotCopied(t *testing.T) {
	for name, c := range map[string]struct {
		object  string
		change  func([]byte) []byte
		backups string
	}{
		"a piece":                 {"base/b2/base.tar.00001.zst", keeptest.Flip, "b1"},
		"a manifest":              {"base/b1/backup_manifest.zst", keeptest.Cut, "b2"},
		"WAL that a backup needs": {"wal/00000001/000000010000000000000006.", keeptest.Flip, "b1"},
		"WAL that none needs":     {"wal/00000001/000000010000000000000009.", keeptest.Flip, "b1 b2"},
		"what WAL continues":      {"wal/00000001/lineage.json", keeptest.Cut, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newCopying(t)
			c.object = x.Names(c.object)[0]
			x.Change(c.object, c.change)
			state := x.mustRun()
			var there []string
			for _, b := range seeRestorable(t, x.copy).Backups {
				there = append(there, b.ID)
			}
			if strings.Join(there, " ") != c.backups {
				t.Errorf("the copy has the backups %v", there)
			}
			if _, ok := x.copy.Objects[c.object]; ok || !state.Until.IsZero() ||
				!strings.Contains(strings.Join(state.Problems, "\n"), c.object) {
				t.Errorf("%s: %+v", c.object, state)
			}
		})
	}
}

// An archive that is encrypted is copied as it is, without a key.
func TestAnEncryptedArchiveIsCopiedAsItIs(t *testing.T) {
	s := keeptest.NewWritten(t, archivetest.Keys[0])
	if err := format.Claim(t.Context(), s.Bucket, archivetest.Owner); err != nil {
		t.Fatal(err)
	}
	c := &copying{s, buckettest.NewMemory(), keep.Policy{Count: 2, Now: s.Bucket.Clock.Add(2 * time.Hour)}}
	state := c.mustRun()
	if left := keeptest.Missing(c.Bucket, c.copy); len(left) > 0 || state.Until.IsZero() {
		t.Errorf("it lacks %v: %+v", left, state)
	}
	name := c.Names("wal/00000001/000000010000000000000009.")[0]
	delete(c.copy.Objects, name)
	c.Change(name, func(content []byte) []byte { return content[8:] })
	if state := c.mustRun(); len(state.Problems) != 1 || !strings.Contains(state.Problems[0], name) {
		t.Errorf("what does not begin as age begins: %+v", state)
	}
}

// The archive of a former major version goes from the copy when the rules say so, and no sooner.
func TestACopyOfAFormerArchive(t *testing.T) {
	c := newCopying(t)
	c.policy.Newer = map[string]int{"schedule": 1}
	c.mustRun()
	clear(c.Bucket.Objects) // retention has removed all of it, or somebody else
	if state := c.mustRun(); state.Removed > 0 && !slices.Contains(state.Lost, "b2") {
		t.Errorf("one more is to be kept: %+v", state)
	}
	if there := seeRestorable(t, c.copy).Backups; len(there) == 0 || there[len(there)-1].ID != "b2" {
		t.Errorf("the copy has %v", there)
	}
	c.policy.Newer = map[string]int{"schedule": 2}
	for range 3 {
		c.mustRun()
	}
	if len(c.copy.Objects) > 0 {
		t.Errorf("the copy still has %v", c.copy.Objects)
	}
}
