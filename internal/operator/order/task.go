package order

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/freshness"
	"toban.dev/internal/operator/jobs"
)

// Task is one look at one object. The work of a kind embeds it.
type Task[O client.Object] struct {
	// Object is as it was read or written last. Nobody changes it.
	Object O
	// At is when it is looked at.
	At time.Time
	// Jobs runs Jobs.
	Jobs jobs.Runner
	// Run is its own Job with its Pods; Foreign says that it is one of the name that is somebody else's. Observe sets
	// them.
	Run     jobs.Run
	Foreign bool

	fields Fields
	kind   *Kind[O]
	events events.EventRecorder
}

func (r reconciler[O]) task(object O) *Task[O] {
	t := TaskOf(&r.kind, r.Base, object)
	t.At = r.Now()
	return t
}

// TaskOf is a Task for an object.
func TaskOf[O client.Object](kind *Kind[O], base Base, object O) *Task[O] {
	return &Task[O]{Object: object, Jobs: base.Jobs(), fields: kind.Fields(object), kind: kind, events: base.Events}
}

// Deadline is when the object must be complete.
func (t *Task[O]) Deadline() time.Time {
	return t.Object.GetCreationTimestamp().Add(t.fields.Deadline)
}

// Left is how long that is from now.
func (t *Task[O]) Left() time.Duration { return t.Deadline().Sub(t.At) }

// View is what the decisions about all kinds depend on, with a message about the Job.
func (t *Task[O]) View(message string) View {
	return View{
		Now: t.At, Deadline: t.Deadline(), Cancel: t.fields.Cancel,
		Job: Job{State: t.Run.State(), Foreign: t.Foreign, Message: message},
	}
}

// Find reads an object of the namespace from the cache, and says whether it is there.
func (t *Task[O]) Find(ctx context.Context, name string, into client.Object) (bool, error) {
	err := t.Jobs.Client.Get(ctx, types.NamespacedName{Namespace: t.Object.GetNamespace(), Name: name}, into)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return err == nil, nil
}

// SampleDB reads the one that the order is about, nil where there is none.
func (t *Task[O]) SampleDB(ctx context.Context) (*v1.SampleDB, error) {
	db := &v1.SampleDB{}
	if there, err := t.Find(ctx, t.fields.SampleDB, db); err != nil || !there {
		return nil, err
	}
	return db, nil
}

// pauseWaiting is how long until an object is looked at again that waits: for what is mostly not watched.
const pauseWaiting = 10 * time.Second

// Pause is how long until the object is looked at again when nothing happens before.
func (t *Task[O]) Pause(d Decision) time.Duration {
	pause := pauseWaiting
	switch {
	case d.Over && t.kind.Tidied == nil:
		return 0
	case d.Over:
		return jobs.Kept
	case d.Reason == v1.ReasonRunning:
		pause = t.kind.Running
	}
	return t.Within(pause)
}

// Within is a pause that ends with the deadline.
func (t *Task[O]) Within(pause time.Duration) time.Duration {
	return max(min(pause, t.Left()), time.Second)
}

// Begins says that its own Job is there, or is made by a decision.
func (t *Task[O]) Begins(d Decision) bool {
	return d.Action == ActionCreate || t.Run.Job != nil && !t.Foreign
}

// Report writes the status where it has changed, and then tells the events. It is false where the object is gone.
func (t *Task[O]) Report(ctx context.Context, work Work[O], d Decision) (there bool, err error) {
	changed := t.Object.DeepCopyObject().(O) //nolint:errcheck,forcetypeassert // a copy has the type
	fields := t.kind.Fields(changed)
	t.set(fields, d)
	work.Fill(changed, d)
	if equality.Semantic.DeepEqual(t.Object, changed) {
		return true, nil
	}
	write := freshness.Alone
	if work.Shared() {
		write = freshness.Shared
	}
	if there, err := write(ctx, t.Jobs.Client, t.Object, changed); err != nil || !there {
		return false, err
	}
	was := t.fields.state()
	t.Object, t.fields = changed, fields
	for _, e := range Changes(was, fields.state()) {
		log.FromContext(ctx).Info("the state changed", "reason", e.Reason, "message", e.Message)
		t.events.Eventf(changed, nil, e.Kind, e.Reason, ActionReported, "%s", e.Message)
	}
	return true, nil
}

// set puts into a status what the statuses of all kinds have.
func (t *Task[O]) set(f Fields, d Decision) {
	now := metav1.NewTime(t.At).Rfc3339Copy()
	*f.ObservedGeneration, *f.Phase = t.Object.GetGeneration(), Phase(d.Reason, d.Over)
	if *f.StartedAt == nil && t.Begins(d) {
		*f.StartedAt = &now
	}
	complete := metav1.ConditionFalse
	if d.Over {
		*f.CompletedAt = &now
		if d.Reason == v1.ReasonCompleted {
			complete = metav1.ConditionTrue
		}
	}
	t.SetCondition(f.Conditions, v1.ConditionComplete, complete, d.Reason, d.Message)
}

// SetCondition sets a condition of the object as of now.
func (t *Task[O]) SetCondition(
	all *[]metav1.Condition, kind string, status metav1.ConditionStatus, reason, message string,
) {
	meta.SetStatusCondition(all, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: freshness.Message(message),
		ObservedGeneration: t.Object.GetGeneration(), LastTransitionTime: metav1.NewTime(t.At).Rfc3339Copy(),
	})
}

// state is what events are told of.
func (f Fields) state() State {
	s := State{StartedAt: *f.StartedAt, CompletedAt: *f.CompletedAt, Conditions: *f.Conditions}
	if f.Attempts != nil {
		s.Attempts = *f.Attempts
	}
	return s
}
