package fleet

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/sampledb/world"
)

// rolloutLasts is how long after a `kubectl rollout restart` it is still followed. One that an earlier release of the
// operator has left alone is not made good long after.
const rolloutLasts = time.Hour

// ApplyRolloutRestart takes a `kubectl rollout restart` of a StatefulSet. Kubernetes itself does nothing about it,
// because the operator decides when an instance restarts (OnDelete): it is the request for a restart of all servers.
func (s *fleetTopic) ApplyRolloutRestart(ctx context.Context) error {
	if asked := rolloutAsked(s.Seen.Readers.Set); asked != "" {
		err := s.refuseRollout(ctx, s.Seen.Readers.Set, asked,
			"restart readers one by one, by kubectl delete pod "+naming.Reader(s.DB.Name, 0))
		if err != nil {
			return err
		}
	}
	asked, under := rolloutAsked(s.Seen.Set), s.Asked(world.RequestRestart)
	if asked == "" || under != "" && under != naming.RestartAll {
		return nil // another restart ends first
	}
	if why := s.rolloutRefused(asked); why != "" {
		return s.refuseRollout(ctx, s.Seen.Set, asked, why)
	}
	if err := s.Record(ctx, map[string]string{string(world.RequestRestart): naming.RestartAll}); err != nil {
		return fmt.Errorf("ask for the restart that kubectl rollout restart wants: %w", err)
	}
	return s.forgetRollout(ctx, s.Seen.Set)
}

// rolloutRefused is why a restart that was asked for at a time is not done, "" where it is.
func (s *fleetTopic) rolloutRefused(asked string) string {
	at, err := time.Parse(time.RFC3339, asked)
	switch {
	case s.Stop.Closed():
		return "the database is stopped, or about to be"
	case err != nil || s.Now.Sub(at) > rolloutLasts:
		return "that is long ago; to restart the servers now: kubectl toban restart " + s.DB.Name
	}
	return ""
}

// rolloutAsked is when a restart of a StatefulSet's Pods was asked for, as was written there, "" for never.
func rolloutAsked(set *appsv1.StatefulSet) string {
	if set == nil || set.DeletionTimestamp != nil {
		return ""
	}
	return set.Spec.Template.Annotations[naming.AnnotationRolloutRestart]
}

// refuseRollout says why a restart is not done.
func (s *fleetTopic) refuseRollout(ctx context.Context, set *appsv1.StatefulSet, asked, why string) error {
	if err := s.forgetRollout(ctx, set); err != nil {
		return err
	}
	s.AddWarning(world.EventRestartRefused,
		fmt.Sprintf("kubectl rollout restart statefulset/%s, of %s, is not followed: %s", set.Name, asked, why))
	return nil
}

// forgetRollout takes the request away, as all requests are that were taken or refused.
func (s *fleetTopic) forgetRollout(ctx context.Context, set *appsv1.StatefulSet) error {
	changed := set.DeepCopy()
	delete(changed.Spec.Template.Annotations, naming.AnnotationRolloutRestart)
	err := s.Client.Patch(ctx, changed, client.MergeFrom(set), client.FieldOwner(naming.FieldOwner))
	if err != nil {
		return fmt.Errorf("take the restart off the StatefulSet %s: %w", set.Name, err)
	}
	return nil
}
