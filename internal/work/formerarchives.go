package work

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/protocol"
)

const (
	// mostFormer bounds how many archives of former major versions there are, mostFormerWindows how many windows a
	// result tells of the newest, and one of each other, and mostFormerRemoved how many removed backups of each: a
	// termination message has little room.
	mostFormer        = 3
	mostFormerWindows = 2
	mostFormerRemoved = 5
)

// words are all of a result that may be cut short.
func (t *taking) words(more ...*string) []*string {
	more = append(more, &t.result.Held, &t.result.Refused)
	for i := range t.result.Former {
		more = append(more, &t.result.Former[i].Held)
	}
	return more
}

// retainFormer removes what is not to be kept of the archives of former major versions, and tells what they have. The
// newest is first: what newer archives have, of each kind, counts before what older ones do. No failure keeps a backup
// from being taken.
func (t *taking) retainFormer(
	ctx context.Context, former []protocol.FormerArchive, policy keep.Policy, newer map[string]int,
) (all []book.Catalogue) {
	t.result.Former = nil
	for _, f := range former[:min(len(former), mostFormer)] {
		policy.Pinned, policy.InUse, policy.Newer = f.Pinned, f.InUse, maps.Clone(newer)
		told := protocol.FormerResult{Path: f.Path, Major: f.Major}
		var catalogue book.Catalogue
		snapshots, err := snapshotBackups(f.Snapshots)
		if policy.Snapshots = snapshots; err == nil {
			catalogue, err = t.retainOne(ctx, policy, &told)
		}
		if err != nil {
			told.Held = fmt.Sprintf("the archive %s could not be read or cleaned: %v", f.Path, err)
			t.Log.Warn("retention holds back", "message", told.Held)
		}
		if len(t.result.Former) > 0 {
			told.Windows = told.Windows[:min(len(told.Windows), 1)]
		}
		t.result.Former = append(t.result.Former, told)
		if err != nil {
			return all // what it has is not known, so nothing older is touched
		}
		for kind, count := range catalogue.Restorable() {
			newer[kind] += count
		}
		all = append(all, catalogue)
	}
	return all
}

// retainOne does it in one.
func (t *taking) retainOne(
	ctx context.Context, policy keep.Policy, told *protocol.FormerResult,
) (book.Catalogue, error) {
	r := t.removal(bucket.Sub(t.store, told.Path))
	owner, err := format.ReadOwner(ctx, r.archive)
	switch {
	case errors.Is(err, bucket.ErrNotExist):
		names, err := listNames(ctx, r.archive)
		if told.Empty = err == nil && len(names) == 0; err == nil && !told.Empty {
			err = fmt.Errorf("it has objects, and no %s, which says whose they are", format.FileArchive)
		}
		return book.Catalogue{}, err
	case err != nil:
		return book.Catalogue{}, err
	case owner.UID != t.settings.Archive.Owner:
		return book.Catalogue{}, &format.TakenError{Owner: owner}
	}
	catalogue, d, err := r.retain(ctx, policy)
	if err == nil && d.Empty && !r.keepsAll && r.refused == "" {
		told.Empty, err = r.empty(ctx)
	}
	told.Removed = r.removed[:min(len(r.removed), mostFormerRemoved)]
	told.Held = strings.Join(slices.DeleteFunc(append(d.Held, r.refused), func(s string) bool { return s == "" }), "; ")
	told.Windows = windows(catalogue)
	told.Windows = told.Windows[:min(len(told.Windows), mostFormerWindows)]
	for i, w := range told.Windows { // none goes on
		if last, ok := catalogue.Window(catalogue.NewestTermHistory()); ok && w.Latest.IsZero() {
			told.Windows[i].Latest, told.Windows[i].LatestLSN = last.Until.UTC().Truncate(time.Second), last.To.String()
		}
	}
	return catalogue, err
}

// empty removes all that is in an archive, the object last that says whose it is.
func (r *removal) empty(ctx context.Context) (bool, error) {
	names, err := listNames(ctx, r.archive)
	if err != nil {
		return false, err
	}
	r.log.Info("removes the archive of a former major version: nothing in it is to be kept", "objects", len(names))
	names = slices.DeleteFunc(names, func(name string) bool { return name == format.FileArchive })
	for batch := range slices.Chunk(names, keep.DeleteBatch) {
		if err := r.archive.Delete(ctx, batch...); err != nil {
			return false, r.unlessDenied(err)
		}
	}
	if err := r.archive.Delete(ctx, format.FileArchive); err != nil {
		return false, r.unlessDenied(err)
	}
	return true, nil
}

// unlessDenied takes an error for what is refused, where it is that.
func (r *removal) unlessDenied(err error) error {
	if !errors.Is(err, bucket.ErrDenied) {
		return err
	}
	r.refused = refusal(1, err)
	return nil
}

func listNames(ctx context.Context, b bucket.Bucket) (names []string, err error) {
	for o, err := range b.List(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list the archive: %w", err)
		}
		names = append(names, o.Name)
	}
	return names, nil
}
