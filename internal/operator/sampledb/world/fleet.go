package world

import (
	"slices"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/pods"
)

// Action is what a decision about restarts asks for.
type Action string

// The actions.
const (
	ActionNone    Action = "none"
	ActionWait    Action = "wait"
	ActionReplace Action = "replace" // delete the Pod; the StatefulSet makes it anew
	ActionRestart Action = "restart" // the server in it
	ActionResize  Action = "resize"  // give the Pod its resources while it runs
)

// Decision says which instance restarts now, and why; or why none does.
type Decision struct {
	Action  Action
	Target  string
	Reason  string
	Message string
}

// Fleet is what a decision about restarts is made of.
type Fleet struct {
	// Observed says that a Pod made now has the wanted template.
	Observed bool
	// Moving says why another instance is about to become primary, "" when none is.
	Moving    string
	Instances []Instance
}

// Instance is one wanted instance in a fleet.
type Instance struct {
	Name string
	// Exists says that its Pod is there and is not ending.
	Exists bool
	// Known says that its agent answered; running, that the kubelet calls its Pod ready.
	Known, Running bool
	// Ready says that it does what its role asks by its agent's own word.
	Ready bool
	// Joining says that its acknowledgement and its vote are known not to count yet: it
	// could not take over.
	Joining bool
	Primary bool
	// Outdated are the facets in which its Pod is not as wanted, pending the
	// parameters that wait for a restart of its server.
	Outdated, Pending []string
	// Resizes says that what is outdated of its Pod can be changed while it runs, resizing what a Pod waits for of
	// which that was asked, "" for nothing.
	Resizes  bool
	Resizing string
	// Asked says that a user wants its server to restart.
	Asked bool
}

// InOrder compares instances by when they restart.
func InOrder(a, b Instance) int {
	primary := ""
	for _, i := range []Instance{a, b} {
		if i.Primary {
			primary = i.Name
		}
	}
	return desired.RestartOrder(a.Name, b.Name, primary)
}

// Fleet is what the scope knows of the wanted instances.
func (s *fleetFacts) Fleet() Fleet {
	f := Fleet{Observed: s.TemplateObserved(), Moving: s.Moving}
	leader, voters := s.Leader(), s.Voters()
	for ordinal := range s.Instances() {
		i := Instance{Name: naming.Instance(s.DB.Name, ordinal)}
		pod := s.Seen.Pods[ordinal]
		answer, known := s.Seen.Answers[i.Name]
		if pod != nil {
			i.Exists = pod.DeletionTimestamp == nil
			i.Running = pods.Ready(pod)
			i.Outdated = desired.Outdated(s.DB, s.OperatorSettings, pod)
			if s.lacksPullSecret(pod) {
				i.Outdated = append(i.Outdated, "imagePullSecrets")
			}
			_, i.Resizes = desired.ResizesInPlace(s.DB, pod, i.Outdated)
			waits, refused := pods.Resizing(pod, s.Now)
			if i.Resizing = waits; refused { // another node may have room
				i.Resizing, i.Resizes, i.Outdated = "", false, []string{desired.FacetResources}
			}
		}
		i.Known = known
		i.Ready = s.InstanceReady(i.Name)
		i.Joining = len(voters) > 0 && !slices.Contains(voters, i.Name)
		i.Primary = i.Name == leader
		if known && answer.ConfigRevision == s.Config.Revision && i.Exists {
			i.Pending = answer.PendingRestart
		}
		i.Asked = known && i.Exists && s.restartDue(i.Name)
		f.Instances = append(f.Instances, i)
	}
	return f
}

// TemplateObserved says that the StatefulSet controller makes Pods of the
// template that the spec asks for.
func (s *fleetFacts) TemplateObserved() bool {
	set := s.Seen.Set
	if set == nil || set.Status.ObservedGeneration != set.Generation {
		return false
	}
	return desired.Made(s.DB, s.OperatorSettings, set.Spec.Template.ObjectMeta)
}
