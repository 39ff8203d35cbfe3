package databaserestore

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// observed is what there is.
type observed struct {
	db *v1.SampleDB // nil where there is none
	// bring is what the Job is made from. notReady, noSource and impossible are those of view.
	bring                          desired.Bring
	notReady, noSource, impossible string
	// progress is nil where the Pod could not be asked; restored and result are what the newest Pod has restored and
	// brought, nil where it has left nothing.
	progress *protocol.BackupProgress
	restored *protocol.RestoreResult
	result   *protocol.BringResult
}

// Observe reads what the decision depends on.
func (s *scope) Observe(ctx context.Context) (err error) {
	if err := s.observeJob(ctx); err != nil {
		return err
	}
	if s.Run.Job != nil {
		return nil // what it was made from does not matter any more
	}
	if s.seen.db, err = s.SampleDB(ctx); err != nil || s.seen.db == nil {
		return err
	}
	if s.seen.notReady = notReady(s.seen.db); s.seen.notReady != "" {
		return nil
	}
	return s.observeSource(ctx)
}

// notReady is why nothing can be restored into a SampleDB from its archive now.
func notReady(db *v1.SampleDB) string {
	switch {
	case db.DeletionTimestamp != nil:
		return "the SampleDB is being deleted"
	case db.Stops():
		return "the SampleDB is stopped (spec.stopped): it begins after the start"
	case desired.TwoSides(db):
		return "the SampleDB is in a blue/green upgrade, whose other side would not have it: it begins after that"
	case desired.Backup(db) == nil:
		return "the SampleDB has no archive (spec.backup.none)"
	case meta.FindStatusCondition(db.Status.Conditions, v1.ConditionArchiving) == nil:
		return "the archive has not been set up yet"
	case !meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionAvailable):
		return "the SampleDB takes no writes now"
	}
	return ""
}

// observeSource finds what is to be read.
func (s *scope) observeSource(ctx context.Context) error {
	db, spec := s.seen.db, s.Object.Spec
	config := &corev1.ConfigMap{}
	if found, err := s.Find(ctx, naming.ConfigMap(db.Name), config); err != nil || !found {
		s.seen.notReady = "the SampleDB is still being created"
		return err
	}
	parsed, err := desired.ParseConfig(config)
	if err != nil {
		return err
	}
	path := desired.PresentArchivePath(db)
	s.seen.bring = desired.Bring{
		Wanted: s.Object, Config: parsed, Source: desired.OwnSource(db, path, parsed.Authority),
	}
	if at, ok := desired.TargetTime(spec.Target); ok && db.Status.Backup != nil {
		if f := desired.FormerAt(db.Status.Backup, at); f != nil {
			s.seen.impossible = fmt.Sprintf("%s ran PostgreSQL %d at %s, and runs %d now, which can't read that: make "+
				"a SampleDB of it (kubectl toban restore %s --into OTHER --to %s), and copy from there with pg_dump",
				db.Name, f.Version, spec.Target.Time, parsed.Major, db.Name, spec.Target.Time)
		}
	}
	if spec.Backup == "" {
		return nil
	}
	return s.observeBackup(ctx, path)
}

// observeBackup finds the backup that is named, in the archive of a path.
func (s *scope) observeBackup(ctx context.Context, path string) error {
	name, backup := s.Object.Spec.Backup, &v1.DatabaseBackup{}
	found, err := s.Find(ctx, name, backup)
	switch {
	case err != nil:
		return err
	case !found:
		s.seen.noSource = fmt.Sprintf("there is no DatabaseBackup %s in the namespace", name)
	case !meta.IsStatusConditionTrue(backup.Status.Conditions, v1.ConditionComplete),
		backup.Status.Archive == nil, backup.Status.ID == "":
		s.seen.noSource = fmt.Sprintf("the DatabaseBackup %s is not complete", name)
	case backup.Status.Archive.Path != path,
		desired.StoreOf(backup, s.seen.db.Name) != desired.PresentStore(s.seen.db):
		s.seen.impossible = fmt.Sprintf("the DatabaseBackup %s is not in the present archive of %s: make a SampleDB "+
			"of it (kubectl toban restore %s --into OTHER --backup %s), and copy from there with pg_dump",
			name, s.seen.db.Name, backup.Spec.SampleDB, name)
	}
	s.seen.bring.Source.Backup = backup.Status.ID
	return nil
}

func (s *scope) observeJob(ctx context.Context) (err error) {
	s.Run, s.Foreign, err = s.Jobs.Look(ctx, s.Object, naming.Bring(s.Object.Name),
		desired.BringSelector(s.Object.Spec.SampleDB))
	if err != nil {
		return err
	}
	newest := s.Run.Newest()
	if newest == nil {
		return nil
	}
	s.seen.restored = left[protocol.RestoreResult](newest, naming.ContainerRestore)
	s.seen.result = left[protocol.BringResult](newest, naming.ContainerBring)
	s.seen.progress = pods.Ask(ctx, s.Client, s.Pods, naming.IdentityRestore, newest)
	return nil
}

// left is what a container of a Pod has left that has ended, nil where it has left nothing.
func left[T any](pod *corev1.Pod, container string) *T {
	for _, c := range append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...),
		pod.Status.ContainerStatuses...) {
		if c.Name == container && c.State.Terminated != nil {
			return jobs.Result[T](c.State.Terminated.Message)
		}
	}
	return nil
}

// Decide says what to do.
func (s *scope) Decide() order.Decision {
	return decide(view{
		View: s.View(s.jobMessage()), notFound: s.seen.db == nil, notReady: s.seen.notReady,
		noSource: s.seen.noSource, impossible: s.seen.impossible,
	})
}

// jobMessage says how the Job is.
func (s *scope) jobMessage() string {
	job, run := s.Run.Job, s.Run
	switch {
	case job == nil:
		return ""
	case s.Foreign:
		return fmt.Sprintf("Job %s does not belong to this DatabaseRestore: delete it, or choose another name",
			job.Name)
	}
	switch run.State() {
	case jobs.Complete:
		return s.brought()
	case jobs.Late, jobs.Failed:
		return cmp.Or(s.failure(), run.EndMessage(), "its Job has failed without saying why")
	case jobs.Ending:
		return fmt.Sprintf("Job %s was deleted; it will be created again", job.Name)
	case jobs.None, jobs.Running:
	}
	return s.howFar()
}

// failure is what the newest Pod has said of why it had no success, "" where it is not known.
func (s *scope) failure() string {
	if r := s.seen.result; r != nil && r.Error != "" {
		return r.Error
	}
	if r := s.seen.restored; r != nil && r.Error != "" {
		return r.Error
	}
	return ""
}

// howFar says in a sentence how far it is. Numbers are in the status.
func (s *scope) howFar() string {
	newest := s.Run.Newest()
	switch {
	case newest == nil:
		return "its Pod is being started"
	case s.seen.progress != nil:
		return s.seen.progress.Step
	}
	if t := pods.TroubleOf(newest); t != nil {
		return t.Message
	}
	if was := meta.FindStatusCondition(s.Object.Status.Conditions, v1.ConditionComplete); was != nil &&
		was.Reason == v1.ReasonRunning {
		return was.Message // not known is not changed
	}
	return "its Pod is being started"
}

// brought says what is there now.
func (s *scope) brought() string {
	r := s.seen.result
	if r == nil {
		return "it is there; its Pod was removed before it could say what"
	}
	words := ""
	for i, o := range r.Objects {
		if i > 0 {
			words += "; "
		}
		words += sentence(o)
	}
	return cmp.Or(words, "there was nothing to bring back")
}

// sentence says of one object what is there now.
func sentence(o protocol.BroughtObject) string {
	words := fmt.Sprintf("%s is there as %s", o.Name, o.As)
	if o.Kept != "" {
		words = fmt.Sprintf("%s has its rows back; the former ones are in %s", o.Name, o.Kept)
	} else if o.As == o.Name {
		words = fmt.Sprintf("%s is there again", o.Name)
	}
	if o.Compared {
		words += fmt.Sprintf(" (%d rows; %d only there, %d only in the present one, %d different)",
			o.Rows, o.OnlyRestored, o.OnlyPresent, o.Different)
	}
	if o.Says != "" {
		words += ": " + o.Says
	}
	return words
}
