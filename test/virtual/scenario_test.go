package virtual

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

// formed waits until the cluster is whole, and gives back its primary.
func (w *world) formed() *process {
	w.Helper()
	w.eventually("the cluster is whole", 2*time.Minute, w.whole)
	return w.leader()
}

func (w *world) leader() *process {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.primary()
}

// locked looks at something with the world's mutex.
func locked[T any](w *world, look func() T) T {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return look()
}

// expect notes that something is not as it should be.
func (w *world) expect(what string, so bool) {
	w.Helper()
	if !so {
		w.mutex.Lock()
		w.dump()
		w.fail("it is so", "%s", what)
		w.mutex.Unlock()
	}
}

// elects waits until another leads than before, and takes writes.
func (w *world) elects(before *process, within time.Duration) {
	w.Helper()
	acks := locked(w, func() int { return w.check.acks })
	w.eventually("another leads and takes writes", within, func() bool {
		return locked(w,
			func() bool { p := w.primary(); return p != nil && p.term > before.term && w.check.acks > acks })
	})
}

// cutOff cuts an instance off from all others, and from the API where that is said.
func (w *world) cutOff(i *instance, from ...string) {
	w.net.change(func() {
		for _, o := range from {
			w.net.cut[link{i.name, o}], w.net.cut[link{o, i.name}] = time.Now(), time.Now()
		}
	})
}

// others are the names of the other instances.
func (w *world) others(i *instance) []string {
	var names []string
	for _, o := range w.instances {
		if o != i {
			names = append(names, o.name)
		}
	}
	return names
}

// heal takes every fault of a scenario back.
func (w *world) heal() { (&chaos{world: w}).heal() }

// A cluster forms, acknowledges writes, and loses its primary's container.
func TestTakeover(t *testing.T) {
	run(t, 1, 3, func(w *world) {
		before := w.formed()
		before.s.kill()
		w.elects(before, 5*time.Second)
		before.s.instance.start()
		w.eventually("the cluster is whole again", time.Minute, w.whole)
	})
}

// promotes ends the leader's server, and has the promotion of whoever is elected take so long.
func (w *world) promotes(before *process, takes time.Duration) (promoting *process) {
	w.Helper()
	w.change(func() {
		for _, i := range w.instances {
			i.hanging["promote"] = time.Now().Add(takes)
		}
	})
	before.s.kill()
	w.eventually("one is elected", 5*time.Second, func() bool {
		return locked(w, func() bool {
			for _, h := range w.hosts() {
				if p := h.server.process; p != nil && p.promoting {
					promoting = p
				}
			}
			return promoting != nil
		})
	})
	return promoting
}

// The Services lead to one that was elected while its server is being promoted, and stay there.
func TestTheServicesLeadToOneThatIsBeingPromoted(t *testing.T) {
	run(t, 3, 3, func(w *world) {
		before := w.formed()
		w.awaitPublished(before.s.instance)
		promoting := w.promotes(before, 2*time.Second)
		recovers := func() bool { return locked(w, func() bool { return promoting.recovery }) }
		w.eventually("it is published", time.Second, func() bool { return w.published(promoting.s.instance) })
		w.expect("it is no primary yet", recovers())
		for recovers() {
			w.expect("it stays so", w.published(promoting.s.instance))
			time.Sleep(20 * time.Millisecond)
		}
		before.s.instance.start()
		w.eventually("the cluster is whole again", time.Minute, w.whole)
	})
}

// A promotion takes so long that the others don't wait for it. It is given up then, but PostgreSQL would go on with it,
// and take writes though nobody leads there: the server must have been ended.
func TestAPromotionThatGoesOn(t *testing.T) {
	run(t, 2, 3, func(w *world) {
		before := w.formed()
		promoting := w.promotes(before, 30*time.Second)
		w.change(func() { // nobody else can stand meanwhile
			for _, i := range w.instances {
				if i != promoting.s.instance {
					i.hanging["fsync"] = time.Now().Add(26 * time.Second)
				}
			}
		})
		time.Sleep(22 * time.Second)
		w.expect("the server whose promotion takes too long has been ended", promoting.ended())
		w.elects(before, 30*time.Second)
		before.s.instance.start()
		w.eventually("the cluster is whole again", time.Minute, w.whole)
	})
}

// A primary that has the read lease hears of a later term while its hard state is on its way to a disk that hangs. The
// fence does not wait for that.
func TestTheFenceDoesNotWaitForTheHardState(t *testing.T) {
	run(t, 3, 3, func(w *world) {
		before := w.formed()
		w.change(func() { before.s.hanging["fsync"] = time.Now().Add(time.Minute) })
		config := locked(w, func() protocol.Config { return w.config })
		config.Members = slices.DeleteFunc(slices.Clone(config.Members),
			func(m protocol.Member) bool { return m.Name == "db-2" })
		_, err := w.operator.Sync(w.ctx, before.s.name, config.Revise())
		w.check.must(err)
		w.eventually("the quorum is being put on record", 10*time.Second, func() bool {
			return locked(w, func() bool { return before.s.writes > 0 })
		})
		w.cutOff(before.s.instance, w.others(before.s.instance)...)
		w.elects(before, 10*time.Second) // nobody reads what is overtaken: the first invariant to fail
		w.expect("the former primary has been stopped", !locked(w, before.open))
		w.heal()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}

// A switchover begins with a checkpoint, which hangs, and then nobody is reached any more.
func TestTheFenceDoesNotWaitForACheckpoint(t *testing.T) {
	run(t, 4, 3, func(w *world) {
		before := w.formed()
		w.change(func() { before.s.hanging["checkpoint"] = time.Now().Add(time.Minute) })
		ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
		defer cancel()
		_, err := w.operator.Switchover(ctx, before.s.name, protocol.Switchover{Reason: "a test"})
		w.check.must(err)
		time.Sleep(300 * time.Millisecond)
		w.expect("it takes writes until its checkpoint is written", locked(w, before.open))
		w.cutOff(before.s.instance, append(w.others(before.s.instance), "api")...)
		time.Sleep(fenceLimit)
		w.expect("the isolated primary has been stopped", !locked(w, before.open))
		w.elects(before, 10*time.Second)
		w.heal()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}

// Two voters lack WAL that their primary has removed, and it takes no copy. What they have stays: it is not
// needed for nothing. When copies flow, but have no room beside the data, one gives up its data at most as
// long as the other has it.
func TestHealthyVotersKeepTheirData(t *testing.T) {
	run(t, 5, 3, func(w *world) {
		p := w.formed()
		w.change(func() {
			for _, i := range w.instances {
				i.cramped = true
				i.hanging["copy ends"] = time.Now().Add(40 * time.Second)
			}
		})
		w.takesNoReplication(20*time.Second, w.instances...)
		time.Sleep(2 * time.Second)
		w.change(func() { p.s.disk.oldest = len(p.s.disk.wal) })
		for begun := time.Now(); time.Since(begun) < 35*time.Second; time.Sleep(100 * time.Millisecond) {
			without := locked(w, func() (count int) {
				for _, h := range w.hosts() {
					if !h.disk.data {
						count++
					}
				}
				return count
			})
			allowed := 0
			if time.Since(begun) > 18*time.Second {
				allowed = 1
			}
			w.expect("voters have their data", without <= allowed)
		}
		w.heal()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}

// The WAL of a leader ends with commits that nobody else has when its container is killed. It comes back at once, and
// its standbys can't stream. What it has is not shown before it is proven.
func TestALeaderThatComesBackShowsWhatIsProven(t *testing.T) {
	run(t, 6, 3, func(w *world) {
		p := w.formed()
		w.takesNoReplication(15*time.Second, p.s.instance)
		time.Sleep(600 * time.Millisecond)
		i := p.s.instance
		p.s.kill()
		i.start()
		time.Sleep(5 * time.Second)
		again := locked(w, func() *process { return i.host.server.process })
		w.expect("it has come back in its term", again != nil && again.cameBack &&
			again.term == p.term && !again.ended())
		w.expect("it lets nobody in", again != nil && !locked(w, again.open))
		w.heal()
		w.eventually("the cluster is whole again", time.Minute, w.whole)
		w.expect("it is still the same", w.leader() == again)
	})
}

// Of two instances, the other needs two calls of the API to be elected, and each takes as long as docs/durability.md
// allows.
func TestFailoverWithASlowAPI(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run(t, seed, 2, func(w *world) {
				before := w.formed()
				w.api.beSlow(400 * time.Millisecond)
				time.Sleep(3 * time.Second)
				w.expect("a slow API alone changes nothing", locked(w, before.open))
				before.s.kill()
				w.elects(before, 20*time.Second)
				before.s.instance.start()
				w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
			})
		})
	}
}

// A server that waits for its disk can't be ended. Its sessions have, and when the disk goes on, so does the instance.
func TestAFenceThatHangs(t *testing.T) {
	run(t, 8, 3, func(w *world) {
		before := w.formed()
		w.change(func() { before.s.stalled = time.Now().Add(25 * time.Second) })
		w.cutOff(before.s.instance, append(w.others(before.s.instance), "api")...)
		w.elects(before, 10*time.Second)
		time.Sleep(15 * time.Second)
		w.expect("its agent lives", !before.s.isDead())
		w.heal()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}

// A server that ends by itself is missed at once.
func TestAServerThatEnds(t *testing.T) {
	run(t, 9, 3, func(w *world) {
		before := w.formed()
		before.finish(errors.New("PANIC: the model has ended it"))
		w.elects(before, 5*time.Second)
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}

// The disk of a standby takes no hard state, so its agent can't follow into later terms. Its server still tries to
// reach the leader that it followed. When that one leads again, the server streams from it, and what it has does not
// count: by its term history the WAL is of a term before.
func TestAStandbyOfAnEarlierTermDoesNotCount(t *testing.T) {
	run(t, 11, 3, func(w *world) {
		first := w.formed()
		standbys := slices.DeleteFunc(slices.Clone(w.instances),
			func(i *instance) bool { return i == first.s.instance })
		second, late := standbys[0], standbys[1]
		w.change(func() { late.hanging["fsync"] = time.Now().Add(time.Minute) })
		for _, to := range []*instance{second, first.s.instance} {
			w.eventually(to.name+" leads", 20*time.Second, func() bool {
				p := w.leader()
				if p != nil && p.s.instance != to { // refused while that one can't take over
					_, _ = w.operator.Switchover(w.ctx, p.s.name, protocol.Switchover{To: to.name, Reason: "a test"})
				}
				return p != nil && p.s.instance == to
			})
			w.change(func() { first.s.deaf = time.Now().Add(time.Minute) }) // as a standby it passes nothing on
		}
		p := w.leader()
		w.change(func() { p.s.deaf = time.Time{} })
		var stale *downstream
		w.eventually("the late server streams from it", 10*time.Second, func() bool {
			return locked(w, func() bool {
				for d := range p.downstream {
					if strings.HasPrefix(d.name, late.name+".") {
						stale = d
					}
				}
				return stale != nil
			})
		})
		if stale == nil {
			return
		}
		w.expect("it does not count", !locked(w, func() bool {
			return strings.Contains(p.conf.Synchronous, `"`+stale.name+`"`)
		}))
		time.Sleep(2 * time.Second) // its agent has looked who streams
		said, err := w.operator.Status(w.ctx, p.s.name)
		w.check.must(err)
		w.expect("the other one alone is said to stream", slices.Equal(said.Standbys, []string{second.name}))
		w.heal()
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}

// takesNoReplication has the servers of instances take no replication: streams end, and the agents hear each other.
func (w *world) takesNoReplication(lasts time.Duration, all ...*instance) {
	w.change(func() {
		for _, i := range all {
			i.deaf = time.Now().Add(lasts)
			if i.host == nil || i.host.server.process == nil {
				continue
			}
			for d := range i.host.server.process.downstream {
				_ = d.conn.Close()
			}
		}
	})
}

// Nobody can stream from a primary any more, for its port is blocked or its walsenders are used up; its agent answers.
// It makes way, and only once.
func TestAPrimaryWhoseCommitsNobodyAcknowledgesMakesWay(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run(t, seed, 3, func(w *world) {
				before := w.formed()
				terms := w.highestTerm()
				w.takesNoReplication(time.Hour, before.s.instance)
				time.Sleep(10 * time.Second)
				w.expect("it is waited for a while", locked(w, before.open))
				w.elects(before, 20*time.Second)
				w.eventually("the cluster is whole", 2*time.Minute, w.whole)
				w.expect("one term was enough", w.highestTerm() == terms+1)
			})
		})
	}
}

// Where nobody can stream from anybody, another leader does not help: there is an election now and then, and no more.
func TestElectionsAreFewWhereNobodyCanStreamFromAnybody(t *testing.T) {
	run(t, 1, 3, func(w *world) {
		w.formed()
		terms := w.highestTerm()
		w.takesNoReplication(10*time.Minute, w.instances...)
		time.Sleep(10 * time.Minute)
		tried := w.highestTerm() - terms
		w.expect("somebody tries", tried > 0)
		w.expect(fmt.Sprintf("each tries once in two minutes at most, and not %d times in all", tried), tried <= 15)
		w.eventually("the cluster is whole again", 2*time.Minute, w.whole)
	})
}
