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
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
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
	db     *v1.SampleDB // nil where there is none
	config protocol.Config
	// other is another FaultDrill of the SampleDB that goes first, "" where there is none. begun is how many others of
	// the namespace are under way, where that matters.
	other string
	begun int
	// targets are what each fault of the drill is done to. missing is an instance that fits and is not there, "" where
	// all are.
	targets []target
	missing string
	result  *protocol.DrillResult // nil where the Pod has left nothing
	// archive is how far the archive is after it was away. apps are the MyApps whose leaders are killed, and noApp is
	// why there is none, "" where there is one.
	archive archiveView
	apps    []appv1.MyApp
	noApp   string
}

// target is what one fault of the drill is done to.
type target struct {
	v1.FaultDrillPart
	// pods are those of the instances that were chosen, or else that fit now, or those of poolers, or those that lead
	// MyApps.
	pods []corev1.Pod
	// name is that of what is broken, or the names of the instances; "" where nothing is there.
	name string
}

func (a target) poolers() bool { return a.Fault == v1.FaultPoolersKilled }
func (a target) leaders() bool { return a.Fault == v1.FaultLeaderKilled }

// role is the one for which its instances were chosen, "" for any.
func (a target) role() protocol.Role {
	switch {
	case a.poolers(), a.leaders(), a.byHand():
		return protocol.RoleNone
	case a.Fault == v1.FaultVolumeLost || a.Instance == v1.DrillStandby:
		return protocol.RoleStandby
	case a.Instance == v1.DrillPrimary:
		return protocol.RolePrimary
	}
	return protocol.RoleNone
}

// byHand says that it is not done here: to whatever a person chooses.
func (a target) byHand() bool { return a.Fault == v1.FaultByHand }

// Observe reads what the decision depends on.
func (s *scope) Observe(ctx context.Context) (err error) {
	if err := s.observeJob(ctx); err != nil {
		return err
	}
	if s.seen.db, err = s.SampleDB(ctx); err != nil || s.seen.db == nil {
		return err
	}
	if err := s.observeOthers(ctx); err != nil {
		return err
	}
	if err := s.observeAims(ctx); err != nil {
		return err
	}
	return s.observeArchive(ctx)
}

// observeAims finds what each fault is done to, and what the agents have to be asked with.
func (s *scope) observeAims(ctx context.Context) error {
	there, err := s.observeConfig(ctx)
	if err != nil {
		return err
	}
	chosen := s.Object.Status.Chosen()
	for i, part := range s.Object.Spec.Parts() {
		a := target{FaultDrillPart: part}
		switch {
		case a.poolers():
			err = s.observePoolers(ctx, &a)
		case a.leaders():
			err = s.observeLeaders(ctx, &a)
		case a.byHand():
			a.name = s.seen.db.Name
		case there && i < len(chosen):
			err = s.observeInstances(ctx, &a, strings.Split(chosen[i], between))
		case there:
			err = s.observeInstances(ctx, &a, fitting(s.seen.db, part, s.Object.Spec.Zone))
		}
		if err != nil {
			return err
		}
		s.seen.targets = append(s.seen.targets, a)
	}
	return nil
}

// observePoolers finds the Pods that take clients of NAME-pool.
func (s *scope) observePoolers(ctx context.Context, a *target) error {
	all, err := index.Pods(ctx, s.Client, s.Object.Namespace,
		naming.PoolSelector(s.seen.db.Name, naming.ComponentPooler))
	if err != nil {
		return err
	}
	a.pods = slices.DeleteFunc(all, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || !pods.Ready(&p)
	})
	if len(a.pods) > 0 {
		a.name = naming.Pool(s.seen.db.Name)
	}
	return nil
}

// between is what stands between the names of several instances in the status.
const between = ", "

// broken are the names of all that is broken, each once.
func (s *scope) broken() string {
	var names []string
	for _, name := range s.Object.Status.Chosen() {
		for _, one := range strings.Split(name, between) {
			if !slices.Contains(names, one) {
				names = append(names, one)
			}
		}
	}
	return strings.Join(names, between)
}

// observeOthers finds the drill of the SampleDB that goes first, where that is another one.
func (s *scope) observeOthers(ctx context.Context) error {
	all, err := index.Drills(ctx, s.Client, s.Object.Namespace, s.Object.Spec.SampleDB)
	if err != nil {
		return err
	}
	first := s.Object
	for i := range all {
		if o := &all[i]; o.Status.CompletedAt == nil && o.DeletionTimestamp == nil && goesFirst(o, first) {
			first = o
		}
	}
	if first.UID != s.Object.UID {
		s.seen.other = first.Name
	}
	if s.Object.Spec.AtOnce == 0 {
		return nil
	}
	var everywhere v1.FaultDrillList
	// Past the cache: who has begun a moment ago counts.
	if err := s.Reader.List(ctx, &everywhere, client.InNamespace(s.Object.Namespace)); err != nil {
		return fmt.Errorf("list the FaultDrills: %w", err)
	}
	s.seen.begun = underWay(everywhere.Items, s.Object.UID)
	return nil
}

// observeInstances finds the Pods of instances.
func (s *scope) observeInstances(ctx context.Context, a *target, names []string) error {
	var found []string
	for _, name := range names {
		var pod corev1.Pod
		there, err := s.Find(ctx, name, &pod)
		if err != nil {
			return err
		}
		if !there || pod.DeletionTimestamp != nil || pod.Status.PodIP == "" {
			s.seen.missing = name
			continue
		}
		a.pods, found = append(a.pods, pod), append(found, name)
	}
	a.name = strings.Join(found, between)
	return nil
}

// fitting are the names of the instances to break by one fault, none where none fits.
func fitting(db *v1.SampleDB, part v1.FaultDrillPart, zone string) (names []string) {
	instance := part.Instance
	if part.Fault == v1.FaultVolumeLost {
		instance = v1.DrillStandby
	}
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

func (s *scope) observeJob(ctx context.Context) (err error) {
	s.Run, s.Foreign, err = s.Jobs.Look(ctx, s.Object, naming.DrillJob(s.Object.Name),
		desired.DrillSelector(s.Object.Spec.SampleDB))
	if text := s.Run.Last(naming.ContainerDrill); text != "" && !s.Foreign {
		s.seen.result = jobs.Result[protocol.DrillResult](text)
	}
	return err
}

// Decide says what to do.
func (s *scope) Decide() order.Decision {
	s.decided = decide(s.view())
	return s.decided.Decision
}

// view is what the decision depends on.
func (s *scope) view() view {
	spec, status := s.Object.Spec, s.Object.Status
	v := view{
		View: s.View(s.jobMessage()), notFound: s.seen.db == nil,
		ordered: moment(status.OrderedAt), struck: moment(status.StruckAt), instance: s.broken(),
		byHand:     spec.Has(v1.FaultByHand),
		objectives: spec.Objectives, abortAfter: spec.AbortAfter.Duration, result: s.seen.result,
		lasts: lasts(spec), besides: besides(spec),
	}
	newest := s.Run.Newest()
	v.steady = newest != nil && pods.Ready(newest)
	if s.seen.db == nil {
		return v
	}
	v.notAllowed, v.notReady = notAllowed(s.seen.db), s.notReady()
	if v.lacks = s.lacks(); v.lacks == "" {
		v.wholeSince = moment(status.WholeAt)
	}
	return v
}

// lasts is for how long the faults of a drill last, 0 where none does: then they are over when they are done.
func lasts(spec v1.FaultDrillSpec) time.Duration {
	for _, part := range spec.Parts() {
		if lasting(part.Fault) {
			return spec.Duration.Duration
		}
	}
	return 0
}

// lasting says that a fault lasts, until it is taken back.
func lasting(fault v1.FaultDrillFault) bool {
	switch fault {
	case v1.FaultServerHung, v1.FaultDiskFull, v1.FaultReplayPaused, v1.FaultAPIAway, v1.FaultArchiveAway:
		return true
	case v1.FaultServerKilled, v1.FaultAgentKilled, v1.FaultPodDeleted, v1.FaultPodKilled, v1.FaultPoolersKilled,
		v1.FaultVolumeLost, v1.FaultLeaderKilled, v1.FaultByHand:
	}
	return false
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
	if why := cmp.Or(s.tooMany(), s.noBackup()); why != "" {
		return why
	}
	for _, kind := range []string{v1.ConditionReady, v1.ConditionDurable} {
		c := meta.FindStatusCondition(db.Status.Conditions, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration < db.Generation {
			return fmt.Sprintf("the SampleDB is not %s now%s", kind, says(c))
		}
	}
	return s.notFit()
}

// notFit is why the faults of the drill can't be done to what there is now, "" where they can.
func (s *scope) notFit() string {
	db := s.seen.db
	switch {
	case s.Object.Spec.Has(v1.FaultArchiveAway) && desired.Backup(db) == nil:
		return "ArchiveAway takes a SampleDB with an archive, and this one has none (spec.backup.none)"
	case s.Object.Spec.Has(v1.FaultVolumeLost) && voters(db) < leastVoters:
		return fmt.Sprintf("a fault that costs a volume takes %d instances that vote and are ready: two others must "+
			"have all commits meanwhile", leastVoters)
	case s.seen.missing != "":
		return fmt.Sprintf("the Pod of %s is not there now", s.seen.missing)
	}
	for _, a := range s.seen.targets {
		if a.name == "" {
			return s.nothing(a)
		}
	}
	return ""
}

// nothing is why there is nothing that one fault could be done to.
func (s *scope) nothing(a target) string {
	switch {
	case a.poolers():
		return "no Pod of spec.pooler takes clients"
	case a.leaders():
		return s.seen.noApp
	case a.Instance == v1.DrillZone && a.Fault != v1.FaultVolumeLost:
		return fmt.Sprintf("no instance is in zone %s: they are in %s", s.Object.Spec.Zone, zones(s.seen.db))
	}
	return fmt.Sprintf("no instance is there that fits instance: %s", a.Instance)
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

// jobMessage says how the Job is.
func (s *scope) jobMessage() string {
	job, run := s.Run.Job, s.Run
	switch {
	case job == nil:
		return ""
	case s.Foreign:
		return fmt.Sprintf("Job %s does not belong to this FaultDrill: delete it, or choose another name", job.Name)
	case run.State() == jobs.Failed:
		return "its clients have failed: " + cmp.Or(s.failure(), run.EndMessage())
	case s.failure() != "":
		return s.failure()
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

// failure is what the clients have failed with, "" where that is not known.
func (s *scope) failure() string {
	if s.seen.result == nil {
		return ""
	}
	return s.seen.result.Error
}
