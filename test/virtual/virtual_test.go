package virtual

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"sync/atomic"
	"testing"

	"toban.dev/internal/protocol"
)

var (
	tracing    = flag.Bool("trace", false, "say all that happens")
	only       = flag.Uint64("seed", 0, "run the schedule with this seed alone")
	first      = flag.Uint64("first", 1, "run schedules from this seed on")
	schedules  = flag.Int("schedules", 150, "how many schedules are run")
	traceLines = flag.Int("lines", 150, "how many lines of what happened are shown of a failure")
)

func TestMain(m *testing.M) {
	flag.Parse()
	log.SetOutput(io.Discard) // net/http's servers say there that somebody hung up
	os.Exit(m.Run())
}

// TestSchedules runs clusters under faults at random.
func TestSchedules(t *testing.T) {
	if *only > 0 {
		runSchedule(t, *only)
		return
	}
	count := *schedules
	if testing.Short() {
		count = min(count, 40)
	}
	var next atomic.Uint64
	for worker := range 2 {
		t.Run(fmt.Sprint("worker ", worker), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1); n <= uint64(count) && !t.Failed(); n = next.Add(1) {
				t.Run(fmt.Sprint("seed ", *first+n-1), func(t *testing.T) { runSchedule(t, *first+n-1) })
			}
		})
	}
}

func runSchedule(t *testing.T, seed uint64) {
	t.Helper()
	durability := protocol.DurabilityQuorum
	if seed/8%8 == 0 {
		durability = protocol.DurabilityAsync
	}
	runWith(t, seed, []int{3, 3, 3, 2, 3, 3, 2, 5}[seed%8], durability, func(w *world) { newChaos(w).run() })
}
