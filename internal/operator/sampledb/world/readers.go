package world

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// readers is what there is of readers. No decision about the instances looks at it (docs/readers.md).
type readers struct {
	Set     *appsv1.StatefulSet
	Pods    map[int]*corev1.Pod // by ordinal
	Claims  []*corev1.PersistentVolumeClaim
	WALs    []*corev1.PersistentVolumeClaim // those of WAL volumes
	Answers map[string]protocol.Status      // by name, of the agents that answered
	// Taken says that the StatefulSet of their name is somebody else's, "" where it is not.
	Taken string
}

// Note keeps a Pod or a claim of a reader.
func (x *readers) Note(db *v1.SampleDB, object client.Object) {
	n, numbered := naming.Ordinal(object.GetName())
	switch o := object.(type) {
	case *corev1.Pod:
		if numbered && o.Name == naming.Reader(db.Name, n) {
			if x.Pods == nil {
				x.Pods = map[int]*corev1.Pod{}
			}
			x.Pods[n] = o
		}
	case *corev1.PersistentVolumeClaim:
		if numbered && o.Name == naming.ReaderClaim(db.Name, n) {
			x.Claims = append(x.Claims, o)
		}
		if numbered && o.Name == naming.ReaderWALClaim(db.Name, n) {
			x.WALs = append(x.WALs, o)
		}
	}
}

// Asked is how many readers the StatefulSet has been asked for.
func (x *readers) Asked() int {
	if x.Set == nil || x.Set.Spec.Replicas == nil {
		return 0
	}
	return int(*x.Set.Spec.Replicas)
}

// Present is how many readers there are or come, by ordinal.
func (x *readers) Present() int {
	count := x.Asked()
	for ordinal := range x.Pods {
		count = max(count, ordinal+1)
	}
	return count
}

// Ready says that a reader answers queries, and streams or has streamed a moment ago.
func (x *readers) Ready(ordinal int) bool {
	pod := x.Pods[ordinal]
	if pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	a, known := x.Answers[pod.Name]
	return known && a.Ready && a.Role == protocol.RoleStandby
}

// CountReady is how many of the first readers are ready.
func (x *readers) CountReady(first int) int {
	count := 0
	for ordinal := range first {
		if x.Ready(ordinal) {
			count++
		}
	}
	return count
}

// RemoveOwn deletes an object of the SampleDB, if it is there and is its own.
func (s *Act) RemoveOwn(ctx context.Context, name string, into client.Object) error {
	have, err := Find(ctx, s.Client, s.DB, name, into)
	if err != nil || have == nil || !metav1.IsControlledBy(have, s.DB) || have.GetDeletionTimestamp() != nil {
		return err
	}
	return s.DeleteObject(ctx, have)
}
