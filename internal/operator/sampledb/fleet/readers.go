package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
)

// readersTopic makes the readers, as many as are wanted.
type readersTopic struct {
	base
	// readers is how many readers there are to be, nil before that is decided.
	readers *readersDecision
}

// readersAtOnce is how many readers may be coming at a time: each copies all data from the primary. They are two, so
// that one that can't come keeps no other away.
const readersAtOnce = 2

// readersView is what a decision about the number of readers is made of.
type readersView struct {
	spec *v1.ReadersSpec
	// stopped says that no server is to run, later why there are to be no readers yet, "" where there may be.
	stopped bool
	later   string
	// old is an instance whose agent does not know readers, "" for none.
	old string
	// have is how many the StatefulSet has been asked for, ready how many of them serve.
	have, ready int
}

// readersDecision is how many readers are wanted, and how many the StatefulSet is asked for now. The reason is that of
// the condition where they are held up, "" where they are not.
type readersDecision struct {
	wanted, replicas int
	reason, message  string
}

// decideReaders decides how many readers there are to be. Those that are too many go at once: nobody counts on them.
func decideReaders(v readersView) readersDecision {
	d := readersDecision{wanted: wantedReaders(v)}
	switch {
	case v.stopped:
		d.reason, d.message = v1.ReasonStopped, "the database is stopped: its readers are made anew when it starts"
	case v.later != "":
		d.reason, d.message = v1.ReasonReadersLater, v.later
	case d.wanted <= v.have:
		d.replicas = d.wanted
	case v.old != "":
		d.replicas = v.have
		d.reason, d.message = v1.ReasonAgentsTooOld, fmt.Sprintf("the agent of %s is of a release that does not know "+
			"readers: replace it, with the annotation %s", v.old, world.RequestReplaceAgents)
	default:
		d.replicas = min(d.wanted, max(v.have, v.ready+readersAtOnce))
	}
	return d
}

// wantedReaders is how many the spec wants. What an autoscaler has asked for stays, within its limits.
func wantedReaders(v readersView) int {
	switch {
	case v.spec == nil:
		return 0
	case v.spec.Autoscale != nil:
		return min(max(v.have, int(v.spec.Autoscale.Min)), int(v.spec.Autoscale.Max))
	}
	return int(v.spec.Count)
}

// ObserveReaders reads the readers' StatefulSet. Where somebody else has its name, it is as if none were wanted.
func (s *readersTopic) ObserveReaders(ctx context.Context) error {
	set, err := world.Find(ctx, s.Client, s.DB, naming.Readers(s.DB.Name), &appsv1.StatefulSet{})
	if err != nil || set == nil {
		return err
	}
	if world.Ours(set, s.DB) {
		s.Seen.Readers.Set = set
	} else if desired.MostReaders(s.DB) > 0 {
		s.Seen.Readers.Taken = fmt.Sprintf("StatefulSet %s does not belong to this SampleDB, whose readers need its "+
			"name: delete or rename it, or remove spec.readers", set.Name)
		s.DB.Spec.Readers = nil
	}
	return nil
}

// readersView is what the scope knows of them.
func (s *readersTopic) readersView() readersView {
	v := readersView{spec: s.DB.Spec.Readers, have: s.Seen.Readers.Asked()}
	v.ready = s.Seen.Readers.CountReady(v.have)
	v.stopped = s.Stop.Closed()
	switch {
	case s.Starting():
		v.later = "the database is being set up; then they copy its data"
	case s.InPlace() || s.RestoreBegun():
		v.later = "the database is being restored; then they copy its data"
	case s.Upgrade.Closed() || s.Stopped != nil:
		v.later = "the database is being upgraded; then they copy its data"
	}
	for _, name := range slices.Sorted(maps.Keys(s.Seen.Answers)) {
		if s.Seen.Answers[name].Protocol == 0 && v.old == "" {
			v.old = name
		}
	}
	return v
}

// ApplyReaders makes, changes and removes the readers. What keeps it from that is a matter of ReadersReady alone.
func (s *readersTopic) ApplyReaders(ctx context.Context) error {
	d := decideReaders(s.readersView())
	s.readers = &d
	err := s.keepReaders(ctx, d)
	var found *world.Problem
	if errors.As(err, &found) {
		d.reason, d.message = found.Reason, found.Message
		return nil
	}
	return err
}

func (s *readersTopic) keepReaders(ctx context.Context, d readersDecision) error {
	have := s.Seen.Readers.Set
	if desired.MostReaders(s.DB) == 0 {
		return s.RemoveReaders(ctx)
	}
	if have == nil && d.replicas == 0 {
		return nil
	}
	set, err := desired.ReadersSet(s.DB, s.Settings, s.Config, d.replicas, have)
	if err != nil {
		return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
	}
	if have != nil && s.DB.Spec.Readers.Autoscale != nil {
		apply.IfUnchanged(set, have)
	}
	if err := s.Apply(ctx, s.DB, set); err != nil {
		return err
	}
	if was := s.Seen.Readers.Asked(); was != d.replicas {
		s.AddEvent(world.EventScaling, fmt.Sprintf("from %d to %d readers", was, d.replicas))
	}
	if err := s.Apply(ctx, s.DB, desired.ReadersBudget(s.DB)); err != nil {
		return err
	}
	if err := s.applyReadersAutoscaler(ctx); err != nil {
		return err
	}
	if err := s.growReaders(ctx); err != nil {
		return err
	}
	return s.restartReader(ctx)
}

func (s *readersTopic) applyReadersAutoscaler(ctx context.Context) error {
	if want := desired.ReadersAutoscaler(s.DB); want != nil {
		return s.Apply(ctx, s.DB, want)
	}
	return s.RemoveOwn(ctx, naming.Readers(s.DB.Name), &autoscalingv2.HorizontalPodAutoscaler{})
}

// RemoveReaders removes all that there is of readers. Their volumes go with the StatefulSet.
func (s *readersTopic) RemoveReaders(ctx context.Context) error {
	if s.Seen.Readers.Set == nil {
		return nil
	}
	for _, object := range []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}, &appsv1.StatefulSet{},
	} {
		if err := s.RemoveOwn(ctx, naming.Readers(s.DB.Name), object); err != nil {
			return err
		}
	}
	return nil
}

// growReaders enlarges the volumes of readers that are smaller than the size in force. The StatefulSet makes them, of a
// template that can't be changed. One that can't grow stays as it is.
func (s *readersTopic) growReaders(ctx context.Context) error {
	for of, claims := range map[desired.Volume][]*corev1.PersistentVolumeClaim{
		desired.DataVolume: s.Seen.Readers.Claims, desired.WALVolume: s.Seen.Readers.WALs,
	} {
		size, err := of.Size(s.DB)
		if err != nil {
			return &world.Problem{Reason: v1.ReasonInvalidSpec, Message: err.Error(), Wait: world.WaitUser}
		}
		if err := s.enlarge(ctx, claims, size); err != nil {
			return err
		}
	}
	return nil
}

func (s *readersTopic) enlarge(
	ctx context.Context, claims []*corev1.PersistentVolumeClaim, size resource.Quantity,
) error {
	for _, claim := range claims {
		have := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if claim.DeletionTimestamp != nil || have.Cmp(size) >= 0 || claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		larger := claim.DeepCopy()
		larger.Spec.Resources.Requests[corev1.ResourceStorage] = size
		err := s.Client.Patch(ctx, larger, client.MergeFrom(claim), client.FieldOwner(naming.FieldOwner))
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("enlarge PersistentVolumeClaim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// restartReader replaces one reader that is outdated, or restarts its server, by the rules of the instances: one at a
// time, while all other readers are ready. Instances and readers do not wait for each other.
func (s *readersTopic) restartReader(ctx context.Context) error {
	d := decide(s.readersFleet())
	ordinal, _ := naming.Ordinal(d.Target)
	pod := s.Seen.Readers.Pods[ordinal]
	switch {
	case pod == nil || pod.Name != d.Target:
		return nil
	case d.Action == world.ActionReplace:
		return s.Replace(ctx, pod, d.Message)
	case d.Action == world.ActionRestart:
		return s.RestartServer(ctx, pod, d.Message)
	}
	return nil
}

// readersFleet is the fleet of the readers.
func (s *readersTopic) readersFleet() world.Fleet {
	x := &s.Seen.Readers
	f := world.Fleet{Observed: x.Set != nil && x.Set.Status.ObservedGeneration == x.Set.Generation &&
		desired.Made(s.DB, s.OperatorSettings, x.Set.Spec.Template.ObjectMeta)}
	for ordinal := range x.Asked() {
		i := world.Instance{Name: naming.Reader(s.DB.Name, ordinal), Ready: x.Ready(ordinal)}
		answer, known := x.Answers[i.Name]
		i.Known = known
		if pod := x.Pods[ordinal]; pod != nil {
			i.Exists, i.Running = pod.DeletionTimestamp == nil, pods.Ready(pod)
			i.Outdated = desired.Outdated(s.DB, s.OperatorSettings, pod)
		}
		if known && answer.ConfigRevision == s.Config.Revision && i.Exists {
			i.Pending = answer.PendingRestart
		}
		f.Instances = append(f.Instances, i)
	}
	return f
}
