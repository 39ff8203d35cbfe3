package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

// What a Pod has waited for its node, or for the one before it, is no difference between clocks.
func TestAPodThatHasWaitedTakesNoClockForWrong(t *testing.T) {
	for name, c := range map[string]struct {
		waited, within time.Duration
		said           bool
	}{
		"it has waited a moment":               {time.Minute, 24 * time.Hour, false},
		"it has waited most of a day":          {23 * time.Hour, 24 * time.Hour, false},
		"its Job may take many days":           {200 * time.Hour, 300 * time.Hour, false},
		"its Job would have been ended before": {26 * time.Hour, 24 * time.Hour, true},
	} {
		p := pod.New(pod.Options{Asked: time.Now().Add(-c.waited), Within: c.within})
		_, differ := Policy(protocol.Retention{Days: 7}).ByClocks(ownClock, Clocks(&p)...)
		if (differ != "") != c.said {
			t.Errorf("%s: %q", name, differ)
		}
	}
}

// small is a bucket with room for so many bytes.
type small struct {
	bucket.Bucket
	room int64
}

func (s small) fits(ctx context.Context, more int) error {
	for o, err := range s.List(ctx, "") {
		if err != nil {
			return err
		}
		s.room -= o.Size
	}
	if s.room < int64(more) {
		return fmt.Errorf("write: %w", bucket.ErrFull)
	}
	return nil
}

func (s small) Put(ctx context.Context, name string, content []byte) error {
	if err := s.fits(ctx, len(content)); err != nil {
		return err
	}
	return s.Bucket.Put(ctx, name, content)
}

func (s small) Create(ctx context.Context, name string, content []byte) error {
	if err := s.fits(ctx, len(content)); err != nil {
		return err
	}
	return s.Bucket.Create(ctx, name, content)
}

// filled is an archive with a backup in every tenth of a hundred segments, that has no room for one more.
func filled(t *testing.T) small {
	t.Helper()
	folder := bucket.OpenFolder(t.TempDir())
	fill(t, folder, 10)
	s := small{Bucket: folder}
	for o, err := range folder.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		s.room += o.Size
	}
	return s
}

// fill writes an archive of a hundred segments, with a backup in every tenth, the oldest of so many first.
func fill(t *testing.T, folder bucket.Bucket, backups int) {
	t.Helper()
	fillAt(t, folder, backups, time.Now())
}

// fillAt does it at a time.
func fillAt(t *testing.T, folder bucket.Bucket, backups int, now time.Time) {
	t.Helper()
	put := func(name string, content []byte) {
		t.Helper()
		if err := folder.Put(t.Context(), name, content); err != nil {
			t.Fatal(err)
		}
	}
	term := format.TermFolder(1)
	put(term+format.FileLineage, []byte(`{"term": 1, "starts": [{"term": 1, "lsn": "0/0", "timeline": 1}]}`))
	for n := range uint64(100) {
		put(term+wal.Segment{Timeline: 1, Number: n, Size: wal.SegmentSize}.String()+".zst", make([]byte, 1000))
	}
	for i := range backups {
		start := wal.LSN(10*i+1) * wal.SegmentSize
		at := now.Add(time.Duration(i-20) * time.Hour)
		b := format.Backup{
			ID: fmt.Sprintf("b%d", i), Type: format.TypeFull, Term: 1, StartLSN: start, StopLSN: start + 100,
			Started: at, Stopped: at,
			Pieces: []format.Object{{Name: format.PieceName("base.tar", 0) + ".zst", Size: 10000}},
		}
		text, err := b.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		put(format.FolderBase+b.ID+"/"+b.Pieces[0].Name, make([]byte, 10000))
		put(format.FolderBase+b.ID+"/"+format.FileBackup, text)
	}
}

// In a store that is full, what is not to be kept goes, and nothing else; then there is room.
func TestRetentionMakesRoomInAFullStore(t *testing.T) {
	for name, c := range map[string]struct {
		count   int
		removed []string
		room    bool
	}{
		"all of them are kept": {10, nil, false},
		"less is to be kept":   {7, []string{"b0", "b1", "b2"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			archive := filled(t)
			segment := wal.Segment{Timeline: 1, Number: 100, Size: wal.SegmentSize}
			next := format.TermFolder(1) + segment.String() + ".zst"
			if err := archive.Create(t.Context(), next, make([]byte, 1000)); !errors.Is(err, bucket.ErrFull) {
				t.Fatalf("the store is not full: %v", err)
			}
			settings := settingsFile(t, protocol.BackupSettings{Keep: protocol.Retention{Count: c.count}})
			r := &taking{Pod: pod.New(pod.Options{Settings: settings}), archive: archive}
			if err := r.retain(t.Context()); err != nil {
				t.Fatal(err)
			}
			slices.Sort(r.result.Removed)
			if !slices.Equal(r.result.Removed, c.removed) {
				t.Errorf("removed are %v, want %v", r.result.Removed, c.removed)
			}
			if err := archive.Create(t.Context(), next, make([]byte, 1000)); (err == nil) != c.room {
				t.Errorf("afterwards: %v", err)
			}
			catalogue, err := book.Read(t.Context(), archive)
			if err != nil {
				t.Fatal(err)
			}
			oldest := catalogue.Backups[0].StartLSN
			if to, _ := catalogue.Covered(catalogue.NewestTermHistory(), oldest); to < wal.SegmentSize*100 {
				t.Errorf("the WAL of what is kept goes to %s", to)
			}
		})
	}
}

// A Pod whose clock is ahead takes nothing for too old that is new by the store's clock, or by the operator's; and
// where nothing new has got into a store for a month, because it is full, what is old goes.
func TestRetentionBelievesNoClockAlone(t *testing.T) {
	const day = 24 * time.Hour
	none := time.Duration(-1)
	for name, c := range map[string]struct {
		written         time.Duration // ago, by the clock of the Pod
		store, operator time.Duration // by how much they are behind the Pod's
		removed         int
		said            bool
	}{
		"all clocks are right":              {0, 0, 0, 0, false},
		"a full store, a month later":       {30 * day, 0, 0, 5, false},
		"only this clock is a month ahead":  {30 * day, 30 * day, 30 * day, 0, true},
		"the store is on the same machine":  {30 * day, 0, 30 * day, 0, true},
		"the operator is":                   {30 * day, 30 * day, 0, 0, true},
		"the operator has not said":         {30 * day, 30 * day, none, 0, true},
		"a folder, which has no clock":      {30 * day, none, 30 * day, 0, true},
		"nobody else says":                  {30 * day, none, none, 5, false},
		"the Pod waited for a node":         {0, 0, 20 * time.Hour, 0, false},
		"this clock is behind by two hours": {0, -2 * time.Hour, -2 * time.Hour, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			folder, now := bucket.OpenFolder(t.TempDir()), time.Now()
			fillAt(t, folder, 10, now.Add(-c.written))
			settings := settingsFile(t, protocol.BackupSettings{Keep: protocol.Retention{Count: 5, Days: 2}})
			options := pod.Options{Settings: settings, Within: day}
			if c.operator != none {
				options.Asked = now.Add(-c.operator)
			}
			r := &taking{Pod: pod.New(options), archive: folder}
			if c.store != none {
				r.storeClock.Set(now.Add(-c.store))
			}
			err := r.retain(t.Context())
			if said := r.result.Held; err != nil || len(r.result.Removed) != c.removed ||
				strings.Contains(said, "Set the clocks right") != c.said {
				t.Errorf("removed are %v, held is %q: %v", r.result.Removed, said, err)
			}
		})
	}
}

// A backup that fails for want of room leaves none of its pieces in the way of WAL.
func TestAFailedBackupLeavesNoPieces(t *testing.T) {
	archive := filled(t)
	archive.room += 50000
	piece := format.FolderBase + "failed/" + format.PieceName("base.tar", 0) + ".zst"
	if err := archive.Put(t.Context(), piece, make([]byte, 50000)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // its deadline, or the end of its Pod, may be why it has failed
	r := &taking{Pod: pod.New(pod.Options{}), archive: archive}
	r.abandon(ctx)
	for o, err := range archive.List(t.Context(), format.FolderBase) {
		if err != nil || strings.Contains(o.Name, "/failed/") {
			t.Errorf("there is %s (%v)", o.Name, err)
		}
	}
	if err := archive.Create(t.Context(), "wal/more", make([]byte, 50000)); err != nil {
		t.Errorf("there is no room: %v", err)
	}
}

// guarded is a bucket that refuses to remove some objects, or is not to be asked at all.
type guarded struct {
	bucket.Bucket
	keeps func(name string) bool
	asked int
}

func (g *guarded) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		g.asked++
		if g.keeps(name) {
			return fmt.Errorf("%s: %w: it is locked", name, bucket.ErrDenied)
		}
		if err := g.Bucket.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// What a store does not let be removed stays, with all that it needs; the rest goes, and it is told.
func TestRetentionInAStoreThatKeepsObjects(t *testing.T) {
	of := func(ids ...string) func(name string) bool {
		return func(name string) bool {
			id, _ := backupOfObject(name)
			return slices.Contains(ids, id)
		}
	}
	for name, c := range map[string]struct {
		keeps   func(name string) bool
		apart   bool // another Pod removes
		removed []string
		oldest  string
		refused bool
	}{
		"all is kept":             {func(string) bool { return true }, false, nil, "b0", true},
		"what is young":           {of("b2", "b1"), false, []string{"b0"}, "b1", true},
		"one in between":          {of("b1"), false, []string{"b0", "b2"}, "b1", true},
		"nothing":                 {of(), false, []string{"b0", "b1", "b2"}, "b3", false},
		"another's Pod removes":   {of(), true, nil, "b0", false},
		"nothing can be, by both": {func(string) bool { return true }, true, nil, "b0", false},
	} {
		t.Run(name, func(t *testing.T) {
			archive := &guarded{Bucket: filled(t).Bucket, keeps: c.keeps}
			file := settingsFile(t, protocol.BackupSettings{Keep: protocol.Retention{Count: 7}})
			r := &taking{Pod: pod.New(pod.Options{Settings: file}), archive: archive}
			r.settings.Archive.Bucket.KeepAll = c.apart
			if err := errors.Join(r.clean(t.Context()), r.retain(t.Context())); err != nil {
				t.Fatal(err)
			}
			slices.Sort(r.result.Removed)
			if !slices.Equal(r.result.Removed, c.removed) || (r.result.Refused != "") != c.refused {
				t.Errorf("removed are %v, and it says %q", r.result.Removed, r.result.Refused)
			}
			if c.apart && archive.asked > 0 {
				t.Errorf("%d objects were asked for", archive.asked)
			}
			catalogue, err := book.Read(t.Context(), archive)
			if err != nil {
				t.Fatal(err)
			}
			oldest := catalogue.Backups[0]
			if to, _ := catalogue.Covered(catalogue.NewestTermHistory(), oldest.StartLSN); oldest.ID != c.oldest ||
				to < oldest.StopLSN || r.result.Earliest.IsZero() {
				t.Errorf("the oldest is %s, and its WAL goes to %s, of %s", oldest.ID, to, oldest.StopLSN)
			}
		})
	}
}

// What a backup that did not end has left is in nobody's way where it can't be removed, and goes later where it can.
func TestWhatAFailedBackupHasLeftMayStay(t *testing.T) {
	archive := &guarded{Bucket: filled(t).Bucket, keeps: func(string) bool { return true }}
	piece := format.FolderBase + "failed/" + format.PieceName("base.tar", 0) + ".zst"
	if err := archive.Put(t.Context(), piece, make([]byte, 500)); err != nil {
		t.Fatal(err)
	}
	file := settingsFile(t, protocol.BackupSettings{Keep: protocol.Retention{Count: 10}})
	r := &taking{Pod: pod.New(pod.Options{Settings: file}), archive: archive, unfinished: time.Nanosecond}
	if err := r.clean(t.Context()); err != nil {
		t.Errorf("before a backup: %v", err)
	}
	if err := r.retain(t.Context()); err != nil || !strings.Contains(r.result.Refused, "deletionCredentials") {
		t.Errorf("%v, and it says %q", err, r.result.Refused)
	}
	archive.keeps = func(string) bool { return false }
	if err := r.retain(t.Context()); err != nil || r.result.Refused != "" {
		t.Errorf("%v, and it says %q", err, r.result.Refused)
	}
	for o, err := range archive.List(t.Context(), format.FolderBase+"failed/") {
		t.Errorf("there is %s (%v)", o.Name, err)
	}
}

// The Pod that alone may remove anything says so where it has not got what it needs.
func TestRetentionUsesTheCredentialsForDeletion(t *testing.T) {
	folder := t.TempDir()
	r := &taking{}
	r.settings.Archive.Bucket = bucket.Config{Credentials: folder, KeepAll: true}
	if err := r.useDeletionCredentials(); err == nil || !strings.Contains(err.Error(), "deletionCredentials") {
		t.Errorf("without the Secret: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "accessKeyID"), []byte("remover"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.useDeletionCredentials(); err != nil || r.keepsAll() || r.unfinished != givenUpApart {
		t.Errorf("with it: %v, %+v", err, r.settings.Archive.Bucket)
	}
}
