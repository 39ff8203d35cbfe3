package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

// RestoreOptions are what a restore is told.
type RestoreOptions struct {
	pod.Options
	// Source is the folder with the authority of the SampleDB whose volume is read, Key that with the key of the
	// archive, and Volume the instance's volume.
	Source, Key, Volume string
	// WALVolume is the one that the instance's WAL is on, "" where that is Volume.
	WALVolume string
}

// Restore brings a database back into an instance's volume, in the Pod of a restore, and leaves the result where the
// kubelet finds it, whatever came of it.
func Restore(ctx context.Context, o RestoreOptions) error {
	r := &restoring{Pod: pod.New(o.Options), source: o.Source, key: o.Key, volume: o.Volume, walVolume: o.WALVolume}
	err := r.do(ctx)
	r.result.Error = pod.Words(err)
	return errors.Join(err, pod.Leave(o.Termination, &r.result, &r.result.Error))
}

// restoring is one run.
type restoring struct {
	pod.Pod
	source, key, volume, walVolume string
	settings                       protocol.RestoreSettings
	result                         protocol.RestoreResult
	// locks are kept until the process ends.
	locks []*volume.Lock
}

// tablespaces is where those are for good. Those of a server that runs are elsewhere.
func (r *restoring) tablespaces() string {
	if r.settings.InPlace != "" {
		return filepath.Join(r.volume, "tablespaces-"+r.settings.InPlace)
	}
	return filepath.Join(r.volume, "tablespaces")
}

func (r *restoring) do(ctx context.Context) error {
	ctx = r.Telling(ctx)
	r.Progress.Step("looks at the volume")
	stop, err := r.Begin(ctx, naming.IdentityRestore, &r.settings, &r.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	if err := r.lock(ctx); err != nil {
		return err
	}
	return r.steps(ctx)
}

// lock waits until no other restore works on the volume, nor, where the data gets its place, an agent. In place it
// shares the volume with the agent, which leaves what a restore makes alone meanwhile.
func (r *restoring) lock(ctx context.Context) error {
	locks := []func(context.Context, string, func(string)) (*volume.Lock, error){volume.Own, volume.OwnRestore}
	if r.settings.InPlace != "" {
		locks = locks[1:]
	}
	for _, take := range locks {
		lock, err := take(ctx, r.volume, r.WaitsForVolume)
		if err != nil {
			return err
		}
		r.locks = append(r.locks, lock)
	}
	return nil
}

// steps goes on where a Pod before has left off. In place the data stays where it is made: the instance's
// next agent takes it over.
func (r *restoring) steps(ctx context.Context) error {
	if s := r.settings.Snapshot; s != nil {
		r.Progress.Step("takes up the snapshot of the volume")
		if err := volume.TakeUpSnapshot(r.volume, s.ID); err != nil {
			return err
		}
	}
	done, err := volume.ReadPrepared(r.volume)
	if err != nil {
		return err
	}
	if done != nil && done.InPlace != r.settings.InPlace {
		done = nil // of one that was given up
	}
	if done == nil {
		if kept, err := r.keeps(); err != nil || kept {
			return err
		}
		if done, err = r.restore(ctx); err != nil {
			return err
		}
	}
	r.result = done.Result
	if r.settings.InPlace != "" || r.settings.Scratch {
		return nil
	}
	r.Progress.Step("gives the data its place")
	if err := volume.Adopt(r.volume, r.settings.Instance, *done); err != nil {
		return err
	}
	// The note goes last: as long as it is there, a Pod that comes after this one knows what was done.
	return errors.Join(os.RemoveAll(volume.RestoreFolder(r.volume)), volume.RemoveRestore(r.volume))
}

// keeps says that a volume which ought to be empty has a database, which is left as it is.
func (r *restoring) keeps() (bool, error) {
	if r.settings.InPlace != "" || r.settings.Scratch {
		return false, nil
	}
	present, err := postgres.DataDirectory{Volume: r.volume}.HasData()
	if r.result.Kept = present; present {
		r.Log.Info("the volume has a database already: it is left as it is")
	}
	return present, err
}

// restore makes the data beside its place, and notes on the volume that it is whole. It goes on with what one before it
// has left.
func (r *restoring) restore(ctx context.Context) (*volume.Prepared, error) {
	if err := volume.RemovePrepared(r.volume); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(volume.RestoreFolder(r.volume), 0o700); err != nil {
		return nil, fmt.Errorf("make room for the data: %w", err)
	}
	if r.settings.InPlace == "" { // nobody else makes data there
		data := postgres.DataDirectory{Volume: r.volume, WALVolume: r.walVolume}
		if err := data.SweepWAL(); err != nil {
			return nil, err
		}
	}
	options, err := r.options(ctx)
	if err != nil {
		return nil, err
	}
	out, err := restore.Restore(ctx, options)
	if err != nil {
		// The server that runs beside needs the room, where no other Pod follows.
		if r.settings.InPlace != "" && Refused(err) {
			err = errors.Join(err, volume.RemoveRestore(r.volume))
		}
		return nil, err
	}
	done := &volume.Prepared{InPlace: r.settings.InPlace, Begins: out.Begins, Result: r.result}
	if r.settings.InPlace != "" {
		// The instance may have lost its hard state: what it knows of terms need not be the newest.
		done.TermHistory, done.Newest = out.TermHistory, out.Newest+ha.RestoreTerms
	}
	done.Result.LSN, done.Result.Commit = out.Reached.LSN.String(), out.Reached.Commit
	done.Result.WAL = out.Reached.LSN.Since(out.Choice.Backup.StartLSN)
	r.Log.Info("the data is restored", "lsn", done.Result.LSN, "lastTransaction", done.Result.Commit,
		"timeline", out.Begins.Timeline)
	return done, done.Write(r.volume)
}

// reserve is what must stay free for a server that runs on the volume.
func (r *restoring) reserve() (uint64, error) {
	if r.settings.InPlace == "" {
		return 0, nil
	}
	var stat unix.Statfs_t
	if err := unix.Statfs(r.volume, &stat); err != nil {
		return 0, fmt.Errorf("see how large the volume is: %w", err)
	}
	return reserveOf(stat.Blocks * uint64(stat.Bsize)), nil //nolint:gosec // the size of a block is positive
}

// reserveOf is a tenth of the bytes of a volume, at most 8 GiB: as much WAL as the server may write between two
// checkpoints (max_wal_size in docs/parameters.md).
func reserveOf(size uint64) uint64 {
	return min(size/10, 8<<30)
}

func (r *restoring) options(ctx context.Context) (restore.RestoreOptions, error) {
	s := r.settings
	r.Progress.Step("opens the archive")
	programs, err := postgres.FindPrograms(ctx, s.Major)
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	whole, err := r.open(ctx)
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	decoder, err := pod.Decoder(s.Encrypted, r.key)
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	target, err := restoreTarget(s.Target)
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	atLeast, err := positionOf(s.AtLeast)
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	reserve, err := r.reserve()
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	present, err := r.present()
	if err != nil {
		return restore.RestoreOptions{}, err
	}
	size := "spec.storage.size"
	if s.Scratch {
		size = "spec.backup.verification.size"
	}
	return restore.RestoreOptions{
		Reserve: reserve, Size: size, Major: s.Major,
		Bucket: bucket.Sub(whole, s.Path), Decoder: decoder, Present: present,
		Wanted: book.Wanted{
			Target: target, Branch: s.Target.Branch, Backup: s.Backup, AtLeast: atLeast, Now: time.Now(),
		},
		Folder: volume.RestoreFolder(r.volume), Beside: s.InPlace != "", WALVolume: r.walVolume, Run: r.Run,
		Tablespaces: r.tablespaces(), Programs: programs,
		Parameters: s.Parameters, Workers: transfer.Streams(), Log: os.Stderr,
		Chosen: r.chosen, Progress: r.report,
	}, nil
}

// present is the snapshot that the volume was made of, nil for none.
func (r *restoring) present() (*format.Snapshot, error) {
	if r.settings.Snapshot == nil {
		return nil, nil //nolint:nilnil // the data comes from the archive
	}
	s, err := snapshotBackup(*r.settings.Snapshot)
	return &s, err
}

// open opens the store. To the server of a volume it shows a certificate of the authority of the
// SampleDB whose volume it is.
func (r *restoring) open(ctx context.Context) (bucket.Bucket, error) {
	config, source := r.settings.Bucket, r.Own
	if config.Volume != nil {
		var err error
		if source, err = pod.NewIssuer(r.source, naming.IdentityRestore); err != nil {
			return nil, err
		}
	}
	return pod.OpenStore(ctx, config, source, r.Run)
}

func restoreTarget(t protocol.RestoreTarget) (book.Target, error) {
	out := book.Target{Time: t.Time, XID: t.Transaction, Name: t.Name, Immediate: t.Immediate, Exclusive: t.Exclusive}
	var err error
	out.LSN, err = positionOf(t.LSN)
	return out, err
}

// positionOf is a position in the settings, 0 where none is given.
func positionOf(text string) (wal.LSN, error) {
	if text == "" {
		return 0, nil
	}
	lsn, err := wal.ParseLSN(text)
	if err != nil {
		return 0, fmt.Errorf("understand the target: %w", err)
	}
	return lsn, nil
}

// chosen tells from what it is restored.
func (r *restoring) chosen(c book.Choice) {
	r.result.Backup, r.result.Branch, r.result.Bytes = c.Backup.ID, c.Branch, c.Backup.RawBytes
	r.Log.Info("restores", "backup", c.Backup.ID, "branch", c.Branch,
		"from", c.Backup.StartLSN.String(), "to", r.settings.Target,
		"windowFrom", c.Window.From.String(), "windowTo", c.Window.To.String())
}

// report says how far a step is.
func (r *restoring) report(step string, p transfer.Progress) {
	words := map[string]string{
		restore.StepUnpack: "fetches backup " + r.result.Backup, restore.StepRecover: "replays WAL",
	}
	r.Progress.Set(protocol.BackupProgress{
		Step: cmp.Or(words[step], step), Done: p.Done, Total: p.Total, Rate: int64(p.Rate), Backup: r.result.Backup,
	})
}

// Refused says that a command of the core would fail again in the same way: its exit code is naming.ExitRefused.
func Refused(err error) bool {
	var object *format.ObjectError
	var short *restore.ShortError
	var stuck *restore.StuckError
	var version *restore.VersionError
	var tablespace *restore.TablespaceError
	return errors.Is(err, book.ErrOutside) || errors.Is(err, book.ErrSeveral) ||
		errors.Is(err, restore.ErrUsedUp) || errors.Is(err, volume.ErrNoSnapshot) ||
		errors.Is(err, restore.ErrNoRoom) || errors.Is(err, pod.ErrKey) || errors.Is(err, postgres.ErrNoPrograms) ||
		errors.As(err, &object) || errors.As(err, &short) || errors.As(err, &stuck) || errors.As(err, &version) ||
		errors.As(err, &tablespace)
}
