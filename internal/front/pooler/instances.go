package pooler

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"toban.dev/internal/front/route"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

const (
	// askPatience is how long an answer may take: the instance keeps the question for protocol.PoolerWaits.
	askPatience = 2 * protocol.PoolerWaits
	// askPause is how long after a failure an instance is asked again.
	askPause = 100 * time.Millisecond
)

// Asker asks an instance: a protocol.Client.
type Asker interface {
	AskAsPooler(ctx context.Context, host string, asks protocol.PoolerAsks) (protocol.InstanceTells, error)
}

// instances asks each instance how it is, all the time, and remembers what each has told last.
type instances struct {
	name  string // the pooler's
	asker Asker
	// changed is told that something has changed; it must not wait.
	changed func()

	mutex    sync.Mutex
	told     map[string]protocol.InstanceTells // by host
	watching map[string]context.CancelFunc     // by host
	holds    string
	elected  bool // see begun
	// again is closed when the instances are to hear of another hold.
	again chan struct{}
}

func newInstances(name string, asker Asker, changed func()) *instances {
	return &instances{
		name: name, asker: asker, changed: changed, told: map[string]protocol.InstanceTells{},
		watching: map[string]context.CancelFunc{}, again: make(chan struct{}),
	}
}

// watch asks the instances with these hosts from now on, and no others, until ctx ends.
func (i *instances) watch(ctx context.Context, hosts []string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	for host, stop := range i.watching {
		if !slices.Contains(hosts, host) {
			stop()
			delete(i.watching, host)
			delete(i.told, host)
		}
	}
	for _, host := range hosts {
		if i.watching[host] == nil {
			watched, stop := context.WithCancel(ctx)
			i.watching[host] = stop
			go i.ask(watched, host)
		}
	}
}

// all is what the instances have told last.
func (i *instances) all() []protocol.InstanceTells {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Collect(maps.Values(i.told))
}

// of is what those with these hosts have told last.
func (i *instances) of(hosts []string) []protocol.InstanceTells {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var out []protocol.InstanceTells
	for _, host := range hosts {
		if told, known := i.told[host]; known {
			out = append(out, told)
		}
	}
	return out
}

// begun says that one of them has told of an election: there has been a leader, or will be one at once.
func (i *instances) begun() bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.elected
}

// silent has an instance that does not answer count as no standby that serves: who reads there would wait. Whether it
// leads, silence does not say.
func (i *instances) silent(host string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if told := i.told[host]; told.Reads {
		told.Reads = false
		i.told[host] = told
		i.changed()
	}
}

// hold has the instances know for which hand-over the clients are held, "" for none.
func (i *instances) hold(handOver string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.holds != handOver {
		i.holds = handOver
		close(i.again)
		i.again = make(chan struct{})
	}
}

// ask asks an instance until ctx ends. The first time that it fails it is asked again at once: whether nobody is there
// any more, a connection that broke does not say.
func (i *instances) ask(ctx context.Context, host string) {
	for failed := false; ctx.Err() == nil; {
		err := i.askOnce(ctx, host)
		if err != nil && failed {
			i.silent(host)
			pause.For(ctx, askPause)
		}
		failed = err != nil
	}
}

// askOnce waits for news of an instance. Where its address does not answer, it may be another one now, and the instance
// is asked by its name.
func (i *instances) askOnce(ctx context.Context, host string) error {
	asks, way, again := i.question(host)
	tells, err := i.askBy(ctx, way, asks, again)
	if err != nil && way != host && !closed(again) {
		tells, err = i.askBy(ctx, host, asks, again)
	}
	switch {
	case closed(again):
		return nil // it is asked anew
	case err == nil:
		i.hear(host, tells)
	case errors.Is(err, syscall.ECONNREFUSED):
		i.hear(host, protocol.InstanceTells{}) // nobody is there: that is an answer
	}
	return err
}

// askBy asks by an address or a name, until the question is out of date.
func (i *instances) askBy(
	ctx context.Context, way string, asks protocol.PoolerAsks, again <-chan struct{},
) (protocol.InstanceTells, error) {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	go func() {
		select {
		case <-again:
			cancel()
		case <-ctx.Done():
		}
	}()
	return i.asker.AskAsPooler(ctx, way, asks)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// question is what to ask an instance, by which way, and what is closed when that is out of date. Another instance may
// know its address: that is sooner than a look-up, which a cache may answer with what was.
func (i *instances) question(host string) (asks protocol.PoolerAsks, way string, again <-chan struct{}) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	way = host
	for _, told := range i.told {
		for _, m := range told.Members {
			if m.Host == host && m.Address != "" {
				way = m.Address
			}
		}
	}
	return protocol.PoolerAsks{Pooler: i.name, Heard: i.told[host], Holds: i.holds}, way, i.again
}

func (i *instances) hear(host string, tells protocol.InstanceTells) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.watching[host] == nil || reflect.DeepEqual(i.told[host], tells) {
		return
	}
	i.told[host], i.elected = tells, i.elected || tells.Term > 0
	i.changed()
}

// confirmPatience is how long an instance may take to confirm that clients may go there.
const confirmPatience = 500 * time.Millisecond

// confirms asks the instance of a route whether it leads, or serves as a standby, and does not wait for a change.
func (i *instances) confirms(ctx context.Context, to route.Route, is route.Reason) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmPatience)
	defer cancel()
	i.mutex.Lock()
	asks := protocol.PoolerAsks{Pooler: i.name, Holds: i.holds}
	i.mutex.Unlock()
	tells, err := i.asker.AskAsPooler(ctx, to.Address, asks)
	if is == route.StandbysServe {
		return err == nil && tells.Reads
	}
	return err == nil && tells.Leads && tells.Term == to.Term
}
