package faultdrill

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/drills"
	"toban.dev/internal/controller/jobs"
	"toban.dev/internal/controller/parts"
	"toban.dev/internal/controller/pods"
	"toban.dev/internal/desired"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// observed is what there is.
type observed struct {
	db     *v1.SampleDB // nil where there is none
	config protocol.Config
	// other is another FaultDrill of the SampleDB that goes first, "" where there is none.
	other string
	// targets are the Pods of the instances to break: of those that were chosen, or else of those that fit now.
	// missing is one that fits and is not there, "" where all are.
	targets []corev1.Pod
	missing string
	// poolers are the Pods to break in place of an instance, where the fault is one of poolers.
	poolers []corev1.Pod
	// run is its own Job with its Pod; foreign says that it is one of the name that is somebody else's.
	run     jobs.Run
	foreign bool
	result  *protocol.DrillResult // nil where the Pod has left nothing
}

func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	if err := r.observeJob(ctx, s); err != nil {
		return err
	}
	db := &v1.SampleDB{}
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.drill.Namespace, Name: s.drill.Spec.SampleDB}, db)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read SampleDB %s: %w", s.drill.Spec.SampleDB, err)
	}
	if err != nil {
		return nil //nolint:nilerr // there is none, and that is no error
	}
	s.seen.db = db
	if err := r.observeOthers(ctx, s); err != nil {
		return err
	}
	if s.breaksPoolers() {
		return r.observePoolers(ctx, s)
	}
	return r.observeTargets(ctx, s)
}

func (s *scope) breaksPoolers() bool { return s.drill.Spec.Fault == v1.FaultPoolersKilled }

// observePoolers finds the Pods that take clients of NAME-pool.
func (r *Reconciler) observePoolers(ctx context.Context, s *scope) error {
	all, err := parts.Pods(ctx, r.Client, s.drill.Namespace,
		naming.PoolSelector(s.seen.db.Name, naming.ComponentPooler))
	if err != nil {
		return err
	}
	s.seen.poolers = slices.DeleteFunc(all, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || !pods.Ready(&p)
	})
	return nil
}

// between is what stands between the names of several instances in the status.
const between = ", "

// target is the name of what is broken, "" where it is not there.
func (s *scope) target() string {
	if len(s.seen.poolers) > 0 {
		return naming.Pool(s.seen.db.Name)
	}
	var names []string
	for _, pod := range s.seen.targets {
		names = append(names, pod.Name)
	}
	return strings.Join(names, between)
}

// observeOthers finds the drill of the SampleDB that goes first, where that is another one.
func (r *Reconciler) observeOthers(ctx context.Context, s *scope) error {
	all, err := drills.Of(ctx, r.Client, s.drill.Namespace, s.drill.Spec.SampleDB)
	if err != nil {
		return err
	}
	first := s.drill
	for i := range all {
		if o := &all[i]; o.Status.CompletedAt == nil && o.DeletionTimestamp == nil && goesFirst(o, first) {
			first = o
		}
	}
	if first.UID != s.drill.UID {
		s.seen.other = first.Name
	}
	return nil
}

// goesFirst says which of two drills that are not over goes first: the one that has begun, else the older one.
func goesFirst(a, b *v1.FaultDrill) bool {
	if begun := a.Status.StartedAt != nil; begun != (b.Status.StartedAt != nil) {
		return begun
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// observeTargets finds the Pods of the instances to break, and what their agents have to be asked with.
func (r *Reconciler) observeTargets(ctx context.Context, s *scope) error {
	names := fitting(s.seen.db, s.instance(), s.drill.Spec.Zone)
	if chosen := s.drill.Status.Instance; chosen != "" {
		names = strings.Split(chosen, between)
	}
	config := &corev1.ConfigMap{}
	if there, err := r.find(ctx, s, naming.ConfigMap(s.seen.db.Name), config); err != nil || !there {
		return err
	}
	parsed, err := desired.ParseConfig(config)
	if err != nil {
		return err
	}
	s.seen.config = parsed
	for _, name := range names {
		var pod corev1.Pod
		there, err := r.find(ctx, s, name, &pod)
		if err != nil {
			return err
		}
		if !there || pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			s.seen.missing = name
			continue
		}
		s.seen.targets = append(s.seen.targets, pod)
	}
	return nil
}

// find reads an object of the drill's namespace, and says whether it is there.
func (r *Reconciler) find(ctx context.Context, s *scope, name string, into client.Object) (bool, error) {
	err := r.Client.Get(ctx, types.NamespacedName{Namespace: s.drill.Namespace, Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %s: %w", name, err)
	}
	return err == nil, nil
}

// instance is which instance is to be broken.
func (s *scope) instance() v1.FaultDrillInstance {
	if s.drill.Spec.Fault == v1.FaultVolumeLost {
		return v1.DrillStandby
	}
	return s.drill.Spec.Instance
}

// fitting are the names of the instances to break, none where none fits.
func fitting(db *v1.SampleDB, instance v1.FaultDrillInstance, zone string) (names []string) {
	if instance == v1.DrillPrimary && db.Status.Primary != "" {
		return []string{db.Status.Primary}
	}
	for _, i := range db.Status.InstanceStatuses {
		switch {
		case instance == v1.DrillAll, instance == v1.DrillZone && i.Zone == zone:
			names = append(names, i.Name)
		case instance == v1.DrillStandby && i.Name != db.Status.Primary && i.Ready && i.Voter:
			return []string{i.Name}
		}
	}
	return names
}

func (r *Reconciler) observeJob(ctx context.Context, s *scope) (err error) {
	s.seen.run, s.seen.foreign, err = r.jobs().Look(ctx, s.drill, naming.DrillJob(s.drill.Name),
		desired.DrillSelector(s.drill.Spec.SampleDB))
	if text := s.seen.run.Last(naming.ContainerDrill); text != "" && !s.seen.foreign {
		s.seen.result = jobs.Result[protocol.DrillResult](text)
	}
	return err
}

// view is what the decision depends on.
func (s *scope) view() view {
	spec, status := s.drill.Spec, s.drill.Status
	v := view{
		now: s.now, deadline: s.deadline(), cancel: spec.Cancel, notFound: s.seen.db == nil,
		job:     jobView{state: s.seen.run.State(), foreign: s.seen.foreign, message: s.jobMessage()},
		ordered: moment(status.OrderedAt), struck: moment(status.StruckAt), instance: status.Instance,
		objectives: spec.Objectives, abortAfter: spec.AbortAfter.Duration, result: s.seen.result,
		lasts: lasts(spec),
	}
	newest := s.seen.run.Newest()
	v.steady = newest != nil && pods.Ready(newest)
	if s.seen.db == nil {
		return v
	}
	v.notAllowed, v.notReady = notAllowed(s.seen.db), s.notReady()
	if s.whole() {
		v.wholeSince = moment(status.WholeAt)
	}
	return v
}

// lasts is for how long a fault lasts, 0 for one that does not: it is over when it is done.
func lasts(spec v1.FaultDrillSpec) time.Duration {
	switch spec.Fault {
	case v1.FaultServerHung, v1.FaultDiskFull, v1.FaultReplayPaused:
		return spec.Duration.Duration
	case v1.FaultServerKilled, v1.FaultAgentKilled, v1.FaultPodDeleted, v1.FaultPodKilled, v1.FaultPoolersKilled,
		v1.FaultVolumeLost:
	}
	return 0
}

func moment(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// notAllowed is why a SampleDB may not be broken, "" where it may.
func notAllowed(db *v1.SampleDB) string {
	if desired.AllowsDrills(db) {
		return ""
	}
	return fmt.Sprintf("SampleDB %s does not allow drills. Where it may be broken: kubectl annotate sampledb %s %s=%s",
		db.Name, db.Name, naming.AnnotationFaultDrills, naming.FaultDrillsAllowed)
}

// notReady is why no fault may be added to what there is now, "" where one may.
func (s *scope) notReady() string {
	db := s.seen.db
	switch {
	case db.DeletionTimestamp != nil:
		return "the SampleDB is being deleted"
	case db.Stops():
		return "the SampleDB is stopped (spec.stopped)"
	case s.seen.other != "":
		return fmt.Sprintf("the FaultDrill %s of the same SampleDB goes first", s.seen.other)
	case desired.Backup(db) != nil && !meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionArchiving):
		return "the archive of the SampleDB does not work now, see its condition Archiving"
	}
	for _, kind := range []string{v1.ConditionReady, v1.ConditionDurable} {
		c := meta.FindStatusCondition(db.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration < db.Generation {
			return fmt.Sprintf("the SampleDB is not %s now%s", kind, says(c))
		}
	}
	switch {
	case s.drill.Spec.Fault == v1.FaultVolumeLost && voters(db) < leastVoters:
		return fmt.Sprintf("a fault that costs a volume takes %d instances that vote and are ready: two others must "+
			"have all commits meanwhile", leastVoters)
	case s.seen.missing != "":
		return fmt.Sprintf("the Pod of %s is not there now", s.seen.missing)
	case s.target() != "":
		return ""
	case s.breaksPoolers():
		return "no Pod of spec.pooler takes clients"
	case s.instance() == v1.DrillZone:
		return fmt.Sprintf("no instance is in zone %s: they are in %s", s.drill.Spec.Zone, zones(db))
	}
	return "no instance is there that fits spec.instance"
}

// zones are those in which instances are, for people.
func zones(db *v1.SampleDB) string {
	var known []string
	for _, i := range db.Status.InstanceStatuses {
		if i.Zone != "" {
			known = append(known, i.Zone)
		}
	}
	slices.Sort(known)
	return cmp.Or(strings.Join(slices.Compact(known), between), "none that is known: their nodes have no label "+
		corev1.LabelTopologyZone)
}

// leastVoters is how many instances there must be for one to lose its data on purpose.
const leastVoters = 3

// voters is how many instances vote and are ready.
func voters(db *v1.SampleDB) (n int) {
	for _, i := range db.Status.InstanceStatuses {
		if i.Voter && i.Ready {
			n++
		}
	}
	return n
}

func says(c *metav1.Condition) string {
	if c == nil || c.Status == metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf(" (%s: %s)", c.Reason, c.Message)
}

// whole says that nothing is missing.
func (s *scope) whole() bool {
	is := func(condition string) bool {
		return meta.IsStatusConditionTrue(s.seen.db.Status.Conditions, condition)
	}
	return is(v1.ConditionReady) && is(v1.ConditionDurable) && (!s.breaksPoolers() || is(v1.ConditionPoolerReady))
}

// jobMessage says how the Job is.
func (s *scope) jobMessage() string {
	job, run := s.seen.run.Job, s.seen.run
	switch {
	case job == nil:
		return ""
	case s.seen.foreign:
		return fmt.Sprintf("Job %s does not belong to this FaultDrill: delete it, or choose another name", job.Name)
	case s.seen.result != nil && s.seen.result.Error != "":
		return s.seen.result.Error
	case run.State() == jobs.Ending:
		return fmt.Sprintf("Job %s was deleted", job.Name)
	case run.EndMessage() != "":
		return run.EndMessage()
	}
	if newest := run.Newest(); newest != nil {
		if t := pods.TroubleOf(newest); t != nil {
			return t.Message
		}
	}
	return "its Pod is being started, or its clients do not write steadily yet"
}
