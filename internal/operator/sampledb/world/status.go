package world

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
)

// SetWhereKnown sets a condition that is there only where there is a verdict.
func (s *Core) SetWhereKnown(out *v1.SampleDBStatus, kind string, v Verdict) {
	if v.Reason == "" {
		meta.RemoveStatusCondition(&out.Conditions, kind)
		return
	}
	meta.SetStatusCondition(&out.Conditions, s.Condition(kind, v))
}

// Condition is the condition of a type that a verdict makes.
func (s *Core) Condition(kind string, v Verdict) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: v.Status, Reason: v.Reason, Message: v.Message,
		ObservedGeneration: s.DB.Generation,
		LastTransitionTime: metav1.NewTime(s.Now).Rfc3339Copy(),
	}
}

// InstanceBefore is what the status had of an instance, nothing where it was not there.
func (s *Core) InstanceBefore(name string) v1.InstanceStatus {
	for _, old := range s.DB.Status.InstanceStatuses {
		if old.Name == name {
			return old
		}
	}
	return v1.InstanceStatus{}
}

// Votes says that an instance counts for commits and votes. While no primary can
// be asked, what it said last still holds.
func (s *Core) Votes(name string) bool {
	if s.Primary() != "" {
		return slices.Contains(s.Voters(), name)
	}
	return slices.ContainsFunc(s.DB.Status.InstanceStatuses,
		func(i v1.InstanceStatus) bool { return i.Name == name && i.Voter })
}

// LogChange logs another reason of Ready.
func (s *Act) LogChange(ctx context.Context, old, now v1.SampleDBStatus) {
	was, is := meta.FindStatusCondition(old.Conditions,
		v1.ConditionReady), meta.FindStatusCondition(now.Conditions, v1.ConditionReady)
	if is == nil || was != nil && was.Reason == is.Reason {
		return
	}
	log.FromContext(ctx).Info("the state changed", "phase", now.Phase, "ready", now.Ready, "primary", now.Primary,
		"reason", is.Reason, "message", is.Message)
}
