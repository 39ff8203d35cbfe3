package postgresql

import (
	"context"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/passwords"
)

// applyPasswords sees to it that a Pod reads the passwords, and takes what it has told. When that has ended, because
// something is different, it is made anew and reads again: nothing is missed between one and the next.
func (r *Reconciler) applyPasswords(ctx context.Context, s *scope) error {
	recipient, err := r.Credentials.Recipient(s.pg.UID)
	if err != nil {
		return err
	}
	user := client.ObjectKeyFromObject(s.pg)
	r.Secrets.Follow(user, desired.PasswordSecrets(s.pg)...)
	versions, settled := r.Secrets.Versions(user)
	if s.found = r.known.of(s.pg.UID); !settled {
		return nil // it will be told in a moment
	}
	want := desired.PasswordsJob(s.pg, r.Settings, recipient.Public(), versions)
	current, ending, err := r.jobs().Keep(ctx, s.seen.jobs, s.pg, want.Name)
	if err != nil {
		return err
	}
	if current == nil && !ending {
		if err := r.writer().Create(ctx, ownerOf(s.pg), want); err != nil {
			return err
		}
	}
	if current != nil {
		over := r.readReport(ctx, s, current, recipient)
		s.found = r.known.of(s.pg.UID)
		if over || s.due(current) {
			return r.jobs().Remove(ctx, current)
		}
	}
	return nil
}

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }

// readReport takes what the Pods of a Job have left, and says whether there will be no more from it.
func (r *Reconciler) readReport(
	ctx context.Context, s *scope, job *batchv1.Job, recipient passwords.Recipient,
) (over bool) {
	pod := jobs.Of(job, s.seen.pods).Newest()
	if pod == nil {
		return false
	}
	first := ended(pod.Status.InitContainerStatuses)
	second := ended(pod.Status.ContainerStatuses)
	switch {
	case second != nil && second.ExitCode == 0:
		r.applyReport(ctx, s, recipient, second.Message)
		return true
	case first != nil && first.ExitCode == 0:
		r.applyReport(ctx, s, recipient, first.Message)
	case first == nil:
		if t := pods.TroubleOf(pod); t != nil {
			s.unread = wait(pgv1.ReasonReadingPasswords, "the passwords can't be read: "+t.Message)
		}
	default:
		s.unread = wait(pgv1.ReasonPasswordInvalid, "the passwords could not be read: "+first.Message)
	}
	return false
}

func (r *Reconciler) applyReport(ctx context.Context, s *scope, recipient passwords.Recipient, message string) {
	found, err := recipient.Open(message)
	if err != nil {
		s.unread = wait(pgv1.ReasonReadingPasswords, "the result of the Pod that reads the passwords can't be used")
		log.FromContext(ctx).Info("the passwords could not be read", "reason", err.Error())
		return
	}
	r.known.set(s.pg.UID, found)
}

func ended(statuses []corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if len(statuses) == 0 {
		return nil
	}
	return statuses[0].State.Terminated
}

// due says that a Job should be made anew to look for what was missing: the kubelet would bring a Secret that comes
// later into its Pod after a minute or more.
func (s *scope) due(job *batchv1.Job) bool {
	for _, found := range s.found {
		if found.Problem != "" && s.now.Sub(job.CreationTimestamp.Time) > s.pollAfter() {
			return true
		}
	}
	return false
}

// pollAfter is after how long a Secret that was missing is looked for again: the longer it has been missing, the later.
func (s *scope) pollAfter() time.Duration { return min(max(s.waited()/2, firstLook), lastLook) }

// waited is for how long it has not been as the spec wants it.
func (s *scope) waited() time.Duration {
	c := meta.FindStatusCondition(s.pg.Status.Conditions, pgv1.ConditionReady)
	if c == nil || c.Status == metav1.ConditionTrue {
		return 0
	}
	return s.now.Sub(c.LastTransitionTime.Time)
}

// knownPasswords is what was read out of Secrets, by the UID of the PostgreSQL. It is nowhere but in memory.
type knownPasswords struct {
	mu    sync.Mutex
	found map[types.UID]map[string]passwords.Found
}

func (k *knownPasswords) of(uid types.UID) map[string]passwords.Found {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.found[uid]
}

func (k *knownPasswords) set(uid types.UID, found map[string]passwords.Found) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.found == nil {
		k.found = map[types.UID]map[string]passwords.Found{}
	}
	if found == nil {
		delete(k.found, uid)
		return
	}
	k.found[uid] = found
}
