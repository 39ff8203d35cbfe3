package postgresql

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	pgv1 "toban.dev/api/postgresql/v1"
	"toban.dev/internal/desired"
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
	current, ending, err := r.sortJobs(ctx, s, want.Name)
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
			if err := r.writer().Remove(ctx, ownerOf(s.pg), current); err != nil {
				return err
			}
		}
	}
	return nil
}

// sortJobs finds the Job of this name, or whether it is going, and deletes the others: those of a former spec.
func (r *Reconciler) sortJobs(
	ctx context.Context, s *scope, name string,
) (current *batchv1.Job, ending bool, err error) {
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		switch {
		case job.Name == name && job.DeletionTimestamp != nil:
			ending = true
		case job.Name == name:
			current = job
		case job.DeletionTimestamp == nil:
			if err := r.writer().Remove(ctx, ownerOf(s.pg), job); err != nil {
				return nil, false, err
			}
		}
	}
	return current, ending, nil
}

// readReport takes what the Pods of a Job have left, and says whether there will be no more from it.
func (r *Reconciler) readReport(
	ctx context.Context, s *scope, job *batchv1.Job, recipient passwords.Recipient,
) (over bool) {
	pod := newest(s.seen.pods, job)
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
	case first != nil:
		s.unread = wait(pgv1.ReasonPasswordInvalid, "the passwords could not be read: "+first.Message)
	}
	return false
}

func (r *Reconciler) applyReport(ctx context.Context, s *scope, recipient passwords.Recipient, message string) {
	found, err := recipient.Open(message)
	if err != nil {
		s.unread = wait(pgv1.ReasonReadingPasswords, "the Pod that reads the passwords has left something else")
		log.FromContext(ctx).Info("the passwords could not be read", "reason", err.Error())
		return
	}
	r.known.set(s.pg.UID, found)
}

// newest is the Pod of a Job that was made last.
func newest(pods []corev1.Pod, job *batchv1.Job) *corev1.Pod {
	var out *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if metav1.IsControlledBy(pod, job) && (out == nil || out.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			out = pod
		}
	}
	return out
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
func (s *scope) pollAfter() time.Duration {
	c := meta.FindStatusCondition(s.pg.Status.Conditions, pgv1.ConditionReady)
	if c == nil {
		return firstLook
	}
	return min(max(s.now.Sub(c.LastTransitionTime.Time)/2, firstLook), lastLook)
}
