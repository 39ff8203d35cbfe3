package pooler

import (
	"context"
	"errors"
	"net"
	"os"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/front/route"
	"toban.dev/internal/protocol"
)

// errHangs is of who never answers.
var errHangs = errors.New("hangs")

// told are instances that answer at once when something has changed, and else after protocol.PoolerWaits.
type told struct {
	mutex sync.Mutex
	by    map[string]protocol.InstanceTells // by host or address
	fails map[string]error
	asks  map[string]protocol.PoolerAsks
}

func (f *told) AskAsPooler(
	ctx context.Context, host string, asks protocol.PoolerAsks,
) (protocol.InstanceTells, error) {
	for waited := time.Duration(0); ; waited += 10 * time.Millisecond {
		if ctx.Err() != nil {
			return protocol.InstanceTells{}, ctx.Err()
		}
		f.mutex.Lock()
		f.asks[host] = asks
		tells, err := f.by[host], f.fails[host]
		f.mutex.Unlock()
		if errors.Is(err, errHangs) {
			<-ctx.Done()
			return tells, ctx.Err()
		}
		if err != nil || !reflect.DeepEqual(tells, asks.Heard) || waited >= protocol.PoolerWaits {
			return tells, err
		}
		select {
		case <-ctx.Done():
			return tells, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (f *told) tell(host string, tells protocol.InstanceTells, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.by[host], f.fails[host] = tells, err
}

func (f *told) holds(host string) string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.asks[host].Holds
}

// asking are instances x-0 and x-1 that are asked.
func asking(t *testing.T) (*told, *instances, func() int) {
	t.Helper()
	f := &told{
		by: map[string]protocol.InstanceTells{
			"x-0": {Name: "x-0", Address: "10.0.0.1", Leads: true, Term: 3},
			"x-1": {Name: "x-1", Address: "10.0.0.2", Term: 3},
		},
		fails: map[string]error{}, asks: map[string]protocol.PoolerAsks{},
	}
	changes := 0
	var mutex sync.Mutex
	i := newInstances("pool", f, func() { mutex.Lock(); changes++; mutex.Unlock() })
	i.watch(t.Context(), []string{"x-0", "x-1"})
	return f, i, func() int { mutex.Lock(); defer mutex.Unlock(); return changes }
}

func soon() { time.Sleep(300 * time.Millisecond); synctest.Wait() }

// What is refused is known, what is silent is not.
func TestAnInstanceThatIsSilentStaysWhatItWas(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, c := range map[string]struct {
		fails error
		leads bool
	}{
		"nobody listens there": {refused, false},
		"it does not answer":   {context.DeadlineExceeded, true},
		"it hangs up":          {errors.New("EOF"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, i, _ := asking(t)
				soon()
				f.tell("x-0", protocol.InstanceTells{}, c.fails)
				soon()
				if got := route.Decide(route.Route{}, i.all()).Reason == route.LeaderKnown; got != c.leads {
					t.Errorf("it leads: %v", got)
				}
			})
		})
	}
}

// A pooler that starts while no instance leads is ready to hold clients as soon as one tells it of an election. Where
// there was none, and where nobody is heard, it is not.
func TestAPoolerThatStartsWhileNobodyLeadsIsReady(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for name, c := range map[string]struct {
		tells protocol.InstanceTells
		fails error
		ready bool
	}{
		"an instance has voted":  {protocol.InstanceTells{Name: "x-0", Term: 3}, nil, true},
		"nobody was elected yet": {protocol.InstanceTells{Name: "x-0"}, nil, false},
		"nobody listens":         {protocol.InstanceTells{}, refused, false},
		"nobody answers":         {protocol.InstanceTells{}, context.DeadlineExceeded, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &told{
					by:    map[string]protocol.InstanceTells{"x-0": c.tells},
					fails: map[string]error{"x-0": c.fails}, asks: map[string]protocol.PoolerAsks{},
				}
				p := &Pooler{instances: newInstances("pool", f, func() {})}
				p.instances.watch(t.Context(), []string{"x-0"})
				soon()
				for range 2 { // also when nobody listens there any more
					if err := p.ready(t.Context()); (err == nil) != c.ready {
						t.Errorf("its readiness is %v", err)
					}
					f.tell("x-0", protocol.InstanceTells{}, refused)
					soon()
				}
			})
		})
	}
}

// A change is heard at once, and nothing is told of what stays.
func TestChangesAreHeardAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, i, changes := asking(t)
		time.Sleep(time.Minute)
		if n := changes(); n != 2 {
			t.Errorf("two instances were heard of, and %d changes", n)
		}
		f.tell("x-1", protocol.InstanceTells{Name: "x-1", Address: "10.0.0.2", Leads: true, Term: 4}, nil)
		soon()
		if d := route.Decide(route.Route{}, i.all()); d.Route.Instance != "x-1" || changes() != 3 {
			t.Errorf("it goes to %+v after %d changes", d, changes())
		}
		i.watch(t.Context(), []string{"x-0"})
		if d := route.Decide(route.Route{}, i.all()); d.Route.Instance != "x-0" {
			t.Errorf("one that is no instance any more counts: %+v", d)
		}
	})
}

// Instances hear at once that the clients are held. Who is reached by an address is asked by its name where that fails.
func TestInstancesHearOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, i, _ := asking(t)
		time.Sleep(500 * time.Millisecond) // in the middle of a question
		i.hold("hand-over")
		time.Sleep(50 * time.Millisecond)
		if f.holds("x-0") != "hand-over" || f.holds("x-1") != "hand-over" {
			t.Errorf("they hear %q and %q", f.holds("x-0"), f.holds("x-1"))
		}
		members := []protocol.Member{{Name: "x-0", Host: "x-0", Address: "10.0.0.9"}}
		f.tell("10.0.0.9", protocol.InstanceTells{}, errHangs)
		f.tell("x-1", protocol.InstanceTells{Name: "x-1", Members: members}, nil)
		time.Sleep(2 * protocol.PoolerWaits) // the question that was asked by its name has had its answer
		f.tell("x-0", protocol.InstanceTells{Name: "x-0", Term: 7}, nil)
		time.Sleep(10 * time.Second)
		found := uint64(0)
		for _, tells := range i.all() {
			if tells.Name == "x-0" {
				found = tells.Term
			}
		}
		if found != 7 {
			t.Errorf("x-0 was heard last in term %d", found)
		}
	})
}
