package main

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// shape is what the SampleDB is like that is broken.
type shape struct {
	name, about string
	instances   int32
	durability  v1.Durability
	// mayLose says that a failover may lose acknowledged writes, and that two primaries
	// may acknowledge for a moment: that is counted then, and fails nothing.
	mayLose bool
	// third is one more way for clients to write, "" for none: the pooler that it has, or PathLabel, where its Service
	// leads to all instances and these pass clients on.
	third Path
	// busy says that an endless loop runs for each processor in every round, from before its fault until all is whole.
	busy bool
	// faults are those that are made where -only names none; all if it is empty.
	faults string
}

// members are the names of the instances.
func (s shape) members() []string {
	var names []string
	for i := range int(s.instances) {
		names = append(names, naming.Instance(name, i))
	}
	return names
}

// usual is the name of the shape that has every fault. Runs that name none are of it.
const usual = "three"

// shapes are all that there are.
var shapes = []shape{
	{
		name: usual, about: "three instances, durability quorum: every fault", instances: 3,
		durability: v1.DurabilityQuorum,
	},
	{name: "five", about: "five instances, durability quorum", instances: 5, durability: v1.DurabilityQuorum,
		faults: "postmaster-killed,pod-deleted,server-hung,node-cut,primary-and-standby-node,servers-killed," +
			"two-pods-deleted,standby-volume-lost,leader-killed-thrice,switchover"},
	{name: "two", about: "two instances, durability quorum: the Lease is the witness",
		instances: 2, durability: v1.DurabilityQuorum,
		faults: "postmaster-killed,pod-deleted,server-hung,node-cut,servers-killed,lease-deleted," +
			"standby-disk-stalls,switchover,standby-pod-deleted"},
	{name: "pooled", about: "three instances, durability quorum, and a pooler through which clients write as well",
		instances: 3, durability: v1.DurabilityQuorum, third: PathPooler,
		faults: "postmaster-killed,agent-killed,pod-deleted,pod-force-deleted,server-hung,pod-frozen,node-cut," +
			"switchover,api-away"},
	{name: "relayed", about: "three instances, durability quorum, whose Service leads to all of them; beside it one " +
		"that leads to the primary",
		instances: 3, durability: v1.DurabilityQuorum, third: PathLabel,
		faults: "postmaster-killed,agent-killed,pod-deleted,pod-force-deleted,server-hung,pod-frozen,node-cut," +
			"node-killed,switchover,api-away"},
	{name: "busy", about: "three instances, durability quorum, while an endless loop runs for each processor",
		instances: 3, durability: v1.DurabilityQuorum, busy: true,
		faults: "postmaster-killed,agent-killed,pod-deleted,pod-force-deleted,server-hung,node-cut,node-killed," +
			"primary-disk-stalls,switchover"},
	{name: "async", about: "three instances, durability async: what is lost is counted",
		instances: 3, durability: v1.DurabilityAsync, mayLose: true,
		faults: "postmaster-killed,pod-deleted,pod-force-deleted,server-hung,node-cut,node-killed," +
			"primary-disk-stalls,switchover"},
}

// burden keeps the machine busy for a round, if that is asked for: until relieve, and no longer than most.
func (s shape) burden(most time.Duration) (relieve func(), err error) {
	if !s.busy {
		return func() {}, nil
	}
	return burn(runtime.NumCPU(), most)
}

// shapeNamed finds a shape; the usual one has no name in old runs.
func shapeNamed(name string) (shape, error) {
	name = cmp.Or(name, usual)
	var known []string
	for _, s := range shapes {
		if s.name == name {
			return s, nil
		}
		known = append(known, s.name)
	}
	return shape{}, fmt.Errorf("no shape is called %q: there are %s", name, strings.Join(known, ", "))
}

// entry is a row of the tables: a fault that a database of that shape had.
type entry struct{ shape, fault string }

func (e entry) label() string {
	if e.shape == usual {
		return e.fault
	}
	return e.fault + " (" + e.shape + ")"
}

// has says whether a run is of this row.
func (e entry) has(r Run) bool { return r.Fault == e.fault && cmp.Or(r.Shape, usual) == e.shape }

// entries are the rows of a page: each fault of each shape, and what else was made.
func entries(all []fault, runs []Run) ([]entry, error) {
	var rows []entry
	known := map[entry]bool{}
	add := func(e entry) {
		if !known[e] {
			known[e] = true
			rows = append(rows, e)
		}
	}
	for _, s := range shapes {
		chosen, err := choose(all, s.faults, "")
		if err != nil {
			return nil, fmt.Errorf("the faults of %s: %w", s.name, err)
		}
		for _, f := range chosen {
			add(entry{s.name, f.name})
		}
	}
	for _, r := range runs {
		add(entry{cmp.Or(r.Shape, usual), r.Fault})
	}
	return rows, nil
}

// made are the rows of what was made, in the order of its first run.
func made(runs []Run) []entry {
	var rows []entry
	known := map[entry]bool{}
	for _, r := range runs {
		if e := (entry{cmp.Or(r.Shape, usual), r.Fault}); !known[e] {
			known[e] = true
			rows = append(rows, e)
		}
	}
	return rows
}
