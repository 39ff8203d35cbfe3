package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"toban.dev/internal/agent/volume"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

const fieldManager = "toban-agent"

// Kubernetes is the Cluster that an instance's Pod is in.
type Kubernetes struct {
	client    kubernetes.Interface
	namespace string
	pod       string
	lease     string
}

// InPod finds the cluster from within the Pod of an instance of a SampleDB.
func InPod(namespace, pod, cluster string) (*Kubernetes, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes API: %w", err)
	}
	config.QPS, config.Burst = 50, 100 // a failover must not wait for our own limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return NewKubernetes(client, namespace, pod, cluster), nil
}

// NewKubernetes is the cluster that a client reaches, for an instance of a SampleDB.
func NewKubernetes(client kubernetes.Interface, namespace, pod, cluster string) *Kubernetes {
	return &Kubernetes{client: client, namespace: namespace, pod: pod, lease: naming.Lease(cluster)}
}

// Publish labels this instance's Pod with its role, which the Services select
// by. A new primary first takes the label from the one before, whose agent may not
// be able to.
func (k *Kubernetes) Publish(ctx context.Context, role protocol.Role, others []string) error {
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
func (k *Kubernetes) Published(ctx context.Context) (protocol.Role, error) {
	pod, err := k.client.CoreV1().Pods(k.namespace).Get(ctx, k.pod, metav1.GetOptions{})
	if err != nil {
		return protocol.RoleNone, fmt.Errorf("read the Pod %s: %w", k.pod, err)
	}
	return protocol.Role(pod.Labels[naming.LabelRole]), nil
}

// depose takes the primary's label from a Pod that bears it.
func (k *Kubernetes) depose(ctx context.Context, pod string) error {
	test := fmt.Appendf(nil, `[{"op":"test","path":"/metadata/labels/toban.dev~1role","value":%q},
		{"op":"remove","path":"/metadata/labels/toban.dev~1role"}]`, protocol.RolePrimary)
	_, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, pod, types.JSONPatchType, test, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return nil // it is not there, or does not bear it
	}
	if err != nil {
		return fmt.Errorf("take the role from the Pod %s: %w", pod, err)
	}
	return nil
}

func (k *Kubernetes) label(ctx context.Context, pod string, role protocol.Role) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, naming.LabelRole, role)
	_, err := k.client.CoreV1().Pods(k.namespace).Patch(ctx, pod, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("label the Pod %s: %w", pod, err)
	}
	return nil
}

// errOvertaken says that somebody else has changed what is on record meanwhile.
var errOvertaken = errors.New("somebody else has changed it meanwhile")

// Operate does something at the SampleDB's Lease. What is changed is so by an update that fails, with errOvertaken, when
// somebody else was faster.
func (k *Kubernetes) Operate(ctx context.Context, o ha.WitnessOperation) (ha.Memory, ha.WitnessAnswer, error) {
	lease, m, err := k.read(ctx)
	if err != nil {
		return m, ha.WitnessAnswer{}, err
	}
	next, answer := o.Apply(m)
	if !answer.Granted || next.Ballot == m.Ballot && next.Holding == m.Holding && !next.Record.Newer(m.Record) {
		return m, answer, nil
	}
	return next, answer, k.write(ctx, lease, next)
}

func (k *Kubernetes) read(ctx context.Context) (*coordinationv1.Lease, ha.Memory, error) {
	lease, err := k.client.CoordinationV1().Leases(k.namespace).Get(ctx, k.lease, metav1.GetOptions{})
	if err != nil {
		return nil, ha.Memory{}, fmt.Errorf("read the Lease %s: %w", k.lease, err)
	}
	var m ha.Memory
	if text := lease.Annotations[naming.AnnotationElection]; text != "" {
		if m, err = volume.DecodeMemory([]byte(text)); err != nil {
			return nil, ha.Memory{}, fmt.Errorf("understand the annotation %s of the Lease %s: %w", naming.AnnotationElection, k.lease, err)
		}
	}
	if m.Voter != "" && m.Voter != ha.Voter(lease.UID) {
		return nil, ha.Memory{}, fmt.Errorf("the Lease %s has the record of another one: remove its annotation %s", k.lease, naming.AnnotationElection)
	}
	m.Voter = ha.Voter(lease.UID)
	return lease, m, nil
}

// write puts the witness's memory into the Lease as it was read; who was slower
// gets a conflict. Holder and transitions are for people.
func (k *Kubernetes) write(ctx context.Context, lease *coordinationv1.Lease, m ha.Memory) error {
	text, err := volume.EncodeMemory([]byte(lease.Annotations[naming.AnnotationElection]), m)
	if err != nil {
		return fmt.Errorf("encode the witness's memory: %w", err)
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[naming.AnnotationElection] = string(text)
	transitions, now := int32(m.Ballot.Term), metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions, lease.Spec.AcquireTime = &m.Ballot.Leader, &transitions, &now
	_, err = k.client.CoordinationV1().Leases(k.namespace).Update(ctx, lease, metav1.UpdateOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("write the Lease %s: %w", k.lease, errOvertaken)
	}
	if err != nil {
		return fmt.Errorf("write the Lease %s: %w", k.lease, err)
	}
	return nil
}
