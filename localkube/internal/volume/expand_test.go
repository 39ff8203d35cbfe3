package volume

import (
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bound makes a claim that is bound to a volume of a size and asks for another.
func bound(has, wants string, change ...func(*core.PersistentVolumeClaim)) *core.PersistentVolumeClaim {
	claim := &core.PersistentVolumeClaim{}
	claim.Spec.VolumeName = "pvc-1"
	claim.Spec.Resources.Requests = core.ResourceList{core.ResourceStorage: resource.MustParse(wants)}
	claim.Status.Phase = core.ClaimBound
	claim.Status.Capacity = core.ResourceList{core.ResourceStorage: resource.MustParse(has)}
	for _, c := range change {
		c(claim)
	}
	return claim
}

func TestWantsMore(t *testing.T) {
	for name, c := range map[string]struct {
		claim *core.PersistentVolumeClaim
		want  bool
	}{
		"asks for what it has":       {bound("1Gi", "1Gi"), false},
		"has more than it asked for": {bound("16Mi", "1Mi"), false},
		"asks for more":              {bound("1Gi", "2Gi"), true},
		"not bound yet": {
			bound("1Gi", "2Gi", func(c *core.PersistentVolumeClaim) { c.Status.Phase = core.ClaimPending }), false,
		},
		"lost its volume": {
			bound("1Gi", "2Gi", func(c *core.PersistentVolumeClaim) { c.Status.Phase = core.ClaimLost }), false,
		},
		"is going away, so let it be": {
			bound("1Gi", "2Gi", func(c *core.PersistentVolumeClaim) { c.DeletionTimestamp = &meta.Time{} }), false,
		},
	} {
		if got := wantsMore(c.claim); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestResizeLeavesNoTraceInTheStatus(t *testing.T) {
	claim := bound("1Gi", "2Gi")
	markResizing(claim)
	markResizing(claim)
	if len(claim.Status.Conditions) != 1 || claim.Status.AllocatedResourceStatuses[core.ResourceStorage] == "" {
		t.Errorf("while it grows the status is %+v", claim.Status)
	}
	markResized(resource.MustParse("2Gi"))(claim)
	if len(claim.Status.Conditions) != 0 || len(claim.Status.AllocatedResourceStatuses) != 0 {
		t.Errorf("afterwards the status is %+v", claim.Status)
	}
	if wantsMore(claim) {
		t.Error("it would grow again and again")
	}
}
