package volume

import (
	"testing"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

func request(size string, change ...func(*controller.ProvisionOptions)) controller.ProvisionOptions {
	o := controller.ProvisionOptions{
		StorageClass: desiredClass(), PVName: "pvc-1", PVC: bound("0", size), SelectedNodeName: "node-2",
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func TestVolumeSizes(t *testing.T) {
	s := &store{fs: ext4}
	for size, want := range map[string]int64{
		"1Gi": 1 << 30,
		"1M":  ext4.minimum,
		"1G":  1_000_001_536, // whole blocks, never less than asked
	} {
		if got := s.size(requested(bound("0", size)).Value()); got != want {
			t.Errorf("%s: got %d, want %d", size, got, want)
		}
	}
}

func TestUnsupportedClaimsSayWhy(t *testing.T) {
	for name, c := range map[string]struct {
		options controller.ProvisionOptions
		ok      bool
	}{
		"plain":          {request("1Gi"), true},
		"no node chosen": {request("1Gi", func(o *controller.ProvisionOptions) { o.SelectedNodeName = "" }), false},
		"chooses by labels": {
			request("1Gi", func(o *controller.ProvisionOptions) { o.PVC.Spec.Selector = &meta.LabelSelector{} }), false,
		},
		"copy of another claim": {request("1Gi",
			func(o *controller.ProvisionOptions) { o.PVC.Spec.DataSource = &core.TypedLocalObjectReference{} }), false},
	} {
		if err := supported(c.options); (err == nil) != c.ok {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

func TestVolumeIsTiedToItsNode(t *testing.T) {
	volume := desiredVolume(request("1Gi"), "/root/pvc-1/mnt/volume", 1<<30)
	got := volume.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values
	if len(got) != 1 || got[0] != "node-2" {
		t.Errorf("the volume is on %v, want node-2", got)
	}
	if volume.Spec.Capacity.Storage().Value() != 1<<30 {
		t.Errorf("capacity is %s", volume.Spec.Capacity.Storage())
	}
}
