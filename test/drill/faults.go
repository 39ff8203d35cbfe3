package main

import (
	"context"
	"time"
)

// fault is one way to break something.
type fault struct {
	name, about string
	// least and most are how many times the primary may change. More are needless.
	least, most int
	// lasts is how long it is held at least before it is healed.
	lasts time.Duration
	// operator says that it takes an operator at work: the one before may have lost its node.
	operator bool
	// prepare does what comes before the moment that counts; may be nil.
	prepare func(context.Context, *scene) error
	// inject breaks it. It calls strike right before.
	inject func(context.Context, *scene) error
}

// slow is how long a fault lasts at least that writes may not notice, while what
// follows from it, as the end of a lease, needs its time.
const slow = 20 * time.Second

// faults is the table.
func faults(o options) []fault {
	all := []fault{
		{name: "postmaster-killed", about: "SIGKILL to the primary's postmaster", most: 1,
			inject: killPostmaster},
		{name: "agent-killed", about: "SIGKILL to the agent of the primary, process 1 of its container", most: 1,
			inject: killAgent},
		{name: "pod-deleted", about: "the primary's Pod is deleted with its grace period", most: 1,
			inject: deletePod(primaryOf, false)},
		{name: "pod-force-deleted", about: "the primary's Pod is deleted with no grace period", most: 1,
			inject: deletePod(primaryOf, true)},
		{name: "server-hung", about: "SIGSTOP to the primary's postmaster and all its children", most: 1,
			inject: freeze("server", process.server)},
		{name: "postmaster-hung", about: "SIGSTOP to the primary's postmaster alone: no new sessions", most: 1, lasts: slow,
			inject: freeze("postmaster", process.postmaster)},
		{name: "pod-frozen", about: "SIGSTOP to every process of the primary's Pod; thawed later", most: 1,
			inject: freeze("process", func(process) bool { return true })},
	}
	all = append(all, networkFaults()...)
	return append(all, otherFaults(o)...)
}

// networkFaults are those of nodes and of what is between them.
func networkFaults() []fault {
	return []fault{
		{name: "node-cut", about: "the primary's node is cut off from everything", most: 1,
			inject: cutPrimary(func(*scene) []string { return nil })},
		{name: "node-cut-from-api", about: "the primary's node is cut off from the API server", most: 1, lasts: slow,
			inject: cutPrimary(func(*scene) []string { return []string{"api"} })},
		{name: "primary-cut-from-standbys", about: "the primary's node is cut off from the other nodes, not from the API server", most: 1, lasts: slow,
			inject: cutPrimary((*scene).otherNodes)},
		{name: "node-killed", about: "the primary's node loses its power", most: 1,
			inject: killNode},
	}
}

// otherFaults are those that come together with something else, and those that
// should not be noticed.
func otherFaults(o options) []fault {
	return []fault{
		{name: "api-away", about: "API server and etcd are stopped, then the primary's postmaster is killed", most: 1, lasts: slow,
			prepare: stopAPI, inject: killPostmaster},
		{name: "operator-away", about: "no operator runs, and the primary's postmaster is killed", most: 1,
			prepare: stopOperator, inject: killPostmaster},
		{name: "standby-pgdata-lost", about: "a standby's data directory is deleted under it, and its postmaster killed",
			inject: losePgdata},
		{name: "disk-full", about: "files fill the primary's volume while it writes; deleted later", most: 1, lasts: slow,
			inject: fillDisk},
		{name: "primary-and-standby-pod", about: "the primary's postmaster is killed and a standby's Pod force-deleted at once", most: 1,
			inject: both(killPostmaster, deletePod(standbyOf, true))},
		{name: "primary-and-standby-node", about: "the primary's postmaster is killed and a standby's node cut off at once", most: 1,
			inject: both(killPostmaster, cutStandby)},
		{name: "switchover", about: "the annotation toban.dev/switchover asks for another primary", least: 1, most: 1, operator: true,
			inject: switchover},
		{name: "standby-pod-deleted", about: "a standby's Pod is deleted with its grace period",
			inject: deletePod(standbyOf, false)},
		{name: "lossy-and-busy", about: "30 % of the packets between nodes are lost, and every processor is busy", lasts: o.lossy,
			inject: loseAndBurn(o.lossy)},
	}
}

// scene is one fault being made: on whom, when, and how to undo it.
type scene struct {
	world
	localkube localkube
	cluster   cluster
	history   *history
	primary   instance
	standbys  []instance
	t0        time.Duration
	undo      []undo
	say       func(string, ...any)
}

type undo struct {
	what string
	do   func(context.Context) error
}

// strike notes the moment of the fault: the first of them, where there are two.
func (s *scene) strike() {
	if s.t0 == 0 {
		s.t0 = s.history.now()
	}
}

// later notes how something is undone, before it is done.
func (s *scene) later(what string, do func(context.Context) error) {
	s.undo = append(s.undo, undo{what, do})
}

// heal undoes all, the last first. What fails stays to be undone.
func (s *scene) heal(ctx context.Context) error {
	for len(s.undo) > 0 {
		last := s.undo[len(s.undo)-1]
		if err := until(ctx, time.Minute, func(context.Context) error { return last.do(ctx) }); err != nil {
			return err
		}
		s.say("healed: %s", last.what)
		s.undo = s.undo[:len(s.undo)-1]
	}
	return nil
}

// otherNodes are those of the standbys.
func (s *scene) otherNodes() []string {
	var names []string
	for _, i := range s.standbys {
		names = append(names, i.node)
	}
	return names
}

func primaryOf(s *scene) instance { return s.primary }
func standbyOf(s *scene) instance { return s.standbys[0] }
