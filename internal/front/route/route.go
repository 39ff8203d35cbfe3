// Package route decides to which instance clients go that come through a pooler or a relay (docs/connections.md).
package route

import "toban.dev/internal/protocol"

// Route is the instance to which clients go, in the term in which it leads. The zero value is none.
type Route struct {
	Instance, Address string
	Term              uint64
}

// Reason says why clients go on, or wait.
type Reason string

// The reasons.
const (
	LeaderKnown Reason = "LeaderKnown" // open: an instance leads
	HandOver    Reason = "HandOver"    // waiting: the leader is about to stop
	NoLeader    Reason = "NoLeader"    // waiting: no instance leads
)

// Decision is whether clients go on, and where.
type Decision struct {
	Reason Reason
	// Route is where they go: what it was before where no instance leads.
	Route Route
	// HandOver is the hand-over that the leader has announced, "" for none.
	HandOver string
}

// Open says that transactions may begin.
func (d Decision) Open() bool { return d.Reason == LeaderKnown || d.Reason == StandbysServe }

// Decide says where clients go, by the present route and what the instances have told last: what one has told counts
// until it tells something else. See docs/connections.md, invariants 1, 4 and 8.
func Decide(now Route, told []protocol.InstanceTells) Decision {
	leader := newest(told)
	switch {
	case leader == nil || leader.Term < now.Term:
		return Decision{Reason: NoLeader, Route: now}
	case leader.HandOver != "":
		return Decision{Reason: HandOver, Route: routeTo(leader), HandOver: leader.HandOver}
	}
	return Decision{Reason: LeaderKnown, Route: routeTo(leader)}
}

// newest is the one that leads in the highest term, nil where none does.
func newest(told []protocol.InstanceTells) *protocol.InstanceTells {
	var leader *protocol.InstanceTells
	for i, t := range told {
		if t.Leads && t.Address != "" && (leader == nil || t.Term > leader.Term) {
			leader = &told[i]
		}
	}
	return leader
}

func routeTo(t *protocol.InstanceTells) Route {
	return Route{Instance: t.Name, Address: t.Address, Term: t.Term}
}
