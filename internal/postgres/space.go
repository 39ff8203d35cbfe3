package postgres

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// FreeSpace is how many bytes of the volume are left for the server (statfs(2)).
func (s *Server) FreeSpace() (bytes uint64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(s.Volume, &stat); err != nil {
		return 0, fmt.Errorf("ask for the free space of %s: %w", s.Volume, err)
	}
	return stat.Bavail * uint64(stat.Frsize), nil //nolint:gosec // the size of a block is positive
}
