package virtual

import (
	"flag"
	"testing"
	"time"
)

var (
	tracing    = flag.Bool("trace", false, "say all that happens")
	traceLines = flag.Int("lines", 150, "how many lines of what happened are shown of a failure")
)

// TestTakeover has a cluster form, acknowledge writes, and lose its primary's container.
func TestTakeover(t *testing.T) {
	run(t, 1, 3, func(w *world) {
		w.eventually("the cluster is whole", 2*time.Minute, w.whole)
		w.mutex.Lock()
		first, acks := w.primary(), w.check.acks
		w.mutex.Unlock()
		if first == nil || acks == 0 {
			return
		}
		first.s.kill()
		w.eventually("another leads", 5*time.Second, func() bool {
			w.mutex.Lock()
			defer w.mutex.Unlock()
			p := w.primary()
			return p != nil && p.term > first.term && w.check.acks > acks
		})
		first.s.instance.start()
		w.eventually("the cluster is whole again", time.Minute, w.whole)
	})
}
