package databasebackup

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// observed is what there is.
type observed struct {
	db *v1.SampleDB // nil where there is none
	// pods are those of all backups of the SampleDB, others those of other ones that have not ended, and backups the
	// other backups.
	pods     []corev1.Pod
	others   []corev1.Pod
	backups  []v1.DatabaseBackup
	progress *protocol.BackupProgress // nil where the Pod could not be asked
	result   *protocol.BackupResult   // what the last Pod left, nil where it left nothing
	// hasAPI says that the cluster has snapshots of volumes; snapshots are those of the backup.
	hasAPI    bool
	snapshots []unstructured.Unstructured
}

// Observe reads what the decision depends on.
func (s *scope) Observe(ctx context.Context) (err error) {
	if s.seen.db, err = s.SampleDB(ctx); err != nil {
		return err
	}
	if err := s.observeJob(ctx); err != nil {
		return err
	}
	all, err := index.Backups(ctx, s.Client, s.Object.Namespace, s.Object.Spec.SampleDB)
	if err != nil {
		return err
	}
	if err := s.observeSnapshots(ctx); err != nil {
		return err
	}
	s.seen.backups = slices.DeleteFunc(all, func(b v1.DatabaseBackup) bool { return b.UID == s.Object.UID })
	return nil
}

func (s *scope) observeJob(ctx context.Context) error {
	find := s.Jobs.Find
	if s.waitsItsTurn() {
		find = s.Jobs.FindCached
	}
	job, err := find(ctx, client.ObjectKeyFromObject(s.Object))
	if err != nil {
		return err
	}
	labels := map[string]string{
		naming.LabelSampleDB: s.Object.Spec.SampleDB, naming.LabelComponent: naming.ComponentBackup,
	}
	if s.seen.pods, err = index.Pods(ctx, s.Client, s.Object.Namespace, labels); err != nil {
		return err
	}
	s.Run, s.Foreign = jobs.Of(job, s.seen.pods), job != nil && !metav1.IsControlledBy(job, s.Object)
	for _, pod := range s.seen.pods {
		own := job != nil && metav1.IsControlledBy(&pod, job)
		if !own && !pods.Ended(&pod) {
			s.seen.others = append(s.seen.others, pod)
		}
	}
	if newest := s.Run.Newest(); newest != nil {
		s.seen.progress = pods.Ask(ctx, s.Client, s.Pods, naming.IdentityBackup, newest)
	}
	return s.observeResult(ctx, labels)
}

// observeResult reads what the last Pod has left. Where the Job has ended well and nothing of that is seen, it is read
// past the cache, which may not have the end of the Pod yet: what is not there either is lost.
func (s *scope) observeResult(ctx context.Context, labels map[string]string) error {
	s.seen.result = jobs.Result[protocol.BackupResult](s.lastWords())
	if s.Foreign || s.Run.State() != jobs.Complete || s.known() {
		return nil
	}
	var all corev1.PodList
	if err := s.Reader.List(ctx, &all, client.InNamespace(s.Object.Namespace),
		client.MatchingLabels(labels)); err != nil {
		return fmt.Errorf("list the Pods of backups: %w", err)
	}
	s.Run = jobs.Of(s.Run.Job, all.Items)
	s.seen.result = jobs.Result[protocol.BackupResult](s.lastWords())
	return nil
}

// known says that a Pod has left which backup it has taken.
func (s *scope) known() bool {
	r := s.seen.result
	return r != nil && r.Error == "" && (r.ID != "" || r.Snapshot != nil)
}

// waitsItsTurn says that the backup was last found to wait for its turn, and is not to end now. It has no Job then, or
// one that the cache will have: a second one of the name can't be made, and one of somebody else's is seen when it is
// its turn.
func (s *scope) waitsItsTurn() bool {
	was := meta.FindStatusCondition(s.Object.Status.Conditions, v1.ConditionComplete)
	return was != nil && was.Reason == v1.ReasonQueued && !s.Object.Spec.Cancel && s.At.Before(s.Deadline())
}

// lastWords is what the newest Pod that has ended left.
func (s *scope) lastWords() string {
	left := s.Run.Left(naming.ContainerBackup)
	if len(left) == 0 {
		return ""
	}
	return left[len(left)-1]
}

// said is what any of its Pods has left: each may have removed backups.
func (s *scope) said() (out []protocol.BackupResult) {
	for _, text := range s.Run.Left(naming.ContainerBackup) {
		if r := jobs.Result[protocol.BackupResult](text); r != nil {
			out = append(out, *r)
		}
	}
	return out
}

// Decide says what to do.
func (s *scope) Decide() order.Decision {
	v := view{
		View: s.View(""), name: s.Object.Name, db: s.dbView(), known: s.known(), snapshot: s.snapshotView(),
		before: s.before(),
	}
	v.Job = s.job()
	return decide(v)
}

func (s *scope) dbView() dbView {
	db := s.seen.db
	if db == nil {
		return dbView{}
	}
	out := dbView{found: true}
	archiving := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionArchiving)
	switch {
	case db.DeletionTimestamp != nil && s.Object.Name != naming.FinalBackup(db.Name, string(db.UID)):
		out.notReady = "the SampleDB is being deleted"
	case db.Stops():
		out.notReady = "the SampleDB is stopped (spec.stopped): it is taken after the start"
	case desired.Backup(db) == nil:
		out.notReady = "the SampleDB has no archive (spec.backup.none)"
	case archiving == nil:
		out.notReady = "the archive has not been set up yet"
	case archiving.Status == metav1.ConditionTrue, archiving.Reason == v1.ReasonArchiveGap,
		archiving.Reason == v1.ReasonArchiveBehind:
	default:
		out.notReady = "the archive does not work: " + archiving.Message
	}
	return out
}

// job is the Job of the backup, as the decision sees it. One that is somebody else's, or was deleted before it has
// ended well, is waited for until it is gone.
func (s *scope) job() order.Job {
	job, state := s.Run.Job, s.Run.State()
	switch {
	case state == jobs.None:
		return order.Job{}
	case s.Foreign && job.DeletionTimestamp == nil:
		return order.Job{Foreign: true, State: state, Message: fmt.Sprintf(
			"Job %s does not belong to this backup: delete it, or rename the backup", job.Name)}
	case s.Foreign:
		return order.Job{State: jobs.Ending, Message: fmt.Sprintf("Job %s is still being removed", job.Name)}
	case state == jobs.Complete:
		return order.Job{State: state, Message: s.completed()}
	case job.DeletionTimestamp != nil:
		return order.Job{State: jobs.Ending, Message: fmt.Sprintf(
			"Job %s was deleted; it will be created again", job.Name)}
	case state == jobs.Late:
		return order.Job{State: state, Message: cmp.Or(s.failure(), s.Run.EndMessage(), "its Pod was ended")}
	case state == jobs.Failed:
		return order.Job{State: state, Message: cmp.Or(s.failure(), s.Run.Failure().Message,
			"its Job has failed without saying why")}
	}
	return order.Job{State: state, Message: s.howFar()}
}

func (s *scope) completed() string {
	r := s.seen.result
	if !s.known() {
		return lost
	}
	if r.Snapshot != nil {
		return "the snapshot of the volume is cut, and the archive has the WAL that it needs"
	}
	words := "the backup is in the archive as " + r.ID
	for _, more := range []string{r.Warning, r.Held, r.Refused} {
		if more != "" {
			words += "; " + more
		}
	}
	return words
}

// failure is why the last Pod that has ended had no success, "" where it is not known.
func (s *scope) failure() string {
	if s.seen.result != nil {
		return s.seen.result.Error
	}
	return s.lastWords()
}

// howFar says in a sentence how far the backup is. Numbers are in the status, not here: a message that
// changes every few seconds is for nobody.
func (s *scope) howFar() string {
	sentence := cmp.Or(pods.Gates(s.Run.Newest()), "its Pod is being started")
	if t := pods.TroubleOf(s.Run.Newest()); t != nil {
		sentence = t.Message
	}
	if p := s.seen.progress; p != nil {
		sentence = p.Step
	} else if was := meta.FindStatusCondition(s.Object.Status.Conditions,
		v1.ConditionComplete); was != nil && s.running() {
		sentence = was.Message // not known is not changed
	}
	if failure := s.failure(); failure != "" && !s.running() {
		sentence += "; the Pod before has failed: " + failure
	}
	return sentence
}

// running says that the newest Pod runs.
func (s *scope) running() bool {
	newest := s.Run.Newest()
	return newest != nil && newest.Status.Phase == corev1.PodRunning
}

// attempts is how many Pods there have been.
func (s *scope) attempts() int32 {
	count := int32(len(s.Run.Pods)) //nolint:gosec // so many Pods there never are
	if job := s.Run.Job; job != nil && !s.Foreign {
		count = max(count, job.Status.Failed+job.Status.Succeeded+job.Status.Active)
	}
	return max(count, s.Object.Status.Attempts)
}

// before names what has to end before this backup begins: one whose Pod still runs, though it may have been
// cancelled, one that has begun, or one that was asked for earlier.
func (s *scope) before() string {
	for i := range s.seen.others {
		pod := &s.seen.others[i]
		job, _ := jobs.OfPod(pod, naming.ComponentBackup)
		return s.waitsFor("Pod "+pod.Name, job)
	}
	for i := range s.seen.backups {
		other := &s.seen.backups[i]
		if other.Status.CompletedAt != nil || other.DeletionTimestamp != nil || other.BySnapshot() {
			continue // one by a snapshot may wait long; while its Pod runs, that is seen
		}
		if other.Status.StartedAt != nil || earlier(other, s.Object) {
			return fmt.Sprintf("waits for the backup %s, which comes first", other.Name)
		}
	}
	return ""
}

// waitsFor says that something has to end first, which is a Job, or a Pod of it.
func (s *scope) waitsFor(what, job string) string {
	if job == naming.RetentionJob(s.Object.Spec.SampleDB) {
		return fmt.Sprintf("waits for %s to end, which removes what spec.backup.retention does not keep; if it can't "+
			"begin, it makes way some minutes after it was made", what)
	}
	return fmt.Sprintf("waits for %s of another backup to end", what)
}

func earlier(a, b *v1.DatabaseBackup) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}
