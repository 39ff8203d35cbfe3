package limits

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"toban.dev/internal/operator/shards"
)

// forgotten is after how long whoever has not asked again does not wait any more: all look at what they do more often.
const forgotten = 2 * time.Minute

// Places bounds how many Jobs run at once in all namespaces of which each belongs to an object, and nothing says who
// waits: whoever has asked first and asks still is first. The zero value, and nil, have no bound.
type Places struct {
	// Client reads from the cache.
	Client client.Reader
	// Limit is how many Jobs may run at once, 0 for any number. A shard may run its share of them, at least one.
	Limit int
	Shard shards.Shard
	// Component is the label of the Jobs and of their Pods, Owner the kind that they belong to.
	Component, Owner string

	mutex sync.Mutex
	begun map[types.NamespacedName]time.Time
	asked map[types.NamespacedName]asked
}

// asked is since when somebody waits, and when that was last seen.
type asked struct{ since, last time.Time }

// Take creates a Job for an object, if there is a place and nobody has waited for longer. Otherwise it says that it has
// not, and the object has to ask again.
func (p *Places) Take(
	ctx context.Context, object types.NamespacedName, job string, now time.Time, create func() error,
) (taken bool, err error) {
	if p == nil || p.Limit == 0 {
		return true, create()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.begun == nil {
		p.begun, p.asked = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]asked{}
	}
	all := ran{p.Client, p.Shard, p.Component, p.Owner}
	running, err := all.count(ctx, p.begun, now)
	if err != nil {
		return false, err
	}
	if running+p.before(object, now) >= max(p.Shard.Share(p.Limit), 1) {
		return false, nil
	}
	if err := create(); err != nil {
		return false, err
	}
	delete(p.asked, object)
	p.begun[types.NamespacedName{Namespace: object.Namespace, Name: job}] = now
	return true, nil
}

// before notes that an object waits, and says how many have waited for longer.
func (p *Places) before(object types.NamespacedName, now time.Time) (count int) {
	me := asked{since: now, last: now}
	if was, ok := p.asked[object]; ok && now.Sub(was.last) < forgotten {
		me.since = was.since
	}
	p.asked[object] = me
	for key, other := range p.asked {
		switch {
		case now.Sub(other.last) >= forgotten:
			delete(p.asked, key)
		case key != object &&
			cmp.Or(other.since.Compare(me.since), strings.Compare(key.String(), object.String())) < 0:
			count++
		}
	}
	return count
}
