package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// looks advances the clock until the image is to be looked into, and is the Job that does.
func (w *world) looks(db *v1.SampleDB, after time.Duration, name string) (*v1.SampleDB, *batchv1.Job) {
	w.Helper()
	w.now = w.now.Add(after)
	db = w.reconcile(db)
	job := &batchv1.Job{}
	w.read(name, job)
	return db, job
}

// imagePod plays the Pod of such a Job: with a result it has ended, else its image can't be pulled.
func (w *world) imagePod(job *batchv1.Job, result *protocol.ImageResult) {
	w.Helper()
	w.imagePodOf(job, "docker.io/library/postgres@sha256:22", result)
}

// imagePodOf does so of an image.
func (w *world) imagePodOf(job *batchv1.Job, image string, result *protocol.ImageResult) {
	w.Helper()
	pod := w.restorePod(job, job.Name+"-"+string(job.UID[:5]), nil)
	status := corev1.ContainerStatus{Name: naming.ContainerImage, Image: "x"}
	if result == nil {
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}
		pod.Status.Phase = corev1.PodPending
	} else {
		text, err := json.Marshal(result)
		w.must(err)
		status.ImageID = image
		status.State.Terminated = &corev1.ContainerStateTerminated{Message: string(text)}
		pod.Status.Phase = corev1.PodSucceeded
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	w.must(w.api.Status().Update(w.Context(), pod))
}

// imageJobs are the names of the Jobs that look into the image and are not being deleted.
func (w *world) imageJobs(db *v1.SampleDB) (names []string) {
	w.Helper()
	for _, job := range w.jobs(db) {
		if job.Labels[naming.LabelComponent] == naming.ComponentImage && job.DeletionTimestamp == nil {
			names = append(names, job.Name)
		}
	}
	slices.Sort(names)
	return names
}

// A minor version that the image has by now and the instances do not run is found the next day, and told with the image
// to set.
func TestAnOldMinorIsFound(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	w.expect(db, v1.ConditionUpToDate, metav1.ConditionUnknown, v1.ReasonNotLooked)
	db, job := w.looks(db, 11*time.Minute, naming.ImageJob("x"))
	container := job.Spec.Template.Spec.Containers[0]
	if container.ImagePullPolicy != corev1.PullAlways || container.Image != "postgres:17" {
		t.Errorf("it looks into %s, pulled %s", container.Image, container.ImagePullPolicy)
	}
	w.imagePod(job, &protocol.ImageResult{Version: "17.6", CLibrary: "glibc 2.41", ICU: "76.1"})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionUpToDate, metav1.ConditionTrue, v1.ReasonUpToDate)
	if i := db.Status.Image; i == nil || i.Version != "17.6" || i.CLibrary != "glibc 2.41" || i.ICU != "76.1" ||
		i.Reference != "docker.io/library/postgres@sha256:22" || i.LookedAt == nil || i.Registry != "" {
		t.Errorf("the status has %+v", i)
	}
	if left := w.imageJobs(db); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
	w.now = w.now.Add(23 * time.Hour)
	if db = w.reconcile(db); len(w.imageJobs(db)) > 0 {
		t.Error("it is looked again within a day")
	}
	db, job = w.looks(db, 2*time.Hour, naming.ImageJob("x"))
	w.imagePod(job, &protocol.ImageResult{Version: "17.12"})
	db = w.reconcile(db)
	message := w.expect(db, v1.ConditionUpToDate, metav1.ConditionFalse, v1.ReasonMinorOutdated)
	if !strings.Contains(message, "Set spec.image to docker.io/library/postgres@sha256:22 (17.12)") {
		t.Error(message)
	}
	if told := w.drainEvents(); !strings.Contains(told, "Outdated") {
		t.Errorf("the events are %s", told)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
}

// Where the registry can't be reached, what a node has is looked into, and the status says so.
func TestARegistryThatIsAway(t *testing.T) {
	w := newWorld(t)
	db, job := w.looks(w.started("x"), 11*time.Minute, naming.ImageJob("x"))
	w.imagePod(job, nil)
	db, job = w.looks(db, 0, naming.NodeImageJob("x"))
	if policy := job.Spec.Template.Spec.Containers[0].ImagePullPolicy; policy != corev1.PullIfNotPresent {
		t.Errorf("it is pulled %s", policy)
	}
	w.imagePod(job, &protocol.ImageResult{Version: "17.6"})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionUpToDate, metav1.ConditionTrue, v1.ReasonUpToDate)
	if i := db.Status.Image; !strings.Contains(i.Registry, "no such host") || i.Reference == "" || i.Version != "17.6" {
		t.Errorf("the status has %+v", i)
	}
	if left := w.imageJobs(db); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// A look that fails says why, and is tried again an hour later. One that is asked for is made at once, once.
func TestALookThatFails(t *testing.T) {
	w := newWorld(t)
	db, job := w.looks(w.started("x"), 11*time.Minute, naming.ImageJob("x"))
	w.imagePod(job, &protocol.ImageResult{Error: "no PostgreSQL programs of version 17 in this image"})
	db = w.reconcile(db)
	message := w.expect(db, v1.ConditionUpToDate, metav1.ConditionUnknown, v1.ReasonImageNotRead)
	if !strings.Contains(message, "no PostgreSQL programs of version 17") {
		t.Error(message)
	}
	db = w.edit(db, func(db *v1.SampleDB) {
		metav1.SetMetaDataAnnotation(&db.ObjectMeta, naming.AnnotationLookForUpdates, "now")
	})
	w.read(naming.ImageJob("x"), job)
	w.imagePod(job, &protocol.ImageResult{Version: "17.6"})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionUpToDate, metav1.ConditionTrue, v1.ReasonUpToDate)
	if _, there := db.Annotations[naming.AnnotationLookForUpdates]; there {
		t.Error("the request is still there")
	}
	if db = w.reconcile(db); len(w.imageJobs(db)) > 0 {
		t.Error("it is looked again")
	}
}

// Instances that run different versions are told at once, without a look.
func TestInstancesThatDiffer(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(2))
	w.agents.change("10.1.0.2", func(s *protocol.Status) { s.ServerVersion = "17.5" })
	db = w.reconcile(db)
	message := w.expect(db, v1.ConditionUpToDate, metav1.ConditionFalse, v1.ReasonInstancesDiffer)
	if !strings.Contains(message, "x-0 17.6, x-1 17.5") {
		t.Error(message)
	}
}
