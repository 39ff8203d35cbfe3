package pooler

import (
	"sync"

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
