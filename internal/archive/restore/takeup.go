package restore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/postgres"
)

// The files beside the data of a restore, for a process that goes on with it.
const (
	// fileBegun says what it is made of.
	fileBegun = "begun.json"
	// fileUnpacked notes which pieces are unpacked.
	fileUnpacked = "unpacked.jsonl"
)

// begun is what a restore is made of. Only of the same can another process go on with it.
type begun struct {
	// Backup is the last of the chain, Chain all of it, Spaces where the tablespaces are.
	Backup string          `json:"backup"`
	Chain  []format.Object `json:"chain"`
	Spaces string          `json:"spaces"`
}

func (r *restoring) begunFile() string { return filepath.Join(r.Folder, fileBegun) }

// begun reads what a process before this one has begun with, if there was one.
func (r *restoring) begun() (begun, error) {
	var b begun
	text, err := os.ReadFile(r.begunFile())
	if errors.Is(err, os.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, fmt.Errorf("see what was restored before: %w", err)
	}
	_ = json.Unmarshal(text, &b) // what can't be understood is of nobody
	return b, nil
}

// prefer takes the backup that was begun with in place of a later one, where both lead to the same: else each backup
// that is taken meanwhile would have all fetched anew.
func (r *restoring) prefer(choice book.Choice) (book.Choice, error) {
	if r.Present != nil {
		return choice, nil
	}
	before, err := r.begun()
	if err != nil || before.Backup == "" || before.Backup == choice.Backup.ID {
		return choice, err
	}
	wanted := r.Wanted
	wanted.Backup = before.Backup
	other, err := r.catalogue.Choose(wanted)
	if r.Wanted.Backup != "" || r.Wanted.Target.Immediate || err != nil || other.Branch != choice.Branch ||
		other.To != choice.To || !slices.Equal(other.TermHistory, choice.TermHistory) {
		return choice, nil //nolint:nilerr // it leads there no more
	}
	return other, nil
}

// takeUp sees whether what is there is of the same backups, and else removes it.
func (r *restoring) takeUp(ctx context.Context, chain []format.Backup) error {
	if err := r.server.Data.EndOrphans(ctx); err != nil {
		return err
	}
	now := begun{Backup: chain[len(chain)-1].ID, Spaces: r.Tablespaces}
	for _, b := range chain {
		for _, o := range b.ManifestObjects() {
			o.Name = b.Folder() + o.Name
			now.Chain = append(now.Chain, o)
		}
	}
	before, err := r.begun()
	if err != nil || reflect.DeepEqual(before, now) {
		return err
	}
	if err := r.clear(); err != nil {
		return fmt.Errorf("remove what was restored before: %w", err)
	}
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return postgres.WriteFile(r.begunFile(), append(text, '\n'), 0o600)
}

// clear removes what another restore has left.
func (r *restoring) clear() error {
	// The note goes first: without it nothing else counts.
	if err := os.RemoveAll(r.begunFile()); err != nil {
		return err
	}
	if err := postgres.RemoveData(r.server.Data.Path()); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(r.Folder, entry.Name())); err != nil {
			return err
		}
	}
	if r.Tablespaces == "" {
		return nil
	}
	return os.RemoveAll(r.Tablespaces)
}

// there is how much of the data is on the volume already, in bytes.
func (r *restoring) there() (sum uint64, err error) {
	for _, folder := range []string{r.Folder, r.Tablespaces} {
		if folder == "" {
			continue
		}
		err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			sum += uint64(info.Size()) //nolint:gosec // a file has no negative size
			return nil
		})
		if err != nil {
			return 0, fmt.Errorf("see how much is there: %w", err)
		}
	}
	return sum, nil
}
