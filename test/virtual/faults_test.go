package virtual

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"toban.dev/internal/protocol"
)

// chaos does things to a cluster at random, as its seed says.
type chaos struct {
	*world
	rng *rand.Rand
	end time.Time
	// weights is how often each kind of fault is drawn in this schedule: some never, so that
	// others come thick and fast.
	weights []int
	lost    bool
	// busy is how many disturbances are still to come or under way.
	busy atomic.Int32
	// snapshots are the instances' volumes at some times, leases the Lease.
	snapshots map[*instance][]snapshot
	leases    []*coordinationv1.Lease
}

// faults are all kinds, with how often they are drawn.
var faults = []struct {
	weight int
	do     func(c *chaos, i *instance)
}{
	{5, (*chaos).killContainer},
	{4, (*chaos).endServer},
	{6, (*chaos).isolate},
	{4, (*chaos).cutOneWay},
	{3, (*chaos).slowLink},
	{2, (*chaos).refuse},
	{5, (*chaos).stall},
	{3, (*chaos).hangServer},
	{2, (*chaos).deafen},
	{8, (*chaos).hangOperation},
	{4, (*chaos).troubleAPI},
	{4, (*chaos).switchOver},
	{2, (*chaos).leaveOrder},
	{1, (*chaos).removeWAL},
	{1, (*chaos).loseVolume},
	{1, (*chaos).killAll},
	{3, (*chaos).ambush},
	{3, (*chaos).resize},
	{2, (*chaos).changeDurability},
	{2, (*chaos).takeBackVolume},
	{1, (*chaos).takeBackLease},
}

// operations are what a fault may have hang, by the names that the model gives them.
var operations = []string{
	"promote", "checkpoint", "fsync", "clone", "rewind", "copy ends", "recovery", "control", "start",
	"check", "query", "single",
}

func newChaos(w *world) *chaos {
	c := &chaos{world: w, rng: rand.New(rand.NewPCG(w.seed, 1)), snapshots: map[*instance][]snapshot{}}
	for _, f := range faults {
		c.weights = append(c.weights, f.weight*[]int{0, 0, 1, 1, 1, 4}[c.rng.IntN(6)])
	}
	c.weights[c.rng.IntN(len(faults))]++
	for _, i := range w.instances {
		i.cramped = w.seed%4 == 0
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.scarce = c.rng.IntN(10) < 3
	return c
}

// run does faults for a while, takes all of them back, and waits until the cluster is whole.
func (c *chaos) run() {
	if c.rng.IntN(4) > 0 {
		c.eventually("the cluster forms", 2*time.Minute, c.whole)
	}
	c.end = time.Now().Add(c.duration(6*time.Second, 25*time.Second))
	c.starveSometimes()
	c.holdReplaySometimes()
	for time.Now().Before(c.end) && !c.failed() {
		time.Sleep(c.duration(50*time.Millisecond, 2500*time.Millisecond))
		c.fault()
	}
	c.heal()
	c.eventually("the healed cluster is whole", 3*time.Minute, c.whole)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if p := c.primary(); p != nil {
		c.check.complete(p)
	}
}

func (c *chaos) duration(low, high time.Duration) time.Duration {
	return low + time.Duration(c.rng.Int64N(int64(high-low)))
}

// pick is a random index, by weight.
func (c *chaos) pick(weights ...int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	drawn, index := c.rng.IntN(total), 0
	for ; drawn >= weights[index]; index++ {
		drawn -= weights[index]
	}
	return index
}

// fault does one thing, often to the primary.
func (c *chaos) fault() {
	kind := c.pick(c.weights...)
	victims := c.existing()
	victim := victims[c.rng.IntN(len(victims))]
	c.takeSnapshots(victims[c.rng.IntN(len(victims))])
	primary := c.rng.IntN(5) < 2
	c.mutex.Lock()
	if p := c.primary(); p != nil && primary {
		victim = p.s.instance
	}
	c.mutex.Unlock()
	faults[kind].do(c, victim)
}

// existing are the instances that there are now.
func (c *chaos) existing() []*instance {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(c.instances), func(i *instance) bool { return !i.exists })
}

// disturb does something in the background that others must not be disturbed by.
func (c *chaos) disturb(do func()) {
	c.busy.Add(1)
	c.clients.Go(func() {
		defer c.busy.Add(-1)
		do()
	})
}

// later does something after a while, unless all faults are taken back before.
func (c *chaos) later(after time.Duration, do func()) {
	c.clients.Go(func() {
		if pause(c.ctx, min(after, time.Until(c.end))) == nil {
			do()
		}
	})
}

func (c *chaos) say(who, format string, args ...any) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.log(who, "FAULT "+format, args...)
}

func (c *chaos) hostOf(i *instance) *host {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return i.host
}

func (c *chaos) killContainer(i *instance) {
	c.killFor(i, c.duration(50*time.Millisecond, 6*time.Second))
}

func (c *chaos) killFor(i *instance, down time.Duration) {
	h := c.hostOf(i)
	if h == nil {
		return
	}
	c.say(i.name, "its container is killed, for %s", down)
	h.kill()
	c.later(down, func() { c.revive(i) })
}

// revive starts an instance that is down.
func (c *chaos) revive(i *instance) {
	if c.hostOf(i) == nil {
		i.start()
	}
}

func (c *chaos) killAll(*instance) {
	for _, i := range c.instances {
		c.killFor(i, c.duration(50*time.Millisecond, 4*time.Second))
	}
}

func (c *chaos) endServer(i *instance) {
	if h := c.hostOf(i); h != nil {
		c.mutex.Lock()
		p := h.server.process
		c.mutex.Unlock()
		if p != nil {
			c.say(i.name, "its server ends")
			p.finish(errors.New("PANIC: the model has ended it"))
		}
	}
}

// isolate cuts an instance off, from everybody or from some, perhaps also from the API.
func (c *chaos) isolate(i *instance) {
	all, api := c.rng.IntN(5) < 3, c.rng.IntN(5) < 3
	c.say(i.name, "is cut off, from all %v, from the API %v", all, api)
	var links []link
	for _, o := range c.instances {
		if o != i && (all || c.rng.IntN(2) == 0) {
			links = append(links, link{i.name, o.name}, link{o.name, i.name})
		}
	}
	if api {
		links = append(links, link{i.name, "api"}, link{"api", i.name})
	}
	c.cutFor(c.duration(300*time.Millisecond, 9*time.Second), links...)
}

func (c *chaos) cutFor(lasts time.Duration, links ...link) {
	c.net.change(func() {
		for _, l := range links {
			if _, is := c.net.cut[l]; !is {
				c.net.cut[l] = time.Now()
			}
		}
	})
	c.later(lasts, func() {
		c.net.change(func() {
			for _, l := range links {
				delete(c.net.cut, l)
			}
		})
	})
}

// other is another instance, where there is one.
func (c *chaos) other(i *instance) *instance {
	others := slices.DeleteFunc(c.existing(), func(o *instance) bool { return o == i })
	if len(others) == 0 {
		others = slices.DeleteFunc(slices.Clone(c.instances), func(o *instance) bool { return o == i })
	}
	return others[c.rng.IntN(len(others))]
}

func (c *chaos) cutOneWay(i *instance) {
	l := link{i.name, c.other(i).name}
	if c.rng.IntN(2) == 0 {
		l.from, l.to = l.to, l.from
	}
	c.say(l.from, "can't send to %s", l.to)
	c.cutFor(c.duration(300*time.Millisecond, 9*time.Second), l)
}

func (c *chaos) slowLink(i *instance) {
	l, by := link{i.name, c.other(i).name}, c.duration(20*time.Millisecond, 1500*time.Millisecond)
	c.say(l.from, "is slow to %s by %s", l.to, by)
	c.net.change(func() { c.net.slow[l] = by })
	c.later(c.duration(time.Second, 6*time.Second), func() { c.net.change(func() { delete(c.net.slow, l) }) })
}

func (c *chaos) refuse(i *instance) {
	l := link{c.other(i).name, i.name}
	c.say(l.to, "refuses what %s asks for", l.from)
	c.net.change(func() { c.net.refused[l] = true })
	c.later(c.duration(300*time.Millisecond, 6*time.Second),
		func() { c.net.change(func() { delete(c.net.refused, l) }) })
}

func (c *chaos) stall(i *instance) {
	lasts := c.duration(500*time.Millisecond, 8*time.Second)
	c.say(i.name, "its volume stalls for %s", lasts)
	c.change(func() { i.stalled = time.Now().Add(lasts) })
}

func (c *chaos) hangServer(i *instance) {
	h, lasts := c.hostOf(i), c.duration(500*time.Millisecond, 6*time.Second)
	if h == nil {
		return
	}
	c.say(i.name, "its server hangs for %s", lasts)
	c.change(func() {
		if p := h.server.process; p != nil {
			p.hangs = time.Now().Add(lasts)
		}
	})
	c.later(lasts+time.Millisecond, func() { c.change(func() {}) })
}

func (c *chaos) deafen(i *instance) {
	lasts := c.duration(time.Second, 8*time.Second)
	c.say(i.name, "takes no replication for %s", lasts)
	c.takesNoReplication(lasts, i)
}

func (c *chaos) hangOperation(i *instance) {
	what, lasts := operations[c.rng.IntN(len(operations))], c.duration(500*time.Millisecond, 25*time.Second)
	c.say(i.name, "each %s hangs for %s", what, lasts)
	c.change(func() { i.hanging[what] = time.Now().Add(lasts) })
}

// troubleAPI has the API answer late, or one or all not reach it.
func (c *chaos) troubleAPI(i *instance) {
	lasts := c.duration(time.Second, 10*time.Second)
	if c.rng.IntN(2) == 0 {
		by := c.duration(50*time.Millisecond, 3*time.Second)
		c.say("api", "is slow by %s for %s", by, lasts)
		c.api.beSlow(by)
		c.later(lasts, func() { c.api.beSlow(0) })
		return
	}
	var links []link
	all := c.rng.IntN(2) == 0
	for _, o := range c.instances {
		if all || o == i {
			links = append(links, link{o.name, "api"}, link{"api", o.name})
		}
	}
	c.say("api", "is away for %s, from all: %v", i.name, all)
	c.cutFor(lasts, links...)
}

func (c *chaos) switchOver(i *instance) {
	c.mutex.Lock()
	p := c.primary()
	c.mutex.Unlock()
	if p == nil {
		return
	}
	to := i.name
	if c.rng.IntN(2) == 0 || to == p.s.name {
		to = ""
	}
	c.say(p.s.name, "is asked to hand over to %q", to)
	c.disturb(func() {
		ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
		defer cancel()
		_, _ = c.operator.Switchover(ctx, p.s.name, protocol.Switchover{To: to, Reason: "a fault"})
	})
}

// leaveOrder tells an instance to stop, as when its Pod is deleted.
func (c *chaos) leaveOrder(i *instance) {
	h := c.hostOf(i)
	if h == nil {
		return
	}
	c.say(i.name, "is told to stop")
	patience := c.duration(time.Second, 20*time.Second)
	down := c.duration(200*time.Millisecond, 3*time.Second)
	c.disturb(func() {
		h.stop(patience)
		if pause(c.ctx, down) == nil {
			c.revive(i)
		}
	})
}

func (c *chaos) removeWAL(i *instance) {
	c.say(i.name, "removes its old WAL")
	c.change(func() {
		if i.host != nil && i.host.disk.data {
			i.host.disk.oldest = max(i.host.disk.oldest, len(i.host.disk.wal)-2)
		}
	})
}

// loseVolume has an instance come back with an empty volume: once, and only where all others have what it had.
func (c *chaos) loseVolume(i *instance) {
	h := c.hostOf(i)
	if h == nil || c.lost || len(c.existing()) < 3 || !c.whole() {
		return
	}
	c.lost = true
	c.say(i.name, "loses its volume")
	h.kill()
	c.mutex.Lock()
	i.disk, i.files = &disk{}, nil
	c.mutex.Unlock()
	c.later(c.duration(100*time.Millisecond, 3*time.Second), func() { c.revive(i) })
}

// ambush does away with the next leader as soon as it leads: a term that few have seen is the hardest on all others.
func (c *chaos) ambush(*instance) {
	c.mutex.Lock()
	terms := len(c.check.winners)
	c.mutex.Unlock()
	after, kill := c.duration(time.Millisecond, 800*time.Millisecond), c.rng.IntN(2) == 0
	lasts := c.duration(time.Second, 6*time.Second)
	c.disturb(func() {
		for time.Now().Before(c.end) && pause(c.ctx, 5*time.Millisecond) == nil {
			c.mutex.Lock()
			p, more := c.primary(), len(c.check.winners) > terms
			c.mutex.Unlock()
			if p == nil || !more {
				continue
			}
			if pause(c.ctx, after) != nil || time.Now().After(c.end) {
				return
			}
			c.ambushed(p.s.instance, kill, lasts)
			return
		}
	})
}

func (c *chaos) ambushed(i *instance, kill bool, lasts time.Duration) {
	if kill {
		c.killFor(i, lasts)
		return
	}
	c.say(i.name, "is cut off, having just been elected")
	for _, o := range c.instances {
		if o != i {
			c.cutFor(lasts, link{i.name, o.name}, link{o.name, i.name})
		}
	}
}

// resize has as many members as it likes.
func (c *chaos) resize(*instance) {
	count := 1 + c.pick(2, 4, 6, 2, 3)
	c.say("operator", "wants %d members", count)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.config.Members = members(count)
}

// changeDurability goes over to async, or back.
func (c *chaos) changeDurability(*instance) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	wanted := protocol.DurabilityAsync
	if c.config.Durability == wanted {
		wanted = protocol.DurabilityQuorum
	}
	c.config.Durability = wanted
	c.log("operator", "FAULT wants the durability %s", wanted)
}

// heal takes every fault back.
func (c *chaos) heal() {
	c.mutex.Lock()
	c.log("HEAL", "all faults end")
	c.mutex.Unlock()
	c.net.change(func() { clear(c.net.cut); clear(c.net.slow); clear(c.net.refused) })
	c.api.beSlow(0)
	c.starve(0)
	c.change(func() {
		c.scarce = false
		for _, i := range c.instances {
			i.stalled, i.deaf, i.cramped = time.Time{}, time.Time{}, false
			clear(i.hanging)
			if i.host != nil && i.host.server.process != nil {
				i.host.server.process.hangs = time.Time{}
				i.host.server.process.replayOn()
			}
		}
	})
	for _, i := range c.instances {
		c.revive(i)
	}
}
