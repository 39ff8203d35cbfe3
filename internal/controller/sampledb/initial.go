package sampledb

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/pods"
	"toban.dev/internal/desired"
	"toban.dev/internal/initjob"
	"toban.dev/internal/naming"
)

// initRetry is how long after its end a failed init Job is tried once more, in case
// what it needed outside the spec, such as a Secret, is there by then.
const initRetry = 5 * time.Minute

// applyInitial sees to it that the init Job does its work once. What it finds out
// becomes the condition Initialized; a failure keeps nothing else from going on.
func (r *Reconciler) applyInitial(ctx context.Context, s *scope) error {
	if s.initializedAt != nil {
		return nil
	}
	if !desired.Initialises(s.db) {
		s.initial = no(v1.ReasonInitRunning, "waits for the primary; spec.init.none asks for nothing else")
		if s.primary() != "" {
			s.markInitialized()
		}
		return nil
	}
	name := naming.InitJob(s.db.Name, desired.Plan(s.db).Hash)
	current, err := r.sortJobs(ctx, s, naming.ComponentInit, name)
	if err != nil {
		return err
	}
	if current != nil && (pods.Finished(current, batchv1.JobComplete) != nil || succeeded(s.seen.initPods, current)) {
		s.markInitialized()
		return nil
	}
	sources, missing, err := r.readSources(ctx, s.db)
	if err != nil {
		return err
	}
	if missing != "" {
		s.initial = no(v1.ReasonConfigMapNotFound, missing)
		return nil
	}
	if current == nil {
		s.initial = no(v1.ReasonInitRunning, "the init Job waits for the primary")
		return r.apply(ctx, s.db, desired.InitJob(s.db, r.Settings, sources))
	}
	s.initial = progress(s.seen.initPods, current)
	if failed := pods.Finished(current, batchv1.JobFailed); failed != nil &&
		(current.Annotations[naming.AnnotationSources] != sources ||
			s.now.Sub(failed.LastTransitionTime.Time) > initRetry) {
		return r.deleteJob(ctx, current)
	}
	return nil
}

func (s *scope) markInitialized() {
	at := metav1.NewTime(s.now).Rfc3339Copy()
	s.initializedAt = &at
}

// sortJobs finds the Job of this name that is ours and lives, and deletes the component's others: those of
// a former spec.
func (r *Reconciler) sortJobs(ctx context.Context, s *scope, component, name string) (*batchv1.Job, error) {
	var current *batchv1.Job
	for i := range s.seen.jobs {
		job := &s.seen.jobs[i]
		if job.Labels[naming.LabelComponent] != component || !metav1.IsControlledBy(job, s.db) ||
			job.DeletionTimestamp != nil {
			continue
		}
		if job.Name == name {
			current = job
			continue
		}
		if err := r.deleteJob(ctx, job); err != nil {
			return nil, err
		}
	}
	return current, nil
}

func (r *Reconciler) deleteJob(ctx context.Context, job *batchv1.Job) error {
	err := r.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground),
		client.Preconditions{UID: &job.UID})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Job %s: %w", job.Name, err)
	}
	return nil
}

// succeeded says that a Pod of the Job has ended well. The Job itself says so a
// second or two later.
func succeeded(pods []corev1.Pod, job *batchv1.Job) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return metav1.IsControlledBy(&pod, job) && pod.Status.Phase == corev1.PodSucceeded
	})
}

// readSources hashes the SQL in the ConfigMaps that spec.init names, or says
// what is missing. The ConfigMaps are the user's and read without the cache,
// which has our own only. Secrets the operator may not read.
func (r *Reconciler) readSources(ctx context.Context, db *v1.SampleDB) (hash, missing string, err error) {
	if db.Spec.Init == nil {
		return desired.Hash(nil), "", nil
	}
	var texts []string
	for _, source := range db.Spec.Init.SQL {
		selector := source.ConfigMap
		if selector == nil {
			continue
		}
		var object corev1.ConfigMap
		err := r.Reader.Get(ctx, types.NamespacedName{Namespace: db.Namespace, Name: selector.Name}, &object)
		if apierrors.IsNotFound(err) {
			return "", fmt.Sprintf("ConfigMap %s, which spec.init.sql names, does not exist: create it or mend "+
				"spec.init", selector.Name), nil
		}
		if err != nil {
			return "", "", fmt.Errorf("read ConfigMap %s: %w", selector.Name, err)
		}
		text, ok := object.Data[selector.Key]
		if binary, isBinary := object.BinaryData[selector.Key]; isBinary {
			text, ok = string(binary), true
		}
		if !ok {
			return "", fmt.Sprintf("ConfigMap %s has no key %s, which spec.init.sql names: add it or mend spec.init",
				selector.Name, selector.Key), nil
		}
		texts = append(texts, text)
	}
	return desired.Hash(texts), "", nil
}

// progress is how far a Job is that has not done its work yet, from the newest
// of its Pods that says anything.
func progress(tries []corev1.Pod, job *batchv1.Job) verdict {
	var newest *corev1.Pod
	for i := range tries {
		pod := &tries[i]
		if metav1.IsControlledBy(pod, job) && said(pod) != "" &&
			(newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	failed := pods.Finished(job, batchv1.JobFailed) != nil
	switch {
	case newest != nil:
		return failure(said(newest), failed)
	case failed:
		return no(v1.ReasonInitFailed,
			fmt.Sprintf("Job %s has failed without saying why: kubectl describe job %s", job.Name, job.Name))
	}
	return no(v1.ReasonInitRunning, "the init Job waits for the primary")
}

// said is what the init container of a Pod left or what keeps it from running,
// "" where that is nothing.
func said(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case c.State.Terminated != nil && c.State.Terminated.ExitCode != 0:
			return c.State.Terminated.Message
		case c.State.Waiting != nil && c.State.Waiting.Message != "":
			return c.State.Waiting.Message
		}
	}
	return ""
}

// failure is the verdict on what a failed init Pod said.
func failure(text string, final bool) verdict {
	var result initjob.Result
	reason, message := v1.ReasonInitFailed, text
	if err := json.Unmarshal([]byte(text), &result); err == nil && result.Message != "" {
		message = result.Message
		if result.Step != "" {
			message = result.Step + ": " + result.Message
		}
	}
	if result.SecretMissing {
		reason = v1.ReasonSecretNotFound
		message = result.Step + ", which spec.init.sql names, is not there: create it or mend spec.init"
	}
	if !final {
		message += " (it will be tried again)"
	}
	return no(reason, message)
}
