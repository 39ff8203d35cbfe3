package simulation

import "time"

// network is what lies between the instances.
type network struct {
	// cut: nothing gets from one to another.
	cut [maxNodes][maxNodes]bool
	// resets: a firewall answers in the other's place that nobody listens there.
	resets [maxNodes][maxNodes]bool
	// loss is how many messages are lost, slow how late they can come.
	loss float64
	slow time.Duration
	// arrival keeps the messages of a connection in order.
	arrival [maxNodes][maxNodes]time.Duration
}

// passes says whether a message gets through.
func (w *World) passes(from, to int) bool {
	return !w.net.cut[from][to] && !w.net.resets[from][to] && (w.net.loss == 0 || !w.chance(w.net.loss))
}

func (w *World) delay() time.Duration {
	if w.net.slow > 0 && w.chance(0.3) {
		return w.between(time.Millisecond, w.net.slow)
	}
	return w.between(time.Millisecond, 15*time.Millisecond)
}

// send delivers a message to an instance; gone is called where nobody listens.
func (w *World) send(from, to int, f, gone func()) {
	if w.passes(from, to) {
		w.after(w.delay(), func() { w.deliver(to, f, gone) })
	}
}

// sendInOrder is send on a connection.
func (w *World) sendInOrder(from, to int, f func()) {
	if !w.passes(from, to) {
		return
	}
	at := max(w.now+w.delay(), w.net.arrival[from][to]+1)
	w.net.arrival[from][to] = at
	w.after(at-w.now, func() { w.deliver(to, f, nil) })
}

func (w *World) deliver(to int, f, gone func()) {
	n := w.nodes[to]
	switch {
	case !n.up && gone != nil:
		gone()
	case !n.up:
	case n.pause.until > w.now:
		w.after(n.pause.until-w.now, func() { w.deliver(to, f, gone) })
	default:
		f()
	}
}

// ask sends a request to another instance. serve gets a function that sends the
// answer back, refused is called when nobody listens there. Answers do not
// reach a process that was started since.
func (n *node) ask(to int, serve func(p *node, reply func(func())), refused func()) {
	w, epoch := n.w, n.epoch
	p := w.nodes[to]
	if w.net.resets[n.index][to] {
		if refused != nil {
			n.later(w.delay(), refused)
		}
		return
	}
	back := func(f func()) {
		w.send(to, n.index, func() {
			if n.epoch == epoch {
				f()
			}
		}, nil)
	}
	w.send(n.index, to, func() { serve(p, back) }, func() {
		if refused != nil {
			back(refused)
		}
	})
}
