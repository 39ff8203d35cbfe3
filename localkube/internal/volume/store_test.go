package volume

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const megabyte = 1 << 20

// onEach runs a test on every file system that volumes can hold here.
func onEach(t *testing.T, test func(t *testing.T, s *store)) {
	for _, fs := range []filesystem{ext4, xfs} {
		t.Run(fs.name, func(t *testing.T) {
			s := disks(t)
			if !kernelKnows(fs.name) {
				t.Skipf("the kernel does not know %s", fs.name)
			}
			if !installed(fs.mkfs[0]) {
				t.Skipf("%s is missing: localkube packages --install", fs.mkfs[0])
			}
			s.fs = fs
			test(t, s)
		})
	}
}

// disks makes a store with real loop devices, or skips the test.
func disks(t *testing.T) *store {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount")
	}
	if err := loopsWork(); err != nil {
		t.Skipf("no loop devices here: %v", err)
	}
	root := t.TempDir()
	s, err := newStore(root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Cleanup(root); err != nil {
			t.Error(err)
		}
	})
	return s
}

// capacity is the size in bytes of the file system that holds path.
func capacity(t *testing.T, path string) int64 {
	t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(path, &stat); err != nil {
		t.Fatal(err)
	}
	return int64(stat.Blocks) * stat.Bsize
}

func TestVolumeIsADiskOfItsSize(t *testing.T) { onEach(t, volumeIsADiskOfItsSize) }

func volumeIsADiskOfItsSize(t *testing.T, s *store) {
	start := time.Now()
	if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
		t.Fatal(err)
	}
	t.Logf("made in %s", time.Since(start))
	if got := capacity(t, s.path("pvc-1")); got > 320*megabyte || got < 230*megabyte {
		t.Errorf("the volume has %d MB, want nearly 320", got/megabyte)
	}
	err := os.WriteFile(filepath.Join(s.path("pvc-1"), "big"), make([]byte, 321*megabyte), 0o644)
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("writing more than the volume holds: %v, want no space left", err)
	}
	if _, err := os.Stat(filepath.Join(s.path("pvc-1"), "lost+found")); err != nil {
		t.Error("a fresh disk has a lost+found, this one has not")
	}
}

func TestCreateMayBeRepeated(t *testing.T) {
	s := disks(t)
	if err := os.MkdirAll(s.dir("pvc-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.disk("pvc-1")+".new", []byte("a crash left half a disk"), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
			t.Fatal(err)
		}
	}
	keep := filepath.Join(s.path("pvc-1"), "keep")
	if err := os.WriteFile(keep, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error("making the volume again lost what was in it")
	}
}

func TestGrowWhileInUse(t *testing.T) { onEach(t, growWhileInUse) }

func growWhileInUse(t *testing.T, s *store) {
	if s.fs.name == ext4.name && !holds(unix.CAP_SYS_RESOURCE) {
		t.Skip("the kernel lets a mounted ext4 grow only with CAP_SYS_RESOURCE")
	}
	if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
		t.Fatal(err)
	}
	open, err := os.Create(filepath.Join(s.path("pvc-1"), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	start := time.Now()
	for range 2 { // again, as after a crash
		if err := s.grow(t.Context(), "pvc-1", 640*megabyte); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("grown twice in %s", time.Since(start))
	if got := capacity(t, s.path("pvc-1")); got < 560*megabyte {
		t.Errorf("the volume has %d MB, want nearly 640", got/megabyte)
	}
	if _, err := open.Write(make([]byte, 450*megabyte)); err != nil {
		t.Errorf("the new space cannot be used: %v", err)
	}
}

func TestRestoreAfterTheMachineRestarted(t *testing.T) {
	s := disks(t)
	if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.path("pvc-1"), "file")
	if err := os.WriteFile(file, []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Cleanup(s.root); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path("pvc-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an unmounted volume shows a directory that a Pod could begin with: %v", err)
	}
	if err := s.restore(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "kept" {
		t.Errorf("after the restart the file holds %q, %v", text, err)
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	s := disks(t)
	if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.remove("pvc-1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(s.dir("pvc-1")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the volume's directory is still there: %v", err)
	}
	checkNoLoops(t, s.root)
}

func TestCleanupFindsEveryMountAndNothingElse(t *testing.T) {
	s, other := disks(t), disks(t)
	for _, st := range []*store{s, other} {
		if err := st.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
			t.Fatal(err)
		}
	}
	pod := t.TempDir() // as the kubelet mounts a volume for a Pod
	if err := unix.Mount(s.path("pvc-1"), pod, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := Cleanup(s.root); err != nil {
			t.Fatal(err)
		}
	}
	checkNoLoops(t, s.root)
	if device, _ := deviceAt(pod); device != "" {
		t.Errorf("%s is still mounted for a Pod", device)
	}
	if device, _ := deviceAt(other.mnt("pvc-1")); device == "" {
		t.Error("another cluster's volume was unmounted")
	}
	if err := Cleanup(filepath.Join(s.root, "never-existed")); err != nil {
		t.Error(err)
	}
}

func TestManyVolumes(t *testing.T) {
	s := disks(t)
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"} {
		if err := s.create(t.Context(), name, s.fs.minimum); err != nil {
			t.Fatal(err)
		}
	}
	devices, err := loopsBelow(s.root)
	if err != nil || len(devices) != 16 {
		t.Errorf("%d loop devices, %v, want 16", len(devices), err)
	}
}

func TestPlainDirectoriesWithoutLoopDevices(t *testing.T) {
	s := &store{root: t.TempDir()}
	if err := s.create(t.Context(), "pvc-1", 320*megabyte); err != nil {
		t.Fatal(err)
	}
	if err := s.grow(t.Context(), "pvc-1", 64*megabyte); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.path("pvc-1"), "file"), nil, 0o644); err != nil {
		t.Error(err)
	}
	if err := s.remove("pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestAVolumeHalfMadeIsMadeWhole(t *testing.T) {
	cases := map[string]string{
		"a crash before anything":        "",
		"a crash before lost+found":      "volume.new",
		"a crash before it was complete": "volume.new/lost+found",
	}
	for name, left := range cases {
		t.Run(name, func(t *testing.T) {
			s := &store{root: t.TempDir()}
			if err := os.MkdirAll(filepath.Join(s.mnt("pvc-1"), left), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := s.create(t.Context(), "pvc-1", megabyte); err != nil {
				t.Fatal(err)
			}
			lost := filepath.Join(s.path("pvc-1"), "lost+found")
			if err := os.Remove(lost); err != nil {
				t.Errorf("a fresh disk has a lost+found, this one has not: %v", err)
			}
			if err := s.create(t.Context(), "pvc-1", megabyte); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(lost); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("made again, it has what its user removed: %v", err)
			}
		})
	}
}

func checkNoLoops(t *testing.T, root string) {
	t.Helper()
	if err := awaitDetached(root); err != nil {
		t.Error(err)
	}
}
