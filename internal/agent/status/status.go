// Package status holds what an instance says of itself.
package status

import (
	"sync"

	"toban.dev/internal/protocol"
)

// Board is what an instance says of itself. Each room of the agent writes what it knows.
type Board struct {
	mutex   sync.Mutex
	current protocol.Status
}

// New is a board with a first status.
func New(first protocol.Status) *Board { return &Board{current: first} }

// Get is how the instance is.
func (b *Board) Get() protocol.Status {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.current
}

// Change changes what is said. Who has heard it knows by the number what is newer.
func (b *Board) Change(change func(*protocol.Status)) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	change(&b.current)
	b.current.Number++
}
