package virtual

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

// cutAPI has the agents of all instances not reach the Kubernetes API for a while, as a FaultDrill does.
func (w *world) cutAPI(lasts time.Duration) {
	w.Helper()
	for _, i := range (&chaos{world: w}).existing() {
		_, err := w.operator.Fault(w.ctx, i.name, protocol.FaultOrder{
			Drill: "d", Fault: protocol.FaultCutAPI, For: lasts,
		})
		w.check.must(err)
	}
}

// published says that the Services lead to an instance as the primary.
func (w *world) published(i *instance) bool { return w.api.role(i.name) == protocol.RolePrimary }

// awaitPublished waits until they do.
func (w *world) awaitPublished(i *instance) {
	w.Helper()
	w.eventually("the Services lead to "+i.name, time.Minute, func() bool { return w.published(i) })
}

// A drill cuts all instances off from the Kubernetes API, and the primary's server ends: another is elected as fast as
// otherwise. The Services learn of it when the API is there again.
func TestAnElectionWithoutTheAPI(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run(t, seed, 3, func(w *world) {
				before := w.formed()
				w.awaitPublished(before.s.instance)
				w.cutAPI(time.Minute)
				before.s.kill()
				w.elects(before, 5*time.Second)
				after := w.leader()
				time.Sleep(20 * time.Second)
				w.expect("it leads on, and the API knows nothing of it",
					w.leader() == after && locked(w, after.open) && !w.published(after.s.instance))
				before.s.instance.start()
				w.awaitPublished(after.s.instance)
				w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
				w.expect("it is still the same", w.leader() == after)
			})
		})
	}
}

// What a former leader has sent to the API comes there when another leads: it takes the label neither from that one,
// nor to its own Pod.
func TestALatePatchTakesNoLabel(t *testing.T) {
	run(t, 2, 3, func(w *world) {
		before := w.formed()
		w.awaitPublished(before.s.instance)
		name := before.s.instance.name
		w.api.beLate(name, 30*time.Second)
		w.api.takeRole(name)
		time.Sleep(70 * time.Second) // a leader looks each minute at least, and has tried to write by then
		w.api.takeRole(name)
		before.s.kill()
		w.elects(before, 5*time.Second)
		after := w.leader()
		w.awaitPublished(after.s.instance)
		for range 400 {
			time.Sleep(100 * time.Millisecond)
			if w.published(before.s.instance) || !w.published(after.s.instance) {
				w.Fatalf("a late patch has reached it: %q of the former leader, %q of the present one",
					w.api.role(name), w.api.role(after.s.instance.name))
			}
		}
	})
}

// Of two instances whose agents live, each has the other's vote, so that the witness is not needed.
func TestTwoElectWithoutTheAPIWhileBothLive(t *testing.T) {
	run(t, 4, 2, func(w *world) {
		before := w.formed()
		w.cutAPI(time.Minute)
		before.finish(errors.New("PANIC: the model has ended it"))
		w.elects(before, 15*time.Second)
	})
}

// Of two instances, none goes on alone as long as a drill cuts them off from the API, which has the witness.
func TestNoneOfTwoIsElectedWithoutTheAPI(t *testing.T) {
	run(t, 3, 2, func(w *world) {
		before := w.formed()
		w.cutAPI(30 * time.Second)
		before.s.kill()
		time.Sleep(25 * time.Second)
		w.expect("nobody leads", w.leader() == nil)
		w.elects(before, 20*time.Second)
		before.s.instance.start()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}
