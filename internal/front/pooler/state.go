package pooler

import (
	"context"
	"sync"
	"time"

	"toban.dev/internal/front/route"
)

// State is how a pooler is.
type State struct {
	route.Decision
	// Held says that no transaction is under way, and none begins.
	Held bool
	// Asleep says that the pooler is told that no instance runs until a client comes.
	Asleep bool
	// Servers are where clients go: to each of them in turn.
	Servers []route.Route
}

// state is a State that several may look at.
type state struct {
	mutex sync.Mutex
	now   State
}

func (s *state) set(now State) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now = now
}

// State is how the pooler is now.
func (p *Pooler) State() State {
	p.state.mutex.Lock()
	defer p.state.mutex.Unlock()
	return p.state.now
}

// loginPatience is how long a hold waits for a server connection that is being opened.
const loginPatience = 100 * time.Millisecond

// hold is a PAUSE of PgBouncer: begun, and complete once no transaction is under way.
type hold struct {
	console console
	cancel  context.CancelFunc
	done    chan struct{}
	err     error // once done
	said    bool  // the log has that it is complete
}

// pause begins a hold; politely where the server still serves. told is called when it is complete, or has failed.
func (c console) pause(ctx context.Context, politely bool, told func()) *hold {
	ctx, cancel := context.WithCancel(ctx)
	h := &hold{console: c, cancel: cancel, done: make(chan struct{})}
	go func() {
		if politely {
			c.awaitNoLogin(ctx, loginPatience)
		}
		_, h.err = c.do(ctx, "PAUSE")
		close(h.done)
		told()
	}()
	return h
}

// complete says that no transaction is under way.
func (h *hold) complete() bool { return h.isDone() && h.err == nil }

// failed says that nothing is held.
func (h *hold) failed() bool { return h.isDone() && h.err != nil }

func (h *hold) isDone() bool { return closed(h.done) }

// end has the clients go on. PgBouncer goes on by itself when who waits for the end of a PAUSE hangs up.
func (h *hold) end(ctx context.Context) error {
	if !h.isDone() {
		h.cancel()
		<-h.done
	}
	_, err := h.console.quick(ctx, "RESUME")
	if err != nil && !h.complete() {
		return nil //nolint:nilerr // it has gone on already
	}
	return err
}
