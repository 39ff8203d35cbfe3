package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// store keeps volumes in a directory. Its methods may be repeated after a crash
// at any point and end in the same state.
type store struct {
	root string
	// sized is whether volumes are disks of a size, or plain directories.
	sized bool
	// fs is what new volumes hold.
	fs    filesystem
	locks sync.Map // volume name -> *sync.Mutex
}

// newStore opens the directory, which need not exist.
func newStore(root string, log *slog.Logger) (*store, error) {
	root, err := resolve(root)
	if err != nil {
		return nil, err
	}
	if err := loopsWork(); err != nil {
		log.Warn("loop devices are not available: volumes are plain directories and their sizes are not enforced",
			"error", err)
		return &store{root: root}, nil
	}
	fs, warning := choose()
	if warning != "" {
		log.Warn(warning)
	}
	return &store{root: root, sized: true, fs: fs}, nil
}

// resolve makes a directory and returns its path as the kernel writes it, which
// is what mounts and loop devices are compared with.
func resolve(root string) (string, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("make the volume directory: %w", err)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("find the volume directory: %w", err)
	}
	return filepath.EvalSymlinks(root)
}

func (s *store) dir(name string) string  { return filepath.Join(s.root, name) }
func (s *store) disk(name string) string { return filepath.Join(s.root, name, "disk") }
func (s *store) mnt(name string) string  { return filepath.Join(s.root, name, "mnt") }

// path is the directory that a Pod gets.
func (s *store) path(name string) string { return filepath.Join(s.mnt(name), "volume") }

// lock keeps two acts on one volume apart; acts on different ones run together.
func (s *store) lock(name string) (unlock func()) {
	value, _ := s.locks.LoadOrStore(name, &sync.Mutex{})
	mutex := value.(*sync.Mutex) //nolint:errcheck // nothing else is stored there
	mutex.Lock()
	return mutex.Unlock
}

// create makes a volume, or finds it made.
func (s *store) create(ctx context.Context, name string, bytes int64) error {
	defer s.lock(name)()
	if err := os.MkdirAll(s.mnt(name), 0o755); err != nil {
		return fmt.Errorf("make the volume's directory: %w", err)
	}
	if s.sized {
		if err := s.format(ctx, name, bytes); err != nil {
			return err
		}
		if err := s.mount(name); err != nil {
			return err
		}
	}
	return s.furnish(name)
}

// size is how large the disk of a volume is when someone asks for bytes: whole
// blocks, and enough for a file system.
func (s *store) size(bytes int64) int64 {
	const block = 4096
	return max((bytes+block-1)/block*block, s.fs.minimum)
}

// format makes the disk under another name first: a disk that exists is whole.
func (s *store) format(ctx context.Context, name string, bytes int64) error {
	if _, err := os.Stat(s.disk(name)); err == nil {
		return nil
	}
	unfinished := s.disk(name) + ".new"
	if err := sparse(unfinished, bytes); err != nil {
		return err
	}
	if err := s.fs.command(ctx, append(slices.Clone(s.fs.mkfs), unfinished)); err != nil {
		return err
	}
	if err := os.Rename(unfinished, s.disk(name)); err != nil {
		return fmt.Errorf("keep the disk: %w", err)
	}
	return nil
}

func sparse(path string, bytes int64) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("create the disk: %w", err)
	}
	defer file.Close()
	if err := file.Truncate(bytes); err != nil {
		return fmt.Errorf("size the disk: %w", err)
	}
	return file.Close()
}

func (s *store) mount(name string) error {
	mounted, err := deviceAt(s.mnt(name))
	if err != nil || mounted != "" {
		return err
	}
	kind, err := kindOf(s.disk(name))
	if err != nil {
		return err
	}
	device, err := attach(s.disk(name))
	if err != nil {
		return err
	}
	defer device.Close()
	if err := unix.Mount(device.Name(), s.mnt(name), kind.name, 0, kind.options); err != nil {
		return fmt.Errorf("mount %s at %s: %w", device.Name(), s.mnt(name), err)
	}
	return nil
}

// furnish makes the directory that the Pod sees look like a fresh disk's root:
// owned by root, and with the lost+found that programs must cope with. It is made
// under another name first: one that exists is whole, and then its user's.
func (s *store) furnish(name string) error {
	if _, err := os.Stat(s.path(name)); err == nil {
		return nil
	}
	unfinished := s.path(name) + ".new"
	if err := os.MkdirAll(unfinished, 0o755); err != nil {
		return fmt.Errorf("make the volume's directory: %w", err)
	}
	if err := os.Mkdir(filepath.Join(unfinished, "lost+found"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make lost+found: %w", err)
	}
	if err := os.Rename(unfinished, s.path(name)); err != nil {
		return fmt.Errorf("keep the volume's directory: %w", err)
	}
	return nil
}

// grow enlarges a volume while it is in use: file, device, file system. It never
// makes one smaller.
func (s *store) grow(ctx context.Context, name string, bytes int64) error {
	if !s.sized {
		return nil
	}
	defer s.lock(name)()
	if err := s.enlarge(name, bytes); err != nil {
		return err
	}
	device, err := deviceAt(s.mnt(name))
	if err != nil {
		return err
	}
	if device == "" {
		return fmt.Errorf("volume %s is not mounted at %s: restart the provisioner, it mounts all", name, s.mnt(name))
	}
	if err := refreshCapacity(device); err != nil {
		return err
	}
	kind, err := kindOf(s.disk(name))
	if err != nil {
		return err
	}
	return kind.command(ctx, kind.grow(device, s.mnt(name)))
}

func (s *store) enlarge(name string, bytes int64) error {
	info, err := os.Stat(s.disk(name))
	if err != nil {
		return fmt.Errorf("find the disk: %w", err)
	}
	if info.Size() >= bytes {
		return nil
	}
	if err := os.Truncate(s.disk(name), bytes); err != nil {
		return fmt.Errorf("enlarge the disk: %w", err)
	}
	return nil
}

// remove unmounts and deletes a volume. One that is gone already is fine.
func (s *store) remove(name string) error {
	defer s.lock(name)()
	if err := unmount(s.mnt(name)); err != nil {
		return err
	}
	if err := os.RemoveAll(s.dir(name)); err != nil {
		return fmt.Errorf("delete volume %s: %w", name, err)
	}
	return nil
}

// restore mounts every volume that exists, as after a restart of the machine. It
// goes on past one that fails: the others' Pods can start.
func (s *store) restore() error {
	if !s.sized {
		return nil
	}
	disks, err := filepath.Glob(filepath.Join(s.root, "*", "disk"))
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	var errs []error
	for _, disk := range disks {
		name := filepath.Base(filepath.Dir(disk))
		if err := s.mount(name); err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
