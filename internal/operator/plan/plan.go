// Package plan says what a change of a SampleDB does before it is made: which steps follow, on which instances, in
// which order, and whether writes go on meanwhile (docs/plan.md). It decides nothing of its own: it asks the functions
// by which the operator decides, with the SampleDB as it is and as it would be. It knows no client and no clock.
package plan

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/steps"
)

// Effect is what a step does.
type Effect string

// The effects, in the order of steps.
const (
	Create          Effect = "Create"
	Start           Effect = "Start"
	AtOnce          Effect = "AtOnce"
	WhenStarted     Effect = "WhenStarted"
	Reload          Effect = "Reload"
	GrowVolumes     Effect = "GrowVolumes"
	ReplaceVolumes  Effect = "ReplaceVolumes"
	Restore         Effect = "Restore"
	Upgrade         Effect = "Upgrade"
	AddReaders      Effect = "AddReaders"
	RemoveReaders   Effect = "RemoveReaders"
	AddInstances    Effect = "AddInstances"
	RemoveInstances Effect = "RemoveInstances"
	AddPooler       Effect = "AddPooler"
	RemovePooler    Effect = "RemovePooler"
	ReplacePooler   Effect = "ReplacePooler"
	ResizePods      Effect = "ResizePods"
	ReplacePods     Effect = "ReplacePods"
	RestartServers  Effect = "RestartServers"
	HandOver        Effect = "HandOver"
	Stop            Effect = "Stop"
)

// Writes is what becomes of writes during a step.
type Writes = steps.Writes

// The values of Writes.
const (
	WritesGoOn     = steps.WritesGoOn
	WritesHandOver = steps.WritesHandOver
	WritesPause    = steps.WritesPause
	WritesDown     = steps.WritesDown
)

// Plan is what a change of a SampleDB does.
type Plan struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Fields are those of the spec that change, Steps what follows. Both are empty where nothing changes.
	Fields []Field `json:"fields"`
	Steps  []Step  `json:"steps"`
	// Warnings are what the change gives up, a sentence each.
	Warnings []string `json:"warnings,omitempty"`
	// Minors says when newer minor versions are taken over by themselves, "" where the change has no part in that and
	// none is announced.
	Minors string `json:"minors,omitempty"`
	// HandOver is how long such a one was without writes, nil where that was not measured.
	HandOver *Measured `json:"handOver,omitempty"`
}

// Field is a field of the spec that changes. Before and After are its values, a text as it is and all else as
// JSON; "" where it is not given.
type Field struct {
	Path   string `json:"path"`
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Step is one thing that follows from the change.
type Step struct {
	Effect Effect `json:"effect"`
	// Instances are those that it touches, in this order.
	Instances []string `json:"instances,omitempty"`
	Writes    Writes   `json:"writes"`
	// Fields are the paths of the fields that cause it.
	Fields []string `json:"fields"`
	// Message says more about it.
	Message string `json:"message,omitempty"`
}

// Measured is how long clients of this database were without an acknowledged write.
type Measured struct {
	Seconds float64 `json:"seconds"`
	// By is the FaultDrill that has measured it, and At when that was.
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// Seen is what is known of the database as it runs.
type Seen struct {
	// Now is when it was seen.
	Now time.Time
	// Pods are those of the instances and of the readers.
	Pods []corev1.Pod
	// Claims are those of the instances, as far as they may be read.
	Claims []corev1.PersistentVolumeClaim
	// Contexts say when PostgreSQL takes a new value of a parameter (pg_settings.context), by name. They are nil where
	// the server could not be asked.
	Contexts map[string]string
	// Drills are those of the namespace.
	Drills []v1.FaultDrill
}

// Of says what follows if a SampleDB that is before (nil for none) becomes after.
func Of(before, after *v1.SampleDB, seen Seen) (Plan, error) {
	out := Plan{Namespace: after.Namespace, Name: after.Name, Fields: []Field{}, Steps: []Step{},
		Minors: minors(before, after, seen.Now)}
	if before == nil {
		out.Steps, out.Warnings = creation(after), warnings(nil, after)
		return out, nil
	}
	fields, err := changed(before.Spec, after.Spec)
	if err != nil || len(fields) == 0 {
		return out, err
	}
	whole := change{before, after, seen}
	steps := whole.steps()
	for _, field := range fields {
		out.Fields = append(out.Fields, field.Field)
		alone := after.DeepCopy()
		if alone.Spec, err = field.alone(before.Spec); err != nil {
			return out, err
		}
		steps = attribute(steps, change{before, alone, seen}.steps(), field.Path, whole.down())
	}
	slices.SortStableFunc(steps, inOrder)
	out.Steps, out.Warnings = steps, warnings(before, after)
	if slices.ContainsFunc(steps, func(s Step) bool { return s.Writes == WritesHandOver }) {
		out.HandOver = measured(after.Name, seen.Drills)
	}
	return out, nil
}

// order has the effects in the order of their steps.
var order = []Effect{
	Create, Start, AtOnce, WhenStarted, Reload, GrowVolumes, Restore, Upgrade, AddReaders, RemoveReaders, AddInstances,
	RemoveInstances, ResizePods, ReplacePods, RestartServers, ReplaceVolumes, HandOver, Stop,
}

func inOrder(a, b Step) int { return slices.Index(order, a.Effect) - slices.Index(order, b.Effect) }

// attribute notes a field at the steps that it causes by itself. Pods that are replaced have servers that are started
// anew. A field that causes none counts at once, or where the database is down, when that is started.
func attribute(steps, alone []Step, path string, down bool) []Step {
	found := false
	for _, one := range alone {
		i := indexOf(steps, one.Effect)
		if i < 0 && (one.Effect == RestartServers || one.Effect == ResizePods) {
			i = indexOf(steps, ReplacePods)
		}
		if i >= 0 {
			steps[i].Fields = append(steps[i].Fields, path)
			found = true
		}
	}
	if found {
		return steps
	}
	rest := Step{Effect: AtOnce, Writes: WritesGoOn, Message: "it counts from now on, and nothing is restarted"}
	if down {
		rest = Step{Effect: WhenStarted, Writes: WritesDown, Message: "it counts when the database is started"}
	}
	i := indexOf(steps, rest.Effect)
	if i < 0 {
		steps, i = append(steps, rest), len(steps)
	}
	steps[i].Fields = append(steps[i].Fields, path)
	return steps
}

func indexOf(steps []Step, effect Effect) int {
	return slices.IndexFunc(steps, func(s Step) bool { return s.Effect == effect })
}

// measured is the newest complete drill in which the primary's Pod was deleted, which is a hand-over in order; nil for
// none.
func measured(name string, drills []v1.FaultDrill) *Measured {
	var newest *Measured
	for _, d := range drills {
		outage, err := time.ParseDuration(d.Status.Outage)
		if d.Spec.SampleDB != name || d.Spec.Fault != v1.FaultPodDeleted || d.Spec.Instance != v1.DrillPrimary ||
			len(d.Spec.Meanwhile) > 0 || d.Status.CompletedAt == nil || err != nil {
			continue
		}
		if newest == nil || newest.At.Before(d.Status.CompletedAt.Time) {
			seconds := float64(outage.Milliseconds()) / 1000
			newest = &Measured{Seconds: seconds, By: d.Name, At: d.Status.CompletedAt.UTC()}
		}
	}
	return newest
}

// creation is the step by which a SampleDB comes to be.
func creation(db *v1.SampleDB) []Step {
	message := fmt.Sprintf("each instance has a volume of %s", db.Spec.Storage.Size)
	if wal := db.Spec.Storage.WAL; wal != nil {
		message += fmt.Sprintf(", and one of %s for its WAL", wal.Size)
	}
	return []Step{{
		Effect: Create, Writes: WritesDown, Fields: []string{}, Instances: instances(db), Message: message,
	}}
}
