package faultdrill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/protocol"
)

// patienceFault is how long an agent may take to break its instance.
const patienceFault = 5 * time.Second

// act does what was decided, which is at most one thing besides undoing, and returns the decision as it is then.
func (r *Reconciler) act(ctx context.Context, s *scope, d Decision) (Decision, error) {
	if d.Undo {
		if err := r.undo(ctx, s); err != nil {
			return d, err
		}
	}
	switch d.Action {
	case ActionCreate:
		job := desired.DrillJob(s.seen.db, r.Settings, s.drill, s.deadline().Sub(s.now))
		return d, r.jobs().Create(ctx, job)
	case ActionStop:
		return d, r.jobs().Remove(ctx, s.seen.run.Job)
	case ActionStrike:
		return r.strike(ctx, s, d)
	case ActionNone:
	}
	return d, nil
}

// strike has the instance broken. That it is ordered is written before, on the very version that was read: no fault is
// done twice, or after it was cancelled or deleted, and if the operator stops in between, everybody knows that it may
// have been done. One that is deleted later is taken back.
func (r *Reconciler) strike(ctx context.Context, s *scope, d Decision) (Decision, error) {
	s.ordered = r.Now()
	there, err := r.report(ctx, s, d)
	switch {
	case err != nil:
		return d, err
	case !there:
		return over(v1.ReasonCancelled, "it was deleted before anything was broken"), nil
	}
	// The time is the operator's own: the clocks of nodes may differ.
	at, err := r.fault(ctx, s)
	if err != nil {
		failed := over(v1.ReasonFailed, fmt.Sprintf("the fault could not be done: %s", err))
		return failed, r.jobs().Remove(ctx, s.seen.run.Job)
	}
	s.struck = at
	r.tell(s)
	return wait(v1.ReasonRunning, broken(s.broken(), s.drill.Spec.Has(v1.FaultByHand))), nil
}

// injected is one fault of one Pod.
type injected struct {
	fault v1.FaultDrillFault
	pod   *corev1.Pod
}

// fault does all faults, each to all that it is done to at once, and says when. What lasts begins first: what it is to
// change is so when the others come.
func (r *Reconciler) fault(ctx context.Context, s *scope) (time.Time, error) {
	at := r.Now()
	for _, first := range []bool{true, false} {
		var blows []injected
		for _, a := range s.seen.targets {
			for i := range a.pods {
				if lasting(a.Fault) == first {
					blows = append(blows, injected{a.Fault, &a.pods[i]})
				}
			}
		}
		if err := each(blows, func(b injected) error { return r.breakPod(ctx, s, b.fault, b.pod) }); err != nil {
			_ = r.undo(ctx, s) // where it was done, it ends by itself, but later
			return at, err
		}
	}
	return at, nil
}

// each does something with all of a list at once, and says what failed.
func each[T any](list []T, do func(T) error) error {
	failed := make([]error, len(list))
	var all sync.WaitGroup
	for i, one := range list {
		all.Go(func() { failed[i] = do(one) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// orders are the faults that an agent does to its own instance.
var orders = map[v1.FaultDrillFault]protocol.Fault{
	v1.FaultServerKilled: protocol.FaultKillServer,
	v1.FaultServerHung:   protocol.FaultHangServer,
	v1.FaultAgentKilled:  protocol.FaultKillAgent,
	v1.FaultDiskFull:     protocol.FaultFillVolume,
	v1.FaultReplayPaused: protocol.FaultPauseReplay,
	v1.FaultAPIAway:      protocol.FaultCutAPI,
	v1.FaultArchiveAway:  protocol.FaultCutArchive,
}

// breakPod does a fault to one instance, or to one pooler or leader.
func (r *Reconciler) breakPod(ctx context.Context, s *scope, fault v1.FaultDrillFault, pod *corev1.Pod) error {
	switch fault {
	case v1.FaultPodDeleted:
		return r.deletePod(ctx, pod)
	case v1.FaultPodKilled, v1.FaultLeaderKilled:
		return r.deletePod(ctx, pod, client.GracePeriodSeconds(0))
	case v1.FaultPoolersKilled: // as far as they are there
		return client.IgnoreNotFound(r.deletePod(ctx, pod, client.GracePeriodSeconds(0)))
	case v1.FaultVolumeLost:
		return r.loseVolume(ctx, pod)
	case v1.FaultServerKilled, v1.FaultServerHung, v1.FaultAgentKilled, v1.FaultDiskFull, v1.FaultReplayPaused,
		v1.FaultAPIAway, v1.FaultArchiveAway:
		return r.order(ctx, s, pod, orders[fault])
	case v1.FaultByHand: // it has no Pods
		return nil
	}
	return fmt.Errorf("this operator knows no fault %s", fault)
}

// loseVolume deletes the volume claim of an instance, and its Pod without a grace period. Kubernetes' controllers make
// both anew.
func (r *Reconciler) loseVolume(ctx context.Context, pod *corev1.Pod) error {
	for _, name := range []string{naming.ClaimOf(pod.Name), naming.WALClaimOf(pod.Name)} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name}}
		err := r.Client.Delete(ctx, claim)
		if apierrors.IsNotFound(err) && name == naming.WALClaimOf(pod.Name) {
			continue // it has no WAL volume
		}
		if err != nil {
			return fmt.Errorf("delete the volume claim %s: %w", name, err)
		}
	}
	return r.deletePod(ctx, pod, client.GracePeriodSeconds(0))
}

// deletePod deletes this very Pod.
func (r *Reconciler) deletePod(ctx context.Context, pod *corev1.Pod, options ...client.DeleteOption) error {
	options = append(options, client.Preconditions{UID: &pod.UID})
	if err := r.Client.Delete(ctx, pod, options...); err != nil {
		return fmt.Errorf("delete Pod %s: %w", pod.Name, err)
	}
	return nil
}

// order has the agent of an instance do it.
func (r *Reconciler) order(ctx context.Context, s *scope, pod *corev1.Pod, fault protocol.Fault) error {
	ctx, cancel := context.WithTimeout(ctx, patienceFault)
	defer cancel()
	order := protocol.FaultOrder{Drill: string(s.drill.UID), Fault: fault}
	if fault != protocol.FaultUndo {
		order.For = lasts(s.drill.Spec) // of a fault that does not last it means nothing
	}
	if fault == protocol.FaultFillVolume {
		size, err := r.volumeSize(ctx, pod)
		if err != nil {
			return err
		}
		order.Volume = size
	}
	if _, err := r.Breaker.Fault(ctx, s.seen.db.UID, pod.Status.PodIP, s.seen.config, order); err != nil {
		return fmt.Errorf("%s: %w", pod.Name, err)
	}
	return nil
}

// volumeSize is how large the volume of an instance is, as its storage says.
func (r *Reconciler) volumeSize(ctx context.Context, pod *corev1.Pod) (bytes int64, err error) {
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: naming.ClaimOf(pod.Name)}
	if err := r.Client.Get(ctx, key, claim); err != nil {
		return 0, fmt.Errorf("read how large the volume is: %w", err)
	}
	return claim.Status.Capacity.Storage().Value(), nil
}

// undo ends what lasts. Where the instance is gone, that has ended, or its next agent ends it.
func (r *Reconciler) undo(ctx context.Context, s *scope) error {
	var at []corev1.Pod
	for _, a := range s.seen.targets {
		if lasting(a.Fault) {
			at = append(at, a.pods...)
		}
	}
	return r.undoAt(ctx, s, at)
}

// undoAt has agents end what lasts, each once.
func (r *Reconciler) undoAt(ctx context.Context, s *scope, at []corev1.Pod) error {
	at = slices.SortedFunc(slices.Values(at), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	at = slices.CompactFunc(at, func(a, b corev1.Pod) bool { return a.Name == b.Name })
	return each(at, func(pod corev1.Pod) error { return r.order(ctx, s, &pod, protocol.FaultUndo) })
}

func (r *Reconciler) jobs() jobs.Runner { return jobs.Runner{Client: r.Client, Reader: r.Reader} }
