package main

import (
	"context"
	"slices"
	"time"

	"toban.dev/test/outside"
)

// injection breaks something. It calls strike right before.
type injection = func(ctx context.Context, s *scene) error

// fault is one way to break something.
type fault struct {
	name, about string
	// least and most are how many times the primary may change. More are needless.
	least, most int
	// lasts is how long it is held at least before it is healed.
	lasts time.Duration
	// pause is what lies between its two strikes in a soak.
	pause time.Duration
	// bound is for how long it may keep clients from writing (bounds.go); the zero value is for ever.
	bound outside.Bound
	// operator says that it takes an operator at work: the one before may have lost its node.
	operator bool
	// api says that it is made by the Kubernetes API, or takes that away.
	api apiUse
	// prepare does what comes before the moment that counts; may be nil.
	prepare injection
	inject  injection
}

// apiUse is what a fault has to do with the Kubernetes API.
type apiUse int

// A fault may have nothing to do with it, need it, or take it away.
const (
	withoutAPI apiUse = iota
	needsAPI
	takesAPI
)

// slow is how long a fault lasts at least that writes may not notice, while what
// follows from it, as the end of a lease, needs its time.
const slow = 20 * time.Second

// faults is the table.
func faults(o options) []fault {
	all := slices.Concat(serverFaults(), networkFaults(), diskFaults(o), severalFaults(), lossFaults(),
		exhaustionFaults(), platformFaults(), otherFaults(o))
	most := bounds(o)
	for i := range all {
		all[i].bound = most[all[i].name]
	}
	return all
}

// serverFaults are those of the primary's processes and of its Pod.
func serverFaults() []fault {
	return []fault{
		{name: "postmaster-killed", about: "SIGKILL to the primary's postmaster", most: 1,
			inject: killPostmaster},
		{name: "agent-killed", about: "SIGKILL to the agent of the primary, process 1 of its container", most: 1,
			inject: killAgent},
		{name: "pod-deleted", about: "the primary's Pod is deleted with its grace period", most: 1, api: needsAPI,
			inject: deletePod(primaryOf, false)},
		{name: "pod-force-deleted", most: 1, api: needsAPI,
			about:  "the primary's Pod is deleted with no grace period",
			inject: deletePod(primaryOf, true)},
		{name: "server-hung", about: "SIGSTOP to the primary's postmaster and all its children", most: 1,
			inject: freeze("server", process.server)},
		{name: "postmaster-hung", most: 1, lasts: slow,
			about:  "SIGSTOP to the primary's postmaster alone: no new sessions",
			inject: freeze("postmaster", process.postmaster)},
		{name: "pod-frozen", about: "SIGSTOP to every process of the primary's Pod; thawed later", most: 1,
			inject: freeze("process", func(process) bool { return true })},
		{name: "leader-killed-thrice", most: 3,
			about:  "SIGKILL to the postmaster of who leads, three times, 2 s apart",
			inject: repeat(3, 2*time.Second, killPostmaster)},
	}
}

// networkFaults are those of nodes and of what is between them.
func networkFaults() []fault {
	return []fault{
		{name: "node-cut", about: "the primary's node is cut off from everything", most: 1,
			inject: cutPrimary(func(*scene) []string { return nil })},
		{name: "node-cut-from-api", about: "the primary's node is cut off from the API server", most: 1, lasts: slow,
			inject: cutPrimary(func(*scene) []string { return []string{"api"} })},
		{name: "primary-cut-from-standbys",
			about: "the primary's node is cut off from the other nodes, not from the API server",
			most:  1, lasts: slow, inject: cutPrimary((*scene).otherNodes)},
		{name: "primary-deaf", most: 1, lasts: slow,
			about:  "what the other nodes send to the primary's is lost, and what it sends arrives",
			inject: loseBetween(allPackets, toPrimary)},
		{name: "primary-mute", most: 1, lasts: slow,
			about:  "what the primary's node sends to the others is lost, and what they send arrives",
			inject: loseBetween(allPackets, fromPrimary)},
		{name: "primary-link-lossy", most: 1, lasts: slow,
			about: "every other packet between the primary's node and the others is lost",
			inject: loseBetween(halfThePackets, func(s *scene, sender, receiver string) bool {
				return toPrimary(s, sender, receiver) || fromPrimary(s, sender, receiver)
			})},
		{name: "node-killed", about: "the primary's node loses its power", most: 1,
			inject: killNode},
	}
}

// diskFaults are those of volumes.
func diskFaults(o options) []fault {
	return []fault{
		{name: "disk-full", most: 1, lasts: slow, api: needsAPI,
			about:  "files fill the primary's volume while it writes; deleted later",
			inject: fillDisk},
		{name: "primary-disk-stalls",
			about: "the file system of the primary's volume is frozen, and thaws by itself after -stall",
			most:  1, lasts: o.stall, api: needsAPI, inject: stallDisk(primaryOf, o.stall)},
		{name: "primary-disk-hangs", most: 1, api: needsAPI,
			about:  "the file system of the primary's volume is frozen until writes have come again",
			inject: stallDisk(primaryOf, o.hold+longestHang)},
		{name: "standby-disk-stalls",
			about: "the file system of a standby's volume is frozen, and thaws by itself after -stall",
			lasts: o.stall, api: needsAPI, inject: stallDisk(standbyOf, o.stall)},
		{name: "standby-pgdata-lost",
			about:  "a standby's data directory is deleted under it, and its postmaster killed",
			inject: losePgdata},
		{name: "standby-volume-lost", about: "a standby's volume is deleted with its Pod", api: needsAPI,
			inject: loseVolume},
	}
}

// severalFaults hit more than one instance.
func severalFaults() []fault {
	return []fault{
		{name: "primary-and-standby-pod", most: 1,
			about: "the primary's postmaster is killed and a standby's Pod force-deleted at once",
			api:   needsAPI, inject: together(killPostmaster, deletePod(standbyOf, true))},
		// The standby may be elected in the moment before its node is cut off.
		{name: "primary-and-standby-node", most: 2,
			about:  "the primary's postmaster is killed and a standby's node cut off at once",
			inject: together(killPostmaster, cutStandby)},
		{name: "servers-killed", about: "SIGKILL to the postmasters of all instances", most: 1,
			inject: killAll("postmaster", process.postmaster)},
		{name: "agents-killed", about: "SIGKILL to the agents of all instances", most: 1,
			inject: killAll("agent", func(p process) bool { return p.agent })},
		{name: "two-pods-deleted", most: 1, api: needsAPI,
			about:  "the Pods of the primary and of a standby are deleted at once",
			inject: together(deletePod(primaryOf, false), deletePod(standbyOf, false))},
		{name: "all-pods-deleted", about: "all Pods are deleted at once", most: 1, api: needsAPI,
			inject: deleteAllPods},
		{name: "standby-pod-deleted", about: "a standby's Pod is deleted with its grace period", api: needsAPI,
			inject: deletePod(standbyOf, false)},
	}
}

// lossFaults delete what the operator has made for the SampleDB.
func lossFaults() []fault {
	return []fault{
		{name: "lease-deleted", api: needsAPI,
			about:  "the Lease NAME is deleted: the witness, and what shows who leads",
			inject: deleteObject(theLease)},
		{name: "config-deleted", about: "the ConfigMap NAME-config is deleted", api: needsAPI, operator: true,
			inject: deleteObject(theConfig)},
		{name: "service-deleted", api: needsAPI, operator: true,
			about:  "the Service NAME for reading and writing is deleted",
			inject: deleteObject(theService)},
		{name: "statefulset-deleted", api: needsAPI, operator: true,
			about:  "the StatefulSet is deleted, and its Pods are left",
			inject: deleteObject(theStatefulSet)},
		{name: "ca-deleted", about: "the Secret NAME-ca is deleted", api: needsAPI, lasts: slow,
			inject: deleteAuthority},
	}
}

// exhaustionFaults take away what a server needs to go on.
func exhaustionFaults() []fault {
	return []fault{
		{name: "connections-used", most: 1, lasts: slow,
			about:  "sessions are opened until the primary lets in no more, and kept",
			inject: useConnections},
		{name: "out-of-memory",
			about: "a backend of the primary asks for more memory than its container may have, until the kernel " +
				"kills it", most: 1, api: needsAPI, inject: starve},
		{name: "processes-used", most: 1, lasts: slow,
			about:  "the primary's container may have no more processes and threads than it has",
			inject: useProcesses},
	}
}

// platformFaults are those of what runs the Pods.
func platformFaults() []fault {
	return []fault{
		{name: "kubelet-stopped", about: "the kubelet of the primary's node is stopped", lasts: slow,
			inject: loseKubelet},
		{name: "kubelet-away", most: 1, lasts: slow,
			about:   "the kubelet of the primary's node is stopped, then the primary's agent is killed",
			prepare: stopKubelet, inject: killAgent},
		{name: "runtime-restarted", lasts: slow,
			about:  "containerd on the primary's node is killed and started again",
			inject: restartRuntime},
	}
}

// otherFaults are those that come together with something else, and those that
// should not be noticed.
func otherFaults(o options) []fault {
	return []fault{
		{name: "api-away", most: 1, lasts: slow,
			about: "API server and etcd are stopped, then the primary's postmaster is killed",
			api:   takesAPI, prepare: stopAPI, inject: killPostmaster},
		{name: "operator-away", most: 1, api: needsAPI,
			about:   "no operator runs, and the primary's postmaster is killed",
			prepare: stopOperator, inject: killPostmaster},
		{name: "switchover", least: 1, most: 1, operator: true,
			about: "the annotation toban.dev/switchover asks for another primary",
			api:   needsAPI, inject: switchover},
		{name: "lossy-and-busy", lasts: o.lossy,
			about:  "30 % of the packets between nodes are lost, and every processor is busy",
			inject: loseAndBurn(o.lossy)},
	}
}
