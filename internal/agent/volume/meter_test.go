package volume

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file has MiBs beyond its end, as XFS gives them to files that grow, one has holes, and one is just long. Only the
// first counts, wherever it is.
func TestWhatFilesHaveAhead(t *testing.T) {
	const mib = 1 << 20
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string, length, allocated int64) {
		t.Helper()
		f, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := f.Truncate(length); err != nil {
			t.Fatal(err)
		}
		if allocated > 0 {
			if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, allocated); err != nil {
				t.Fatal(err)
			}
		}
	}
	file("base/grows", mib+1, 3*mib)
	file("base/holes", 8*mib, 0)
	file("long", 2*mib, 2*mib)
	ahead, err := beyondEnds(folder)
	if err != nil || ahead != 2*mib-4096 {
		t.Errorf("files have %d ahead (%v), want %d", ahead, err, 2*mib-4096)
	}
}
