package volume

import (
	"context"
	"errors"
	"fmt"

	core "k8s.io/api/core/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	// Provisioner is the name by which a StorageClass asks for these volumes.
	Provisioner = "localkube.toban.dev/volume"
	// ClassName is the StorageClass that Run makes, the cluster's default.
	ClassName = "local"

	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// provisioner is what the controller library calls.
type provisioner struct{ store *store }

// Provision makes the volume for a claim on the node that the scheduler chose.
func (p provisioner) Provision(
	ctx context.Context, o controller.ProvisionOptions,
) (*core.PersistentVolume, controller.ProvisioningState, error) {
	if err := supported(o); err != nil {
		return nil, controller.ProvisioningFinished, err
	}
	bytes := p.store.size(requested(o.PVC).Value())
	if err := p.store.create(ctx, o.PVName, bytes); err != nil {
		return nil, controller.ProvisioningFinished, fmt.Errorf("make volume %s: %w", o.PVName, err)
	}
	return desiredVolume(o, p.store.path(o.PVName), bytes), controller.ProvisioningFinished, nil
}

// Delete removes what Provision made. The library deletes the PV afterwards.
func (p provisioner) Delete(_ context.Context, volume *core.PersistentVolume) error {
	if volume.Spec.Local == nil || volume.Spec.Local.Path != p.store.path(volume.Name) {
		return &controller.IgnoredError{Reason: "the volume is not in " + p.store.root}
	}
	return p.store.remove(volume.Name)
}

// supported says why a claim cannot have a volume, if it cannot.
func supported(o controller.ProvisionOptions) error {
	switch {
	case o.SelectedNodeName == "":
		return fmt.Errorf("StorageClass %s needs volumeBindingMode: WaitForFirstConsumer, because a volume is on "+
			"one node", o.StorageClass.Name)
	case o.PVC.Spec.Selector != nil:
		return errors.New("a claim with a selector cannot be provisioned")
	case o.PVC.Spec.DataSource != nil || o.PVC.Spec.DataSourceRef != nil:
		return errors.New("volumes cannot be made from another volume or a snapshot")
	}
	return nil
}

// desiredVolume is the PV of a volume. The library adds the claim and the class.
func desiredVolume(o controller.ProvisionOptions, path string, bytes int64) *core.PersistentVolume {
	reclaim := core.PersistentVolumeReclaimDelete
	if o.StorageClass.ReclaimPolicy != nil {
		reclaim = *o.StorageClass.ReclaimPolicy
	}
	mode := core.PersistentVolumeFilesystem
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: o.PVName},
		Spec: core.PersistentVolumeSpec{
			Capacity: core.ResourceList{
				core.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI),
			},
			AccessModes:                   o.PVC.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaim,
			VolumeMode:                    &mode,
			PersistentVolumeSource:        core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: path}},
			NodeAffinity:                  onNode(o.SelectedNodeName),
		},
	}
}

func onNode(name string) *core.VolumeNodeAffinity {
	return &core.VolumeNodeAffinity{Required: &core.NodeSelector{
		NodeSelectorTerms: []core.NodeSelectorTerm{{
			MatchExpressions: []core.NodeSelectorRequirement{{
				Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{name},
			}},
		}},
	}}
}

// desiredClass is the StorageClass of these volumes.
func desiredClass() *storage.StorageClass {
	wait, reclaim, expand := storage.VolumeBindingWaitForFirstConsumer, core.PersistentVolumeReclaimDelete, true
	return &storage.StorageClass{
		ObjectMeta: meta.ObjectMeta{
			Name:        ClassName,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:          Provisioner,
		ReclaimPolicy:        &reclaim,
		VolumeBindingMode:    &wait,
		AllowVolumeExpansion: &expand,
	}
}
