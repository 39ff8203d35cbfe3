package sampledb

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/apply"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// readersTopic makes the readers, as many as are wanted.
type readersTopic struct {
	fleetBase
	// readers is how many readers there are to be, nil before that is decided.
	readers *readersDecision
}

// readers is what there is of readers. No decision about the instances looks at it (docs/readers.md).
type readers struct {
	set     *appsv1.StatefulSet
	pods    map[int]*corev1.Pod // by ordinal
	claims  []*corev1.PersistentVolumeClaim
	wals    []*corev1.PersistentVolumeClaim // those of WAL volumes
	answers map[string]protocol.Status      // by name, of the agents that answered
	// taken says that the StatefulSet of their name is somebody else's, "" where it is not.
	taken string
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
			"readers: replace it, with the annotation %s", v.old, naming.AnnotationReplaceAgents)
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

// observeReaders reads the readers' StatefulSet. Where somebody else has its name, it is as if none were wanted.
func (s *readersTopic) observeReaders(ctx context.Context) error {
	set, err := find(ctx, s.Client, s.db, naming.Readers(s.db.Name), &appsv1.StatefulSet{})
	if err != nil || set == nil {
		return err
	}
	if ours(set, s.db) {
		s.seen.readers.set = set
	} else if desired.MostReaders(s.db) > 0 {
		s.seen.readers.taken = fmt.Sprintf("StatefulSet %s does not belong to this SampleDB, whose readers need its "+
			"name: delete or rename it, or remove spec.readers", set.Name)
		s.db.Spec.Readers = nil
	}
	return nil
}

// note keeps a Pod or a claim of a reader.
func (x *readers) note(db *v1.SampleDB, object client.Object) {
	n, numbered := naming.Ordinal(object.GetName())
	switch o := object.(type) {
	case *corev1.Pod:
		if numbered && o.Name == naming.Reader(db.Name, n) {
			if x.pods == nil {
				x.pods = map[int]*corev1.Pod{}
			}
			x.pods[n] = o
		}
	case *corev1.PersistentVolumeClaim:
		if numbered && o.Name == naming.ReaderClaim(db.Name, n) {
			x.claims = append(x.claims, o)
		}
		if numbered && o.Name == naming.ReaderWALClaim(db.Name, n) {
			x.wals = append(x.wals, o)
		}
	}
}

// asked is how many readers the StatefulSet has been asked for.
func (x *readers) asked() int {
	if x.set == nil || x.set.Spec.Replicas == nil {
		return 0
	}
	return int(*x.set.Spec.Replicas)
}

// present is how many readers there are or come, by ordinal.
func (x *readers) present() int {
	count := x.asked()
	for ordinal := range x.pods {
		count = max(count, ordinal+1)
	}
	return count
}

// ready says that a reader answers queries, and streams or has streamed a moment ago.
func (x *readers) ready(ordinal int) bool {
	pod := x.pods[ordinal]
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	a, known := x.answers[pod.Name]
	return known && a.Ready && a.Role == protocol.RoleStandby
}

// countReady is how many of the first readers are ready.
func (x *readers) countReady(first int) int {
	count := 0
	for ordinal := range first {
		if x.ready(ordinal) {
			count++
		}
	}
	return count
}

// readersView is what the scope knows of them.
func (s *readersTopic) readersView() readersView {
	v := readersView{spec: s.db.Spec.Readers, have: s.seen.readers.asked()}
	v.ready = s.seen.readers.countReady(v.have)
	v.stopped = s.stop.Closed()
	switch {
	case s.starting():
		v.later = "the database is being set up; then they copy its data"
	case s.inPlace() || s.restoreBegun():
		v.later = "the database is being restored; then they copy its data"
	case s.upgrade.Closed() || s.stopped != nil:
		v.later = "the database is being upgraded; then they copy its data"
	}
	for _, name := range slices.Sorted(maps.Keys(s.seen.answers)) {
		if s.seen.answers[name].Protocol == 0 && v.old == "" {
			v.old = name
		}
	}
	return v
}

// applyReaders makes, changes and removes the readers. What keeps it from that is a matter of ReadersReady alone.
func (s *readersTopic) applyReaders(ctx context.Context) error {
	d := decideReaders(s.readersView())
	s.readers = &d
	err := s.keepReaders(ctx, d)
	var found *problem
	if errors.As(err, &found) {
		d.reason, d.message = found.reason, found.message
		return nil
	}
	return err
}

func (s *readersTopic) keepReaders(ctx context.Context, d readersDecision) error {
	have := s.seen.readers.set
	if desired.MostReaders(s.db) == 0 {
		return s.removeReaders(ctx)
	}
	if have == nil && d.replicas == 0 {
		return nil
	}
	set, err := desired.ReadersSet(s.db, s.Settings, s.config, d.replicas, have)
	if err != nil {
		return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
	}
	if have != nil && s.db.Spec.Readers.Autoscale != nil {
		apply.IfUnchanged(set, have)
	}
	if err := s.apply(ctx, s.db, set); err != nil {
		return err
	}
	if was := s.seen.readers.asked(); was != d.replicas {
		s.addEvent(eventScaling, fmt.Sprintf("from %d to %d readers", was, d.replicas))
	}
	if err := s.apply(ctx, s.db, desired.ReadersBudget(s.db)); err != nil {
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
	if want := desired.ReadersAutoscaler(s.db); want != nil {
		return s.apply(ctx, s.db, want)
	}
	return s.removeOwn(ctx, naming.Readers(s.db.Name), &autoscalingv2.HorizontalPodAutoscaler{})
}

// removeReaders removes all that there is of readers. Their volumes go with the StatefulSet.
func (s *readersTopic) removeReaders(ctx context.Context) error {
	if s.seen.readers.set == nil {
		return nil
	}
	for _, object := range []client.Object{
		&autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}, &appsv1.StatefulSet{},
	} {
		if err := s.removeOwn(ctx, naming.Readers(s.db.Name), object); err != nil {
			return err
		}
	}
	return nil
}

// growReaders enlarges the volumes of readers that are smaller than the size in force. The StatefulSet makes them, of a
// template that can't be changed. One that can't grow stays as it is.
func (s *readersTopic) growReaders(ctx context.Context) error {
	for of, claims := range map[desired.Volume][]*corev1.PersistentVolumeClaim{
		desired.DataVolume: s.seen.readers.claims, desired.WALVolume: s.seen.readers.wals,
	} {
		size, err := of.Size(s.db)
		if err != nil {
			return &problem{v1.ReasonInvalidSpec, err.Error(), waitUser}
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
	ordinal, _ := naming.Ordinal(d.target)
	pod := s.seen.readers.pods[ordinal]
	switch {
	case pod == nil || pod.Name != d.target:
		return nil
	case d.action == actionReplace:
		return s.replace(ctx, pod, d.message)
	case d.action == actionRestart:
		return s.restartServer(ctx, pod, d.message)
	}
	return nil
}

// readersFleet is the fleet of the readers.
func (s *readersTopic) readersFleet() fleet {
	x := &s.seen.readers
	f := fleet{observed: x.set != nil && x.set.Status.ObservedGeneration == x.set.Generation &&
		desired.Made(s.db, s.settings, x.set.Spec.Template.ObjectMeta)}
	for ordinal := range x.asked() {
		i := instance{name: naming.Reader(s.db.Name, ordinal), ready: x.ready(ordinal)}
		answer, known := x.answers[i.name]
		i.known = known
		if pod := x.pods[ordinal]; pod != nil {
			i.exists, i.running = pod.DeletionTimestamp == nil, pods.Ready(pod)
			i.outdated = desired.Outdated(s.db, s.settings, pod)
		}
		if known && answer.ConfigRevision == s.config.Revision && i.exists {
			i.pending = answer.PendingRestart
		}
		f.instances = append(f.instances, i)
	}
	return f
}

// removeOwn deletes an object of the SampleDB, if it is there and is its own.
func (s *act) removeOwn(ctx context.Context, name string, into client.Object) error {
	have, err := find(ctx, s.Client, s.db, name, into)
	if err != nil || have == nil || !metav1.IsControlledBy(have, s.db) || have.GetDeletionTimestamp() != nil {
		return err
	}
	return s.deleteObject(ctx, have)
}
