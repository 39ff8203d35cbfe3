package agents

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

const (
	// poolerPatience is how long a pooler may take to answer, which keeps the question while nothing changes.
	poolerPatience = protocol.WaitingWaits + 5*time.Second
	// firstPoolerPause and lastPoolerPause are how long a pooler is left alone that did not answer: longer each time.
	firstPoolerPause = time.Second
	lastPoolerPause  = 10 * time.Second
)

// heardPoolers are the poolers that are asked all the time, by their SampleDB, and what each has told last.
type heardPoolers struct {
	mutex sync.Mutex
	of    map[types.UID]map[string]*heardPooler // by the host
}

// heardPooler is one of them.
type heardPooler struct {
	authority, operator string
	stop                context.CancelFunc
	told                *protocol.PoolTells // nil where it did not answer the last question
}

// Waiting is what the poolers at some hosts have told last, without those that do not answer. They are asked from now
// on, all the time, and no others of the SampleDB: it is looked at again as soon as one tells something else.
func (a *HTTPS) Waiting(cluster types.UID, hosts []string, config protocol.Config) map[string]protocol.PoolTells {
	p := &a.poolers
	p.mutex.Lock()
	defer p.mutex.Unlock()
	all := p.of[cluster]
	for host, heard := range all {
		if !slices.Contains(hosts, host) || heard.authority != config.Authority || heard.operator != config.Operator {
			heard.stop()
			delete(all, host)
		}
	}
	out := map[string]protocol.PoolTells{}
	for _, host := range hosts {
		if all[host] == nil {
			all = p.listen(a, cluster, host, config)
		}
		if told := all[host].told; told != nil {
			out[host] = *told
		}
	}
	if len(all) == 0 {
		delete(p.of, cluster)
	}
	return out
}

// listen asks a pooler from now on. It is called with the mutex held.
func (p *heardPoolers) listen(
	a *HTTPS, cluster types.UID, host string, config protocol.Config,
) map[string]*heardPooler {
	if p.of == nil {
		p.of = map[types.UID]map[string]*heardPooler{}
	}
	if p.of[cluster] == nil {
		p.of[cluster] = map[string]*heardPooler{}
	}
	ctx, stop := context.WithCancel(context.Background())
	heard := &heardPooler{authority: config.Authority, operator: config.Operator, stop: stop}
	p.of[cluster][host] = heard
	go func() {
		for wait := firstPoolerPause; ctx.Err() == nil; {
			changed, err := a.askPooler(ctx, host, config, heard)
			if changed {
				a.tell(config.Namespace, config.Cluster)
			}
			if err == nil {
				wait = firstPoolerPause
				continue
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
			wait = min(2*wait, lastPoolerPause)
		}
	}()
	return p.of[cluster]
}

// askPooler waits for news of a pooler, and says whether there is some.
func (a *HTTPS) askPooler(
	ctx context.Context, host string, config protocol.Config, heard *heardPooler,
) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, poolerPatience)
	defer cancel()
	var told *protocol.PoolTells
	roots, err := pki.Pool(config.Authority)
	if err == nil {
		c := a.connect(pki.ClientTLS(a.by(config.Operator), roots, naming.IdentityPooler))
		defer c.Close()
		var tells protocol.PoolTells
		if tells, err = c.Waiting(ctx, host, a.poolers.last(heard)); err == nil {
			told = &tells
		}
	}
	return a.poolers.hear(heard, told), err
}

func (p *heardPoolers) last(heard *heardPooler) *protocol.PoolTells {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return heard.told
}

// hear notes what a pooler tells, nil where it does not answer.
func (p *heardPoolers) hear(heard *heardPooler, told *protocol.PoolTells) (changed bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	before := heard.told
	heard.told = told
	return (before == nil) != (told == nil) || before != nil && *before != *told
}

// forget asks no pooler of a SampleDB any more.
func (p *heardPoolers) forget(cluster types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for heard := range maps.Values(p.of[cluster]) {
		heard.stop()
	}
	delete(p.of, cluster)
}
