package agent

import (
	"slices"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// leader is what the leader says of itself, as far as this instance has heard of it.
type leader struct {
	self      string
	hardState func() ha.HardState
	// own is what this instance says of itself, last what another has said last, if it has said anything.
	own  func() protocol.Status
	last func(name string) (protocol.Status, bool)
	// members are those that a leader has, itself among them.
	members func() []protocol.Member
}

// status is the status of the leader of the newest term that is known.
func (l *leader) status() (protocol.Status, bool) {
	ballot := l.hardState().Ballot
	if ballot.Leader == l.self {
		return l.own(), true
	}
	return l.last(ballot.Leader)
}

// hasAll says that the leader leads, and every other member streams from it.
func (l *leader) hasAll() bool {
	ballot := l.hardState().Ballot
	status, heard := l.status()
	if !heard || status.Role != protocol.RolePrimary || status.Term != ballot.Term {
		return false
	}
	for _, m := range l.members() {
		if m.Name != ballot.Leader && !slices.Contains(status.Standbys, m.Name) {
			return false
		}
	}
	return true
}

// archived is up to where the WAL is in the archive, "" if that is not known.
func (l *leader) archived() string {
	status, _ := l.status()
	if status.Archive == nil {
		return ""
	}
	return status.Archive.LSN
}
