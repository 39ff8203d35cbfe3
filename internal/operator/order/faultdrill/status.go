package faultdrill

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/order"
)

// Fill notes what was done, what the clients have seen, and the verdict.
func (s *scope) Fill(changed *v1.FaultDrill, _ order.Decision) {
	out := &changed.Status
	s.setFault(out)
	s.setClients(out)
	verdict := s.decided.Verdict
	if verdict == nil {
		return
	}
	out.Outage, out.Lost = short(verdict.Outage), &verdict.Lost
	passed := metav1.ConditionFalse
	if verdict.Passed {
		passed = metav1.ConditionTrue
	}
	s.SetCondition(&out.Conditions, v1.ConditionPassed, passed, verdict.Reason, verdict.Message)
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
		out.WholeAt = freshness.Moment(s.At)
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
