package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"toban.dev/internal/wal"
)

// DataDirectory is a data directory (PGDATA) on its volume, and the marks beside it. What replaces it grows there.
type DataDirectory struct {
	// Volume is the persistent volume; the data directory lies in it, and a new
	// one grows beside it until it is whole.
	Volume string
	// WALVolume is the volume that pg_wal is on, "" where it is in the data directory.
	WALVolume string
}

// Path is where it is once it is whole.
func (d DataDirectory) Path() string { return filepath.Join(d.Volume, "data") }

// WAL is its pg_wal.
func (d DataDirectory) WAL() WALDirectory { return WALDirectory(filepath.Join(d.Path(), walFolder)) }

// incoming is where a new data directory grows. It gets its Path by one rename,
// so that what is there is always whole.
func (d DataDirectory) incoming() string { return filepath.Join(d.Volume, "incoming") }

// outgoing is what data is called that is being removed.
func (d DataDirectory) outgoing() string { return filepath.Join(d.Volume, "outgoing") }

// HasData says whether there is a data directory. An error means that it is not known.
func (d DataDirectory) HasData() (bool, error) {
	_, err := os.Stat(filepath.Join(d.Path(), "PG_VERSION"))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, fmt.Errorf("look for a data directory: %w", err)
	}
	entries, err := os.ReadDir(d.Path())
	if errors.Is(err, os.ErrNotExist) || (err == nil && len(entries) == 0) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for a data directory: %w", err)
	}
	return false, fmt.Errorf("%s is not empty, but has no PG_VERSION: no data directory of PostgreSQL", d.Path())
}

// SetStandby makes the next start that of a standby, or of a primary.
func (d DataDirectory) SetStandby(standby bool) error {
	path := filepath.Join(d.Path(), "standby.signal")
	if standby {
		return writeIfChanged(path, nil)
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("make the server a primary: %w", err)
	}
	return syncFolder(d.Path())
}

// marker says on the volume that the data directory is being rewound.
func (d DataDirectory) marker() string { return filepath.Join(d.Volume, "rewinding") }

// unmark says durably that the data directory is as it was before a rewind.
func (d DataDirectory) unmark() error { return d.removeMarkers(d.marker()) }

// unmarkAll says durably that the data directory is whole, and its source's.
func (d DataDirectory) unmarkAll() error { return d.removeMarkers(d.marker(), d.forkMarker()) }

func (d DataDirectory) removeMarkers(markers ...string) error {
	for _, marker := range markers {
		if err := os.Remove(marker); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("note that the data directory is whole: %w", err)
		}
	}
	return syncFolder(d.Volume)
}

// forkMarker says on the volume that the data directory has WAL that it must not have.
func (d DataDirectory) forkMarker() string { return filepath.Join(d.Volume, "forked") }

// MarkForked puts on disk that the server has written as a primary when it was to be a standby. A Rewind or
// a Clone takes that back.
func (d DataDirectory) MarkForked() error {
	return WriteFile(d.forkMarker(), []byte("the server was promoted when it was to be a standby: "+
		"this data is to be rewound or copied anew\n"), 0o600)
}

// Forked says whether MarkForked was the last word on the data directory.
func (d DataDirectory) Forked() (bool, error) { return exists(d.forkMarker()) }

// exists says whether there is a file. An error means that it is not known.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return false, fmt.Errorf("look whether the data directory is whole: %w", err)
}

// FreeSpace is how many bytes are left for the server on that of its volumes which has least (statfs(2)).
func (d DataDirectory) FreeSpace() (bytes uint64, err error) {
	bytes, _, err = freeOf(d.Volume)
	if err != nil || d.WALVolume == "" {
		return bytes, err
	}
	forWAL, _, err := freeOf(d.WALVolume)
	return min(bytes, forWAL), err
}

func freeOf(volume string) (free, size uint64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(volume, &stat); err != nil {
		return 0, 0, fmt.Errorf("ask for the free space of %s: %w", volume, err)
	}
	block := uint64(stat.Frsize) //nolint:gosec // the size of a block is positive
	return stat.Bavail * block, stat.Blocks * block, nil
}

// shortOfRoom says that a copy needs the room of the data that it replaces, on one of the volumes, and that it can't
// even begin to write there. Of a WAL volume, a quarter is as much as is to be left at most.
func (d DataDirectory) shortOfRoom() (short, none bool, err error) {
	free, _, err := freeOf(d.Volume)
	if err != nil || d.WALVolume == "" {
		return free <= roomToSpare, free <= leastRoom, err
	}
	forWAL, size, err := freeOf(d.WALVolume)
	return free <= roomToSpare || forWAL <= min(roomToSpare, size/4), min(free, forWAL) <= leastRoom, err
}

// WALSize is how many bytes the WAL files of the data on a volume have, 0 where there is no data. WAL that is on a
// volume of its own is none of it.
func WALSize(volume string) (bytes int64, err error) {
	if linked, err := WALFolder(DataDirectory{Volume: volume}.Path()); err != nil || linked != "" {
		return 0, err
	}
	return LinkedWALSize(volume)
}

// LinkedWALSize is the same, wherever it is.
func LinkedWALSize(volume string) (bytes int64, err error) {
	folder, err := os.Open(string(DataDirectory{Volume: volume}.WAL()))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("see how much WAL there is: %w", err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return 0, fmt.Errorf("see how much WAL there is: %w", err)
	}
	for _, name := range names {
		if _, is := wal.ParseSegment(name, wal.SegmentSize); is {
			bytes += wal.SegmentSize
		}
	}
	return bytes, nil
}
