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

// FreeSpace is how many bytes of the volume are left for the server (statfs(2)).
func (s *Server) FreeSpace() (bytes uint64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(s.Volume, &stat); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", s.Volume, err)
	}
	return stat.Bavail * uint64(stat.Frsize), nil //nolint:gosec // the size of a block is positive
}

// WALSize is how many bytes the WAL files on a volume have, 0 where there is no data.
func WALSize(volume string) (bytes int64, err error) {
	folder, err := os.Open(filepath.Join((&Server{Volume: volume}).Data(), "pg_wal"))
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
