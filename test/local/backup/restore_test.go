package backup_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/wal"
)

func newKey(t *testing.T) string {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	must(t, err)
	return key.String()
}

// The rows of t: 1 in the backup, 2 up to the targets, 3 in a transaction of its
// own, 4 at the end.
func TestARestoreEndsAtItsTargetWithTheSameData(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, newKey(t))
	b := a.take()
	a.checkTaken(b)
	source.do("insert into t values (2)")
	lsn, err := wal.ParseLSN(source.ask("select pg_current_wal_insert_lsn()"))
	must(t, err)
	at, err := time.Parse("2006-01-02 15:04:05.999999-07",
		source.ask("select clock_timestamp() at time zone 'UTC'")+"+00")
	must(t, err)
	source.do("select pg_create_restore_point('two')")
	time.Sleep(2 * time.Millisecond)
	source.do("insert into t values (3)")
	xid := source.ask("select xmin from t where i = 3")
	source.do("select pg_switch_wal(); insert into t select i from generate_series(4, 4) i")
	want := source.contents()
	a.archiveWAL()
	for name, c := range map[string]struct {
		target book.Target
		rows   string
	}{
		"the latest":           {book.Target{}, "1,2,3,4"},
		"a time":               {book.Target{Time: at}, "1,2"},
		"an LSN":               {book.Target{LSN: lsn}, "1,2"},
		"a named point":        {book.Target{Name: "two"}, "1,2"},
		"a transaction":        {book.Target{XID: xid}, "1,2,3"},
		"before a transaction": {book.Target{XID: xid, Exclusive: true}, "1,2"},
	} {
		t.Run(name, func(t *testing.T) {
			in := *a
			in.T = t
			r := in.restore(b, c.target)
			begin := time.Now()
			reached := r.finish()
			t.Logf("recovered to %s in %v, last transaction at %v", reached.LSN, time.Since(begin), reached.Commit)
			if got := r.rows(); got != c.rows {
				t.Errorf("it has rows %s, expected %s", got, c.rows)
			}
			if got := r.contents(); got != want {
				t.Errorf("it has %s\nexpected %s", got, want)
			}
			if reached.Ended == c.target.Latest() || reached.LSN < b.StopLSN || reached.Commit.IsZero() {
				t.Errorf("reached %+v", reached)
			}
			r.do("insert into t values (100)")
		})
	}
	t.Run("a time after the end", func(t *testing.T) {
		in := *a
		in.T = t
		_, err := in.restore(b, book.Target{Time: time.Now().Add(time.Hour)}).recover()
		var short *restore.ShortError
		if !errors.As(err, &short) || short.Reached.LSN == 0 || short.Reached.Commit.IsZero() {
			t.Fatalf("the error is %v", err)
		}
		t.Log(err)
	})
}

func (a *archive) checkTaken(b format.Backup) {
	a.Helper()
	if n := len(b.Pieces); n < 3 || b.StoredBytes == 0 || b.RawBytes < 2*pieceSize || len(b.Tablespaces) != 1 {
		a.Errorf("the backup says of itself %+v", b)
	}
	if a.lastProgress.Done < b.RawBytes-pieceSize || a.lastProgress.Total == 0 || a.waitedForWAL != 1 {
		a.Errorf("the last progress was %+v of %d; waited %d times for WAL", a.lastProgress, b.RawBytes, a.waitedForWAL)
	}
}

// After the key has changed, what lies there needs the former key, and what follows the new one. What an object needs
// another key for is said as that.
func TestARestoreOverAChangeOfTheKey(t *testing.T) {
	source := primary(t)
	former, now := newKey(t), newKey(t)
	a := newArchive(t, source, former+"\n"+now)
	b := a.take()
	source.do("insert into t values (2)")
	a.archiveWAL()
	a.rotate(former + "\n" + now)
	source.do("select pg_switch_wal(); insert into t values (3)")
	a.archiveWAL()
	r := a.restore(b, book.Target{})
	r.finish()
	if got := r.rows(); got != "1,2,3" {
		t.Errorf("it has rows %s", got)
	}
	for name, key := range map[string]string{"the new one alone": now, "the former one alone": former} {
		decoder, err := format.NewDecoder(key)
		must(t, err)
		opened := 0
		for object, content := range a.objects {
			if !strings.HasSuffix(object, ".age") {
				continue
			}
			_, err := decoder.Decode(object, bytes.NewReader(content))
			if err == nil {
				opened++
			} else if !strings.Contains(err.Error(), "another key") {
				t.Errorf("with %s: %v", name, err)
			}
		}
		if opened == 0 {
			t.Errorf("with %s nothing is read", name)
		}
	}
}

func TestARestoreOfPartsOnly(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	a.onlyParts = true
	b := a.take()
	source.do("insert into t values (2); select pg_switch_wal(); insert into t values (3)")
	a.archiveWAL()
	source.do("insert into t values (4)")
	a.archiveWAL()
	r := a.restore(b, book.Target{})
	objects := slices.Clone(a.plan(b).Segments[0].Objects)
	gone := objects[0].Name
	objects[0].Name = strings.Replace(gone, ".zst", "-longer.zst", 1)
	a.objects[objects[0].Name] = a.objects[gone]
	delete(a.objects, gone)
	r.recovery.Again = func(context.Context, wal.Segment) ([]book.PlannedObject, error) { return objects, nil }
	r.finish()
	if got := r.rows(); got != "1,2,3,4" {
		t.Errorf("it has rows %s", got)
	}
}

// Where nothing can be replaced or removed, an archive is claimed, a backup is taken, and restored.
func TestABackupInAStoreThatKeepsAll(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, newKey(t))
	a.keepsAll = true
	owner := format.Owner{UID: "uid", Namespace: "test", Name: "db", SystemIdentifier: "1"}
	must(t, format.Reclaim(t.Context(), a, owner))
	b := a.take()
	source.do("insert into t values (2)")
	a.archiveWAL()
	if _, err := take.Clean(t.Context(), a); err != nil && !errors.Is(err, bucket.ErrDenied) {
		t.Errorf("what a backup that did not end has left: %v", err)
	}
	r := a.restore(b, book.Target{})
	r.finish()
	if got := r.rows(); got != "1,2" {
		t.Errorf("it has rows %s", got)
	}
}

// flip changes one bit in the middle.
func flip(content []byte) []byte {
	changed := slices.Clone(content)
	changed[len(changed)/2] ^= 4
	return changed
}

func TestABrokenObjectIsNamed(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, newKey(t))
	b := a.take()
	source.do("insert into t values (2); select pg_switch_wal(); insert into t values (3); select pg_switch_wal()")
	a.archiveWAL()
	plan := a.plan(b) // as it was made before an object broke
	var segments []string
	for _, s := range plan.Segments {
		segments = append(segments, s.Objects[0].Name)
	}
	base := "base/" + b.ID + "/"
	for _, name := range []string{
		base + b.Pieces[1].Name, base + b.Pieces[len(b.Pieces)-1].Name, base + b.Manifest.Name,
		segments[0], segments[1],
	} {
		other := base + b.Pieces[0].Name
		if strings.HasPrefix(name, "wal/") {
			other = segments[len(segments)-1]
			if name == other {
				other = segments[0]
			}
		}
		for what, change := range map[string]func(*memory){
			"missing":   func(m *memory) { delete(m.objects, name) },
			"truncated": func(m *memory) { m.objects[name] = m.objects[name][:len(m.objects[name])*2/3] },
			"altered":   func(m *memory) { m.objects[name] = flip(m.objects[name]) },
			"swapped":   func(m *memory) { m.objects[name] = m.objects[other] },
		} {
			t.Run(what+" "+name, func(t *testing.T) {
				in := *a
				in.T, in.memory = t, a.copied()
				change(in.memory)
				n := newNode(t)
				err := in.unpack(b, n)
				if err == nil {
					o := in.recoverOptions(b, n, book.Target{}, plan)
					o.Ahead = 100
					err = putAll(t, o)
				}
				var object *format.ObjectError
				// How long WAL is in the bucket is known nowhere else.
				unclear := what == "swapped" || what == "truncated" && strings.HasPrefix(name, "wal/")
				if !errors.As(err, &object) || object.Name != name || object.What != what && !unclear {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

// putAll prepares a recovery, and feeds a server that says nothing.
func putAll(t *testing.T, o restore.RecoverOptions) error {
	t.Helper()
	r := restore.NewRecovery(o)
	if err := r.Prepare(t.Context()); err != nil {
		return err
	}
	_, err := r.Run(t.Context(), silent{})
	return err
}
