package volume

import (
	"context"
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

// expander grows volumes whose claims have grown. It does what the
// external-resizer does for CSI: the volume, then the PV's capacity, then the
// claim's status.
type expander struct {
	store   *store
	client  kubernetes.Interface
	claims  cache.Store
	volumes cache.Store
	events  record.EventRecorder
	queue   workqueue.TypedRateLimitingInterface[string]
}

// watch puts every claim that may have to grow in the queue.
func (e *expander) watch(claims cache.SharedInformer) error {
	enqueue := func(object any) {
		claim, ok := object.(*core.PersistentVolumeClaim)
		if ok && wantsMore(claim) {
			e.queue.Add(claim.Namespace + "/" + claim.Name)
		}
	}
	_, err := claims.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	})
	return err
}

// run works until the queue is shut down. One worker is enough: growing takes
// milliseconds.
func (e *expander) run(ctx context.Context) {
	for {
		key, stop := e.queue.Get()
		if stop {
			return
		}
		if err := e.sync(ctx, key); err != nil {
			e.queue.AddRateLimited(key)
		} else {
			e.queue.Forget(key)
		}
		e.queue.Done(key)
	}
}

// sync grows the volume of one claim, if it is ours and has to. A failure is an
// event on the claim, and tried again.
func (e *expander) sync(ctx context.Context, key string) error {
	claim, volume, err := e.find(key)
	if err != nil || claim == nil {
		return err
	}
	if err := e.expand(ctx, claim, volume); err != nil {
		e.events.Event(claim, core.EventTypeWarning, "VolumeResizeFailed", err.Error())
		return err
	}
	e.events.Eventf(claim, core.EventTypeNormal, "VolumeResizeSuccessful", "Volume %s has grown to %s",
		volume.Name, requested(claim))
	return nil
}

// find returns a claim and its volume if they are ours and the claim asks for
// more, else nil.
func (e *expander) find(key string) (*core.PersistentVolumeClaim, *core.PersistentVolume, error) {
	claim, err := lookUp[core.PersistentVolumeClaim](e.claims, key)
	if err != nil || claim == nil || !wantsMore(claim) {
		return nil, nil, err
	}
	volume, err := lookUp[core.PersistentVolume](e.volumes, claim.Spec.VolumeName)
	if err != nil {
		return nil, nil, err
	}
	if volume == nil {
		return nil, nil, fmt.Errorf("volume %s of claim %s is not known yet", claim.Spec.VolumeName, key)
	}
	if volume.Annotations[provisionedBy] != Provisioner {
		return nil, nil, nil
	}
	return claim, volume, nil
}

// lookUp returns what an informer knows by that key, or nil.
func lookUp[T any](known cache.Store, key string) (*T, error) {
	object, exists, err := known.GetByKey(key)
	if err != nil || !exists {
		return nil, err
	}
	found, ok := object.(*T)
	if !ok {
		return nil, fmt.Errorf("%s is known as a %T", key, object)
	}
	return found, nil
}

func (e *expander) expand(ctx context.Context, claim *core.PersistentVolumeClaim, volume *core.PersistentVolume) error {
	if err := e.updateStatus(ctx, claim, markResizing); err != nil {
		return fmt.Errorf("note on the claim that it is being resized: %w", err)
	}
	bytes := e.store.size(requested(claim).Value())
	if err := e.store.grow(ctx, volume.Name, bytes); err != nil {
		return err
	}
	size := *resource.NewQuantity(bytes, resource.BinarySI)
	if err := e.setCapacity(ctx, volume, size); err != nil {
		return fmt.Errorf("set the volume's capacity: %w", err)
	}
	if err := e.updateStatus(ctx, claim, markResized(size)); err != nil {
		return fmt.Errorf("note on the claim that it has been resized: %w", err)
	}
	return nil
}

// setCapacity raises the PV's capacity; it is never lowered.
func (e *expander) setCapacity(ctx context.Context, volume *core.PersistentVolume, size resource.Quantity) error {
	if volume.Spec.Capacity.Storage().Cmp(size) >= 0 {
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"capacity":{"storage":%q}}}`, size.String())
	_, err := e.client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.MergePatchType,
		patch, meta.PatchOptions{})
	return err
}

// updateStatus changes a claim's status; the kubelet and others write it too,
// hence the fresh copy and the retries. No change is no write.
func (e *expander) updateStatus(
	ctx context.Context, claim *core.PersistentVolumeClaim, change func(*core.PersistentVolumeClaim),
) error {
	claims := e.client.CoreV1().PersistentVolumeClaims(claim.Namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		fresh, err := claims.Get(ctx, claim.Name, meta.GetOptions{})
		if err != nil {
			return err
		}
		changed := fresh.DeepCopy()
		change(changed)
		if equality.Semantic.DeepEqual(fresh.Status, changed.Status) {
			return nil
		}
		_, err = claims.UpdateStatus(ctx, changed, meta.UpdateOptions{})
		return err
	})
}

// wantsMore tells whether a bound claim asks for more than it has.
func wantsMore(claim *core.PersistentVolumeClaim) bool {
	if claim.Status.Phase != core.ClaimBound || claim.Spec.VolumeName == "" || claim.DeletionTimestamp != nil {
		return false
	}
	have := claim.Status.Capacity.Storage()
	return requested(claim).Cmp(*have) > 0
}

func requested(claim *core.PersistentVolumeClaim) *resource.Quantity {
	return claim.Spec.Resources.Requests.Storage()
}

// markResizing says on the claim that its volume is growing, and to what.
func markResizing(claim *core.PersistentVolumeClaim) {
	status := &claim.Status
	status.AllocatedResources = core.ResourceList{core.ResourceStorage: *requested(claim)}
	status.AllocatedResourceStatuses = map[core.ResourceName]core.ClaimResourceStatus{
		core.ResourceStorage: core.PersistentVolumeClaimControllerResizeInProgress,
	}
	resizing := func(c core.PersistentVolumeClaimCondition) bool { return c.Type == core.PersistentVolumeClaimResizing }
	if !slices.ContainsFunc(status.Conditions, resizing) {
		status.Conditions = append(status.Conditions, core.PersistentVolumeClaimCondition{
			Type: core.PersistentVolumeClaimResizing, Status: core.ConditionTrue, LastTransitionTime: meta.Now(),
		})
	}
}

// markResized says on the claim that its volume, file system and all, has grown.
func markResized(size resource.Quantity) func(*core.PersistentVolumeClaim) {
	return func(claim *core.PersistentVolumeClaim) {
		status := &claim.Status
		status.Conditions = withoutResize(status.Conditions)
		status.AllocatedResources = core.ResourceList{core.ResourceStorage: *requested(claim)}
		status.AllocatedResourceStatuses = nil
		status.Capacity = core.ResourceList{core.ResourceStorage: size}
	}
}

func withoutResize(conditions []core.PersistentVolumeClaimCondition) []core.PersistentVolumeClaimCondition {
	var kept []core.PersistentVolumeClaimCondition
	for _, c := range conditions {
		if c.Type != core.PersistentVolumeClaimResizing && c.Type != core.PersistentVolumeClaimFileSystemResizePending {
			kept = append(kept, c)
		}
	}
	return kept
}
