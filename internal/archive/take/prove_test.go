package take

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/write"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// timelined is WAL whose pages say that they are of timeline 1, as a server's do.
type timelined struct{ *archivetest.Source }

func (s timelined) Open(name string) (write.File, error) {
	f, err := s.Source.Open(name)
	return timelinedFile{f}, err
}

type timelinedFile struct{ write.File }

func (f timelinedFile) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	for at := -off % wal.PageSize; at+8 <= int64(n); at += wal.PageSize {
		if at >= 0 {
			binary.LittleEndian.PutUint32(p[at+4:], 1)
		}
	}
	return n, err
}

// unfinished is a backup whose pieces, manifest and WAL are in the bucket, and whose backup.json is not.
func unfinished(t *testing.T, recipient string) (*taking, *buckettest.Memory) {
	t.Helper()
	archivetest.SmallSegments(t)
	encoder, err := format.NewEncoder(recipient)
	if err != nil {
		t.Fatal(err)
	}
	history, b := []ha.TermStart{{Term: 1, Timeline: 1}}, buckettest.NewMemory()
	a, err := write.NewArchiver(write.ArchiverOptions{
		Bucket: b, Owner: archivetest.Owner, Encoder: encoder, TermHistory: history,
		Source: timelined{&archivetest.Source{Terms: history, End: 3*32768 + 500}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for behind := true; behind; {
		if behind, err = a.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w := &taking{TakeOptions: TakeOptions{Bucket: b, Encoder: encoder}}
	w.backup = format.Backup{
		ID: "20261120T031500Z-3f2a", Type: format.TypeFull, Term: 1, StartLSN: 32768 + 40, StopLSN: 3*32768 + 100,
	}
	for i, name := range []string{format.PieceName(format.BaseTar, 0), format.PieceName(format.BaseTar, 1),
		format.PieceName("16400.tar", 0)} {
		piece, err := w.put(t.Context(), name, bytes.Repeat([]byte(name), 100))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.note(i, piece, i != 1); err != nil {
			t.Fatal(err)
		}
	}
	if w.backup.Manifest, err = w.put(t.Context(), format.FileManifest, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	return w, b
}

// What a restore would begin with is read before the backup counts: an object that can't be read is named.
func TestProve(t *testing.T) {
	key, recipient := archivetest.Keys[0].String(), archivetest.Keys[0].Recipient().String()
	other := archivetest.Keys[1].String()
	folder := format.FolderBase + "20261120T031500Z-3f2a/"
	for name, c := range map[string]struct {
		key   string
		spoil string // an object that is altered
		want  string // words of the error, "" for none
	}{
		"all of it can be read":   {key: key},
		"with another key":        {key: other, want: "backup_manifest"},
		"the manifest is altered": {key, folder + "backup_manifest.zst.age", "backup_manifest.zst.age is altered"},
		"the first piece is":      {key, folder + "base.tar.00000.zst.age", "base.tar.00000.zst.age is altered"},
		"that of a tablespace is": {key, folder + "16400.tar.00000.zst.age", "16400.tar.00000.zst.age is altered"},
		"WAL in the middle is": {
			key, "wal/00000001/000000010000000000000002.zst.age", "000000010000000000000002.zst.age",
		},
		"WAL that it does not need is": {key, "wal/00000001/000000010000000000000000.zst.age", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, b := unfinished(t, recipient)
			if c.spoil != "" {
				o, ok := b.Objects[c.spoil]
				if !ok {
					t.Fatalf("there is no %s", c.spoil)
				}
				o.Content[len(o.Content)-1] ^= 1
			}
			var err error
			if w.Decoder, err = format.NewDecoder(c.key); err != nil {
				t.Fatal(err)
			}
			switch err := w.prove(t.Context()); {
			case c.want == "" && err != nil:
				t.Errorf("%v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
