package v1

// The types of a SampleDB's conditions about the machines of its instances. Nothing waits for them.
const (
	// ConditionOnTime is true when nothing comes late on the machines of the instances. Where processors are scarce, or
	// a CPU limit is reached, things come late, and a failover takes longer (docs/busy.md, "A machine that is busy").
	// It is there once every agent has said how late things come, and stays false for five minutes at least.
	ConditionOnTime = "OnTime"
)

// Reasons of OnTime. None of them keeps Ready from being true.
const (
	// ReasonOnTime: nothing comes late.
	// To do: nothing.
	ReasonOnTime = "OnTime"

	// ReasonMachineBusy: on the machines of the instances that the message names things come late. Elections take that
	// into account, so a failover takes longer, by as much as the message says; nothing is lost.
	// To do: if it stays or comes again and again, give the Pods more CPU by `spec.resources` (a CPU limit that is
	// reached makes things late on an idle node too), or take other work off the nodes that `kubectl get pods -o wide`
	// names; `kubectl top nodes` says how busy they are.
	ReasonMachineBusy = "MachineBusy"
)
