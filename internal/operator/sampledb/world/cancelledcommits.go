package world

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/protocol"
)

// cancelledCommits remembers of each SampleDB how many commits were cancelled at its instances, as they count them. An
// operator that starts anew takes what it sees first. The zero value is ready for use; it is safe for concurrent use.
type cancelledCommits struct {
	mu  sync.Mutex
	all map[types.UID]map[string]cancelledSince
}

// cancelledSince is what an agent has counted since it has started.
type cancelledSince struct {
	boot  string
	count int64
}

// More says that commits were cancelled since the answers before.
func (c *cancelledCommits) More(db types.UID, answers map[string]protocol.Status) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[types.UID]map[string]cancelledSince{}
	}
	before, now, more := c.all[db], map[string]cancelledSince{}, false
	for name, last := range before {
		now[name] = last // it may not have answered
	}
	for name, answer := range answers {
		last, known := before[name]
		next := cancelledSince{answer.Boot, answer.Election.CancelledCommits}
		if last.boot != next.boot || next.count < last.count { // it has begun anew
			last.count = 0
		}
		more = more || known && next.count > last.count
		now[name] = next
	}
	c.all[db] = now
	return more
}

// Forget drops what is kept for a SampleDB that is gone.
func (c *cancelledCommits) Forget(db types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, db)
}
