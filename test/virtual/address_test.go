package virtual

import (
	"testing"
	"time"
)

// Of two instances, the one that is lost comes back under another address, which only DNS knows. Nothing answers at the
// former one, not even that nobody is there. The leader, which has gone on alone, takes it back, and serves all the
// time.
func TestTheSecondInstanceComesBackUnderAnotherAddress(t *testing.T) {
	run(t, 21, 2, func(w *world) {
		before := w.formed()
		lost := w.instances[0]
		if before.s.instance == lost {
			lost = w.instances[1]
		}
		w.net.change(func() { w.net.cut[link{before.s.name, "former"}] = time.Now() })
		w.change(func() {
			for n, m := range w.config.Members {
				if m.Name == lost.name {
					w.config.Members[n].Address = "former"
				}
			}
		})
		time.Sleep(3 * time.Second) // the operator has told the leader so
		lost.host.kill()
		w.eventually("it goes on alone", 20*time.Second, func() bool {
			return locked(w, func() bool { return len(before.s.hardState.Configuration.Voters()) == 1 })
		})
		time.Sleep(10 * time.Second)
		lost.start()
		w.eventually("both have a vote again", 30*time.Second, func() bool {
			return before.ended() || locked(w, func() bool {
				c := before.s.hardState.Configuration
				return c.Next == nil && len(c.Now.Voters) == 2
			})
		})
		time.Sleep(5 * time.Second)
		w.expect("the leader was not stopped", !before.ended() && locked(w, before.open))
		w.heal()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}
