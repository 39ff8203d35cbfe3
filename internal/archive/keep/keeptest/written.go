// Package keeptest has an archive for the tests of what is done with one that is there: kept, read again, copied.
package keeptest

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Written is an archive of one term with two backups, b1 and b2, and the WAL of some segments.
type Written struct {
	*testing.T
	Bucket  *buckettest.Memory
	Encoder *format.Encoder
}

// NewWritten makes one, encrypted where there is a key. Its archiver knows a secret.
func NewWritten(t *testing.T, key *age.X25519Identity) *Written {
	t.Helper()
	archivetest.SmallSegments(t)
	recipient := ""
	if key != nil {
		recipient = key.Recipient().String()
	}
	encoder, err := format.NewEncoder(recipient)
	archivetest.Must(t, err)
	w := &Written{T: t, Bucket: buckettest.NewMemory(), Encoder: encoder}
	begin := wal.LSN(3 * format.SegmentSize)
	source := &archivetest.Source{Terms: []ha.TermStart{{Term: 1, Timeline: 1}}, End: begin + 100, Begin: begin}
	archiver, err := write.NewArchiver(write.ArchiverOptions{Bucket: w.Bucket, Owner: archivetest.Owner,
		Encoder: encoder, Source: source, TermHistory: source.Terms, Secret: []byte("nonce")})
	archivetest.Must(t, err)
	for range 8 {
		archiveAll(t, archiver)
		source.End += wal.LSN(format.SegmentSize)
	}
	archiveAll(t, archiver)
	w.Backup("b1", 3)
	w.Backup("b2", 6)
	return w
}

// archiveAll archives what there is.
func archiveAll(t *testing.T, a *write.Archiver) {
	t.Helper()
	for behind := true; behind; {
		var err error
		behind, err = a.Step(t.Context())
		archivetest.Must(t, err)
	}
}

// Backup puts one there of three pieces, which begins and ends in a segment.
func (w *Written) Backup(id string, number uint64) {
	w.Helper()
	w.Bucket.Clock = w.Bucket.Clock.Add(time.Hour)
	start := format.SegmentStart(number)
	b := format.Backup{ID: id, Type: format.TypeFull, Term: 1, StartLSN: start + 0x28, StopLSN: start + 0x100,
		Started: w.Bucket.Clock, Stopped: w.Bucket.Clock, StartTimeline: 1, StopTimeline: 1}
	folder := archivetest.Folder{T: w.T, Bucket: w.Bucket, Encoder: w.Encoder, ID: id}
	put := func(name string) format.Object { return folder.Put(name, bytes.Repeat([]byte(id+name), 100)) }
	for i := range 3 {
		b.Pieces = append(b.Pieces, put(format.PieceName(format.BaseTar, i)))
	}
	b.Manifest = put(format.FileManifest)
	archivetest.PutBackup(w.T, w.Bucket, b)
}

// Names are those of all objects with something in their name.
func (w *Written) Names(in string) []string {
	var all []string
	for name := range w.Bucket.Objects {
		if strings.Contains(name, in) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}

// Change changes what is in an object.
func (w *Written) Change(name string, change func([]byte) []byte) {
	o := w.Bucket.Objects[name]
	o.Content = change(bytes.Clone(o.Content))
	w.Bucket.Objects[name] = o
}

// Flip is for Change: a bit in the middle is another one.
func Flip(content []byte) []byte { content[len(content)/2] ^= 1; return content }

// Cut is for Change: the end is missing.
func Cut(content []byte) []byte { return content[:len(content)-3] }

// SeeRestorable fails where something of a copy could not be restored: each backup that it has can. lacks says which
// WAL of a backup is not there, "" for none.
func SeeRestorable(
	t *testing.T, b *buckettest.Memory, lacks func(book.Catalogue, format.Backup) string,
) book.Catalogue {
	t.Helper()
	c, err := book.Read(context.WithoutCancel(t.Context()), b.Without())
	if err != nil || len(c.Unread) > 0 {
		t.Fatalf("the copy can't be read: %v %v", err, c.Unread)
	}
	for _, b := range c.Backups {
		if _, err := c.Chain(b.ID); err != nil {
			t.Errorf("the backup %s can't be restored from the copy: %v", b.ID, err)
		}
		if wal := lacks(c, b); wal != "" {
			t.Errorf("the copy lacks %s for the backup %s", wal, b.ID)
		}
	}
	return c
}

// Missing are the objects that an archive has and its copy does not, as it has them.
func Missing(archive, copied *buckettest.Memory) (names []string) {
	for name, o := range archive.Objects {
		if there, ok := copied.Objects[name]; !ok || !slices.Equal(there.Content, o.Content) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
