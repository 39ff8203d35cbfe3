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
	all map[types.UID]map[string]int64
}

// More says that commits were cancelled since the answers before. An agent that counts less than before has started
// anew.
func (c *cancelledCommits) More(db types.UID, answers map[string]protocol.Status) (more bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[types.UID]map[string]int64{}
	}
	counted := c.all[db]
	if counted == nil {
		counted = map[string]int64{}
		c.all[db] = counted
	}
	for name, answer := range answers {
		last, known := counted[name]
		now := answer.Election.CancelledCommits
		more = more || known && (now > last || now < last && now > 0)
		counted[name] = now
	}
	return more
}

// Forget drops what is kept for a SampleDB that is gone.
func (c *cancelledCommits) Forget(db types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, db)
}
