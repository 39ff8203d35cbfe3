package virtual

import (
	"math/rand/v2"
	"slices"
	"strings"
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
	only     []string // those that starve, nil for all
}

// starves says whether something, which has the name of an instance in its own, is of one that starves.
func (s *starvation) starves(what string) bool {
	return s.only == nil || slices.ContainsFunc(s.only, func(name string) bool { return strings.Contains(what, name) })
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
	if !w.starvation.starves(what) {
		by = 0
	}
	w.starvation.mutex.Unlock()
	if by == 0 {
		return 0
	}
	return w.between("late"+what, 0, by)
}

// stallsOf is for how long tasks of an instance have waited for a processor, as the kernel would say.
func (w *world) stallsOf(name string) time.Duration {
	s := &w.starvation
	if !s.starves(name) {
		return 0
	}
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

// starveSometimes has some of the machines starve for a part of every fifth schedule, beside the other faults.
func (c *chaos) starveSometimes() {
	random := rand.New(rand.NewPCG(c.seed, 2))
	if random.IntN(5) > 0 {
		return
	}
	if random.IntN(3) > 0 { // not all machines are busy
		for _, i := range c.world.instances {
			if random.IntN(2) > 0 {
				c.starvation.only = append(c.starvation.only, i.name)
			}
		}
	}
	begins, lasts := random.Int64N(int64(5*time.Second)), random.Int64N(int64(15*time.Second))
	by := 100*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second)))
	c.later(time.Duration(begins), func() {
		c.say("machine", "has everything come late by up to %s; not of all, where some are named: %v",
			by, c.starvation.only)
		c.starve(by)
	})
	c.later(time.Duration(begins+lasts), func() { c.starve(0) })
}

// mostTerms is how many terms may be stood for in a minute, however little time the machine has.
const mostTerms = 8

// Of three instances the primary is lost, and the one that can be elected needs the vote of one on a busy machine. It
// waits for that longer each time.
func TestACalmCandidateNeedsABusyVoter(t *testing.T) {
	for _, lateness := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second} {
		t.Run(lateness.String(), func(t *testing.T) {
			run(t, 3, 3, func(w *world) {
				before := w.formed()
				w.starvation.only = []string{w.others(before.s.instance)[1]}
				w.starve(lateness)
				time.Sleep(45 * time.Second)
				w.expect("a standby on a busy machine deposes nobody", w.leader() == before)
				before.s.kill()
				w.eventually("another leads", 3*time.Minute, func() bool {
					return locked(w, func() bool { p := w.primary(); return p != nil && p.term > before.term })
				})
				w.starve(0)
			})
		})
	}
}

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
