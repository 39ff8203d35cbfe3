// Package kube is what an agent does in the Kubernetes cluster around it: the label of the role on its SampleDB's own
// Pods, and the record of the witness on the SampleDB's Lease.
package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"toban.dev/internal/httppath"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
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

// Publish labels this instance's Pod with its role, which the Services select
// by. A new primary first takes the label from the one before, whose agent may not
// be able to.
func (k *Cluster) Publish(ctx context.Context, role protocol.Role, others []string) error {
	if role == protocol.RolePrimary {
		taken := make(chan error, len(others))
		for _, pod := range others {
			go func() { taken <- k.depose(ctx, pod) }()
		}
		err := k.label(ctx, k.pod, role)
		for range others {
			err = errors.Join(err, <-taken)
		}
		return err
	}
	return k.label(ctx, k.pod, role)
}

// Published is the role on this instance's Pod.
func (k *Cluster) Published(ctx context.Context) (protocol.Role, error) {
	pod, err := k.client.CoreV1().Pods(k.namespace).Get(ctx, k.pod, metav1.GetOptions{})
	if err != nil {
		return protocol.RoleNone, fmt.Errorf("read the Pod %s: %w", k.pod, err)
	}
	return protocol.Role(pod.Labels[naming.LabelRole]), nil
}

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

// depose takes the primary's label from a Pod that bears it.
func (k *Cluster) depose(ctx context.Context, pod string) error {
	test := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/labels/toban.dev~1role","value":%q},
		{"op":"remove","path":"/metadata/labels/toban.dev~1role"}]`, protocol.RolePrimary)
	_, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, pod, types.JSONPatchType, test,
		metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // it is not there, or does not bear it
	}
	if err != nil {
		return fmt.Errorf("take the role from the Pod %s: %w", pod, err)
	}
	return nil
}

func (k *Cluster) label(ctx context.Context, pod string, role protocol.Role) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, naming.LabelRole, role)
	_, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, pod, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("label the Pod %s: %w", pod, err)
	}
	return nil
}
