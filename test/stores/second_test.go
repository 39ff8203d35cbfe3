package stores

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/second"
	"toban.dev/internal/wal"
	"toban.dev/test/stores/servers"
)

// An archive is copied from one store to another. The second one refuses, and what is missing is copied when it does
// not any more. What the first one has lost stays in the copy, and can be read there.
func TestAnArchiveIsCopiedBetweenStores(t *testing.T) {
	for name, start := range map[string]func(*testing.T) servers.Server{
		"S3": servers.StartS3, "Azure": servers.StartAzure, "GCS": servers.StartGCS,
	} {
		t.Run(name, func(t *testing.T) {
			first := open(t, servers.StartS3(t).Config)
			writeArchive(t, first)
			server := start(t)
			door := servers.StartFaulty(t, server.URL)
			other := open(t, server.At(door.URL))
			door.RefuseWritesAfter(4)
			options := second.Options{First: first, Second: other, Owner: copied.UID,
				Policy: keep.Policy{Count: 7, Now: time.Now()}}
			if state, err := second.Copy(t.Context(), options); err == nil || !state.Until.IsZero() {
				t.Fatalf("a store that refuses gives %+v", state)
			}
			door.RefuseWritesAfter(-1)
			state, err := second.Copy(t.Context(), options)
			if err != nil || state.Until.IsZero() || len(state.Problems) > 0 {
				t.Fatalf("%+v, %v", state, err)
			}
			sameContent(t, first, other)
			again, err := second.Copy(t.Context(), options)
			if err != nil || again.Copied.Objects > 0 || again.Until.IsZero() {
				t.Errorf("it is copied again: %+v, %v", again, err)
			}
			if err := first.Delete(t.Context(), names(t, first)...); err != nil {
				t.Fatal(err)
			}
			if _, err := second.Copy(t.Context(), options); !errors.Is(err, second.ErrNoArchive) {
				t.Errorf("of an empty store: %v", err)
			}
			restorableFrom(t, other)
		})
	}
}

// Who may only list, read and create has everything copied. What need not be kept stays.
func TestACopyNeedsNoRightToDelete(t *testing.T) {
	first := open(t, servers.StartS3(t).Config)
	writeArchive(t, first)
	guarded := servers.GuardS3(t)
	state, err := second.Copy(t.Context(), second.Options{
		First: first, Second: open(t, guarded.Instances),
		Owner: copied.UID, Policy: keep.Policy{Count: 7, Now: time.Now()},
	})
	if err != nil || state.Until.IsZero() {
		t.Fatalf("%+v, %v", state, err)
	}
	restorableFrom(t, open(t, guarded.Deletion))
}

// copied is whose archive is copied.
var copied = format.Owner{UID: "one", Namespace: "n", Name: "main", SystemIdentifier: "7"}

// writeArchive writes an archive of two segments of WAL and two backups.
func writeArchive(t *testing.T, b bucket.Bucket) {
	t.Helper()
	put := func(name string, content []byte) {
		if err := b.Create(t.Context(), name, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := format.Claim(t.Context(), b, copied); err != nil {
		t.Fatal(err)
	}
	put(format.TermFolder(1)+format.FileLineage, []byte(`{"term":1,"starts":[{"term":1,"lsn":"0/0","timeline":1}]}`))
	for number := range uint64(2) {
		segment := wal.Segment{Timeline: 1, Number: 3 + number, Size: wal.SegmentSize}
		content := make([]byte, wal.SegmentSize)
		for at := 0; at < len(content); at += wal.PageSize {
			binary.LittleEndian.PutUint64(content[at:], 0xD113)
			binary.LittleEndian.PutUint64(content[at+8:], uint64(segment.Start())+uint64(at))
		}
		put(format.TermFolder(1)+segment.String()+".zst", compressed(t, content))
		writeBackup(t, put, number)
	}
}

// writeBackup writes a backup.
func writeBackup(t *testing.T, put func(string, []byte), number uint64) {
	t.Helper()
	id := fmt.Sprintf("20261120T03150%dZ-3f2a", number)
	start := wal.LSN((3 + number) * wal.SegmentSize)
	at := time.Now().Add(time.Duration(number) * time.Second)
	b := format.Backup{ID: id, Type: format.TypeFull, Term: 1, Started: at, Stopped: at, SystemIdentifier: "7",
		StartLSN: start + 0x28, StopLSN: start + 0x100, StartTimeline: 1, StopTimeline: 1}
	object := func(name string) format.Object {
		content := compressed(t, []byte(id+name))
		sum := sha256.Sum256(content)
		put(format.FolderBase+id+"/"+name, content)
		return format.Object{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
	}
	b.Manifest = object(format.FileManifest + ".zst")
	b.Pieces = []format.Object{object("base.tar.00000.zst"), object("base.tar.00001.zst")}
	note, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	put(format.FolderBase+id+"/"+format.FileBackup, note)
}

func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := encoder.Writer(&out)
	if err == nil {
		_, err = w.Write(content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sameContent sees that a copy has what its archive has, and copy.json.
func sameContent(t *testing.T, first, copied bucket.Bucket) {
	t.Helper()
	want := append(names(t, first), second.FileCopy)
	slices.Sort(want)
	if got := names(t, copied); !slices.Equal(got, want) {
		t.Fatalf("the copy has\n%q, wanted\n%q", got, want)
	}
	for _, name := range names(t, first) {
		if content(t, first, name) != content(t, copied, name) {
			t.Errorf("%s is another one in the copy", name)
		}
	}
}

// restorableFrom sees that both backups can be restored from a copy, to the end of the WAL.
func restorableFrom(t *testing.T, b bucket.Bucket) {
	t.Helper()
	c, err := book.Read(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	w, ok := c.Window(c.NewestTermHistory())
	if !ok || len(w.Backups) != 2 || w.To != wal.LSN(5*wal.SegmentSize) {
		t.Errorf("the copy leads to %+v (%v)", w, c.Unread)
	}
}
