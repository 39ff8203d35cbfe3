package restore

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// putPiece writes a piece of a backup as Take does it.
func putPiece(t *testing.T, to bucket.Bucket, b format.Backup, name string, content []byte) format.Object {
	t.Helper()
	encoder, err := format.NewEncoder("")
	if err != nil {
		t.Fatal(err)
	}
	return archivetest.Folder{T: t, Bucket: to, Encoder: encoder, ID: b.ID}.Put(name, content)
}

// counting is a bucket that counts what is read of it, and has each Get seen before.
type counting struct {
	bucket.Bucket
	mutex  sync.Mutex
	bytes  map[string]int64 // by the name of the object
	before func(ctx context.Context, name string) error
}

func (c *counting) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if c.before != nil {
		if err := c.before(ctx, name); err != nil {
			return nil, err
		}
	}
	r, err := c.Bucket.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.bytes == nil {
		c.bytes = map[string]int64{}
	}
	c.bytes[name] += int64(len(content))
	return io.NopCloser(bytes.NewReader(content)), err
}

// piecesRead are those of the data directory of which something was read, by their numbers, and how many bytes.
func (c *counting) piecesRead() (numbers []int, sum int64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for name, n := range c.bytes {
		if tar, number, _ := format.ParsePieceName(filepath.Base(name)); tar == format.BaseTar {
			numbers, sum = append(numbers, number), sum+n
		}
	}
	slices.Sort(numbers)
	return numbers, sum
}

// cutBackup is a backup of small and large files, in pieces of 100 blocks.
type cutBackup struct {
	backup format.Backup
	bucket *buckettest.Memory
	files  map[string][]byte
}

const cutPiece = 100 * tarBlock

func newCutBackup(t *testing.T) *cutBackup {
	t.Helper()
	c := &cutBackup{format.Backup{ID: "20261120T031500Z-3f2a", Type: format.TypeFull}, buckettest.NewMemory(),
		map[string][]byte{}}
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	archivetest.Must(t, w.WriteHeader(&tar.Header{Name: "base", Typeflag: tar.TypeDir, Mode: 0o700}))
	random := rand.New(rand.NewPCG(1, 2))
	// The third fills pieces of its own, the others share them; one is empty.
	for i, size := range []int{8192, 700, 3*cutPiece + 77, 0, 8192, 512, cutPiece, 40, 4 * cutPiece, 9000} {
		content := make([]byte, size)
		for j := range content {
			content[j] = byte(random.Uint32())
		}
		name := fmt.Sprintf("base/%d", i)
		c.files[name] = content
		archivetest.Must(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600,
			Size: int64(size)}))
		_, err := w.Write(content)
		archivetest.Must(t, err)
	}
	archivetest.Must(t, w.Close())
	for i := 0; text.Len() > 0; i++ {
		c.backup.Pieces = append(c.backup.Pieces,
			putPiece(t, c.bucket, c.backup, format.PieceName(format.BaseTar, i), bytes.Clone(text.Next(cutPiece))))
	}
	c.backup.Manifest = putPiece(t, c.bucket, c.backup, format.FileManifest, []byte("{}"))
	return c
}

// sum is what the pieces with some numbers have together, as they lie in the bucket.
func (c *cutBackup) sum(numbers []int) (sum int64) {
	for _, n := range numbers {
		sum += c.backup.Pieces[n].Size
	}
	return sum
}

func (c *cutBackup) unpack(ctx context.Context, from bucket.Bucket, folder string) error {
	return Unpack(ctx, UnpackOptions{Bucket: from, Decoder: &format.Decoder{}, Chain: []format.Backup{c.backup},
		Workers: 3,
		Data:    filepath.Join(folder, "data"), Journal: filepath.Join(folder, "unpacked")})
}

// check sees that all is there as it was, and nothing else.
func (c *cutBackup) check(t *testing.T, folder string) {
	t.Helper()
	for name, want := range c.files {
		if got, err := os.ReadFile(filepath.Join(folder, "data", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes of %d, or others: %v", name, len(got), len(want), err)
		}
	}
	for in, n := range map[string]int{"data": 2, "data/base": len(c.files)} {
		if entries, err := os.ReadDir(filepath.Join(folder, in)); err != nil || len(entries) != n {
			t.Errorf("in %s there are %v, %v", in, entries, err)
		}
	}
}

// cutOff unpacks until some pieces are unpacked and noted, and no further.
func (c *cutBackup) cutOff(t *testing.T, folder string, until int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	from := &counting{Bucket: c.bucket, before: func(ctx context.Context, name string) error {
		tar, number, _ := format.ParsePieceName(filepath.Base(name))
		if tar != format.BaseTar || number < until {
			return nil
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			noted, err := os.ReadFile(filepath.Join(folder, "unpacked"))
			if err != nil || bytes.Count(noted, []byte("\n")) >= until {
				cancel()
				break
			}
		}
		<-ctx.Done()
		return ctx.Err()
	}}
	if err := c.unpack(ctx, from, folder); err == nil {
		t.Fatal("it was not cut off")
	}
	if read, _ := from.piecesRead(); len(read) != until {
		t.Fatalf("before it was cut off, it read %v", read)
	}
}

// What is on the volume is not fetched again; what is there only in part, or otherwise, is.
func TestWhatWasUnpackedIsNotFetchedAgain(t *testing.T) {
	all := newCutBackup(t)
	if n := len(all.backup.Pieces); n != 9 {
		t.Fatalf("it has %d pieces", n)
	}
	write := func(name string, change func([]byte) []byte) func(t *testing.T, folder string) {
		return func(t *testing.T, folder string) {
			t.Helper()
			file := filepath.Join(folder, name)
			content, err := os.ReadFile(file)
			archivetest.Must(t, err, os.WriteFile(file, change(content), 0o600))
		}
	}
	for name, c := range map[string]struct {
		harm func(t *testing.T, folder string)
		read []int // of the seven that were unpacked
	}{
		"as it was left": {func(*testing.T, string) {}, nil},
		"a byte of a large file is another": {
			write("data/base/2", func(b []byte) []byte { b[2*cutPiece] ^= 1; return b }), []int{2},
		},
		"a large file is cut off": {write("data/base/2", func(b []byte) []byte { return b[:2*cutPiece] }), []int{2, 3}},
		"a page is zeros": {
			write("data/base/0", func(b []byte) []byte { clear(b[:4096]); return b }), []int{0},
		},
		"an empty file is gone": {
			func(t *testing.T, folder string) {
				archivetest.Must(t, os.Remove(filepath.Join(folder, "data/base/3")))
			}, []int{3},
		},
		"a server has run since": {
			func(t *testing.T, folder string) {
				t.Helper()
				data := filepath.Join(folder, "data")
				long, err := os.ReadFile(filepath.Join(data, "base/1"))
				archivetest.Must(t, err, os.WriteFile(filepath.Join(data, "base/1"), append(long, 1, 2, 3), 0o600),
					os.Mkdir(filepath.Join(data, "new"), 0o700),
					os.WriteFile(filepath.Join(data, "new/1"), nil, 0o600),
					os.WriteFile(filepath.Join(data, "base/1_fsm"), nil, 0o600),
					os.Symlink("/etc", filepath.Join(data, "base/link")))
			}, nil,
		},
		"the note is cut off": {
			write("unpacked", func(b []byte) []byte { return b[:len(b)-10] }), []int{-1},
		},
		"the note is gone": {
			func(t *testing.T, folder string) { archivetest.Must(t, os.Remove(filepath.Join(folder, "unpacked"))) },
			[]int{0, 1, 2, 3, 4, 5, 6},
		},
		"a power loss left zeros in the note": {
			write("unpacked", func(b []byte) []byte { clear(b[10:20]); return b }), []int{-1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			all.cutOff(t, folder, 7)
			c.harm(t, folder)
			from := &counting{Bucket: all.bucket}
			archivetest.Must(t, all.unpack(t.Context(), from, folder))
			all.check(t, folder)
			read, sum := from.piecesRead()
			want := append(slices.Clone(c.read), 7, 8)
			if c.read != nil && c.read[0] < 0 && len(read) > 2 { // which piece was noted last, or first, is not known
				want = read
			}
			if !slices.Equal(read, want) || sum != all.sum(read) {
				t.Errorf("it read %v with %d bytes, expected %v", read, sum, want)
			}
		})
	}
}

// A piece that has changed in the bucket is not the one that is on the volume.
func TestAPieceOfAnotherBackupIsFetched(t *testing.T) {
	c, folder := newCutBackup(t), t.TempDir()
	c.cutOff(t, folder, 7)
	other := *c
	other.backup.Pieces = slices.Clone(c.backup.Pieces)
	// The same content, as another object.
	stored := append(bytes.Clone(c.bucket.Objects[c.backup.Folder()+c.backup.Pieces[1].Name].Content),
		0x50, 0x2A, 0x4D, 0x18, 0, 0, 0, 0) // a skippable frame of zstd
	sum := sha256.Sum256(stored)
	other.backup.Pieces[1].Size, other.backup.Pieces[1].SHA256 = int64(len(stored)), hex.EncodeToString(sum[:])
	archivetest.Must(t, c.bucket.Put(t.Context(), c.backup.Folder()+c.backup.Pieces[1].Name, stored))
	from := &counting{Bucket: c.bucket}
	archivetest.Must(t, other.unpack(t.Context(), from, folder))
	other.check(t, folder)
	if read, _ := from.piecesRead(); !slices.Equal(read, []int{1, 7, 8}) {
		t.Errorf("it read %v", read)
	}
}

// As many pieces are in memory as there are workers, however slow they are written.
func TestPiecesInMemoryAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCutBackup(t)
		p := newPlacing(&unpacking{UnpackOptions: UnpackOptions{Workers: 3}}, c.backup)
		begun := 0
		go func() {
			for _, err := range p.bounded(t.Context(), transfer.Each(c.backup.Pieces)) {
				if err == nil {
					begun++
				}
			}
		}()
		for written := range len(c.backup.Pieces) {
			synctest.Wait()
			if want := min(written+3, len(c.backup.Pieces)); begun != want {
				t.Errorf("when %d are written, %d have begun, expected %d", written, begun, want)
			}
			p.written()
		}
	})
}
