package virtual

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"toban.dev/internal/ha"
)

// snapshot is a volume as it was once.
type snapshot struct {
	disk      *disk
	files     map[string][]byte
	hardState ha.HardState
}

// takeSnapshots notes how the volume of an instance is now, and the Lease.
func (c *chaos) takeSnapshots(i *instance) {
	c.leases = append(c.leases, c.api.copyLease())
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if h := i.host; h != nil && h.agent != nil {
		c.snapshots[i] = append(c.snapshots[i], snapshot{h.disk.copied(), h.pack(), i.hardState})
	}
}

// takeBackVolume has a volume go back in time, where docs/volumes.md promises that this is noticed: the others are
// there, have heard how far the voter had come, and go on before it is back. It comes back as another, and nothing is
// lost.
func (c *chaos) takeBackVolume(i *instance) {
	h := c.hostOf(i)
	if h == nil || c.busy.Load() > 0 || !c.whole() {
		return
	}
	c.mutex.Lock()
	older := slices.DeleteFunc(slices.Clone(c.snapshots[i]),
		func(s snapshot) bool { return !noticed(s.hardState, i.hardState) })
	heard := len(c.config.Members) > 1 && time.Since(i.remembered) > time.Second
	for _, o := range c.hosts() {
		heard = heard && time.Since(o.began) > time.Second
	}
	before := i.hardState.Voter
	c.mutex.Unlock()
	if !heard || len(older) == 0 {
		return
	}
	s := older[c.rng.IntN(len(older))]
	c.say(i.name, "its volume goes back in time, to %+v", s.hardState)
	h.kill()
	c.mutex.Lock()
	i.disk, i.files = s.disk.copied(), s.files
	c.mutex.Unlock()
	time.Sleep(time.Second) // what was on its way to the clients
	acks := locked(c.world, func() int { return c.check.acks })
	c.eventually("the others go on", 2*time.Minute,
		func() bool { return locked(c.world, func() bool { return c.check.acks > acks }) })
	c.revive(i)
	c.eventually("a voter that has forgotten comes back as another", 2*time.Minute, func() bool {
		return locked(c.world, func() bool { return i.hardState.Voter != before })
	})
}

// noticed says that a voter with the one hard state is known to have forgotten what it promised, by those who know the
// other. One that alone has a vote goes on.
func noticed(older, now ha.HardState) bool {
	alone := older.Configuration.Elects(map[ha.Voter]bool{older.Voter: true}, false)
	return older.Voter == now.Voter &&
		!alone && (older.Ballot.Term < now.Ballot.Term || now.Configuration.Newer(older.Configuration))
}

// takeBackLease has the Lease go back in time, where it has no vote, all know of that, and nobody has the read lease.
func (c *chaos) takeBackLease(*instance) {
	record := locked(c.world, c.check.newestRecord)
	if !c.whole() || record.Witnesses(leaseUID) || len(record.Now.Voters) < 3 || c.api.holding() > 0 {
		return
	}
	c.say("api", "the Lease goes back in time")
	c.api.putLease(c.leases[c.rng.IntN(len(c.leases))])
}

func (a *api) copyLease() *coordinationv1.Lease {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.lease.DeepCopy()
}

func (a *api) putLease(lease *coordinationv1.Lease) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.lease = lease.DeepCopy()
}

// A volume goes back to an earlier term. The voter learns of the later one as soon as its agent starts, and is noticed
// nevertheless.
func TestAVolumeThatGoesBackInTime(t *testing.T) {
	run(t, 10, 3, func(w *world) {
		c := &chaos{world: w, rng: rand.New(rand.NewPCG(w.seed, 1)), snapshots: map[*instance][]snapshot{}}
		before := w.formed()
		for _, i := range w.instances {
			c.takeSnapshots(i)
		}
		before.s.kill()
		w.elects(before, 5*time.Second)
		before.s.instance.start()
		now := w.formed()
		for _, i := range w.instances[:3] {
			if i == now.s.instance {
				continue
			}
			time.Sleep(2 * time.Second) // the others have heard how far it has come
			voter := locked(w, func() ha.Voter { return i.hardState.Voter })
			c.takeBackVolume(i)
			w.expect("it is another voter", voter != locked(w, func() ha.Voter { return i.hardState.Voter }))
			w.eventually("the cluster is whole again", time.Minute, w.whole)
		}
	})
}
