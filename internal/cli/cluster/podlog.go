package cluster

import (
	"cmp"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"toban.dev/internal/naming"
)

// OpenLog opens the log of a Pod, with the time in front of each line: that of an instance, or of the container that
// the options name.
type OpenLog func(ctx context.Context, pod string, options corev1.PodLogOptions) (io.ReadCloser, error)

// Opener opens the logs of Pods, with the rights of the person who calls the command.
func (c *Cluster) Opener() (OpenLog, error) {
	config, _, err := c.Rest()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return func(ctx context.Context, pod string, options corev1.PodLogOptions) (io.ReadCloser, error) {
		options.Container, options.Timestamps = cmp.Or(options.Container, naming.ContainerPostgreSQL), true
		stream, err := clientset.CoreV1().Pods(c.Namespace).GetLogs(pod, &options).Stream(ctx)
		if err != nil {
			return nil, fmt.Errorf("read the log of the Pod %s: %w", pod, err)
		}
		return stream, nil
	}, nil
}
