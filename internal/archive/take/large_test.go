package take

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
)

// How large it is in the tests of what is very large; by default as small as shows the same.
var (
	largePieces = flag.Int("pieces", 3000, "pieces of the backup in TestABackupOfAnySize (100 TiB have 3276800)")
	largeFiles  = flag.Int("files", 3000, "files of the manifest in TestAManifestOfAnySize")
)

// smallLists makes a list of pieces, and a manifest, large when it has some thousands. With the flags, they are as
// large as they are.
func smallLists(t *testing.T) {
	t.Helper()
	inline, list, most, part := mostInline, listLength, mostManifest, manifestPart
	t.Cleanup(func() { mostInline, listLength, mostManifest, manifestPart = inline, list, most, part })
	if *largePieces <= mostInline {
		mostInline, listLength = *largePieces/3, *largePieces/10
	}
	if *largeFiles < 1e6 {
		mostManifest, manifestPart = 20**largeFiles/3, 20**largeFiles/10
	}
}

// generated is a bucket with pieces of which only the number is kept: what they are follows from their names.
type generated struct {
	bucket.Bucket
	folder string
	tars   map[string]int // how many pieces of each
	// lost is the name of a piece that is not there.
	lost string
}

// generatedPiece is what lies in a piece, and what backup.json would say of it.
func generatedPiece(name string) ([]byte, format.Object) {
	content := []byte(name)
	sum := sha256.Sum256(content)
	return content, format.Object{Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

func (g *generated) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	piece := strings.TrimPrefix(name, g.folder)
	if tar, number, _ := format.ParsePieceName(piece); tar != "" && number < g.tars[tar] && piece != g.lost {
		return io.NopCloser(strings.NewReader(piece)), nil
	}
	return g.Bucket.Get(ctx, name)
}

// List has the pieces of a tar file in the order of their numbers, which is not that of their names from 100,000 on.
func (g *generated) List(ctx context.Context, prefix string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		there := []bucket.Object{}
		for o, err := range g.Bucket.List(ctx, prefix) {
			if err != nil {
				yield(o, err)
				return
			}
			there = append(there, o)
		}
		given := map[string]bool{}
		if !strings.HasPrefix(g.folder, prefix) {
			given = nil
		}
		for _, o := range there {
			if !g.pieces(o.Name, given, yield) || !yield(o, nil) {
				return
			}
		}
		g.pieces("~", given, yield)
	}
}

// pieces gives those of the tar files before a name that were not given yet; none where given is nil.
func (g *generated) pieces(until string, given map[string]bool, yield func(bucket.Object, error) bool) bool {
	for _, tar := range slices.Sorted(maps.Keys(g.tars)) {
		if given == nil || given[tar] || g.folder+tar >= until {
			continue
		}
		given[tar] = true
		for i := range g.tars[tar] {
			name := format.PieceName(tar, i) + ".zst"
			if name != g.lost && !yield(bucket.Object{Name: g.folder + name, Size: int64(len(name))}, nil) {
				return false
			}
		}
	}
	return true
}

// takeGenerated has a backup written as Take does it, with pieces that come out of order.
func takeGenerated(t *testing.T, pieces int) (*taking, *generated) {
	t.Helper()
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	w := &taking{TakeOptions: TakeOptions{Encoder: encoder}, ctx: t.Context()}
	w.backup = format.Backup{ID: "20261120T031500Z-3f2a", Type: format.TypeFull, Term: 1, StartLSN: 40, StopLSN: 100}
	space := pieces / 4
	g := &generated{
		bucket.OpenFolder(t.TempDir()), w.backup.Folder(),
		map[string]int{"16400.tar": space, format.BaseTar: pieces - space}, "",
	}
	w.Bucket = g
	w.backup.Tablespaces = []format.Tablespace{{OID: 16400}}
	w.pieces.put = func(name string, text []byte) (format.Object, error) { return w.store(t.Context(), name, text) }
	note := func(number int) {
		name := format.PieceName("16400.tar", number)
		if number >= space {
			name = format.PieceName(format.BaseTar, number-space)
		}
		_, piece := generatedPiece(name + ".zst")
		if err := w.note(number, piece, false); err != nil {
			t.Fatal(err)
		}
	}
	for from := 0; from < pieces; from += 4 { // of four that are written side by side, the last is first
		for i := min(from+4, pieces) - 1; i >= from; i-- {
			note(i)
		}
	}
	if w.backup.Manifest, err = w.put(t.Context(), format.FileManifest, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := w.pieces.end(&w.backup); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w, g
}

// A backup of 100 TiB is written, listed, planned, read and removed; `-pieces 3276800 -v` says how long that takes, and
// how much memory.
func TestABackupOfAnySize(t *testing.T) {
	smallLists(t)
	peak := archivetest.WatchMemory(t)
	var g *generated
	archivetest.Measured(t, peak, "write", func() { _, g = takeGenerated(t, *largePieces) })
	for o, err := range g.Bucket.List(t.Context(), "") {
		if err != nil || o.Size > bucket.MaxObject {
			t.Errorf("%s has %d bytes, %v", o.Name, o.Size, err)
		}
	}
	var c book.Catalogue
	archivetest.Measured(t, peak, "list", func() {
		var err error
		if c, err = book.Read(t.Context(), g); err != nil || len(c.Backups) != 1 || len(c.Unread) > 0 {
			t.Fatalf("%v, %d backups, %v", err, len(c.Backups), c.Unread)
		}
	})
	b := c.Backups[0]
	if b.ID != "20261120T031500Z-3f2a" || b.Layout != format.LayoutLists || len(b.Pieces) > 0 || len(b.Lists) < 2 {
		t.Errorf("it is %s in layout %d, with %d pieces and %d lists", b.ID, b.Layout, len(b.Pieces), len(b.Lists))
	}
	archivetest.Measured(t, peak, "look for what is lost", func() {
		if chain, err := c.Chain(b.ID); err != nil || len(chain) != 1 {
			t.Errorf("the chain is %v, %v", chain, err)
		}
	})
	archivetest.Measured(t, peak, "read", func() {
		for tar, want := range g.tars {
			if n := readPieces(t, g, b, tar); n != want {
				t.Errorf("%s has %d pieces of %d", tar, n, want)
			}
		}
	})
	archivetest.Measured(t, peak, "name all for the removal", func() {
		names := c.ContentsOf(b)
		if want := *largePieces + len(b.Lists) + 2; len(names) != want {
			t.Errorf("%d objects are to be removed, of %d", len(names), want)
		}
	})
}

// readPieces reads those of a tar file, and says how many they are.
func readPieces(t *testing.T, g *generated, b format.Backup, tar string) (n int) {
	t.Helper()
	for o, err := range book.PiecesOf(t.Context(), b, g, tar) {
		if name := format.PieceName(tar, n) + ".zst"; err != nil || o.Name != name {
			t.Fatalf("the piece %d of %s is %s, %v", n, tar, o.Name, err)
		}
		if _, err := book.ReadStored(t.Context(), g, b.Folder(), o); err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// A piece that is gone, or shorter, is noticed without reading the lists; another list is noticed when it is read.
func TestWhatALargeBackupLacks(t *testing.T) {
	smallLists(t)
	w, g := takeGenerated(t, *largePieces)
	find := func() error {
		c, err := book.Read(t.Context(), g)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Chain(w.backup.ID)
		return err
	}
	if err := find(); err != nil {
		t.Fatalf("it lacks nothing: %v", err)
	}
	g.lost = format.PieceName(format.BaseTar, 17) + ".zst"
	if err := find(); err == nil || !strings.Contains(err.Error(), "base.tar.*.zst (one of its") {
		t.Errorf("without a piece: %v", err)
	}
	g.lost = ""
	list := w.backup.Folder() + w.backup.Lists[len(w.backup.Lists)-1].Name
	spoil(t, g, list)
	var altered *format.ObjectError
	for _, err := range book.PiecesOf(t.Context(), w.backup, g, format.BaseTar) {
		if errors.As(err, &altered) {
			break
		}
	}
	if altered == nil || altered.Name != list || altered.What != format.Altered {
		t.Errorf("with another list: %v", altered)
	}
	if err := g.Delete(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if err := find(); err == nil || !strings.Contains(err.Error(), list+" is missing") {
		t.Errorf("without a list: %v", err)
	}
}

// A backup that is not too large is as it always was.
func TestASmallBackupIsAsItAlwaysWas(t *testing.T) {
	w, g := takeGenerated(t, 30)
	content, err := format.ReadWhole(t.Context(), g, w.backup.Folder()+format.FileBackup)
	text := string(content)
	if err != nil || w.backup.Layout != 0 || len(w.backup.Pieces) != 30 || strings.Contains(text, "layout") ||
		strings.Contains(text, "lists") || !strings.Contains(text, `"id": "20261120T031500Z-3f2a",`) {
		t.Errorf("it is %s", text)
	}
	if first, last := w.backup.Pieces[0].Name, w.backup.Pieces[29].Name; first != "16400.tar.00000.zst" ||
		last != "base.tar.00022.zst" {
		t.Errorf("the pieces are in another order: %s … %s", first, last)
	}
}

// A manifest of ten million files is written as it comes, read and gone through; `-files 10000000 -v` says how long
// that takes, and how much memory.
func TestAManifestOfAnySize(t *testing.T) {
	for name, encrypted := range map[string]bool{"compressed": false, "encrypted too": true} {
		t.Run(name, func(t *testing.T) {
			smallLists(t)
			encoder, decoder := coders(t, encrypted)
			peak := archivetest.WatchMemory(t)
			o := TakeOptions{Bucket: bucket.OpenFolder(t.TempDir()), Encoder: encoder}
			w := &taking{TakeOptions: o, ctx: t.Context()}
			w.backup = format.Backup{ID: "20261120T031500Z-3f2a"}
			archivetest.Measured(t, peak, "write", func() {
				archivetest.Must(t, w.manifest(), archivetest.WriteManifest(w.text, *largeFiles))
				if len(w.text.parts) == 0 && !encrypted { // age keeps 64 KiB, which a short one does not have
					t.Errorf("%d bytes are in memory, and no part is written", w.text.stored.Len())
				}
				archivetest.Must(t, w.text.end(&w.backup))
			})
			if parts := w.backup.ManifestParts; len(parts) < 3 || w.backup.Layout != format.LayoutLists {
				t.Errorf("it is in %d parts, in layout %d", len(parts), w.backup.Layout)
			}
			archivetest.Measured(t, peak, "read", func() { archivetest.Must(t, readThrough(t, w, decoder)) })
			spoilManifest(t, w, decoder)
		})
	}
}

// coders encode and decode, by a key where what is written is encrypted.
func coders(t *testing.T, encrypted bool) (*format.Encoder, *format.Decoder) {
	t.Helper()
	key, recipient := "", ""
	if encrypted {
		key, recipient = archivetest.Keys[0].String(), archivetest.Keys[0].Recipient().String()
	}
	encoder, err := format.NewEncoder(recipient)
	archivetest.Must(t, err)
	decoder, err := format.NewDecoder(key)
	archivetest.Must(t, err)
	return encoder, decoder
}

// readThrough reads a manifest to its end.
func readThrough(t *testing.T, w *taking, decoder *format.Decoder) error {
	t.Helper()
	manifest, err := book.OpenManifest(t.Context(), w.Bucket, decoder, w.backup)
	if err != nil {
		return err
	}
	defer manifest.Close()
	_, err = io.Copy(io.Discard, manifest)
	return err
}

// spoilManifest alters the second part of a manifest, which must be named.
func spoilManifest(t *testing.T, w *taking, decoder *format.Decoder) {
	t.Helper()
	name := w.backup.Folder() + w.backup.ManifestParts[1].Name
	spoil(t, w.Bucket, name)
	err := readThrough(t, w, decoder)
	if broken := (*format.ObjectError)(nil); !errors.As(err, &broken) || broken.Name != name {
		t.Errorf("an altered part: %v", err)
	}
}

// spoil alters an object.
func spoil(t *testing.T, b bucket.Bucket, name string) {
	t.Helper()
	text, err := format.ReadWhole(t.Context(), b, name)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := b.Put(t.Context(), name, text); err != nil {
		t.Fatal(err)
	}
}

// A manifest that fits into an object is one, as it always was.
func TestAManifestThatFitsIsOneObject(t *testing.T) {
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	b := buckettest.NewMemory()
	w := &taking{TakeOptions: TakeOptions{Bucket: b, Encoder: encoder}, ctx: t.Context(),
		backup: format.Backup{ID: "x"}}
	if err := errors.Join(w.manifest(), archivetest.WriteManifest(w.text, 100), w.text.end(&w.backup)); err != nil {
		t.Fatal(err)
	}
	if w.backup.Layout != 0 || w.backup.Manifest.Name != "backup_manifest.zst" || len(b.Objects) != 1 {
		t.Errorf("it is %+v in %d objects", w.backup, len(b.Objects))
	}
}
