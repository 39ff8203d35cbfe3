package faultdrill

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
)

// status is what the status should be after a decision.
func (s *scope) status(d Decision) v1.FaultDrillStatus {
	out := *s.drill.Status.DeepCopy()
	out.ObservedGeneration = s.drill.Generation
	out.Conditions = slices.Clone(out.Conditions)
	out.Phase = order.Phase(d.Reason, d.Over)
	now := metav1.NewTime(s.now).Rfc3339Copy()
	begun := d.Action == ActionCreate || s.seen.run.State() != jobs.None && !s.seen.foreign
	if begun && out.StartedAt == nil {
		out.StartedAt = &now
	}
	s.setFault(&out)
	s.setClients(&out)
	complete := metav1.ConditionFalse
	if d.Over {
		out.CompletedAt = &now
		if d.Reason == v1.ReasonCompleted {
			complete = metav1.ConditionTrue
		}
	}
	s.set(&out, v1.ConditionComplete, complete, d.Reason, d.Message)
	if verdict := d.Verdict; verdict != nil {
		out.Outage, out.Lost = short(verdict.Outage), &verdict.Lost
		passed := metav1.ConditionFalse
		if verdict.Passed {
			passed = metav1.ConditionTrue
		}
		s.set(&out, v1.ConditionPassed, passed, verdict.Reason, verdict.Message)
	}
	return out
}

func (s *scope) set(out *v1.FaultDrillStatus, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&out.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: freshness.Message(message),
		ObservedGeneration: s.drill.Generation, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
}

// setFault notes what was done to which instance, and whether the SampleDB is whole since.
func (s *scope) setFault(out *v1.FaultDrillStatus) {
	if !s.ordered.IsZero() {
		out.Instance, out.Meanwhile, out.OrderedAt = s.seen.targets[0].name, nil, freshness.Moment(s.ordered)
		for _, a := range s.seen.targets[1:] {
			out.Meanwhile = append(out.Meanwhile, a.name)
		}
	}
	if !s.struck.IsZero() {
		out.StruckAt = freshness.Moment(s.struck)
	}
	if out.StruckAt == nil || s.seen.db == nil {
		return
	}
	out.WALAtEnd = s.walAtEnd()
	switch {
	case s.lacks() != "":
		out.WholeAt = nil
	case out.WholeAt == nil && s.struck.IsZero(): // what is seen was so before it was struck
		out.WholeAt = freshness.Moment(s.now)
	}
}

// setClients takes what the clients have seen.
func (s *scope) setClients(out *v1.FaultDrillStatus) {
	if s.seen.result == nil {
		return
	}
	out.Clients = nil
	for _, c := range s.seen.result.Clients {
		client := v1.FaultDrillClient{
			Way: c.Way, Outage: metav1.Duration{Duration: c.Outage.Round(time.Millisecond)},
			Acknowledged: c.Acknowledged, Lost: c.Lost, Errors: c.Errors, Reads: c.Reads, StaleReads: c.StaleReads,
			FirstError: c.FirstError,
		}
		if c.Staleness > 0 {
			client.Staleness = &metav1.Duration{Duration: c.Staleness.Round(time.Millisecond)}
		}
		out.Clients = append(out.Clients, client)
	}
}

// report writes the status where it has changed, and then the events. It is false where the drill is gone.
func (r *Reconciler) report(ctx context.Context, s *scope, d Decision) (bool, error) {
	status, was := s.status(d), s.drill.Status
	if equality.Semantic.DeepEqual(was, status) {
		return true, nil
	}
	changed := s.drill.DeepCopy()
	changed.Status = status
	write := freshness.Alone
	if !s.ordered.IsZero() && s.struck.IsZero() {
		write = freshness.Shared // nobody may have cancelled or deleted it since
	}
	if there, err := write(ctx, r.Client, s.drill, changed); err != nil || !there {
		return false, err
	}
	s.drill = changed
	for _, e := range order.Changes(state(was), state(status)) {
		log.FromContext(ctx).Info("the state changed", "reason", e.Reason, "message", e.Message)
		r.Events.Eventf(s.drill, nil, e.Kind, e.Reason, order.ActionReported, "%s", e.Message)
	}
	return true, nil
}
