package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"toban.dev/internal/wal"
)

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
