package v1

// ConditionPoolerReady is true when as many Pods of `spec.pooler` as are wanted take clients. It is there with
// `spec.pooler`. Neither Ready nor anything else waits for it.
const ConditionPoolerReady = "PoolerReady"

// Reasons of PoolerReady. The other ones of it are NameTaken, Stopped, and what keeps a Pod from running:
// ImageUnusable, Unschedulable, PodRefused, InvalidSpec and Crashing.
const (
	// ReasonPoolerServes: all Pods take clients.
	// To do: nothing.
	ReasonPoolerServes = "PoolerServes"

	// ReasonPoolerComing: Pods are being made or replaced, or don't take clients, and nothing is known to keep them
	// from running. The message says how many do.
	// To do: wait. If it stays, see why: `kubectl get pods -l 'toban.dev/sampledb=NAME,toban.dev/component in
	// (pooler,pooler-ro)'`, and the logs of those that are not ready. A Pod is ready once an instance has said that it
	// leads.
	ReasonPoolerComing = "PoolerComing"
)
