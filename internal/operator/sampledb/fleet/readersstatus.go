package fleet

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/operator/sampledb/world"
)

// SetReaders sets what the status says of readers, where some are wanted or there.
func (s *readersTopic) SetReaders(out *v1.SampleDBStatus) {
	x := &s.Seen.Readers
	if desired.MostReaders(s.DB) == 0 && x.Taken == "" && x.Present() == 0 {
		meta.RemoveStatusCondition(&out.Conditions, v1.ConditionReadersReady)
		return
	}
	out.Readers = s.readersStatus()
	s.SetWhereKnown(out, v1.ConditionReadersReady, s.readersReady(*out.Readers))
}

// readersStatus are the readers that are wanted, and those that are still there.
func (s *readersTopic) readersStatus() *v1.ReadersStatus {
	wanted := s.readersWanted()
	out := &v1.ReadersStatus{Desired: int32(wanted)} //nolint:gosec // fifty at most
	ordinals := maps.Clone(s.Seen.Readers.Pods)
	for ordinal := range wanted {
		if _, there := ordinals[ordinal]; !there {
			if ordinals == nil {
				ordinals = map[int]*corev1.Pod{}
			}
			ordinals[ordinal] = nil
		}
	}
	for _, ordinal := range slices.Sorted(maps.Keys(ordinals)) {
		one := s.readerStatus(ordinal)
		if one.Ready && ordinal < wanted {
			out.Ready++
		}
		out.Instances = append(out.Instances, one)
	}
	return out
}

// readersWanted is how many are wanted now. Where the reconcile did not come to that, what was wanted before is.
func (s *readersTopic) readersWanted() int {
	switch before := s.DB.Status.Readers; {
	case s.readers != nil:
		return s.readers.wanted
	case before != nil:
		return int(before.Desired)
	}
	return 0
}

func (s *readersTopic) readerStatus(ordinal int) v1.ReaderStatus {
	out := v1.ReaderStatus{Name: naming.Reader(s.DB.Name, ordinal), Ready: s.Seen.Readers.Ready(ordinal)}
	pod := s.Seen.Readers.Pods[ordinal]
	answer, known := s.Seen.Readers.Answers[out.Name]
	switch {
	case pod == nil:
		out.Reason, out.Message = "NoPod", "it has no Pod"
	case known:
		out.Reason, out.Message = answer.Reason, answer.Message
	case world.PodTrouble(pod) != nil:
		t := world.PodTrouble(pod)
		out.Reason, out.Message = t.Reason, t.Message
	case pods.Ready(pod):
		out.Reason, out.Message = v1.ReasonUnknown, "its agent could not be asked"
	default:
		out.Reason, out.Message = "Starting", "its Pod is not ready"
	}
	return out
}

// readersReady is the condition ReadersReady.
func (s *readersTopic) readersReady(status v1.ReadersStatus) world.Verdict {
	switch x := &s.Seen.Readers; {
	case x.Taken != "":
		return world.No(v1.ReasonNameTaken, x.Taken)
	case s.readers == nil:
		if last := world.Condition(s.DB.Status, v1.ConditionReadersReady); last != nil {
			return world.Verdict{Status: last.Status, Reason: last.Reason, Message: last.Message}
		}
		return world.Unknown("they have not been looked at yet")
	case s.readers.reason != "":
		return world.No(s.readers.reason, s.readers.message)
	case status.Ready == status.Desired && len(status.Instances) == int(status.Desired):
		return world.Yes(v1.ReasonReadersServe, fmt.Sprintf("%d of %d serve reads", status.Ready, status.Desired))
	}
	message := fmt.Sprintf("%d of %d serve reads", status.Ready, status.Desired)
	for _, one := range status.Instances {
		if !one.Ready {
			message += fmt.Sprintf("; %s: %s", one.Name, one.Message)
			break
		}
	}
	return world.No(v1.ReasonReadersComing, message)
}

// ReadersPause is how long until readers that do not serve are looked at again: that one streams, nobody tells. The
// longer they have not served, the longer it is.
func (s *readersTopic) ReadersPause() time.Duration {
	c := meta.FindStatusCondition(s.Reported.Conditions, v1.ConditionReadersReady)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason == v1.ReasonStopped {
		return world.PauseResting
	}
	return min(max(s.Now.Sub(c.LastTransitionTime.Time)/12, world.PauseWorking), world.PauseStuckLong)
}
