package agent

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// PublishInPod returns a function that writes the role into the label of this
// instance's own Pod, which the Services select by.
func PublishInPod(namespace, pod string) (func(context.Context, protocol.Role) error, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes API: %w", err)
	}
	client, err := corev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return func(ctx context.Context, role protocol.Role) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, naming.LabelRole, role)
		_, err := client.Pods(namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "toban-agent"})
		if err != nil {
			return fmt.Errorf("label the Pod %s: %w", pod, err)
		}
		return nil
	}, nil
}
