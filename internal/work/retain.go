package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

const (
	// givenUp is after how long without a new object a backup that did not end counts as one that was killed. One that
	// is under way after all sees before its end whether everything is still there.
	givenUp = 2 * time.Hour
	// givenUpApart is the same for the Pod that alone may remove anything: none is made while a backup is under way, so
	// this need only be longer than one that has begun in the same moment may be without an object.
	givenUpApart = 10 * time.Minute
	// mostRemoved bounds how many removed backups the result names.
	mostRemoved = 30
)

// Retain removes what spec.backup.retention does not keep, in the Pod that makes room in a store that is full, or has
// the credentials for deletion. It leaves the result where the kubelet finds it, whatever came of it.
func Retain(ctx context.Context, o pod.Options) error {
	t := &taking{Pod: pod.New(o)}
	err := t.makeRoom(ctx)
	t.result.Error = pod.Words(err)
	return errors.Join(err, pod.Leave(o.Termination, &t.result, t.words(&t.result.Error)...))
}

// makeRoom removes what is not to be kept.
func (t *taking) makeRoom(ctx context.Context) error {
	stop, err := t.Begin(ctx, naming.IdentityBackup, &t.settings, &t.settings.Operator)
	if err != nil {
		return err
	}
	defer stop()
	if err := t.useDeletionCredentials(); err != nil {
		return err
	}
	if err := t.open(ctx); err != nil {
		return err
	}
	t.result.Archive, t.result.Store = t.settings.Archive.Path, t.settings.Archive.Bucket.Place()
	return t.retain(ctx)
}

// useDeletionCredentials opens the store as the one that may remove something, where only this Pod may.
func (t *taking) useDeletionCredentials() error {
	if !t.keepsAll() {
		return nil
	}
	b := &t.settings.Archive.Bucket
	b.Credentials = cmp.Or(b.Credentials, naming.PathStore)
	if files, _ := filepath.Glob(filepath.Join(b.Credentials, "*")); len(files) == 0 {
		return errors.New("the Secret that deletionCredentials of spec.backup.store names is not there, or is empty: " +
			"create it, or take the field away to have the instances' own credentials used")
	}
	b.KeepAll, t.unfinished = false, givenUpApart
	return nil
}

// retain removes what is not to be kept, and sees from when on the archive can be restored. A Pod that keeps all
// only sees. Then it does the same in the archives of former major versions.
func (t *taking) retain(ctx context.Context) error {
	t.Progress.Step("removes what is not to be kept")
	policy, former, err := t.policy()
	if err != nil {
		return err
	}
	policy, differ := policy.ByClocks(ownClock, Clocks(&t.Pod, &t.storeClock)...)
	r := t.removal(t.archive)
	catalogue, d, err := r.retain(ctx, policy)
	t.result.Removed = append(t.result.Removed, r.removed...)
	t.result.Removed = t.result.Removed[:min(len(t.result.Removed), mostRemoved)]
	if err != nil {
		return err
	}
	if differ != "" {
		d.Held = append(d.Held, differ)
	}
	t.result.Refused, t.result.Held = r.refused, strings.Join(d.Held, "; ")
	if t.result.Held != "" {
		t.Log.Warn("retention holds back", "message", t.result.Held)
	}
	if w, ok := catalogue.Window(catalogue.NewestTermHistory()); ok {
		t.result.Earliest = w.Since
	}
	all := append([]book.Catalogue{catalogue}, t.retainFormer(ctx, former, policy, catalogue.Restorable())...)
	t.result.Windows, t.result.Keys = windows(catalogue), t.keys(all...)
	if len(former) > 0 {
		t.result.Windows = t.result.Windows[:min(len(t.result.Windows), mostWindows/2)]
	}
	return nil
}

// removal removes from an archive.
type removal struct {
	archive bucket.Bucket
	log     *slog.Logger
	// keepsAll says that nothing is removed, and only looked.
	keepsAll bool
	// removed are the ids of backups that are, of many the first; refused is what the store did not let be removed.
	removed []string
	refused string
}

func (t *taking) removal(archive bucket.Bucket) *removal {
	return &removal{archive: archive, log: t.Log, keepsAll: t.keepsAll()}
}

// retain removes what a policy does not keep, and says what is there then.
func (r *removal) retain(ctx context.Context, policy keep.Policy) (book.Catalogue, keep.Deletions, error) {
	catalogue, err := book.Read(ctx, r.archive)
	if err != nil || r.keepsAll {
		return catalogue, keep.Retain(catalogue, policy), err
	}
	d, err := r.by(ctx, catalogue, policy)
	if err == nil && len(d.Names) > 0 {
		catalogue, err = book.Read(ctx, r.archive)
	}
	return catalogue, d, err
}

// by removes what a policy does not keep. A backup that the store does not let be removed, because it is too
// young for that or because nothing may, stays with all that it needs, and the rest goes.
func (r *removal) by(ctx context.Context, c book.Catalogue, policy keep.Policy) (keep.Deletions, error) {
	gone, refused := map[string]bool{}, 0
	for {
		d := keep.Retain(c, policy)
		for _, v := range d.Deleted {
			if refused == 0 {
				r.log.Info("removes", "what", v.Name, "reason", v.Reason, "message", v.Message)
			}
		}
		stays, err := r.remove(ctx, d, gone)
		if !errors.Is(err, bucket.ErrDenied) {
			return d, err
		}
		refused++
		r.refused = refusal(refused, err)
		if id, ok := backupOfObject(stays); !ok || !spare(&policy, c, id) {
			r.log.Warn("the store refuses to remove something", "message", r.refused)
			return d, nil
		}
	}
}

// spare has a policy keep a backup, as it is; false if it did already.
func spare(policy *keep.Policy, c book.Catalogue, id string) bool {
	into := &policy.Pinned
	if slices.ContainsFunc(c.Unfinished, func(u book.Unfinished) bool { return u.ID == id }) {
		into = &policy.InUse
	}
	if slices.Contains(*into, id) {
		return false
	}
	*into = append(slices.Clone(*into), id)
	return true
}

// refusal says what the store does not let be removed, and what to do.
func refusal(count int, why error) string {
	return fmt.Sprintf("the store refuses to remove %d backups, or WAL, that spec.backup.retention does not keep "+
		"(%v). Archiving and backups go on. If the store is to keep them for a time, nothing need be done; else let "+
		"the credentials delete, or name some that may: deletionCredentials in spec.backup.store", count, why)
}

// remove removes objects in their order, and notes which are gone. With an error it says which it has failed at.
func (r *removal) remove(ctx context.Context, d keep.Deletions, gone map[string]bool) (stays string, err error) {
	names := slices.DeleteFunc(slices.Clone(d.Names), func(name string) bool { return gone[name] })
	for _, batch := range keep.Batches(names) {
		if err := r.archive.Delete(ctx, batch...); err != nil {
			return batch[0], err
		}
		for _, name := range batch {
			gone[name] = true
		}
		id, ok := backupOfObject(batch[0])
		if ok && strings.HasSuffix(batch[0], "/"+format.FileBackup) && len(r.removed) < mostRemoved {
			r.removed = append(r.removed, id)
		}
	}
	return "", nil
}

// backupOfObject is the id of the backup that an object is of, false if it is of none.
func backupOfObject(name string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(name, format.FolderBase)
	id, _, found := strings.Cut(rest, "/")
	return id, ok && found
}

// policy is what is kept by the settings as they are now: a backup may have been pinned, or its restore have begun,
// since this one has. Kubernetes renews the file.
func (t *taking) policy() (policy keep.Policy, former []protocol.FormerArchive, err error) {
	var now protocol.BackupSettings
	if err := pod.ReadSettings(t.Settings, &now); err != nil {
		return keep.Policy{}, nil, err
	}
	if t.settings.Archive.Path != "" && now.Archive.Bucket.Place() != t.settings.Archive.Bucket.Place() {
		now = t.settings // they are about another store by now: this archive is kept by what was said of it
	}
	policy = Policy(now.Keep)
	policy.Unfinished = cmp.Or(t.unfinished, policy.Unfinished)
	policy.Snapshots, err = snapshotBackups(now.Keep.Snapshots)
	return policy, now.Former, err
}

// ownClock is whose clock says what time it is where nobody else's is asked.
const ownClock = "the clock of the Pod that applies retention"

// Clocks are those that a Pod which removes something asks besides its own (keep.Policy.ByClocks): those of stores, and
// the operator's. Of the latter it knows when the Job was made, and a Pod of it begins before the Job's deadline.
func Clocks(p *pod.Pod, stores ...*bucket.Clock) (clocks []keep.Clock) {
	for _, c := range stores {
		clocks = append(clocks, keep.Clock{Whose: "that of the store", Now: c.Now()})
	}
	return append(clocks, keep.Clock{Whose: "that of the operator", Now: p.ByOperator(), Behind: p.Within})
}

// Policy is what is kept by the settings, but for the snapshots of volumes. Now is by the clock of this machine.
func Policy(r protocol.Retention) keep.Policy {
	return keep.Policy{
		Count: r.Count, Age: time.Duration(r.Days) * 24 * time.Hour, Now: time.Now(), Pinned: r.Pinned, InUse: r.InUse,
		Unfinished: givenUp,
	}
}
