// Package kube is what an agent does in the Kubernetes cluster around it: the label of the role on its SampleDB's own
// Pods, and the record of the witness on the SampleDB's Lease.
package kube

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"toban.dev/internal/httppath"
	"toban.dev/internal/naming"
)

const fieldManager = "toban-agent"

// Cluster is the Kubernetes cluster that an instance's Pod is in.
type Cluster struct {
	client    kubernetes.Interface
	namespace string
	pod       string
	lease     string
	// way is how the client reaches the API.
	way *httppath.Path
	// written is how this instance's Pod was when its role was last written or read, nil for unknown.
	written atomic.Pointer[mark]
}

// InPod finds the cluster from within the Pod of an instance of a SampleDB.
func InPod(namespace, pod, cluster string) (*Cluster, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes API: %w", err)
	}
	config.QPS, config.Burst = 50, 100 // a failover must not wait for our own limit
	return New(config, namespace, pod, cluster)
}

// New is the cluster whose API is reached with a config, for an instance of a SampleDB.
func New(config *rest.Config, namespace, pod, cluster string) (*Cluster, error) {
	k := &Cluster{
		namespace: namespace, pod: pod, lease: naming.Lease(cluster), way: httppath.New("the Kubernetes API", 0),
	}
	config = rest.CopyConfig(config)
	config.Wrap(k.way.Through)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	k.client = client
	return k, nil
}

// Cut has this instance not reach the Kubernetes API, whatever it asks, until Restore. It is for a FaultDrill.
func (k *Cluster) Cut() { k.way.Cut() }

// Restore has it reach the API again.
func (k *Cluster) Restore() { k.way.Restore() }

// SetRelay sets the label on an instance's Pod by which the Service finds those that pass clients on, or removes it.
// A Pod that is not there bears none.
func (k *Cluster) SetRelay(ctx context.Context, instance string, leads bool) error {
	value := "null"
	if leads {
		value = strconv.Quote(naming.Relays)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, naming.LabelRelay, value)
	_, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, instance, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("label the Pod %s: %w", instance, err)
	}
	return nil
}

// MarkRoom annotates this instance's Pod while its volume gets full. The operator watches Pods.
func (k *Cluster) MarkRoom(ctx context.Context, room string) error {
	value := "null"
	if room != "" {
		value = strconv.Quote(room)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, naming.AnnotationRoom, value)
	_, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, k.pod, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("annotate the Pod %s: %w", k.pod, err)
	}
	return nil
}
