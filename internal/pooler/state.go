package pooler

import (
	"sync"

	"toban.dev/internal/route"
)

// State is how a pooler is.
type State struct {
	route.Decision
	// Held says that no transaction is under way, and none begins.
	Held bool
}

// state is a State that several may look at.
type state struct {
	mutex sync.Mutex
	now   State
}

func (s *state) set(d route.Decision, held bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.now = State{d, held}
}

// State is how the pooler is now.
func (p *Pooler) State() State {
	p.state.mutex.Lock()
	defer p.state.mutex.Unlock()
	return p.state.now
}
