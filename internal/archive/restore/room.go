package restore

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"toban.dev/internal/archive/format"
	"toban.dev/internal/wal"
)

// ErrNoRoom says that a volume has no room for the data.
var ErrNoRoom = errors.New("the volume has no room for the data")

// room looks whether the data of a chain fits into a folder, with what is to stay free or is for WAL; so much of it is
// there already. A chain of several is there twice for a while: as it was fetched, and put together. The field is what
// a user enlarges the volume by.
func room(folder string, chain []format.Backup, there, reserve uint64, field string) error {
	data := uint64(0)
	for _, b := range chain {
		data += uint64(max(b.RawBytes, 0))
	}
	if len(chain) > 1 {
		data *= 2
	}
	need := data - min(data, there) + reserve
	free, err := free(folder)
	if err != nil {
		return fmt.Errorf("see how much room there is in %s: %w", folder, err)
	}
	if free < need {
		return fmt.Errorf("%w: %d MiB are free, and it takes %d MiB: enlarge it (%s)",
			ErrNoRoom, free>>20, need>>20, field)
	}
	return nil
}

// ahead is how many segments may lie beyond the replay: a tenth of what is free on the volume.
func ahead(folder string) uint64 {
	free, err := free(folder)
	if err != nil {
		return 2
	}
	tenth := free / 10 / wal.SegmentSize
	return min(max(tenth, 2), 32)
}

// free is how many bytes are free on the volume of a folder.
func free(folder string) (uint64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(folder, &stat)
	return stat.Bavail * uint64(stat.Bsize), err //nolint:gosec // the size of a block is positive
}
