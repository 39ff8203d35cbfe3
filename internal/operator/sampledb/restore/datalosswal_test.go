package restore

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// What an instance says of its volume counts once both of its volumes are there to stay: of one whose WAL volume is
// gone it is not known whether its data is lost.
func TestWhatAnInstanceSaysCountsWithBothOfItsVolumes(t *testing.T) {
	bound := corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}
	now := metav1.Now()
	for name, c := range map[string]struct {
		wal  *corev1.PersistentVolumeClaim
		want string
	}{
		"it is bound":         {&corev1.PersistentVolumeClaim{Status: bound}, world.VolumeHasData},
		"it is not there":     {nil, ""},
		"it is not bound yet": {&corev1.PersistentVolumeClaim{}, ""},
		"it is being deleted": {&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}, Status: bound,
		}, ""},
	} {
		s := topicsOf(world.Core{DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}})
		s.Config.Members = []protocol.Member{{Name: "x-0"}}
		s.DB.Spec.Storage.Size, s.DB.Spec.Storage.WAL = "100Gi", &v1.WALSpec{Size: "100Gi"}
		s.Seen.Pods = map[int]*corev1.Pod{0: {}}
		s.Seen.Claims = map[int]*corev1.PersistentVolumeClaim{0: {Status: bound}}
		s.Seen.WALs = map[int]*corev1.PersistentVolumeClaim{0: c.wal}
		s.Seen.Answers = map[string]protocol.Status{naming.Instance(s.DB.Name, 0): {Data: protocol.DataPresent}}
		if got := s.instanceVolume(0).state; got != c.want {
			t.Errorf("%s: the volume counts as %q", name, got)
		}
	}
}
