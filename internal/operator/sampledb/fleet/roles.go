package fleet

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// ApplyRoles has the primary's agent put right the labels by which the Service leads to the primary, where they are
// not: the agent itself looks once a minute only, at its own Pod alone, and the operator watches all Pods. An agent
// that can't be asked, or is of an earlier release, does so by itself.
func (s *fleetTopic) ApplyRoles(ctx context.Context) error {
	primary := s.Primary()
	if primary == "" || onlyPrimary(primary, s.labelled()) {
		return nil
	}
	ordinal, _ := naming.Ordinal(primary)
	pod := s.Seen.Pods[ordinal]
	if pod == nil || !world.Reachable(pod) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, world.Patience)
	defer cancel()
	if err := s.Agents.Publish(ctx, s.DB.UID, pod.Status.PodIP, s.Config); err != nil {
		log.FromContext(ctx).Info("the primary could not be asked to publish its role; it looks by itself, too",
			"instance", pod.Name, "reason", err.Error())
	}
	return nil
}

// labelled are the instances whose Pods have the label of the primary, in their order.
func (s *fleetTopic) labelled() (names []string) {
	for _, ordinal := range slices.Sorted(maps.Keys(s.Seen.Pods)) {
		pod := s.Seen.Pods[ordinal]
		if pod.Labels[naming.LabelRole] == string(protocol.RolePrimary) {
			names = append(names, pod.Name)
		}
	}
	return names
}

// onlyPrimary says that the label of the primary is on its Pod, and on no other.
func onlyPrimary(primary string, labelled []string) bool {
	return slices.Equal(labelled, []string{primary})
}
