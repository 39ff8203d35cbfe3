package api

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb"
	"toban.dev/internal/protocol"
	"toban.dev/test/played"
)

// volumesAnew plays the cluster around a SampleDB whose volumes are made anew, step by step.
type volumesAnew struct {
	*world
	db *v1.SampleDB
	// used is how much each volume holds, 0 for not known.
	used int64
	// first are the claims at the beginning, replaced the instances whose claims are others by now, in that order.
	first    map[string]types.UID
	replaced []string
	term     uint64
	// counted says which volume of an instance the primary counts.
	counted map[string]types.UID
	// late are the instances whose Pods no node takes.
	late map[string]bool
}

func size(of string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Storage.Size = of }
}

// anew begins with a SampleDB of 2Gi in the class standard whose volumes hold little.
func anew(t *testing.T, count int32, modify ...func(*v1.SampleDB)) *volumesAnew {
	t.Helper()
	w := newWorld(t)
	modify = append([]func(*v1.SampleDB){instances(count), withoutBackup, inClass("standard"), size("2Gi")}, modify...)
	a := &volumesAnew{
		world: w, used: 300 << 20, term: 1, first: map[string]types.UID{}, counted: map[string]types.UID{},
		late: map[string]bool{}, db: w.started("x", modify...),
	}
	for n := range int(count) {
		a.first[naming.Instance("x", n)] = a.claim(n).UID
	}
	a.counts()
	a.db = w.reconcile(a.db)
	w.expect(a.db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.drainEvents()
	return a
}

// claim is that of an instance, without a UID where there is none.
func (a *volumesAnew) claim(ordinal int) *corev1.PersistentVolumeClaim {
	a.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	a.find(naming.Claim("x", ordinal), claim)
	return claim
}

// counts has the agents say what their volumes hold, and which volumes the primary counts: those of all that are ready.
func (a *volumesAnew) counts() {
	a.Helper()
	var voters []ha.Voter
	for _, answer := range a.agents.answers {
		ordinal, _ := naming.Ordinal(answer.Name)
		if answer.Ready {
			a.counted[answer.Name] = a.claim(ordinal).UID
		}
		voters = append(voters, ha.NewVoter(answer.Name, string(a.counted[answer.Name])))
	}
	slices.Sort(voters)
	a.answers(voters)
}

func (a *volumesAnew) answers(voters []ha.Voter) {
	a.Helper()
	for host, answer := range a.agents.answers {
		ordinal, _ := naming.Ordinal(answer.Name)
		claim := a.claim(ordinal)
		a.agents.change(host, func(s *protocol.Status) {
			s.Election.Voter = ha.NewVoter(s.Name, string(claim.UID))
			s.Election.Configuration = ha.Configuration{
				Term: 1, Version: 3, Now: ha.Quorum{Voters: voters, Acknowledgements: 2},
			}
			if s.Room = nil; a.used > 0 {
				s.Room = &protocol.Room{Size: claim.Status.Capacity.Storage().Value(), Used: a.used, PerDay: new(int64)}
			}
		})
	}
}

// step does what Kubernetes and the agents do, reconciles, and notes which claim has gone.
func (a *volumesAnew) step() {
	a.Helper()
	a.collectSet()
	set := &appsv1.StatefulSet{}
	if a.find("x", set) && set.DeletionTimestamp == nil {
		for n := range int(*set.Spec.Replicas) {
			a.remake(set, n)
		}
		played.Observe(set)
		a.must(a.api.Status().Update(a.Context(), set))
	}
	a.handsOver()
	a.counts()
	a.look()
	a.db = a.reconcile(a.db)
	a.look()
}

// collectSet ends the deletion of a StatefulSet whose Pods stay.
func (a *volumesAnew) collectSet() {
	a.Helper()
	set := &appsv1.StatefulSet{}
	if !a.find("x", set) || set.DeletionTimestamp == nil {
		return
	}
	if !slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents) {
		a.Fatalf("the StatefulSet is deleted with its Pods: %v", set.Finalizers)
	}
	set.Finalizers = nil
	a.must(a.api.Update(a.Context(), set))
}

// remake makes the claim and the Pod of an instance, where they are gone. The controller of StatefulSets is faster than
// the operator here, and makes the claim of its template.
func (a *volumesAnew) remake(set *appsv1.StatefulSet, ordinal int) {
	a.Helper()
	name := naming.Instance("x", ordinal)
	host := address(set, ordinal)
	if claim := a.claim(ordinal); claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil {
		a.bindClaim(claim.Name) // it may grow
	}
	if a.find(name, &corev1.Pod{}) {
		return
	}
	if a.deleting(naming.ClaimOf(name)) {
		a.protectionOff(naming.ClaimOf(name))
	}
	if a.claim(ordinal).UID == "" {
		made := set.Spec.VolumeClaimTemplates[0].DeepCopy()
		made.Namespace, made.Name = a.namespace, naming.ClaimOf(name)
		a.must(a.api.Create(a.Context(), made))
	}
	if a.late[name] {
		a.must(a.api.Create(a.Context(), played.Pod(set, ordinal)))
		delete(a.agents.answers, host)
		return
	}
	a.bindClaim(naming.ClaimOf(name))
	a.makePod(set, ordinal, host)
	a.agents.change(host, func(s *protocol.Status) {
		*s = protocol.Status{
			Name: name, Protocol: protocol.Version, Role: protocol.RoleStandby, Ready: true, Streaming: true,
			Term: a.term, Reason: "Follower", Data: protocol.DataPresent, SystemIdentifier: identifier,
			ServerVersion: "17.6", Started: "1",
		}
	})
}

// handsOver does what the primary does that was asked to hand over: the first other instance leads.
func (a *volumesAnew) handsOver() {
	a.Helper()
	if a.agents.refuse != "" || len(a.agents.switchovers) == 0 {
		return
	}
	from, _, _ := strings.Cut(a.agents.switchovers[0], " ")
	a.agents.switchovers = nil
	to := "x-0"
	if from == to {
		to = "x-1"
	}
	a.term++
	a.lead(to, a.term)
}

// look notes which claims are others by now, and that no two instances are without their data.
func (a *volumesAnew) look() {
	a.Helper()
	gone := 0
	for n := range len(a.first) {
		name := naming.Instance("x", n)
		claim := a.claim(n)
		if claim.UID == "" || claim.DeletionTimestamp != nil || a.counted[name] != claim.UID {
			gone++
		}
		if claim.UID == a.first[name] && claim.DeletionTimestamp == nil || slices.Contains(a.replaced, name) {
			continue
		}
		a.replaced = append(a.replaced, name)
		for _, answer := range a.agents.answers {
			if answer.Name == name && answer.Role == protocol.RolePrimary {
				a.Errorf("the volume of the primary %s goes", name)
			}
		}
	}
	if gone > 1 {
		a.Errorf("%d instances are without their data at once", gone)
	}
}

// settles goes on until the SampleDB is ready.
func (a *volumesAnew) settles() {
	a.Helper()
	for range 80 {
		a.step()
		if ready := conditionOf(a.db, v1.ConditionReady); ready.Status == metav1.ConditionTrue {
			return
		}
	}
	a.Fatalf("it is not ready: %+v", a.db.Status.Conditions)
}

// waits goes on for some steps, after which StorageReady has to have a reason, and nothing more may have been touched.
func (a *volumesAnew) waits(reason, words string) {
	a.Helper()
	for range 5 {
		a.step()
	}
	before := slices.Clone(a.replaced)
	for range 5 {
		a.step()
	}
	if m := a.expect(a.db, v1.ConditionStorageReady, metav1.ConditionFalse, reason); !strings.Contains(m, words) {
		a.Errorf("it says: %s; want %q", m, words)
	}
	if !slices.Equal(before, a.replaced) {
		a.Errorf("it waits, and %v are replaced, before %v", a.replaced, before)
	}
}

func (a *volumesAnew) edits(f func(*v1.SampleDB)) {
	a.Helper()
	a.counts()
	a.db = a.edit(a.db, f)
	a.look()
}

// have checks all claims.
func (a *volumesAnew) have(want, class string, replaced ...string) {
	a.Helper()
	for n := range int(a.db.Spec.Instances) {
		claim := a.claim(n)
		got, in := claim.Spec.Resources.Requests.Storage().String(), *claim.Spec.StorageClassName
		if got != want || in != class {
			a.Errorf("volume %d has %s in %s, want %s in %s", n, got, in, want, class)
		}
	}
	if !slices.Equal(a.replaced, replaced) {
		a.Errorf("%v were replaced, want %v", a.replaced, replaced)
	}
	set := &appsv1.StatefulSet{}
	a.read("x", set)
	if int(*set.Spec.Replicas) != int(a.db.Spec.Instances) || !metav1.IsControlledBy(set, a.db) {
		a.Errorf("the StatefulSet is %+v", set.ObjectMeta)
	}
}

func conditionOf(db *v1.SampleDB, kind string) metav1.Condition {
	for _, c := range db.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

// The claims are replaced one by one, those of standbys first; the primary hands over before its own is.
func TestVolumesAreMadeSmallerOneByOne(t *testing.T) {
	a := anew(t, 3)
	a.edits(size("1Gi"))
	if m := a.expect(a.db, v1.ConditionStorageReady, metav1.ConditionFalse,
		v1.ReasonReplacingVolumes); !strings.Contains(m, "x-2; x-1; x-0, which hands over first") {
		t.Errorf("it says: %s", m)
	}
	a.settles()
	a.have("1Gi", "standard", "x-2", "x-1", "x-0")
	if a.db.Status.Primary != "x-1" || a.term != 2 {
		t.Errorf("%s leads after %d terms", a.db.Status.Primary, a.term)
	}
	if got := a.agents.configs[len(a.agents.configs)-1].Parameters["max_slot_wal_keep_size"]; got != "256MB" {
		t.Errorf("max_slot_wal_keep_size is %s, want a quarter of the new size", got)
	}
	events := a.drainEvents()
	if strings.Count(events, "ReplacingVolume") != 3 || strings.Count(events, "Switchover ") != 1 {
		t.Errorf("events: %s", events)
	}
	a.writes.take()
	for range 3 {
		a.step()
	}
	a.have("1Gi", "standard", "x-2", "x-1", "x-0")
}

// Another operator goes on wherever the one before has ended: each of its steps is one of another process.
func TestVolumesAreMadeAnewByManyOperators(t *testing.T) {
	a := anew(t, 3)
	old := a.reconciler
	a.edits(func(db *v1.SampleDB) { size("1Gi")(db); inClass("fast")(db) })
	a.storageClass("fast", false, true)
	for range 80 {
		a.reconciler = oldFields(old)
		a.step()
		if conditionOf(a.db, v1.ConditionReady).Status == metav1.ConditionTrue {
			break
		}
	}
	a.have("1Gi", "fast", "x-2", "x-1", "x-0")
}

// oldFields is a reconciler as a new process has it: with nothing in its memory.
func oldFields(r *sampledb.Reconciler) *sampledb.Reconciler {
	return &sampledb.Reconciler{
		Client: r.Client, Reader: r.Reader, Agents: r.Agents, Pods: r.Pods, Credentials: r.Credentials,
		Settings: r.Settings, Events: r.Events, Metrics: r.Metrics, Now: r.Now,
	}
}

// The operator that ended between the deletion of a claim and that of its Pod is followed by one that goes on.
func TestAClaimThatIsGoingHasItsPodReplaced(t *testing.T) {
	a := anew(t, 3)
	a.edits(size("1Gi"))
	for { // until the StatefulSet makes claims of the new size
		set := &appsv1.StatefulSet{}
		if a.step(); a.find("x", set) && set.DeletionTimestamp == nil &&
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String() == "1Gi" {
			break
		}
	}
	a.have("2Gi", "standard")
	a.must(a.api.Delete(t.Context(), a.claim(2)))
	a.settles()
	a.have("1Gi", "standard", "x-2", "x-1", "x-0")
}

// What does not fit, or is not known, or can't be, touches nothing, and says what to do; the edit can be taken back.
func TestWhatKeepsVolumesFromBeingMadeAnewIsTold(t *testing.T) {
	t.Run("the data does not fit", func(t *testing.T) {
		a := anew(t, 3)
		a.used = 1 << 30
		a.edits(size("1Gi"))
		a.waits(v1.ReasonDataDoesNotFit, "volume data-x-0 holds 1.0Gi (data, WAL and the reserve), and one of 1.0Gi "+
			"can hold 952Mi, of which 208Mi are to stay free. Delete what is not needed, or make storage.size at "+
			"least 1408Mi")
		if got := a.agents.configs[len(a.agents.configs)-1].Parameters["max_slot_wal_keep_size"]; got != "512MB" {
			t.Errorf("max_slot_wal_keep_size is %s, want a quarter of the size that they have", got)
		}
		a.have("2Gi", "standard")
		if events := a.drainEvents(); strings.Count(events, "VolumesNotReplaced") != 1 {
			t.Errorf("events: %s", events)
		}
		a.edits(size("2Gi"))
		a.settles()
		a.have("2Gi", "standard")
	})
	t.Run("one instance says nothing", func(t *testing.T) {
		a := anew(t, 3)
		a.used = 0
		a.edits(size("1Gi"))
		a.waits(v1.ReasonReplacementWaits, "is not known")
		a.have("2Gi", "standard")
	})
	t.Run("a lone instance", func(t *testing.T) {
		a := anew(t, 1)
		a.edits(size("1Gi"))
		a.waits(v1.ReasonNeedsAnotherInstance, "set spec.instances to 2")
		a.have("2Gi", "standard")
		a.edits(instances(2))
		a.first["x-1"] = a.claim(1).UID
		a.settles()
		a.have("1Gi", "standard", "x-1", "x-0")
	})
	t.Run("another instance is not ready", func(t *testing.T) {
		a := anew(t, 3)
		a.agents.voters = []string{"x-0", "x-1", "x-2"}
		a.agents.change("10.1.0.2", notReady)
		a.edits(size("1Gi"))
		a.waits(v1.ReasonReplacementWaits, "when x-1 is ready")
		a.have("2Gi", "standard")
		a.agents.voters = nil
		a.agents.change("10.1.0.2", func(s *protocol.Status) { s.Ready, s.Streaming = true, true })
		a.settles()
		a.have("1Gi", "standard", "x-2", "x-1", "x-0")
	})
	t.Run("another instance is not ready, and does not count", func(t *testing.T) {
		a := anew(t, 3)
		a.agents.change("10.1.0.2", notReady)
		a.agents.voters = []string{"x-0", "x-2"}
		a.edits(size("1Gi"))
		for len(a.replaced) == 0 {
			a.step()
		}
		a.agents.voters = nil
		a.settles()
		a.have("1Gi", "standard", "x-1", "x-2", "x-0")
	})
	t.Run("the primary refuses to hand over", func(t *testing.T) {
		a := anew(t, 2)
		a.agents.refuse = "x-1 is behind"
		a.edits(size("1Gi"))
		for range 12 {
			a.step()
		}
		if m := messageOf(a.db, v1.ConditionStorageReady); !strings.Contains(m, "x-0") || len(a.replaced) != 1 {
			t.Errorf("%v are replaced, and it says: %s", a.replaced, m)
		}
		a.agents.refuse, a.agents.switchovers = "", nil
		a.settles()
		a.have("1Gi", "standard", "x-1", "x-0")
	})
}

// An edit is taken back while some volumes are new already: they grow, and no other one is touched.
func TestSmallerVolumesAreTakenBack(t *testing.T) {
	a := anew(t, 3)
	a.edits(size("1Gi"))
	for len(a.replaced) == 0 {
		a.step()
	}
	a.edits(size("2Gi"))
	a.settles()
	a.have("2Gi", "standard", "x-2")
}

// A class that does not exist is found before anything is touched. Where no node takes the Pod with the new volume, no
// other instance is touched; taken back, that one gets a volume of the former class.
func TestAnotherClassIsTakenBack(t *testing.T) {
	a := anew(t, 3)
	a.edits(inClass("none-such"))
	a.waits(v1.ReasonStorageClassNotFound, "StorageClass none-such does not exist")
	a.have("2Gi", "standard")
	a.storageClass("far", false, false)
	a.late["x-2"] = true
	a.edits(inClass("far"))
	a.waits(v1.ReasonReplacingVolumes, "x-1 is next when")
	if *a.claim(2).Spec.StorageClassName != "far" {
		t.Fatalf("the claim is %+v", a.claim(2).Spec)
	}
	a.late["x-2"] = false
	a.edits(inClass("standard"))
	a.settles()
	a.have("2Gi", "standard", "x-2")

	a.late["x-2"] = true
	a.edits(inClass("far"))
	for range 6 {
		a.step()
	}
	w := a.world
	w.must(w.api.Delete(t.Context(), a.db))
	w.must(w.api.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(w.namespace)))
	for range 10 {
		if a.db = w.reconcile(a.db); a.db == nil {
			return
		}
		a.collectSet()
	}
	t.Error("the SampleDB can't be deleted")
}

// An instance of the same name with another volume is another voter: as long as the primary has not counted that one,
// the next volume stays.
func TestTheNextVolumeWaitsUntilTheNewOneCounts(t *testing.T) {
	a := anew(t, 3)
	a.edits(size("1Gi"))
	for len(a.replaced) == 0 {
		a.step()
	}
	former := ha.NewVoter("x-2", string(a.first["x-2"]))
	for range 8 {
		set := &appsv1.StatefulSet{}
		a.read("x", set)
		for n := range 3 {
			a.remake(set, n)
		}
		a.answers([]ha.Voter{
			ha.NewVoter("x-0", string(a.claim(0).UID)), ha.NewVoter("x-1", string(a.claim(1).UID)), former,
		})
		a.db = a.reconcile(a.db)
	}
	if m := a.expect(a.db, v1.ConditionStorageReady, metav1.ConditionFalse,
		v1.ReasonReplacingVolumes); !strings.Contains(m, "x-1 is next when x-2 counts") {
		t.Errorf("it says: %s", m)
	}
	a.look()
	a.settles()
	a.have("1Gi", "standard", "x-2", "x-1", "x-0")
}

// Volumes that have grown by themselves are made smaller by a smaller size alone, and do not grow again at once.
func TestVolumesThatHaveGrownAreMadeSmaller(t *testing.T) {
	a := anew(t, 3, growing("8Gi"))
	for n := range 3 {
		claim := a.claim(n)
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("4Gi")
		a.must(a.api.Update(t.Context(), claim))
		a.bindClaim(claim.Name)
	}
	a.settles()
	for what, edit := range map[string]func(*v1.SampleDB){
		"a lower limit":  growing("3Gi"),
		"without growth": func(db *v1.SampleDB) { db.Spec.Storage.Grow = nil },
		"growth again":   growing("8Gi"),
	} {
		a.edits(edit)
		a.settles()
		if a.have("4Gi", "standard"); a.Failed() {
			t.Fatalf("after %s", what)
		}
	}
	a.edits(growing("8Gi"))
	a.edits(size("3Gi")) // still smaller than what they have, and larger than before: nothing follows
	a.settles()
	a.have("4Gi", "standard")
	a.edits(size("2560Mi"))
	a.settles()
	a.have("2560Mi", "standard", "x-2", "x-1", "x-0")
	for range 3 {
		a.step()
	}
	a.have("2560Mi", "standard", "x-2", "x-1", "x-0")
	if a.db.Status.Storage.Size != "2560Mi" {
		t.Errorf("the size in force is %+v", a.db.Status.Storage)
	}
	a.used = 2300 << 20 // they may grow again
	a.step()
	if got := a.claim(0).Spec.Resources.Requests.Storage().String(); got == "2560Mi" {
		t.Error("they do not grow any more")
	}
}

// A switchover that is noted in the same look must not lose the size in force.
func TestTheSizeInForceOutlivesANoteOnTheSampleDB(t *testing.T) {
	a := anew(t, 3)
	a.used = 1 << 30
	a.edits(func(db *v1.SampleDB) {
		size("1Gi")(db)
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationSwitchover, "x-1")
	})
	if a.db.Status.Storage == nil || a.db.Status.Storage.Size != "2Gi" {
		t.Errorf("the size in force is %+v", a.db.Status.Storage)
	}
}
