package v1

// The types of a SampleDB's conditions about the machines of its instances. Nothing waits for them.
const (
	// ConditionOnTime is true when nothing comes late on the machines of the instances. Where processors are scarce, or
	// a CPU limit is reached, things come late, and a failover takes longer (docs/busy.md, "A machine that is busy").
	// So it does where all that could lead have much WAL to replay. It is there once every agent has said how late
	// things come, and stays false for five minutes at least.
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

	// ReasonReplayBehind: the instances that the message names have received much WAL that they have not replayed. They
	// vote, but lead only after that (docs/ha.md, "Decisions"): if no other can, a failover waits for them. Commits
	// wait after a failover where no other standby acknowledges them.
	// To do: look for what holds replay up there: a slow disk, long queries (`max_standby_streaming_delay`), or a pause
	// (`select pg_wal_replay_resume()`). `toban_instance_unreplayed_bytes` says how it goes on.
	ReasonReplayBehind = "ReplayBehind"
)
