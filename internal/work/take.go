package work

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/pod"
)

const (
	// archivedPoll is the first pause between looks at the archive for WAL, and archivedPollMost the longest: each
	// look lists all WAL.
	archivedPoll     = time.Second
	archivedPollMost = 15 * time.Second
	// abandonPatience is how long a backup that has failed may remove what it has left: less than its Pod has to end.
	abandonPatience = 20 * time.Second
	// mostWindows bounds how many windows it names.
	mostWindows = 8
)

// TakeOptions are what a backup is told.
type TakeOptions struct {
	pod.Options
	// Port is that of the PostgreSQL servers.
	Port uint16
	// Primary has the primary copied though there may be standbys, Full has a full backup taken whatever the settings
	// say, and Prove has it read with the key before it counts.
	Primary, Full, Prove bool
	// Snapshot has a snapshot of the primary's volume cut in place of a copy.
	Snapshot bool
	// Key is the folder with the key of the archive, Trigger why the backup is taken.
	Key, Trigger string
}

// Take takes a base backup, in the Pod of a DatabaseBackup, and leaves the result where the kubelet finds it, whatever
// came of it.
func Take(ctx context.Context, o TakeOptions) error {
	t := &taking{
		Pod: pod.New(o.Options), port: o.Port, primary: o.Primary, full: o.Full, prove: o.Prove, key: o.Key,
		trigger: o.Trigger, bySnapshot: o.Snapshot,
	}
	t.Progress.More = map[string]http.HandlerFunc{"POST " + protocol.PathCut: t.onCut}
	err := t.do(ctx)
	t.result.Error = pod.Words(err)
	left := pod.Leave(o.Termination, &t.result, t.words(&t.result.Error, &t.result.Warning)...)
	if left != nil && err == nil {
		return left
	}
	return err
}

// taking is one run.
type taking struct {
	pod.Pod
	port                 uint16
	primary, full, prove bool
	key, trigger         string
	settings             protocol.BackupSettings
	tls                  *tls.Config   // by which the servers are known
	store                bucket.Bucket // with all archives
	archive              bucket.Bucket // rooted at the archive
	storeClock           bucket.Clock
	owner                format.Owner // of the archive
	result               protocol.BackupResult
	// bySnapshot has a snapshot of the volume cut, and cut is what it waits for then.
	bySnapshot bool
	cut        awaitedCut
	// unfinished is after how long a backup that did not end is given up; 0 is givenUp.
	unfinished time.Duration
	// damaged are the hosts whose data could not be copied, and why.
	damaged map[string]error
}

func (t *taking) do(ctx context.Context) error {
	ctx = t.Telling(ctx)
	t.Progress.Step("opens the archive")
	stop, err := t.Begin(ctx, naming.IdentityBackup, &t.settings, &t.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	if t.tls, err = t.Own.DatabaseTLS(t.settings.Given); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	if t.bySnapshot {
		return t.takeSnapshot(ctx)
	}
	if err := t.tryKey(); err != nil {
		return err
	}
	if err := t.clean(ctx); err != nil {
		return err
	}
	// Before the backup too: in a store that is full there may be no room for it otherwise.
	if !t.keepsAll() {
		if err := t.retain(ctx); err != nil {
			t.Log.Warn("older backups could not be removed", "error", err.Error())
		}
	}
	taken, err := t.takeUsable(ctx)
	if err != nil {
		t.abandon(ctx)
		return err
	}
	t.report(taken)
	if err := t.retain(ctx); err != nil {
		// The backup is there, and the next one tries again.
		t.warn("older backups could not be removed: " + err.Error())
	}
	return nil
}

// takeUsable takes a backup for which the archive has the WAL.
func (t *taking) takeUsable(ctx context.Context) (format.Backup, error) {
	taken, err := t.takeBest(ctx)
	if err != nil {
		return taken, err
	}
	if err := t.usable(ctx, taken); err != nil {
		// A standby's backup begins at its last restartpoint, which may lie before a gap; the primary's begins now.
		t.Log.Info("takes another backup, from the primary", "instead of", taken.ID, "reason", err.Error())
		if taken, err = t.take(ctx, true, nil); err != nil {
			return taken, err
		}
		if err := t.usable(ctx, taken); err != nil {
			return taken, err
		}
	}
	return taken, nil
}

// abandon removes what a backup that has failed has left, as far as there is time for it: where the store is full, WAL
// needs that room at once. What remains, the next backup removes.
func (t *taking) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonPatience)
	defer cancel()
	if err := t.clean(ctx); err != nil {
		t.Log.Warn("not all that the failed backup has left could be removed", "error", err.Error())
	}
}

// warn adds to the warning.
func (t *taking) warn(words string) {
	if t.result.Warning != "" {
		words = t.result.Warning + "; " + words
	}
	t.result.Warning = words
}

// open opens the archive, and sees that it is the SampleDB's.
func (t *taking) open(ctx context.Context) error {
	config := t.settings.Archive.Bucket
	config.Clock = &t.storeClock
	whole, err := pod.OpenStore(ctx, config, t.Own, t.Run)
	if err != nil {
		return err
	}
	t.store, t.archive = whole, bucket.Sub(whole, t.settings.Archive.Path)
	owner, err := format.ReadOwner(ctx, t.archive)
	if errors.Is(err, bucket.ErrNotExist) {
		return fmt.Errorf("see whose archive it is: %w: the primary writes it anew within ten minutes, if the backups "+
			"there are this database's. Where it can't, the condition Archiving says so, and what to do", err)
	}
	if err != nil {
		return fmt.Errorf("see whose archive it is: %w", err)
	}
	if owner.UID != t.settings.Archive.Owner {
		return &format.TakenError{Owner: owner}
	}
	t.owner = owner
	return nil
}

// keepsAll says that this Pod removes nothing: another does, with credentials of its own.
func (t *taking) keepsAll() bool { return t.settings.Archive.Bucket.KeepAll }

// clean removes what backups that did not end have left, as far as the store lets it: none of it is in the way of a
// backup. There must be no other backup under way.
func (t *taking) clean(ctx context.Context) error {
	if t.keepsAll() {
		return nil
	}
	removed, err := take.Clean(ctx, t.archive)
	if errors.Is(err, bucket.ErrDenied) {
		t.Log.Warn("what a backup that did not end has left stays", "error", err.Error())
		return nil
	}
	if len(removed) > 0 {
		t.Log.Info("removed what a backup that did not end has left", "objects", len(removed))
	}
	return err
}

// usable is an error where the archive does not have all WAL that a backup needs.
func (t *taking) usable(ctx context.Context, b format.Backup) error {
	var catalogue book.Catalogue
	if err := transfer.Patiently(ctx, func() (err error) {
		catalogue, err = book.Read(ctx, t.archive)
		return err
	}); err != nil {
		return err
	}
	to, missing := catalogue.Covered(catalogue.NewestTermHistory(), b.StartLSN)
	switch {
	case to >= b.StopLSN:
		return nil
	case missing != nil:
		return fmt.Errorf("the archive has no WAL %s, which backup %s needs", missing, b.ID)
	}
	return fmt.Errorf("the archive has no WAL from %s on, which backup %s needs", to, b.ID)
}

// takeBest takes an incremental backup where one is wanted and can be had, else a full one.
func (t *taking) takeBest(ctx context.Context) (format.Backup, error) {
	parent, err := t.parent(ctx)
	if err != nil {
		return format.Backup{}, err
	}
	taken, err := t.take(ctx, t.primary, parent)
	if errors.Is(err, take.ErrNoIncrement) && !t.primary {
		// A standby knows nothing of the time before it was copied, and begins where it was at its last restartpoint.
		t.Log.Info("asks the primary for an incremental backup", "parent", parent.ID, "reason", err.Error())
		taken, err = t.take(ctx, true, parent)
	}
	if errors.Is(err, take.ErrNoIncrement) {
		t.Log.Warn("takes a full backup", "instead of one from", parent.ID, "reason", err.Error())
		t.warn("it is a full one: " + err.Error())
		return t.take(ctx, t.primary, nil)
	}
	return taken, err
}

// parent is the backup that this one is to be the change from, nil where it is to be a full one.
func (t *taking) parent(ctx context.Context) (*format.Backup, error) {
	if t.full || t.settings.FullEvery == 0 {
		return nil, nil //nolint:nilnil // no parent is a full backup
	}
	catalogue, err := book.Read(ctx, t.archive)
	if err != nil {
		return nil, err
	}
	parent, ok := take.Parent(catalogue, catalogue.NewestTermHistory(), t.settings.FullEvery)
	if !ok || parent.Recipient != "" && parent.Recipient != t.settings.Archive.Recipient {
		return nil, nil //nolint:nilnil // no parent is a full backup: after a change of keys none needs the former one
	}
	return &parent, nil
}

// take takes the backup from the best host, or from the primary; with a parent what has changed since that.
func (t *taking) take(ctx context.Context, primary bool, parent *format.Backup) (format.Backup, error) {
	catalogue, err := book.Read(ctx, t.archive)
	if err != nil {
		return format.Backup{}, err
	}
	history := catalogue.NewestTermHistory()
	if len(history) == 0 {
		return format.Backup{}, errors.New("the archive has no WAL yet")
	}
	// What the archive did not know before one copy (awaitWAL) it knows before the next: that one must not be in vain.
	if err := mayContinue(catalogue, parent, history); err != nil {
		return format.Backup{}, err
	}
	for {
		t.Progress.Set(protocol.BackupProgress{Step: "looks for an instance to copy"})
		host, err := t.choose(ctx, primary)
		if err != nil {
			return format.Backup{}, err
		}
		taken, err := t.takeFrom(ctx, host, history[len(history)-1].Term, parent)
		if !errors.Is(err, take.ErrDamaged) {
			return taken, err
		}
		if err := t.passOver(ctx, host, err); err != nil {
			return format.Backup{}, err
		}
	}
}

// passOver notes that an instance can't be copied, and makes room for a copy of another.
func (t *taking) passOver(ctx context.Context, host string, why error) error {
	if t.damaged == nil {
		t.damaged = map[string]error{}
	}
	t.damaged[host] = why
	t.Log.Warn("an instance is damaged: another is copied", "instance", host, "error", why.Error())
	t.warn(fmt.Sprintf("%s could not be copied: %v", t.result.Instance, why))
	return t.clean(ctx)
}

// takeFrom takes the backup from a host.
func (t *taking) takeFrom(
	ctx context.Context, host string, term uint64, parent *format.Backup,
) (format.Backup, error) {
	encoder, err := format.NewEncoder(t.settings.Archive.Recipient)
	if err != nil {
		return format.Backup{}, err
	}
	decoder, err := t.decoder(parent)
	if err != nil {
		return format.Backup{}, err
	}
	t.result.Instance, _, _ = strings.Cut(host, ".")
	step := "copies the data of " + t.result.Instance
	t.Progress.Set(protocol.BackupProgress{Instance: t.result.Instance, Step: step})
	t.Log.Info("takes a backup", "from", host, "term", term)
	return take.Take(ctx, take.TakeOptions{
		Server:   t.connection(host),
		Bucket:   t.archive,
		Encoder:  encoder,
		Term:     term,
		Trigger:  t.trigger,
		SampleDB: t.settings.SampleDB,
		System:   t.owner.SystemIdentifier,
		Parent:   parent,
		Decoder:  decoder,
		Prove:    t.prove,
		Workers:  transfer.Streams(),
		Archived: func(ctx context.Context, timeline wal.Timeline, lsn wal.LSN) (uint64, error) {
			return t.awaitWAL(ctx, parent, timeline, lsn)
		},
		Clock: t.clock,
		Progress: func(p transfer.Progress) {
			t.Progress.Set(protocol.BackupProgress{
				Instance: t.result.Instance, Step: step, Done: p.Done, Total: p.Total, Rate: int64(p.Rate),
			})
		},
	})
}

// decoder reads the manifest of a parent, and what is to be proved.
func (t *taking) decoder(parent *format.Backup) (*format.Decoder, error) {
	if parent == nil && !t.prove {
		return nil, nil //nolint:nilnil // nothing is read
	}
	decoder, err := pod.Decoder(t.settings.Archive.Recipient != "", t.key)
	if err != nil && parent != nil {
		return nil, fmt.Errorf("%w: %w", take.ErrNoIncrement, err)
	}
	return decoder, err
}

// tryKey sees, before hours are spent on a copy that is to be proved, whether its key fits.
func (t *taking) tryKey() error {
	if !t.prove {
		return nil
	}
	encoder, err := format.NewEncoder(t.settings.Archive.Recipient)
	if err != nil {
		return err
	}
	decoder, err := t.decoder(nil)
	if err != nil {
		return err
	}
	if err := encoder.Try(decoder); err != nil {
		return fmt.Errorf("%w: %w: the Secret that spec.backup.encryption.key names must have, as %s, that of %s",
			pod.ErrKey, err, naming.KeyAge, t.settings.Archive.Recipient)
	}
	return nil
}

// leaderPatience is for how long a leader may have archived nothing of its own yet that has begun, or has told nobody.
const leaderPatience = 2 * time.Minute

// awaitWAL returns when the WAL of a timeline before an LSN is in the archive, and the term of who wrote it. With the
// parent of an incremental backup the error is take.ErrNoIncrement where that is of another branch.
func (t *taking) awaitWAL(
	ctx context.Context, parent *format.Backup, timeline wal.Timeline, lsn wal.LSN,
) (term uint64, err error) {
	t.Progress.Step("waits until the WAL up to " + lsn.String() + " is archived")
	if err := t.wake(ctx); err != nil {
		t.Log.Info("the WAL may be archived only some minutes later", "reason", err.Error())
	}
	for began, wait := time.Now(), archivedPoll; ; wait = min(2*wait, archivedPollMost) {
		var catalogue book.Catalogue
		if err := transfer.Patiently(ctx, func() (err error) {
			catalogue, err = book.ReadWAL(ctx, t.archive)
			return err
		}); err != nil {
			return 0, err
		}
		// A leader says what it continues before it archives WAL. Another branch may have a timeline of the same
		// number, with WAL up to there.
		history := book.LatestTermHistory(catalogue)
		term, other := termOf(history, lsn, timeline)
		switch to, _ := catalogue.Covered(history, lsn-1); {
		case to < lsn:
		case other != nil && time.Since(began) < leaderPatience:
			// The archive may have WAL of a branch that was left, and nothing yet of the leader that was copied.
			t.Progress.Step("waits: " + other.Error())
		case other != nil:
			return 0, other
		case t.written(ctx, to):
			return term, mayContinue(catalogue, parent, history)
		default:
			// An archive that is ahead of the primary covers nothing; it may be that of one that is lost.
			t.Progress.Step(fmt.Sprintf("waits: the archive goes to %s, and it is not known that the primary does", to))
		}
		if !pause.For(ctx, wait) {
			return 0, ctx.Err()
		}
	}
}

// mayContinue is an error where the parent of a backup is not of the term history in which that has ended. It was
// chosen when the backup began, and the archive may not have known then that the database had been restored in place.
func mayContinue(c book.Catalogue, parent *format.Backup, history []ha.TermStart) error {
	if parent == nil || c.In(*parent, history) {
		return nil
	}
	return fmt.Errorf("%w: backup %s is not of the branch that is copied", take.ErrNoIncrement, parent.ID)
}

// termOf is the term in which the byte before an LSN was written. It is an error where that is of another timeline: the
// server that was copied is not one of those whose WAL is archived.
func termOf(history []ha.TermStart, lsn wal.LSN, timeline wal.Timeline) (uint64, error) {
	var last ha.TermStart
	for _, start := range history {
		if start.LSN < lsn {
			last = start
		}
	}
	if last.Timeline != timeline {
		return 0, fmt.Errorf("the backup ends on timeline %d at %s, and the archive goes on along timeline %d",
			timeline, lsn, last.Timeline)
	}
	return last.Term, nil
}

// report puts into the result what was taken.
func (t *taking) report(b format.Backup) {
	r := &t.result
	r.Archive, r.Store = t.settings.Archive.Path, t.settings.Archive.Bucket.Place()
	r.ID, r.Parent, r.StartLSN, r.StopLSN = b.ID, b.Parent, b.StartLSN.String(), b.StopLSN.String()
	r.ServerVersion, r.SystemIdentifier = b.ServerVersion, b.SystemIdentifier
	r.Recipient = b.Recipient
	r.Started, r.Stopped, r.Bytes, r.Stored = b.Started, b.Stopped, b.RawBytes, b.StoredBytes
}

// wholeSecond is the first that is not before a time.
func wholeSecond(at time.Time) time.Time {
	return at.UTC().Add(time.Second - time.Nanosecond).Truncate(time.Second)
}

// windows are the times of an archive that can be restored.
func windows(c book.Catalogue) []protocol.Window {
	var out []protocol.Window
	for n, branch := range c.Branches() {
		for i, w := range branch.Windows {
			told := protocol.Window{
				Branch: branch.Name, Earliest: wholeSecond(w.Since), EarliestLSN: w.From.String(),
			}
			if n > 0 || i > 0 || w.Missing != nil {
				told.Latest, told.LatestLSN = w.Until.UTC().Truncate(time.Second), w.To.String()
			}
			out = append(out, told)
		}
	}
	return out[:min(len(out), mostWindows)]
}
