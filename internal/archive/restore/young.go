package restore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"toban.dev/internal/archive/book"
)

// errYoung says that a backup is consistent only after the target: when it stopped was said by the clock of the Pod
// that took it, and when a transaction was committed is said by that of the server.
var errYoung = errors.New("it is consistent only after that")

// youngWords are what a server says then, and ends (PerformWalRecovery in xlogrecovery.c).
const youngWords = "requested recovery stop point is before consistent recovery point"

// orYoung is an error, or errYoung where it says so.
func orYoung(err error) error {
	if err != nil && strings.Contains(err.Error(), youngWords) {
		return fmt.Errorf("%w: %w", errYoung, err)
	}
	return err
}

// withBackups restores from the backup that is chosen, and from the one before where that is too young.
func (r *restoring) withBackups(ctx context.Context) error {
	for {
		err := r.withOne(ctx)
		young := r.Wanted.Young
		switch {
		case errors.Is(err, errYoung) && r.Present != nil:
			return fmt.Errorf("%w: of volume snapshot %s, %w", book.ErrOutside, r.Present.ID, err)
		case errors.Is(err, errYoung) && slices.Contains(young, r.restored.Choice.Backup.ID):
			return fmt.Errorf("%w: of backup %s, %w", book.ErrOutside, r.restored.Choice.Backup.ID, err)
		case errors.Is(err, errYoung):
			r.Wanted.Young = append(young, r.restored.Choice.Backup.ID)
		case err != nil && len(young) > 0:
			return fmt.Errorf("of backup %s, %w: %w", young[len(young)-1], errYoung, err)
		default:
			return err
		}
	}
}
