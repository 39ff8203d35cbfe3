package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/work/initjob"
)

// initRetry is how long after its end a failed init Job is tried once more, in case
// what it needed outside the spec, such as a Secret, is there by then.
const initRetry = 5 * time.Minute

// ApplyInitial sees to it that the init Job does its work once. What it finds out
// becomes the condition Initialized; a failure keeps nothing else from going on.
func (s *fleetTopic) ApplyInitial(ctx context.Context) error {
	if s.InitializedAt != nil {
		return nil
	}
	if !desired.Initialises(s.DB) {
		s.Initial = world.No(v1.ReasonInitRunning,
			"waits for the primary; with spec.init.none there is nothing else to do")
		if s.Primary() != "" {
			s.markInitialized()
		}
		return nil
	}
	name := naming.InitJob(s.DB.Name, desired.Plan(s.DB).Hash)
	current, err := s.KeepJob(ctx, naming.ComponentInit, name)
	if err != nil {
		return err
	}
	run := jobs.Of(current, s.Seen.InitPods)
	if run.State() == jobs.Complete {
		s.markInitialized()
		return nil
	}
	sources, missing, err := s.readSources(ctx, s.DB)
	if err != nil {
		return err
	}
	if missing != "" {
		s.Initial = world.No(v1.ReasonConfigMapNotFound, missing)
		return nil
	}
	if current == nil {
		s.Initial = world.No(v1.ReasonInitRunning, "the init Job waits for the primary")
		return s.Apply(ctx, s.DB, desired.InitJob(s.DB, s.Settings, sources))
	}
	s.Initial = progress(run)
	if failed := run.Failure(); failed != nil &&
		(current.Annotations[naming.AnnotationSources] != sources ||
			s.Now.Sub(failed.LastTransitionTime.Time) > initRetry) {
		return s.Jobs().Remove(ctx, current)
	}
	return nil
}

func (s *fleetTopic) markInitialized() {
	at := metav1.NewTime(s.Now).Rfc3339Copy()
	s.InitializedAt = &at
}

// readSources hashes the SQL in the ConfigMaps that spec.init names, or says
// what is missing. The ConfigMaps are the user's and read without the cache,
// which has our own only. Secrets the operator may not read.
func (s *fleetTopic) readSources(ctx context.Context, db *v1.SampleDB) (hash, missing string, err error) {
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
		err := s.Reader.Get(ctx, types.NamespacedName{Namespace: db.Namespace, Name: selector.Name}, &object)
		if apierrors.IsNotFound(err) {
			return "", fmt.Sprintf("ConfigMap %s, which spec.init.sql names, does not exist: create it or correct "+
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
			return "", fmt.Sprintf("ConfigMap %s has no key %s, which spec.init.sql names: add it or correct spec.init",
				selector.Name, selector.Key), nil
		}
		texts = append(texts, text)
	}
	return desired.Hash(texts), "", nil
}

// progress is how far a Job is that has not done its work yet, from the newest
// of its Pods that says anything.
func progress(run jobs.Run) world.Verdict {
	failed := run.Failure() != nil
	if t := pods.TroubleOf(run.Newest()); t != nil && t.Cause == pods.Unschedulable && !failed {
		return waiting(t.Message, run.Pods[:len(run.Pods)-1])
	}
	if text := lastSaid(run.Pods); text != "" {
		return failure(text, failed)
	}
	if failed {
		return world.No(v1.ReasonInitFailed,
			fmt.Sprintf("Job %s has failed without saying why: kubectl describe job %s", run.Job.Name, run.Job.Name))
	}
	return world.No(v1.ReasonInitRunning, "the init Job waits for the primary")
}

// waiting is the verdict on a Pod that no node takes. It has not begun, so nothing of it has failed; but why there is
// one more is what is known of one before it, if there was any.
func waiting(message string, before []corev1.Pod) world.Verdict {
	for i, pod := range slices.Backward(before) {
		if became := becameOf(&pod); became != "" {
			which := "A Pod before it"
			if i == len(before)-1 {
				which = "The Pod before it"
			}
			message += ". " + which + " " + became
			break
		}
	}
	return world.No(v1.ReasonUnschedulable, message)
}

// becameOf says what has become of a Pod of the init Job, "" where that is not known.
func becameOf(pod *corev1.Pod) string {
	if text := ended(pod); text != "" {
		return "has failed: " + strings.TrimSuffix(failure(text, false).Message, tried)
	}
	if t := pods.TroubleOf(pod); t != nil {
		return "could not run: " + t.Message
	}
	return ""
}

// lastSaid is what the newest of some Pods said that said anything, "" where none has.
func lastSaid(all []corev1.Pod) string {
	for _, pod := range slices.Backward(all) {
		if text := said(&pod); text != "" {
			return text
		}
	}
	return ""
}

// tried is the end of a message about what is tried again.
const tried = " (it will be tried again)"

// said is what the init container of a Pod left or what keeps it from running,
// "" where that is nothing.
func said(pod *corev1.Pod) string {
	if text := ended(pod); text != "" {
		return text
	}
	if t := pods.TroubleOf(pod); t != nil {
		return t.Message
	}
	return ""
}

// ended is what the container of a Pod that has failed left, or how it was ended if it left no words; else "".
func ended(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			return cmp.Or(t.Message, fmt.Sprintf("%s was ended without a word: %s, exit code %d", pod.Name,
				cmp.Or(t.Reason, "Error"), t.ExitCode))
		}
	}
	if pod.Status.Phase == corev1.PodFailed { // for instance evicted
		return cmp.Or(pod.Status.Message, pod.Status.Reason)
	}
	return ""
}

// failure is the verdict on what a failed init Pod said.
func failure(text string, final bool) world.Verdict {
	reason, message := v1.ReasonInitFailed, text
	result := jobs.Result[initjob.Result](text)
	if result != nil && result.Message != "" {
		message = result.Message
		if result.Step != "" {
			message = result.Step + ": " + result.Message
		}
	}
	if result != nil && result.SecretMissing {
		reason = v1.ReasonSecretNotFound
		message = result.Step + ", which spec.init.sql names, does not exist: create it or correct spec.init"
	}
	if !final {
		message += tried
	}
	return world.No(reason, message)
}
