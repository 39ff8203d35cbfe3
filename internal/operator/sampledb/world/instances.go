package world

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/pods"
	"toban.dev/internal/protocol"
)

// Leader is the instance that is primary by its agent's own word, whether it
// takes writes or not; "" where none says so. Of two, that of the later term: the
// other has not heard yet that it is no more. One that has resigned is none.
func (s *Core) Leader() string {
	name, term := "", uint64(0)
	for _, candidate := range slices.Sorted(maps.Keys(s.Seen.Answers)) {
		a := s.Seen.Answers[candidate]
		if a.Role == protocol.RolePrimary && !a.Resigned && (name == "" || a.Term > term) {
			name, term = candidate, a.Term
		}
	}
	return name
}

// Primary is the leader if it takes writes, else "".
func (s *Core) Primary() string {
	name := s.Leader()
	if !s.Seen.Answers[name].Ready {
		return ""
	}
	return name
}

// Published says that the Pod of the primary bears the label by which the Service finds it. Its own agent sets it when
// it lets clients in, and tries again while the API server is away.
func (s *Core) Published(primary string) bool {
	ordinal, _ := naming.Ordinal(primary)
	pod := s.Seen.Pods[ordinal]
	return pod != nil && pod.Labels[naming.LabelRole] == string(protocol.RolePrimary)
}

// Voters are the instances whose acknowledgement and vote count, as the primary
// has recorded them; empty where that is not known.
func (s *Core) Voters() []string { return s.Seen.Answers[s.Primary()].Voters }

// InstanceReady says that an instance does what its role asks by its agent's own
// word. A Pod that merely runs is not ready, nor one that is about to end.
func (s *Core) InstanceReady(name string) bool {
	a, known := s.Seen.Answers[name]
	if !known || !a.Ready {
		return false
	}
	ordinal, _ := naming.Ordinal(name)
	if pod := s.Seen.Pods[ordinal]; pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	return name == s.Leader() || a.Role == protocol.RoleStandby && a.Streaming
}

// Healthy says that every wanted instance is ready, one of them as primary.
func (s *Core) Healthy() bool {
	for i := range s.Instances() {
		if !s.InstanceReady(naming.Instance(s.DB.Name, i)) {
			return false
		}
	}
	return s.Primary() != ""
}

// Present is how many instances there are or should be, by ordinal: those that
// are wanted, and those that are not gone yet.
func (s *fleetFacts) Present() int {
	count := max(s.Instances(), s.Needed())
	for ordinal := range s.Seen.Pods {
		count = max(count, ordinal+1)
	}
	return count
}

// restartDue says that a server is in the run that is on record as the one to end. What is on record is what the API
// server has, and not what this reconcile is about to write.
func (s *fleetFacts) restartDue(name string) bool {
	noted := s.DB.Status.Restart
	if noted == nil || noted.Step != v1.RestartRestarting || noted.Asked != s.Asked(RequestRestart) {
		return false
	}
	return slices.Contains(noted.Left, v1.ServerRun{Instance: name, Run: s.Seen.Answers[name].Started})
}

// Scaling is how many Pods there should be now, and why; or which instance must
// take over before fewer can be.
type Scaling struct {
	Replicas int
	Reason   string
	Message  string
	// Successor is the instance that the primary should hand over to.
	Successor string
}

// Stays says that an instance is among the first want.
func Stays(name string, want int) bool {
	ordinal, known := naming.Ordinal(name)
	return known && ordinal < want
}

// Created is how many instances the StatefulSet has been asked for. Where it is
// gone, its Pods may still be there, and those without a Pod that count are missed.
func (s *fleetFacts) Created() int {
	if s.Seen.Set != nil && s.Seen.Set.Spec.Replicas != nil {
		return int(*s.Seen.Set.Spec.Replicas)
	}
	count := 0
	for ordinal := range s.Seen.Pods {
		count = max(count, ordinal+1)
	}
	for _, i := range s.DB.Status.InstanceStatuses {
		if ordinal, known := naming.Ordinal(i.Name); known && i.Voter {
			count = max(count, ordinal+1)
		}
	}
	return count
}

// Needed is how many instances there are, or have to be: as many start as were stopped. When all have stopped for a
// restore in place or an upgrade, the one with the new data is among those that start again.
func (s *fleetFacts) Needed() int {
	count := s.Created()
	if stop := s.DB.Status.Stop; stop != nil { // they have the votes
		count = max(count, int(stop.Instances))
	}
	for _, name := range []string{s.restoringInstance(), s.UpgradingInstance()} {
		if ordinal, known := naming.Ordinal(name); known {
			count = max(count, ordinal+1)
		}
	}
	return count
}

// ZoneOf is the zone of the node that an instance's Pod is on, or was on last, "" where that is not known. Kubernetes
// 1.35 and later copies the node's label to a Pod when it puts it there (the admission plugin PodTopologyLabels), so no
// right to read nodes is needed.
func (s *fleetFacts) ZoneOf(name string) string {
	ordinal, _ := naming.Ordinal(name)
	pod := s.Seen.Pods[ordinal]
	if pod == nil || pod.Spec.NodeName == "" {
		return s.InstanceBefore(name).Zone // its volume mostly brings it back there
	}
	return pod.Labels[corev1.LabelTopologyZone]
}

// PodTrouble is what keeps a Pod from working, nil where nothing does.
func PodTrouble(pod *corev1.Pod) *Verdict {
	if t := unusable(pod); t != nil {
		return t
	}
	t := pods.TroubleOf(pod)
	if t == nil {
		return nil
	}
	reason := map[pods.Cause]string{
		pods.Unschedulable: v1.ReasonUnschedulable, pods.Image: v1.ReasonImageUnusable,
		pods.Config: v1.ReasonInvalidSpec, pods.Crashing: v1.ReasonCrashing,
	}[t.Cause]
	return &Verdict{"", reason, t.Message}
}

// lacksPullSecret says that the image of a Pod can't be pulled, and that it does not have all Secrets for that which a
// new one would have: those of a Pod that is there can't be changed. It may have more, from its ServiceAccount.
func (s *fleetFacts) lacksPullSecret(pod *corev1.Pod) bool {
	t := pods.TroubleOf(pod)
	if t == nil || t.Cause != pods.Image || s.Seen.Set == nil {
		return false
	}
	wanted := s.Seen.Set.Spec.Template.Spec.ImagePullSecrets
	return slices.ContainsFunc(wanted, func(w corev1.LocalObjectReference) bool {
		return !slices.Contains(pod.Spec.ImagePullSecrets, w)
	})
}

// unusable is what an agent says that finds no PostgreSQL in the image: it ends with ExitImageUnusable and says so in
// its termination message. That is told at once, and not when it has ended again and again.
func unusable(pod *corev1.Pod) *Verdict {
	for _, c := range pod.Status.ContainerStatuses {
		ended := c.State.Terminated
		if ended == nil {
			ended = c.LastTerminationState.Terminated
		}
		running := c.State.Running != nil && c.Started != nil && *c.Started
		if c.Name == naming.ContainerPostgreSQL && ended != nil &&
			ended.ExitCode == naming.ExitImageUnusable && !running {
			return &Verdict{"", v1.ReasonImageUnusable, strings.TrimSpace(ended.Message)}
		}
	}
	return nil
}
