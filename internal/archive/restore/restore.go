// Package restore makes a database of what is in an archive: it unpacks a backup, gives a server the WAL to replay up
// to a target, and goes on with what was cut off. By the same means backups are verified and looked through, and copies
// are run. Which backup leads to the target the book says.
package restore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// RestoreOptions say what is restored, and where.
type RestoreOptions struct {
	// Bucket is rooted at the archive, which is only read.
	Bucket  bucket.Bucket
	Decoder *format.Decoder
	Wanted  book.Wanted
	// Present is the snapshot of which the data in Folder/data is, nil where the data is in the archive.
	Present *format.Snapshot
	// Major is the major version of the Programs, 0 for any: a backup of another one is refused (*VersionError).
	Major int
	// Folder has room for the database, and is for restores alone: the data directory becomes Folder/data. What a
	// Restore that was cut off has left there, and in Tablespaces, of the same backup is gone on with; else it is
	// removed. Run is a folder with a short name, for the Unix socket.
	Folder, Run string
	// Beside says that another server runs on the same volume. Restored tablespaces are in Tablespaces then, and not
	// where they were: what would make some there is refused (*TablespaceError).
	Beside bool
	// WALVolume is the volume that pg_wal is on for good, "" where that is the one of Folder.
	WALVolume string
	// Tablespaces is the folder, on the same file system, where those are to be for good.
	Tablespaces string
	Programs    postgres.Programs
	// Parameters are those of the database to be.
	Parameters map[string]string
	// Reserve is how many bytes must stay free on the volume, for a server that runs there.
	Reserve uint64
	// Size is the field of the spec by which the volume is enlarged, for people.
	Size    string
	Workers int
	// Log gets what the server says.
	Log io.Writer
	// Chosen, if set, is told from what it is restored; Progress how far a step is.
	Chosen   func(book.Choice)
	Progress func(step string, p transfer.Progress)
}

// Restored is what a restore has led to.
type Restored struct {
	Choice book.Choice
	// Reached is how far the WAL was replayed.
	Reached Recovered
	// TermHistory are the terms whose WAL it has; Begins is where its own begins, with a timeline of its own, and no
	// term yet. Newest is the newest term that the archive knows of.
	TermHistory []ha.TermStart
	Begins      ha.TermStart
	Newest      uint64
	// SystemIdentifier is the same as the source's.
	SystemIdentifier string
}

// VersionError says that a backup is of another major version of PostgreSQL than what would restore it.
type VersionError struct {
	Backup        string
	Version       string
	Major, Wanted int
}

// Error says into what it can be restored.
func (e *VersionError) Error() string {
	return fmt.Sprintf("the backup %s is of PostgreSQL %s, and spec.version is %d: it can be restored only into a new "+
		"SampleDB with version: %d", e.Backup, e.Version, e.Wanted, e.Major)
}

// runsWith is an error where a backup is known to be of another major version, 0 for any.
func runsWith(b format.Backup, major int) error {
	text, _, _ := strings.Cut(b.ServerVersion, ".")
	if own, err := strconv.Atoi(text); err == nil && major > 0 && own != major {
		return &VersionError{b.ID, b.ServerVersion, own, major}
	}
	return nil
}

type restoring struct {
	RestoreOptions
	scratch
	catalogue book.Catalogue
	plan      book.WALPlan
	restored  Restored
}

// Restore makes a data directory of what an archive has, up to the target. When it returns, the server has been a
// primary, has stopped in order, and all is on disk. Errors that would come again: ErrOutside, *ShortError,
// *ObjectError, *StuckError, *VersionError, *TablespaceError, ErrNoRoom. What is half done after an error is for the
// next Restore, or the caller's to remove.
func Restore(ctx context.Context, o RestoreOptions) (Restored, error) {
	if o.Workers <= 0 {
		o.Workers = transfer.Streams()
	}
	r := &restoring{RestoreOptions: o, scratch: newScratch(o.Programs, o.Folder, o.Run, o.Parameters, o.Log)}
	r.scratch.tablespaces, r.scratch.beside, r.server.Data.WALVolume = o.Tablespaces, o.Beside, o.WALVolume
	if o.Present != nil {
		r.scratch.starting = r.noteReplay
	}
	defer r.kill(ctx)
	err := r.withBackups(ctx)
	return r.restored, err
}

// withOne restores from one backup.
func (r *restoring) withOne(ctx context.Context) error {
	for _, step := range []func(context.Context) error{r.choose, r.fetch, r.replay, r.finish} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// choose finds what to restore from.
func (r *restoring) choose(ctx context.Context) error {
	var err error
	if r.catalogue, err = book.Read(ctx, r.Bucket); err != nil {
		return err
	}
	if r.Present != nil { // what the archive has of it is WAL
		r.catalogue.Backups = append(r.catalogue.Backups, r.Present.Backup)
		r.Wanted.Backup = r.Present.ID
	}
	choice, err := r.catalogue.Choose(r.Wanted)
	if err != nil {
		return err
	}
	if choice, err = r.prefer(choice); err != nil {
		return err
	}
	if err := runsWith(choice.Backup, r.Major); err != nil {
		return err
	}
	if r.plan, err = r.catalogue.PlanWAL(choice.TermHistory, choice.Backup.StartLSN, choice.To); err != nil {
		return err
	}
	r.restored.Choice, r.restored.Newest = choice, slices.Max(slices.Collect(maps.Keys(r.catalogue.Terms)))
	if err := r.room(ctx); err != nil {
		return err
	}
	if r.Chosen != nil {
		r.Chosen(choice)
	}
	return nil
}

// room looks whether the data fits, with what is there of it.
func (r *restoring) room(ctx context.Context) error {
	if r.Present != nil {
		return nil // it is there
	}
	chain, err := r.catalogue.Chain(r.restored.Choice.Backup.ID)
	if err != nil {
		return err
	}
	if err := r.takeUp(ctx, chain); err != nil {
		return err
	}
	there, err := r.there()
	if err != nil {
		return err
	}
	reserve := r.Reserve
	if r.WALVolume == "" {
		reserve += ahead(r.Folder) * wal.SegmentSize
	}
	return room(r.Folder, chain, there, reserve, cmp.Or(r.Size, "spec.storage.size"))
}

func (r *restoring) fetch(ctx context.Context) error {
	if r.Present != nil {
		return r.prepareSnapshot(ctx)
	}
	chain, err := r.catalogue.Chain(r.restored.Choice.Backup.ID)
	if err != nil {
		return err
	}
	// A base backup has pg_wal as a folder. What one before this has put there is fetched again.
	if err := postgres.DropWAL(r.server.Data.Path()); err != nil {
		return err
	}
	err = r.unpack(ctx, UnpackOptions{
		Bucket: r.Bucket, Decoder: r.Decoder, Chain: chain, Workers: r.Workers, Progress: r.stepped(StepUnpack),
		Journal: filepath.Join(r.Folder, fileUnpacked),
	})
	if err != nil {
		return err
	}
	return r.server.Data.MoveWAL(r.server.Data.Path())
}

func (r *restoring) stepped(step string) func(transfer.Progress) {
	return func(p transfer.Progress) {
		if r.Progress != nil {
			r.Progress(step, p)
		}
	}
}

// replay brings the server to the target, and out of recovery.
func (r *restoring) replay(ctx context.Context) error {
	target := r.Wanted.Target
	reached, err := r.recover(ctx, r.recovery(target, 0))
	if short := (*ShortError)(nil); errors.As(err, &short) {
		if err = ends(r.restored.Choice, target, short); err == nil {
			r.stop(ctx)
			last := r.recovery(book.Target{}, short.Reached.LSN)
			last.Short = true
			reached, err = r.recover(ctx, last)
		}
	}
	r.restored.Reached = reached
	if err != nil || reached.Ended {
		return orYoung(err)
	}
	return r.promote(ctx)
}

// ends is nil where a target is reached when all WAL is replayed that there is. PostgreSQL does not see that before a
// later record comes. A time is not reached where WAL is missing of what follows, or of a branch that was left: there a
// later commit alone shows that none is missing before it.
func ends(c book.Choice, t book.Target, short *ShortError) error {
	switch {
	case t.LSN != 0 && short.Reached.LSN >= t.LSN, !t.Time.IsZero() && c.Open:
		return nil
	case t.Time.IsZero():
		return short
	}
	missing := "branch " + strconv.FormatUint(c.Branch, 10) + " was left there"
	if c.Window.Missing != nil {
		missing = "the archive has no WAL " + c.Window.Missing.String()
	}
	return fmt.Errorf("%w: %w. What was committed until then may be missing, because %s. Choose a time that is not "+
		"after that transaction, or the position %s", book.ErrOutside, short, missing, short.Reached.LSN)
}

func (r *restoring) recovery(target book.Target, from wal.LSN) RecoverOptions {
	choice, progress := r.restored.Choice, r.stepped(StepRecover)
	return RecoverOptions{
		Bucket: r.Bucket, Decoder: r.Decoder, Plan: r.plan, Backup: choice.Backup, Target: target, From: from,
		Ahead: ahead(r.server.Data.WALFileSystem()), Workers: r.Workers, Again: book.Replan(r.Bucket, choice),
		Progress: func(at Recovered) {
			if start := choice.Backup.StartLSN; at.LSN > start {
				progress(at.since(start))
			}
		},
	}
}

// finish stops the new primary, and sees where its WAL begins.
func (r *restoring) finish(ctx context.Context) error {
	r.stop(ctx)
	control, err := r.server.Control(ctx)
	if err != nil {
		return err
	}
	if control.State != "shut down" {
		return fmt.Errorf("the restored server did not stop in order: it is %q", control.State)
	}
	lsn, err := r.server.Data.WAL().Fork(control.Timeline)
	if err != nil {
		return err
	}
	r.restored.Begins = ha.TermStart{LSN: lsn, Timeline: control.Timeline}
	r.restored.TermHistory = format.BegunBefore(r.restored.Choice.TermHistory, lsn)
	r.restored.SystemIdentifier = control.SystemIdentifier
	return errors.Join(postgres.SyncFileSystem(r.Folder), postgres.SyncData(r.server.Data.Path()))
}
