// Package pods asks the Pods that work on an archive how far they are, and says of any Pod what keeps it from running.
// It must not know what they do.
package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// Asker asks Pods; package agents has the real one.
type Asker interface {
	// Progress asks the Pod at an address how far it is. Its certificate is for an identity, by the
	// authority in the SampleDB's config.
	Progress(ctx context.Context, identity, host string, config protocol.Config) (protocol.BackupProgress, error)
}

// Ask asks a Pod of a SampleDB, whose config has the authority. It is nil where the Pod does not say. A Pod with an
// address can be asked while it is Pending too: it is that for as long as an init container works.
func Ask(
	ctx context.Context, reader client.Reader, asker Asker, identity string, pod *corev1.Pod,
) *protocol.BackupProgress {
	if Ended(pod) || pod.Status.PodIP == "" {
		return nil
	}
	progress, err := ask(ctx, reader, asker, identity, pod)
	if err != nil {
		log.FromContext(ctx).V(1).Info("the Pod could not be asked how far it is",
			"pod", pod.Name, "reason", err.Error())
		return nil
	}
	return &progress
}

func ask(
	ctx context.Context, reader client.Reader, asker Asker, identity string, pod *corev1.Pod,
) (protocol.BackupProgress, error) {
	config, err := ConfigOf(ctx, reader, pod)
	if err != nil {
		return protocol.BackupProgress{}, err
	}
	return asker.Progress(ctx, identity, pod.Status.PodIP, config)
}

// ConfigOf is that of the SampleDB that a Pod works for, which has the authority of the Pod's certificate.
func ConfigOf(ctx context.Context, reader client.Reader, pod *corev1.Pod) (protocol.Config, error) {
	config := &corev1.ConfigMap{}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: naming.ConfigMap(pod.Labels[naming.LabelSampleDB])}
	if err := reader.Get(ctx, key, config); err != nil {
		return protocol.Config{}, err
	}
	return desired.ParseConfig(config)
}

// Sentence says how far a Pod is.
func Sentence(p protocol.BackupProgress) string {
	if p.Total <= 0 {
		return p.Step
	}
	return fmt.Sprintf("%s: %d %%", p.Step, Percent(p))
}

// Percent is how much is done, 0 to 100, and 0 where that is not known.
func Percent(p protocol.BackupProgress) int32 {
	if p.Total <= 0 || p.Done <= 0 {
		return 0
	}
	return int32(min(100*float64(p.Done)/float64(p.Total), 100))
}
