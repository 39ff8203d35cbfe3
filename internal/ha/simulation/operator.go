package simulation

import (
	"slices"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// operator is who says which instances there are.
type operator struct {
	members []string
	system  string
	async   bool
	end     time.Duration
	healing bool
	// prefers says that the last instance is preferred as leader, then the one before it, and so on.
	prefers bool
}

// build makes a new cluster.
func (w *World) build() {
	w.op.members = names(1 + pick(w, 1, 3, 8, 1, 2))
	w.op.async = w.chance(0.12)
	w.api.memory.Voter = witnessID
	for i := range maxNodes {
		n := &node{w: w, index: i, name: nameOf(i), rate: 0.97 + 0.06*w.rng.Float64(), offset: w.between(0, time.Hour)}
		w.nodes = append(w.nodes, n)
	}
	for i := range w.op.members {
		w.nodes[i].create()
		w.nodes[i].config = w.config()
		w.nodes[i].start()
	}
	w.after(100*ms, w.reconcile)
}

func names(count int) []string {
	var all []string
	for i := range count {
		all = append(all, nameOf(i))
	}
	return all
}

// pick is a random index, by weight.
func pick(w *World, weights ...int) int {
	sum := 0
	for _, x := range weights {
		sum += x
	}
	r := w.rng.IntN(sum)
	for i, x := range weights {
		if r -= x; r < 0 {
			return i
		}
	}
	return 0
}

func (w *World) config() machine.Config {
	c := machine.Config{
		Members: w.op.members, SystemIdentifier: w.op.system, Async: w.op.async, Witness: witnessID, API: true,
	}
	if w.op.prefers {
		c.Preferred = slices.Clone(w.op.members)
		slices.Reverse(c.Preferred)
	}
	return c
}

// reconcile is a round of the operator.
func (w *World) reconcile() {
	for _, n := range w.nodes {
		if n.up && n.disk.data == ha.DataPresent && w.op.system == "" {
			w.op.system = n.disk.system
		}
	}
	for _, n := range w.nodes {
		member := slices.Contains(w.op.members, n.name)
		switch {
		case member && !n.disk.exists:
			n.create()
			n.config = w.config()
			n.start()
		case !member && n.disk.exists:
			w.dismiss(n)
		}
		if n.disk.exists && !w.api.away[n.index] && w.chance(0.8) {
			c := w.config()
			n.later(w.between(5*ms, 300*ms), func() {
				n.config = c
				n.step(machine.Configured{Config: c})
			})
		}
	}
	w.after(w.between(300*ms, 700*ms), w.reconcile)
}

// dismiss removes an instance that is no member, once it has no say any more and all whom the operator reaches know
// that it goes: it tells them in the same round, before that.
func (w *World) dismiss(n *node) {
	if slices.ContainsFunc(w.nodes, func(o *node) bool { return w.counts(o, n.name) }) {
		return
	}
	for _, l := range w.nodes {
		if !l.up || l.lead() == nil || !l.serves(l.lead().term) || l.pause.until > w.now || w.api.away[l.index] {
			continue
		}
		r := l.disk.mem.Configuration
		switch {
		case l == n:
			n.step(machine.ResignAsked{})
		case r.Next == nil && l.disk.mem.Configuration.Term >= w.newestTerm() &&
			!slices.ContainsFunc(r.Voters(), func(v ha.Voter) bool { return v.Instance() == n.name }):
			n.log("is removed")
			n.crash()
			n.disk.exists = false
		}
	}
}

// counts says that an instance that the operator reaches takes a name for that of a member still.
func (w *World) counts(o *node, name string) bool {
	reached := o.up && o.pause.until <= w.now && !w.api.away[o.index]
	return reached && o.name != name && slices.Contains(o.config.Members, name)
}

// newestTerm is the term of the newest configuration that is known anywhere.
func (w *World) newestTerm() uint64 {
	newest := w.api.memory.Configuration.Term
	for _, n := range w.nodes {
		if n.disk.exists {
			newest = max(newest, n.disk.mem.Configuration.Term)
		}
	}
	return newest
}
