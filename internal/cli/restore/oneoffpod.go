package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/cli/cluster"
)

const (
	// oneOffPoll is how often it is looked whether the Pod has ended.
	oneOffPoll = 500 * time.Millisecond
	// logPatience is how long the last lines of its log may take: the container runtime copies them while the Pod is
	// already said to have ended.
	logPatience = 5 * time.Second
	// oneOffRemoval is how long its removal may take.
	oneOffRemoval = 10 * time.Second
	// accountPatience is how long the ServiceAccount of a new namespace may take.
	accountPatience = 30 * time.Second
)

// oneOffPod is a Pod that a person's command has run, for what it writes.
type oneOffPod struct {
	*cluster.Cluster
	api client.Client
	pod *corev1.Pod
	// told is where it is said what is waited for.
	told io.Writer
	// whole says whether what the Pod has written is all that it writes.
	whole func(text []byte) bool
}

// run makes the Pod, waits for its end, and returns what it has written, also with an error. Nothing of it stays.
func (e *oneOffPod) run(ctx context.Context) (text []byte, err error) {
	if err := e.create(ctx); err != nil {
		return nil, fmt.Errorf("create a Pod in namespace %s: %w", e.pod.Namespace, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oneOffRemoval)
		defer cancel()
		if failed := client.IgnoreNotFound(e.api.Delete(ctx, e.pod)); failed != nil {
			err = errors.Join(err, fmt.Errorf("delete the Pod %s: %w", e.pod.Name, failed))
		}
	}()
	ended := e.await(ctx)
	text, err = readWhole(ctx, e.log, e.whole)
	if ended != nil {
		return text, ended
	}
	return text, err
}

// create makes the Pod. In a namespace that was made a moment ago the Pod is refused until a controller of Kubernetes
// has made the ServiceAccount "default" there.
func (e *oneOffPod) create(ctx context.Context) error {
	deadline := time.Now().Add(accountPatience)
	for {
		err := e.api.Create(ctx, e.pod, client.FieldOwner("toban-cli"))
		if !lacksServiceAccount(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(oneOffPoll):
		}
	}
}

// lacksServiceAccount says that a Pod was refused because its ServiceAccount is not there. The answer has no reason of
// its own for it: these are the words of the admission plugin ServiceAccount (Kubernetes 1.36,
// plugin/pkg/admission/serviceaccount).
func lacksServiceAccount(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account")
}

// await waits for the end of the Pod, which has a deadline itself.
func (e *oneOffPod) await(ctx context.Context) error {
	told := ""
	for {
		if err := e.api.Get(ctx, client.ObjectKeyFromObject(e.pod), e.pod); err != nil {
			return fmt.Errorf("look at the Pod %s: %w", e.pod.Name, err)
		}
		switch e.pod.Status.Phase {
		case corev1.PodSucceeded:
			return nil
		case corev1.PodFailed:
			return fmt.Errorf("the Pod %s has failed: %s", e.pod.Name, endOf(e.pod))
		}
		if words := waitsFor(e.pod); words != "" && words != told {
			fmt.Fprintf(e.told, "the Pod %s waits: %s\n", e.pod.Name, words)
			told = words
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(oneOffPoll):
		}
	}
}

// readWhole reads a log again until it is whole. One that stays cut is returned as it is.
func readWhole(
	ctx context.Context, read func(context.Context) ([]byte, error), whole func([]byte) bool,
) ([]byte, error) {
	for deadline := time.Now().Add(logPatience); ; {
		text, err := read(ctx)
		if err != nil || whole(text) || time.Now().After(deadline) {
			return text, err
		}
		select {
		case <-ctx.Done():
			return text, ctx.Err()
		case <-time.After(oneOffPoll):
		}
	}
}

// log is what the Pod has written.
func (e *oneOffPod) log(ctx context.Context) ([]byte, error) {
	config, _, err := e.Rest()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	text, err := clientset.CoreV1().Pods(e.pod.Namespace).GetLogs(e.pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of the Pod %s: %w", e.pod.Name, err)
	}
	return text, nil
}

// endOf says how the container of a Pod has ended.
func endOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			return strings.TrimSuffix(fmt.Sprintf("%s (exit code %d): %s", end.Reason, end.ExitCode, end.Message), ": ")
		}
	}
	return pod.Status.Reason + ": " + pod.Status.Message
}

// waitsFor says why a Pod does not run, "" where it does, or where it has only begun.
func waitsFor(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if wait := c.State.Waiting; wait != nil && wait.Message != "" {
			return wait.Reason + ": " + wait.Message
		}
	}
	return ""
}
