package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/change/space"
)

const (
	// meterPart is the part of the time, one in so many, that looking at every file may take, meterPause how long at
	// least until the next look. A volume may be short for months.
	meterPart  = 10
	meterPause = 250 * time.Millisecond
	// meterTries is how often it looks again where a file was given much, in bytes, meanwhile.
	meterTries = 3
	much       = 8 << 20
	// blockUnit is what st_blocks counts in, in bytes (stat(2)).
	blockUnit = 512
)

// meter measures how full a volume is.
type meter struct {
	fileSystem func() (fileSystem, error)
	beyondEnds func() (bytes int64, err error)
	now        func() time.Time
	// ahead is how much files had beyond their ends at the last look at them, in bytes, when before was used, all that
	// they have ahead included. That is kept until again where about as much is used as then, and else until soonest.
	ahead, before  int64
	again, soonest time.Time
}

// fileSystem is what a file system says of itself: how large it is, how much of that is used or kept for root, in
// bytes, and whether it is XFS.
type fileSystem struct {
	size, used int64
	xfs        bool
}

func newMeter(volume string) *meter {
	return &meter{
		fileSystem: func() (fileSystem, error) { return fileSystemOf(volume) },
		beyondEnds: func() (int64, error) { return beyondEnds(volume) },
		now:        time.Now,
	}
}

// Used measures how large a volume is, and how much of that is used or kept for root, in bytes.
func Used(volume string) func() (size, used int64, err error) { return newMeter(volume).used }

// used is how large the file system is, and how much of that is used or kept for root, in bytes. XFS gives a file that
// grows as much again as it has, ahead of what will be written, and takes it back when somebody else needs it
// (xfs(5), allocsize): that counts as free. It is only looked for where it makes a difference.
func (m *meter) used() (size, used int64, err error) {
	f, err := m.fileSystem()
	if err != nil || !f.xfs || !space.BoundsOf(f.size).IsShort(f.size-f.used, true) {
		return f.size, f.used, err
	}
	if now := m.now(); now.After(m.again) || now.After(m.soonest) && muchMeanwhile(m.before, f.used) {
		if f.used, err = m.lookAhead(f.used); err != nil {
			return 0, 0, err
		}
		m.before = f.used
		m.soonest = m.now().Add(meterPart * m.now().Sub(now))
		m.again = m.soonest.Add(meterPause)
	}
	return f.size, max(f.used-m.ahead, 0), nil
}

// lookAhead looks at every file, and says how much is used as it does. Where a file was given much meanwhile, it is not
// known whether that was seen: it looks again.
func (m *meter) lookAhead(before int64) (used int64, err error) {
	for range meterTries {
		if m.ahead, err = m.beyondEnds(); err != nil {
			return 0, fmt.Errorf("see what files have ahead: %w", err)
		}
		f, err := m.fileSystem()
		if used = f.used; err != nil || !muchMeanwhile(before, used) {
			return used, err
		}
		before = used
	}
	return used, nil
}

// muchMeanwhile says that files were given so much, or have given it back, that what they have ahead is another amount.
func muchMeanwhile(before, now int64) bool { return now-before >= much || before-now >= much }

func fileSystemOf(volume string) (fileSystem, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(volume, &stat); err != nil {
		return fileSystem{}, fmt.Errorf("see how full %s is: %w", volume, err)
	}
	blocks := func(n uint64) int64 { return int64(n) * stat.Frsize } //nolint:gosec // far from 2^63
	return fileSystem{
		size: blocks(stat.Blocks), used: blocks(stat.Blocks - stat.Bavail), xfs: stat.Type == unix.XFS_SUPER_MAGIC,
	}, nil
}

// beyondEnds is how much more the files of a folder have on disk than they are long, in bytes. What goes meanwhile or
// can't be read has nothing.
func beyondEnds(folder string) (bytes int64, err error) {
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return leaveOut(err)
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return leaveOut(err)
		}
		block := int64(stat.Blksize) //nolint:unconvert // it has 32 bits on arm64
		end := (stat.Size + block - 1) / block * block
		bytes += max(stat.Blocks*blockUnit-end, 0)
		return nil
	})
	return bytes, err
}

func leaveOut(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}
