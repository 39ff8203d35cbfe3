package kube

import (
	"context"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/agent/witness"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/volume"
)

// Operate does something at the SampleDB's Lease. What is changed is so by an update that fails, with
// witness.ErrConflict, when somebody else was faster.
func (k *Cluster) Operate(ctx context.Context, o ha.WitnessOperation) (ha.HardState, ha.WitnessAnswer, error) {
	lease, m, err := k.read(ctx)
	if err != nil {
		return m, ha.WitnessAnswer{}, err
	}
	next, answer := o.Apply(m)
	if !answer.Granted ||
		next.Ballot == m.Ballot && next.ReadLease == m.ReadLease && !next.Configuration.Newer(m.Configuration) {
		return m, answer, nil
	}
	return next, answer, k.write(ctx, lease, next)
}

func (k *Cluster) read(ctx context.Context) (*coordinationv1.Lease, ha.HardState, error) {
	lease, err := k.client.CoordinationV1().Leases(k.namespace).Get(ctx, k.lease, metav1.GetOptions{})
	if err != nil {
		return nil, ha.HardState{}, fmt.Errorf("read the Lease %s: %w", k.lease, err)
	}
	var m ha.HardState
	if text := lease.Annotations[naming.AnnotationElection]; text != "" {
		if m, err = volume.DecodeHardState([]byte(text)); err != nil {
			return nil, ha.HardState{}, fmt.Errorf("understand the annotation %s of the Lease %s: %w",
				naming.AnnotationElection, k.lease, err)
		}
	}
	if m.Voter != "" && m.Voter != ha.Voter(lease.UID) {
		return nil, ha.HardState{}, fmt.Errorf("the Lease %s has the record of another one: remove its annotation %s",
			k.lease, naming.AnnotationElection)
	}
	m.Voter = ha.Voter(lease.UID)
	return lease, m, nil
}

// write puts the witness's hard state into the Lease as it was read; who was slower
// gets a conflict. Holder and transitions are for people.
func (k *Cluster) write(ctx context.Context, lease *coordinationv1.Lease, m ha.HardState) error {
	text, err := volume.EncodeHardState([]byte(lease.Annotations[naming.AnnotationElection]), m)
	if err != nil {
		return fmt.Errorf("encode the witness's hard state: %w", err)
	}
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[naming.AnnotationElection] = string(text)
	transitions, now := int32(min(m.Ballot.Term, math.MaxInt32)), metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.LeaseTransitions, lease.Spec.AcquireTime =
		&m.Ballot.Leader, &transitions, &now
	_, err = k.client.CoordinationV1().Leases(k.namespace).Update(ctx, lease,
		metav1.UpdateOptions{FieldManager: fieldManager})
	if apierrors.IsConflict(err) {
		return fmt.Errorf("write the Lease %s: %w", k.lease, witness.ErrConflict)
	}
	if err != nil {
		return fmt.Errorf("write the Lease %s: %w", k.lease, err)
	}
	return nil
}
