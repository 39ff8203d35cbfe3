package virtual

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/ha/machine"
)

// starvation is what a machine without time for its processes does to all of them at once: each thing that one does
// comes late, by up to lateness.
type starvation struct {
	mutex    sync.Mutex
	lateness time.Duration
	since    time.Time
	waited   time.Duration
}

// starve has everything come late from now on, by up to a lateness; 0 for no more.
func (w *world) starve(by time.Duration) {
	s := &w.starvation
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lateness > 0 {
		s.waited += time.Since(s.since)
	}
	s.lateness, s.since = by, time.Now()
}

// slackLeft is the most by which a primary may go on for longer: others may have promised to wait as much longer, while
// things come late and for as long after it as that is remembered.
func (w *world) slackLeft() time.Duration {
	s := &w.starvation
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lateness == 0 && (s.since.IsZero() || time.Since(s.since) > remembered) {
		return 0
	}
	return machine.MaxSlack + s.lateness
}

// remembered is for how long it counts that things came late: the agent's window, and a promise made at its end.
const remembered = 30*time.Second + machine.SlackHeld

// late is by how much something comes late now.
func (w *world) late(what string) time.Duration {
	w.starvation.mutex.Lock()
	by := w.starvation.lateness
	w.starvation.mutex.Unlock()
	if by == 0 {
		return 0
	}
	return w.between("late"+what, 0, by)
}

// stalls is for how long tasks have waited for a processor, as the kernel would say.
func (w *world) stalls() time.Duration {
	s := &w.starvation
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.lateness > 0 {
		return s.waited + time.Since(s.since)
	}
	return s.waited
}

// mostSlack is the longest slack that an agent says its machine makes it have, -1 where none says any.
func (w *world) mostSlack() time.Duration {
	return locked(w, func() time.Duration {
		longest := time.Duration(-1)
		for _, h := range w.hosts() {
			if slack := h.agent.Status().Slack; slack != nil {
				longest = max(longest, *slack)
			}
		}
		return longest
	})
}

// highestTerm is the highest term that any instance has on its disk.
func (w *world) highestTerm() uint64 {
	return locked(w, func() (highest uint64) {
		for _, i := range w.instances {
			highest = max(highest, i.hardState.Ballot.Term)
		}
		return highest
	})
}

// starveSometimes has the machine starve for a part of every fifth schedule, beside the other faults.
func (c *chaos) starveSometimes() {
	random := rand.New(rand.NewPCG(c.seed, 2))
	if random.IntN(5) > 0 {
		return
	}
	begins, lasts := random.Int64N(int64(5*time.Second)), random.Int64N(int64(15*time.Second))
	by := 100*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))
	c.later(time.Duration(begins), func() {
		c.say("machine", "has everything come late by up to %s", by)
		c.starve(by)
	})
	c.later(time.Duration(begins+lasts), func() { c.starve(0) })
}

// mostTerms is how many terms may be stood for in a minute, however little time the machine has.
const mostTerms = 8

// On a machine that has no time for its instances, elections do not feed on each other: few terms are stood for, and
// when the machine has time again the cluster is whole, without anybody's help.
func TestAStarvedMachineHasNoElectionStorm(t *testing.T) {
	for name, lateness := range map[string]time.Duration{
		"by half a second": 500 * time.Millisecond, "by two seconds": 2 * time.Second, "by six": 6 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			run(t, 7, 3, func(w *world) {
				w.formed()
				w.starve(lateness)
				for minute := 1; minute <= 5; minute++ {
					before := w.highestTerm()
					time.Sleep(time.Minute)
					terms := w.highestTerm() - before
					t.Logf("minute %d: %d terms", minute, terms)
					w.expect("few terms are stood for in a minute", terms <= mostTerms)
				}
				w.expect("agents say that their machine is busy", w.mostSlack() > 0)
				w.starve(0)
				w.eventually("the cluster is whole again", time.Minute, w.whole)
				w.eventually("agents say that their machine is on time", time.Minute, func() bool {
					return w.mostSlack() == 0
				})
			})
		})
	}
}
