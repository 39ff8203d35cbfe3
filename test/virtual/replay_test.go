package virtual

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// holdReplay has the server that runs at an instance replay nothing any more, and gives it back.
func (w *world) holdReplay(i *instance) *process {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if i.host == nil || i.host.server.process == nil {
		return nil
	}
	w.log(i.name, "FAULT its replay is held up")
	i.host.server.process.held = true
	return i.host.server.process
}

// holdReplaySometimes has standbys replay nothing for a part of every third schedule, beside the other faults: they
// have seconds of WAL to replay, and receive more.
func (c *chaos) holdReplaySometimes() {
	random := rand.New(rand.NewPCG(c.seed, 3)) // #nosec G404 -- a source of its own: the others stay as they are
	if random.IntN(3) > 0 {
		return
	}
	for range 1 + random.IntN(3) {
		i := c.instances[random.IntN(len(c.instances))]
		begins, lasts := random.Int64N(int64(10*time.Second)), random.Int64N(int64(15*time.Second))
		c.later(time.Duration(begins), func() {
			if p := c.holdReplay(i); p != nil {
				c.later(time.Duration(lasts), func() { c.change(p.replayOn) })
			}
		})
	}
}

// A standby that has much to replay gives its vote as fast as any other: a failover takes as long as without. It does
// not stand itself, though it is the first by ordinal, and follows when it has replayed what it has.
func TestAVoterThatHasMuchToReplay(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			run(t, seed, 3, func(w *world) {
				before := w.formed()
				behind := w.standby(before)
				p := w.holdReplay(behind)
				time.Sleep(5 * time.Second)
				// Else it may be the only one that has the last commit: then nobody could lead before it has replayed
				// all.
				w.change(func() {
					for d := range before.downstream {
						if strings.HasPrefix(d.name, behind.name+".") {
							_ = d.conn.Close()
						}
					}
				})
				time.Sleep(time.Second)
				terms := w.highestTerm()
				before.s.kill()
				w.eventually("another leads", 4*time.Second, func() bool {
					return locked(w, func() bool { now := w.primary(); return now != nil && now.term > before.term })
				})
				w.expect("the other standby leads", w.leader() != nil && w.leader().s.instance != behind)
				w.expect("one term was enough", w.highestTerm() == terms+1)
				before.s.instance.start()
				time.Sleep(2 * time.Second)
				w.change(p.replayOn)
				w.eventually("the cluster is whole again", time.Minute, w.whole)
			})
		})
	}
}

// standby is the first standby.
func (w *world) standby(of *process) *instance {
	for _, i := range w.instances {
		if i != of.s.instance {
			return i
		}
	}
	return nil
}
