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
	"toban.dev/internal/operator/order"
	"toban.dev/internal/protocol"
)

// patienceFault is how long an agent may take to break its instance.
const patienceFault = 5 * time.Second

// Act does what was decided, which is at most one thing besides undoing, and returns the decision as it is then.
func (s *scope) Act(ctx context.Context, d order.Decision) (order.Decision, error) {
	if s.decided.Undo {
		if err := s.undo(ctx); err != nil {
			return d, err
		}
	}
	switch d.Action {
	case order.ActionCreate:
		return d, s.Jobs.Create(ctx, desired.DrillJob(s.seen.db, s.Settings, s.Object, s.Left()))
	case order.ActionStop:
		return d, s.Jobs.Remove(ctx, s.Run.Job)
	case ActionStrike:
		return s.strike(ctx, d)
	}
	return d, nil
}

// strike has the instance broken. That it is ordered is written before, on the very version that was read: no fault is
// done twice, or after it was cancelled or deleted, and if the operator stops in between, everybody knows that it may
// have been done. One that is deleted later is taken back.
func (s *scope) strike(ctx context.Context, d order.Decision) (order.Decision, error) {
	if why, err := s.misplaced(ctx); err != nil || why != "" {
		return order.Wait(v1.ReasonRunning, why), err
	}
	s.ordered = s.Now()
	there, err := s.Report(ctx, s, d)
	switch {
	case err != nil:
		return d, err
	case !there:
		return order.Over(v1.ReasonCancelled, "it was deleted before anything was broken"), nil
	}
	// The time is the operator's own: the clocks of nodes may differ.
	at, err := s.fault(ctx)
	if err != nil {
		failed := order.Over(v1.ReasonFailed, fmt.Sprintf("the fault could not be done: %s", err))
		return failed, s.Jobs.Remove(ctx, s.Run.Job)
	}
	s.struck = at
	s.tell()
	return order.Wait(v1.ReasonRunning, broken(s.broken(), s.Object.Spec.Has(v1.FaultByHand))), nil
}

// misplaced says why what was chosen is not to be broken: it has another role by now. It is read past the cache, and
// the SampleDB's status too, from which the choice is, may be of a moment ago. Without that a volume could be taken
// from one that has just been elected.
func (s *scope) misplaced(ctx context.Context) (why string, err error) {
	for _, a := range s.seen.targets {
		for i := range a.pods {
			if a.role() == protocol.RoleNone {
				continue
			}
			now := &corev1.Pod{}
			if err := s.Reader.Get(ctx, client.ObjectKeyFromObject(&a.pods[i]), now); err != nil {
				return "", fmt.Errorf("look which role %s has: %w", a.pods[i].Name, err)
			}
			if role := protocol.Role(now.Labels[naming.LabelRole]); role != a.role() || now.UID != a.pods[i].UID {
				return fmt.Sprintf("waits: %s was chosen as the %s, and its role is %q by now", now.Name, a.role(),
					role), nil
			}
		}
	}
	return "", nil
}

// injected is one fault of one Pod.
type injected struct {
	fault v1.FaultDrillFault
	pod   *corev1.Pod
	// role is the one for which it was chosen, "" for any.
	role protocol.Role
}

// fault does all faults, each to all that it is done to at once, and says when. What lasts begins first: what it is to
// change is so when the others come.
func (s *scope) fault(ctx context.Context) (time.Time, error) {
	at := s.Now()
	for _, first := range []bool{true, false} {
		var blows []injected
		for _, a := range s.seen.targets {
			for i := range a.pods {
				if lasting(a.Fault) == first {
					blows = append(blows, injected{a.Fault, &a.pods[i], a.role()})
				}
			}
		}
		if err := each(blows, func(b injected) error { return s.breakPod(ctx, b) }); err != nil {
			_ = s.undo(ctx) // where it was done, it ends by itself, but later
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
func (s *scope) breakPod(ctx context.Context, b injected) error {
	switch pod := b.pod; b.fault {
	case v1.FaultPodDeleted:
		return s.deletePod(ctx, pod)
	case v1.FaultPodKilled, v1.FaultLeaderKilled:
		return s.deletePod(ctx, pod, client.GracePeriodSeconds(0))
	case v1.FaultPoolersKilled: // as far as they are there
		return client.IgnoreNotFound(s.deletePod(ctx, pod, client.GracePeriodSeconds(0)))
	case v1.FaultVolumeLost:
		return s.loseVolume(ctx, pod)
	case v1.FaultServerKilled, v1.FaultServerHung, v1.FaultAgentKilled, v1.FaultDiskFull, v1.FaultReplayPaused,
		v1.FaultAPIAway, v1.FaultArchiveAway:
		return s.orderFault(ctx, pod, orders[b.fault], b.role)
	case v1.FaultByHand: // it has no Pods
		return nil
	}
	return fmt.Errorf("this operator knows no fault %s", b.fault)
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

// orderFault has the agent of an instance do it.
func (s *scope) orderFault(
	ctx context.Context, pod *corev1.Pod, fault protocol.Fault, role protocol.Role,
) error {
	ctx, cancel := context.WithTimeout(ctx, patienceFault)
	defer cancel()
	command := protocol.FaultOrder{Drill: string(s.Object.UID), Fault: fault, Role: role}
	if fault != protocol.FaultUndo {
		command.For = lasts(s.Object.Spec) // of a fault that does not last it means nothing
	}
	if fault == protocol.FaultFillVolume {
		size, err := s.volumeSize(ctx, pod)
		if err != nil {
			return err
		}
		command.Volume = size
	}
	if _, err := s.Breaker.Fault(ctx, s.seen.db.UID, pod.Status.PodIP, s.seen.config, command); err != nil {
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
func (s *scope) undo(ctx context.Context) error {
	var at []corev1.Pod
	for _, a := range s.seen.targets {
		if lasting(a.Fault) {
			at = append(at, a.pods...)
		}
	}
	return s.undoAt(ctx, at)
}

// undoAt has agents end what lasts, each once.
func (s *scope) undoAt(ctx context.Context, at []corev1.Pod) error {
	at = slices.SortedFunc(slices.Values(at), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	at = slices.CompactFunc(at, func(a, b corev1.Pod) bool { return a.Name == b.Name })
	return each(at, func(pod corev1.Pod) error {
		return s.orderFault(ctx, &pod, protocol.FaultUndo, protocol.RoleNone)
	})
}
