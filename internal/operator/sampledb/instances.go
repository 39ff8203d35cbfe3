package sampledb

import (
	"maps"
	"slices"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// leader is the instance that is primary by its agent's own word, whether it
// takes writes or not; "" where none says so. Of two, that of the later term: the
// other has not heard yet that it is no more. One that has resigned is none.
func (s *core) leader() string {
	name, term := "", uint64(0)
	for _, candidate := range slices.Sorted(maps.Keys(s.seen.answers)) {
		a := s.seen.answers[candidate]
		if a.Role == protocol.RolePrimary && !a.Resigned && (name == "" || a.Term > term) {
			name, term = candidate, a.Term
		}
	}
	return name
}

// primary is the leader if it takes writes, else "".
func (s *core) primary() string {
	name := s.leader()
	if !s.seen.answers[name].Ready {
		return ""
	}
	return name
}

// published says that the Pod of the primary bears the label by which the Service finds it. Its own agent sets it when
// it lets clients in, and tries again while the API server is away.
func (s *core) published(primary string) bool {
	ordinal, _ := naming.Ordinal(primary)
	pod := s.seen.pods[ordinal]
	return pod != nil && pod.Labels[naming.LabelRole] == string(protocol.RolePrimary)
}

// voters are the instances whose acknowledgement and vote count, as the primary
// has recorded them; empty where that is not known.
func (s *core) voters() []string { return s.seen.answers[s.primary()].Voters }

// instanceReady says that an instance does what its role asks by its agent's own
// word. A Pod that merely runs is not ready, nor one that is about to end.
func (s *core) instanceReady(name string) bool {
	a, known := s.seen.answers[name]
	if !known || !a.Ready {
		return false
	}
	ordinal, _ := naming.Ordinal(name)
	if pod := s.seen.pods[ordinal]; pod == nil || pod.DeletionTimestamp != nil {
		return false
	}
	return name == s.leader() || a.Role == protocol.RoleStandby && a.Streaming
}

// healthy says that every wanted instance is ready, one of them as primary.
func (s *core) healthy() bool {
	for i := range s.instances() {
		if !s.instanceReady(naming.Instance(s.db.Name, i)) {
			return false
		}
	}
	return s.primary() != ""
}
