// Package status holds what an instance says of itself.
package status

import (
	"sync"
	"time"

	"toban.dev/internal/protocol"
)

// Board is what an instance says of itself. Each component of the agent writes what it knows.
type Board struct {
	mutex   sync.Mutex
	current protocol.Status
	// heard is when the leader was heard last, zero for unknown.
	heard time.Time
	// changed is closed at the next change; nil while nobody waits for that.
	changed chan struct{}
}

// New is a board with a first status.
func New(first protocol.Status) *Board { return &Board{current: first} }

// Get is how the instance is.
func (b *Board) Get() protocol.Status {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.heard.IsZero() {
		b.current.Election.Silence = time.Since(b.heard)
	}
	return b.current
}

// Hear notes for how long the leader has not been heard, at this moment. That goes on between two changes: an old word
// of it would keep a leader going for too long.
func (b *Board) Hear(silence time.Duration) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.heard = time.Now().Add(-silence)
}

// Change changes what is said. Who has heard it knows by the number what is newer.
func (b *Board) Change(change func(*protocol.Status)) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	change(&b.current)
	b.current.Number++
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Changed is closed when the status changes next.
func (b *Board) Changed() <-chan struct{} {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	return b.changed
}
