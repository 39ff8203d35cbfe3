package api

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/window"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/maintenance"
)

// The image that a tag was, and the one that it is by now (imagePod).
const (
	formerImage = "docker.io/library/postgres@sha256:11"
	newerImage  = "docker.io/library/postgres@sha256:22"
)

// kubelet plays the kubelets: a Pod that is to be replaced is made anew from the template, on its node, and says which
// image it runs: that of the template by its digest, else what the tag is on its node. It returns those replaced.
func (w *world) kubelet(db *v1.SampleDB, tag ...string) (replaced []string) {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.read(naming.StatefulSet(db.Name), set)
	for ordinal := range int(*set.Spec.Replicas) {
		pod := &corev1.Pod{}
		name := naming.Instance(db.Name, ordinal)
		if w.find(name, pod) {
			if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil {
				continue
			}
			w.must(w.api.Delete(w.Context(), pod, client.GracePeriodSeconds(0)))
		}
		replaced = append(replaced, name)
		w.runOnNode(set, ordinal, tag[min(ordinal, len(tag)-1)])
	}
	set.Status.ObservedGeneration = set.Generation
	w.must(w.api.Status().Update(w.Context(), set))
	w.publishRoles(db)
	return replaced
}

// runOnNode makes the Pod of an instance on the node of its ordinal.
func (w *world) runOnNode(set *appsv1.StatefulSet, ordinal int, tag string) {
	w.Helper()
	name := naming.Instance(set.Name, ordinal)
	made := set.DeepCopy()
	made.Spec.Template.Spec.NodeName = "worker" + name[len(name)-1:]
	w.makePod(made, ordinal, address(set, ordinal))
	pod := &corev1.Pod{}
	w.read(name, pod)
	image := made.Spec.Template.Spec.Containers[0].Image
	if !strings.Contains(image, "@") {
		image = tag
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: naming.ContainerPostgreSQL, Image: "x", ImageID: image},
	}
	w.must(w.api.Status().Update(w.Context(), pod))
	version := map[string]string{formerImage: "17.6", newerImage: "17.7", majorImage: "18.1"}[image]
	w.agents.change(address(set, ordinal), func(s *protocol.Status) { s.ServerVersion = version })
}

// image is the image of the StatefulSet's template.
func (w *world) image(db *v1.SampleDB) string {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.read(naming.StatefulSet(db.Name), set)
	return set.Spec.Template.Spec.Containers[0].Image
}

// recorded is a SampleDB of two instances whose image is on record.
func (w *world) recorded(modify ...func(*v1.SampleDB)) *v1.SampleDB {
	w.Helper()
	db := w.started("x", append(modify, instances(2))...)
	w.kubelet(db, formerImage)
	db = w.reconcile(w.reconcile(db))
	if db.Status.Image == nil || db.Status.Image.Runs != formerImage {
		w.Fatalf("on record is %+v", db.Status.Image)
	}
	w.kubelet(db, "")
	return w.reconcile(db)
}

// findsNewer lets the look into the image find 17.7.
func (w *world) findsNewer(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	db, job := w.looks(db, 25*time.Hour, naming.ImageJob("x"))
	w.imagePod(job, &protocol.ImageResult{Version: "17.7"})
	return w.reconcile(db)
}

// asks asks for an update.
func (w *world) asks(db *v1.SampleDB, how string) *v1.SampleDB {
	w.Helper()
	return w.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationUpdate, how)
	})
}

// pull plays the Pod of the Job that pulls for an instance.
func (w *world) pull(ordinal int, result *protocol.ImageResult) *batchv1.Job {
	w.Helper()
	job := &batchv1.Job{}
	w.read(naming.PullJob("x", ordinal), job)
	w.imagePod(job, result)
	return job
}

// step expects an update to be at a step, for a reason.
func (w *world) step(db *v1.SampleDB, step, reason string) *v1.UpdateStatus {
	w.Helper()
	u := db.Status.Update
	if u == nil || u.Step != step || u.Reason != reason {
		w.Fatalf("the update is %+v", u)
	}
	return u
}

// The image that all instances run goes on record, and restarts nothing. One that is added runs it too, whatever the
// tag is by then.
func TestAllInstancesRunOneDigest(t *testing.T) {
	w := newWorld(t)
	db := w.recorded()
	if got := w.image(db); got != formerImage {
		t.Errorf("the template has %s", got)
	}
	if replaced := w.kubelet(db, newerImage); len(replaced) > 0 {
		t.Errorf("%q are replaced", replaced)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	db = w.edit(db, instances(3))
	w.playCluster(db)
	if got := w.image(db); got != formerImage {
		t.Errorf("a third instance gets %s", got)
	}
	for range 3 { // NAME-app names its host as well
		w.collectSecrets()
		db = w.reconcile(db)
	}
	w.writes.take()
	for range 3 {
		db = w.reconcile(db)
	}
	if writes := w.writes.take(); len(writes) > 1 { // the status, of the third
		t.Errorf("at rest it writes: %v", writes)
	}
}

// Each step of an update that somebody asks for: nothing is touched before every node has the image; then the standby
// is replaced, and then the primary.
func TestAnUpdateOnRequest(t *testing.T) {
	w := newWorld(t)
	db := w.findsNewer(w.recorded(func(db *v1.SampleDB) { db.Spec.Update = &v1.UpdateSpec{None: true} }))
	w.step(db, v1.UpdateWaiting, "NotAsked")
	message := w.expect(db, v1.ConditionUpToDate, metav1.ConditionFalse, v1.ReasonMinorOutdated)
	if !strings.Contains(message, "toban.dev/update=now") || len(w.pullJobs(db)) > 0 {
		t.Errorf("%s; %q", message, w.pullJobs(db))
	}

	w.drainEvents()
	db = w.pullEverywhere(w.reconcile(w.asks(db, "now")))
	db = w.reconcile(db)
	if replaced := w.kubelet(db, ""); len(replaced) > 0 { // now the template is observed
		t.Fatalf("%q are replaced by Pods of the former template", replaced)
	}
	for _, want := range []string{"x-1", "x-0"} {
		db = w.reconcile(db)
		if u := w.step(db, v1.UpdateReplacing, "Replacing"); !strings.HasPrefix(u.Left[0], "replace "+want) {
			t.Errorf("%s is replaced, and left is %q", want, u.Left)
		}
		if replaced := w.kubelet(db, ""); !slices.Equal(replaced, []string{want}) {
			t.Fatalf("%q are replaced", replaced)
		}
	}
	db = w.reconcile(w.reconcile(db))
	if db.Status.Update != nil || db.Status.Image.Runs != newerImage || len(w.pullJobs(db)) > 0 ||
		db.Annotations[naming.AnnotationUpdate] != "" {
		t.Errorf("it is left: %+v, %+v, %q", db.Status.Update, db.Status.Image, w.pullJobs(db))
	}
	w.expect(db, v1.ConditionUpToDate, metav1.ConditionTrue, v1.ReasonUpToDate)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	told := w.drainEvents()
	if !strings.Contains(told, "from 17.6 ("+formerImage+") to 17.7") || strings.Count(told, "Updated ") != 1 {
		t.Errorf("the events are %s", told)
	}
}

// pullEverywhere plays the nodes, which pull the image one after the other.
func (w *world) pullEverywhere(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	u := w.step(db, v1.UpdatePulling, "Pulling")
	if want := []string{
		"pull the image on worker0", "pull the image on worker1", "replace x-1", "replace x-0, which hands over first",
	}; !slices.Equal(u.Left, want) || u.From != "17.6" || u.To != "17.7" || u.Image != newerImage {
		w.Errorf("the update is %+v", u)
	}
	job := w.pull(0, &protocol.ImageResult{Version: "17.7"})
	if pod := job.Spec.Template.Spec; pod.NodeName != "worker0" || pod.Containers[0].Image != newerImage {
		w.Errorf("it pulls %s on %s", pod.Containers[0].Image, pod.NodeName)
	}
	db = w.reconcile(w.reconcile(db))
	if u := w.step(db, v1.UpdatePulling, "Pulling"); u.Left[0] != "pull the image on worker1" {
		w.Errorf("left is %q", u.Left)
	}
	if got := w.image(db); got != formerImage || len(w.kubelet(db, "")) > 0 {
		w.Fatalf("a node has not got it, and the template has %s", got)
	}

	w.pull(1, &protocol.ImageResult{Version: "17.7"})
	db = w.reconcile(db)
	w.step(db, v1.UpdateReplacing, "Replacing")
	return db
}

// pullJobs are the names of the Jobs that pull and are not being deleted.
func (w *world) pullJobs(db *v1.SampleDB) []string {
	w.Helper()
	return slices.DeleteFunc(w.imageJobs(db), func(name string) bool { return !strings.Contains(name, "-pull-") })
}

// An update by itself waits for its window. An image that a node can't get leaves all as it is, and is tried again an
// hour later.
func TestAnUpdateInItsWindow(t *testing.T) {
	w := newWorld(t)
	opens := w.now.UTC().Add(30 * time.Hour).Truncate(time.Minute)
	db := w.recorded(func(db *v1.SampleDB) {
		db.Spec.Update = &v1.UpdateSpec{Window: &v1.Window{
			Start: opens.Add(9 * time.Hour).Format("15:04"), TimeZone: "Asia/Tokyo", // nine hours ahead of UTC
			Duration: metav1.Duration{Duration: 4 * time.Hour},
		}}
	})
	db = w.findsNewer(db)
	if u := w.step(db, v1.UpdateWaiting, "OutsideWindow"); !strings.Contains(u.Message, opens.Format(time.RFC3339)) {
		t.Errorf("it says %q", u.Message)
	}
	w.now = opens
	db = w.reconcile(db)
	w.step(db, v1.UpdatePulling, "Pulling")
	w.pull(0, &protocol.ImageResult{Version: "17.7"})
	w.pull(1, nil)
	w.drainEvents()
	db = w.reconcile(w.reconcile(db))
	u := w.step(db, v1.UpdateFailed, "PullFailed")
	if !strings.Contains(u.Failure, "worker1") || !strings.Contains(u.Failure, "no such host") ||
		!strings.Contains(u.Message, "Nothing has been touched") || w.image(db) != formerImage {
		t.Errorf("the update is %+v, and the template has %s", u, w.image(db))
	}
	if told := w.drainEvents(); strings.Count(told, "UpdateFailed") != 1 || len(w.pullJobs(db)) > 0 {
		t.Errorf("%s; %q", told, w.pullJobs(db))
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.now = w.now.Add(time.Hour)
	w.step(w.reconcile(db), v1.UpdatePulling, "Pulling")
}

// Without a word about updates a newer minor version is taken over in the quiet hour. It is said before when that is
// and what it does.
func TestAnUpdateInTheQuietHour(t *testing.T) {
	w := newWorld(t)
	db := w.recorded()
	quiet, _, err := window.Quiet(db.Namespace+"/"+db.Name, "", nil, w.now)
	w.must(err)
	w.drainEvents()
	db = w.findsNewer(db)
	w.step(db, v1.UpdateWaiting, "SortingUnsaid") // nobody knows yet which indexes there are
	db = w.reconcile(w.sorts(db, &maintenance.Report{}))
	begins := quiet.Next(w.now.Add(12 * time.Hour))
	u := w.step(db, v1.UpdateWaiting, "OutsideWindow")
	if u.Begins == nil || !u.Begins.Time.Equal(begins) || !strings.Contains(u.Message, "then the primary hands over") {
		t.Errorf("it begins at %v, want %s: %s", u.Begins, begins, u.Message)
	}
	message := w.expect(db, v1.ConditionUpToDate, metav1.ConditionFalse, v1.ReasonMinorOutdated)
	if !strings.Contains(message, begins.Format(time.RFC3339)) {
		t.Errorf("the condition says %q", message)
	}
	pod := &corev1.Pod{} // for a moment it is not known what an instance runs: what was announced stays
	w.read("x-0", pod)
	runs := pod.Status.ContainerStatuses
	for _, says := range [][]corev1.ContainerStatus{nil, runs} {
		w.read("x-0", pod)
		pod.Status.ContainerStatuses = says
		w.must(w.api.Status().Update(w.Context(), pod))
		db = w.reconcile(db)
	}
	if told := w.drainEvents(); strings.Count(told, "UpdateAhead from 17.6 to 17.7") != 1 {
		t.Errorf("the events are %s", told)
	}
	w.now = begins
	db = w.pullEverywhere(w.reconcile(db))
	if u := w.step(db, v1.UpdateReplacing, "Replacing"); u.Begins != nil {
		t.Errorf("the update is %+v", u)
	}
}

// What is asked for and can't be is refused with a sentence: an image by its digest is never moved.
func TestAnUpdateIsRefused(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", func(db *v1.SampleDB) { db.Spec.Image = formerImage })
	db = w.asks(db, "now")
	told, left := w.drainEvents(), db.Annotations[naming.AnnotationUpdate]
	if !strings.Contains(told, "UpdateRefused") || left != "" {
		t.Errorf("the events are %s, the request %q", told, left)
	}
	if i := db.Status.Image; i == nil || i.Runs != formerImage || db.Status.Update != nil {
		t.Errorf("the status has %+v, %+v", i, db.Status.Update)
	}
}

func TestAWindowIsRefusedWithASentence(t *testing.T) {
	w := newWorld(t)
	good := v1.Window{Start: "03:00", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "Asia/Tokyo"}
	w.create("good", func(db *v1.SampleDB) { db.Spec.Update = &v1.UpdateSpec{Window: &good} })
	w.create("quiet", func(db *v1.SampleDB) { db.Spec.Update = &v1.UpdateSpec{TimeZone: "Asia/Tokyo"} })
	for name, c := range map[string]struct {
		change func(*v1.UpdateSpec)
		want   string
	}{
		"no time of day": {func(u *v1.UpdateSpec) { u.Window.Start = "24:00" }, "start must be a time of day"},
		"too short": {func(u *v1.UpdateSpec) { u.Window.Duration.Duration = time.Minute },
			"duration must be from 15m to 24h"},
		"no such zone": {func(u *v1.UpdateSpec) { u.Window.TimeZone = "Mars/Olympus" },
			"timeZone must be the name of a time zone"},
		"an offset": {func(u *v1.UpdateSpec) { u.Window.TimeZone = "+09:00" },
			"timeZone must be the name of a time zone"},
		"the machine's zone": {func(u *v1.UpdateSpec) { u.Window.TimeZone = "Local" },
			"timeZone must be the name of a time zone"},
		"no day": {func(u *v1.UpdateSpec) { u.Window.Days = []v1.Weekday{"Someday"} }, "Someday"},
		"no such zone of a quiet hour": {func(u *v1.UpdateSpec) { u.Window, u.TimeZone = nil, "Mars/Olympus" },
			"timeZone must be the name of a time zone"},
	} {
		t.Run(name, func(t *testing.T) {
			window := good
			update := &v1.UpdateSpec{Window: &window}
			c.change(update)
			db := w.sampleDB("x", func(db *v1.SampleDB) { db.Spec.Update = update })
			refused(t, w.api.Create(t.Context(), db), c.want)
		})
	}
}
