package restore

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// PostgreSQL's manifest: no file of it lies outside of the data directory, and there are no more than the text has.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"PostgreSQL-Backup-Manifest-Version":1,"Files":[{"Path":"base/1/2","Size":1,` +
		`"Checksum-Algorithm":"CRC32C","Checksum":"00"},{"Encoded-Path":"2e2e2f78"}],"Manifest-Checksum":"x"}`))
	f.Add([]byte(`{"Files":[{"Path":"../x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		files := 0
		_, _ = readManifest(json.NewDecoder(bytes.NewReader(text)), func(file manifestFile) error {
			files++
			if !filepath.IsLocal(file.Path) {
				t.Errorf("it has the file %q", file.Path)
			}
			return nil
		})
		if files > len(text) {
			t.Errorf("%d bytes have %d files", len(text), files)
		}
	})
}

// fuzzTar is a tar file with these files and links.
func fuzzTar(f *testing.F, headers ...tar.Header) []byte {
	f.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			f.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	return text.Bytes()
}

func addTars(f *testing.F) {
	f.Helper()
	file := func(name string, size int64) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}
	}
	spaces := tar.Header{Name: "pg_tblspc", Typeflag: tar.TypeDir}
	f.Add(fuzzTar(f, file("backup_label", 3), file("empty", 0), file("large", 1300)), uint16(1))
	f.Add(fuzzTar(f, spaces, tar.Header{Name: "pg_tblspc/5", Typeflag: tar.TypeSymlink, Linkname: "/x"}), uint16(1))
	f.Add(fuzzTar(f, file("../x", 3)), uint16(0))
	f.Add(fuzzTar(f, tar.Header{Name: "x", Typeflag: tar.TypeSymlink, Linkname: ".."}, file("x/y", 1)), uint16(2))
	f.Add([]byte("cut off"), uint16(0))
}

// A tar file gives the same, wherever it is cut into pieces: all of its content, and none of it twice.
func FuzzTar(f *testing.F) {
	addTars(f)
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		whole, wholeEnd, err := splitAll(text)
		at := int(cut) * tarBlock
		if len(text)%tarBlock != 0 || at > len(text) {
			return
		}
		parts, partsEnd, partsErr := splitAll(text[:at], text[at:])
		if (err == nil) != (partsErr == nil) || whole != parts || err == nil && wholeEnd != partsEnd {
			t.Errorf("whole: %s, %+v, %v; cut at %d: %s, %+v, %v",
				whole, wholeEnd, err, at, parts, partsEnd, partsErr)
		}
	})
}

// splitAll is what the extents of pieces put together are, as text.
func splitAll(pieces ...[]byte) (text string, end place, err error) {
	var all strings.Builder
	for _, piece := range pieces {
		extents, err := end.split(piece)
		if err != nil {
			return "", end, err
		}
		for _, e := range extents {
			if e.Offset == 0 {
				fmt.Fprintf(&all, "\n%d %q ", e.Kind, e.Name)
			}
			if e.Length != int64(len(e.content)) {
				return "", end, fmt.Errorf("an extent of %d bytes has %d", e.Length, len(e.content))
			}
			all.Write(e.content)
		}
	}
	return all.String(), end, nil
}

// Nothing of a tar file gets outside of the folder that it is unpacked into.
func FuzzUnpack(f *testing.F) {
	addTars(f)
	f.Fuzz(func(t *testing.T, text []byte, cut uint16) {
		outside := t.TempDir()
		data, space := filepath.Join(outside, "data"), filepath.Join(outside, "space")
		for _, folder := range []string{data, space} {
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		u := &unpacking{meter: transfer.NewMeter(nil, 0)}
		u.Workers, u.Bucket, u.Decoder = 2, buckettest.NewMemory(), &format.Decoder{}
		var b format.Backup
		at := min(int(cut)*tarBlock, len(text))
		for i, content := range [][]byte{text[:at], text[at:]} {
			b.Pieces = append(b.Pieces, putPiece(t, u.Bucket, b, format.PieceName(format.BaseTar, i), content))
		}
		_ = u.unpackTar(t.Context(), b, format.BaseTar, data, map[uint32]string{5: space})
		for folder, want := range map[string]int{outside: 2, space: 0} {
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != want {
				t.Errorf("in %s there is %v, %v", folder, entries, err)
			}
		}
	})
}

// The notes of an unpacking that was cut off: a line that is none is passed over, and the next notes go behind it.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"backup":"a","piece":{"name":"base.tar.00000.zst","size":1},"from":{},"to":{},` +
		`"extents":[{"n":"x","l":3}]}` + "\ncut off"))
	f.Add([]byte("\n\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		name := filepath.Join(t.TempDir(), "journal")
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		added := unpacked{Backup: "new", Piece: format.Object{Name: "base.tar.00001.zst", Size: 7}}
		j := journalOf(t, name)
		_, _ = j.sizes("a", format.BaseTar)
		if err := j.note(added); err != nil {
			t.Fatal(err)
		}
		j.close()
		j = journalOf(t, name)
		defer j.close()
		if found := j.find(added.Backup, added.Piece); found == nil {
			t.Error("what has been noted is not found again")
		}
	})
}

func journalOf(t *testing.T, name string) *journal {
	t.Helper()
	j, err := openJournal(name)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
