package fault

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/change/space"
	"toban.dev/internal/volume"
)

const (
	testMiB = int64(1) << 20
	// blockUnit is what st_blocks counts in, in bytes (stat(2)).
	blockUnit = 512
)

// filling is a filler of a volume of 512 MiB on which so much is used besides its own file.
type filling struct {
	*filler
	used, wal int64
}

func newFilling(t *testing.T) *filling {
	t.Helper()
	folder := t.TempDir()
	must(t, os.Mkdir(filepath.Dir(volume.FillPath(folder)), 0o700))
	f := &filling{filler: newFiller(folder, slog.New(slog.DiscardHandler)), used: 100 * testMiB}
	f.measure = func() (int64, int64, error) { return 512 * testMiB, f.used + f.has(), nil }
	f.filler.wal = func() (int64, error) { return f.wal, nil }
	f.resize = func(path string, more int64) error { // what a test fills takes no memory
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		return errors.Join(file.Truncate(f.has()+more), file.Close())
	}
	return f
}

func (f *filling) has() int64 {
	file, err := os.Stat(f.path)
	if err != nil {
		return 0
	}
	return file.Size()
}

// left is how much is free besides its file.
func (f *filling) left() int64 { return 512*testMiB - f.used - f.has() }

// What is free stays as it is to be, whatever the server writes or removes meanwhile, and all of it is given back.
func TestAVolumeIsFilledAndEmptied(t *testing.T) {
	f := newFilling(t)
	want := space.BoundsOf(512 * testMiB).DrillLeaves()
	must(t, f.Fill(512*testMiB))
	if f.left() != want {
		t.Errorf("%d MiB are free, want %d", f.left()/testMiB, want/testMiB)
	}
	for _, wrote := range []int64{32 * testMiB, -48 * testMiB} {
		f.mutex.Lock()
		f.used += wrote
		f.mutex.Unlock()
		for end := time.Now().Add(30 * time.Second); f.left() != want; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("after %d MiB more, %d are free, want %d", wrote/testMiB, f.left()/testMiB, want/testMiB)
			}
		}
	}
	must(t, f.Empty())
	if f.look(); f.has() != 0 {
		t.Errorf("its file has %d MiB", f.has()/testMiB)
	}
	must(t, f.Fill(512*testMiB))
	must(t, f.Empty())
}

// A file of an agent that has ended is removed by the next.
func TestAFileOfAFormerLifeIsRemoved(t *testing.T) {
	f := newFilling(t)
	must(t, os.WriteFile(f.path, make([]byte, testMiB), 0o600))
	must(t, f.Empty())
	if f.has() != 0 {
		t.Error("it is there")
	}
	must(t, f.Empty())
}

func TestAVolumeThatMustNotBeFilled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*filling)
		volume int64
		words  string
	}{
		"others have their data there": {func(*filling) {}, 256 * testMiB, "not the volume's own"},
		"nearly all is used":           {func(f *filling) { f.used = 300 * testMiB }, 512 * testMiB, "Enlarge"},
	} {
		f := newFilling(t)
		c.change(f)
		if err := f.Fill(c.volume); err == nil || !strings.Contains(err.Error(), c.words) || f.has() != 0 {
			t.Errorf("%s: %v, and %d MiB are filled", name, err, f.has()/testMiB)
		}
	}
	f := newFilling(t)
	if f.used, f.wal = 300*testMiB, 64*testMiB; f.Fill(512*testMiB) != nil {
		t.Error("what WAL has does not count as free")
	}
	must(t, f.Empty())
}

// What is allocated is on disk, and what is given back is not.
func TestAFileTakesRoomAndGivesItBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, c := range []struct{ more, want int64 }{
		{3 * testMiB, 3 * testMiB}, {70 * testMiB, 73 * testMiB}, {-72 * testMiB, testMiB}, {-5 * testMiB, 0},
	} {
		must(t, resize(path, c.more))
		var stat unix.Stat_t
		must(t, unix.Stat(path, &stat))
		if stat.Size != c.want || stat.Blocks*blockUnit < c.want {
			t.Errorf("with %d MiB more it has %d MiB, and %d on disk, want %d", c.more/testMiB, stat.Size/testMiB,
				stat.Blocks*blockUnit/testMiB, c.want/testMiB)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
