package agents

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A worker of a controller waits for an agent only as long as agents take that are well. One that takes longer is asked
// again beside, where it may take its time; whoever wants to know how it is gets ErrDoubted meanwhile. If it does not
// answer there either, it is silent: it is asked beside only, ever more seldom, and everybody else gets ErrSilent at
// once. When it has answered, it is waited for again, for as long as an agent may take at most.

const (
	// patienceFirst is how long a worker waits for an agent that has always been quick.
	patienceFirst = 250 * time.Millisecond
	// patienceLast is how long an agent may take at most.
	patienceLast = 2 * time.Second
	// firstSilence and lastSilence are how long a silent agent is left alone: longer each time.
	firstSilence = time.Second
	lastSilence  = 15 * time.Second
	// forgotten is after how long nothing is kept of an agent that nobody has asked for.
	forgotten = time.Hour
)

var (
	// ErrDoubted says that an agent has not answered quickly, and is being asked beside. What comes of that is told
	// within seconds: until then nothing should be decided.
	ErrDoubted = errors.New("the agent has not answered yet, and is being asked again")
	// ErrSilent says that an agent did not answer when it was asked last.
	ErrSilent = errors.New("the agent did not answer when it was asked last")
)

// at is where an agent is.
type at struct {
	cluster types.UID
	host    string
}

// standing is how an agent that is not always quick has answered.
type standing struct {
	// asking says that it is being asked beside.
	asking bool
	// silences is how often in a row it did not answer, next when it may be asked beside again.
	silences int
	next     time.Time
	used     time.Time
}

// silences remembers the agents that are not always quick. The zero value is ready for use.
type silences struct {
	mu  sync.Mutex
	all map[at]*standing
}

// patience is how long a worker may wait for an agent now. Where it may not wait at all, the error says why, and beside
// whether the agent is to be asked beside.
func (s *silences) patience(who at, now time.Time) (wait time.Duration, beside bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.all[who]
	switch {
	case a == nil:
		return patienceFirst, false, nil
	case a.silences == 0 && a.asking:
		return 0, false, ErrDoubted
	case a.silences == 0:
		a.used = now
		return patienceLast, false, nil
	}
	a.used = now
	if a.asking || now.Before(a.next) {
		return 0, false, ErrSilent
	}
	a.asking = true
	return 0, true, ErrSilent
}

// doubt notes that an agent did not answer quickly. It is false where it is being asked beside already.
func (s *silences) doubt(who at, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[at]*standing{}
	}
	for other, a := range s.all {
		if !a.asking && now.Sub(a.used) > forgotten {
			delete(s.all, other)
		}
	}
	if s.all[who] == nil {
		s.all[who] = &standing{}
	}
	first := !s.all[who].asking
	s.all[who].asking, s.all[who].used = true, now
	return first
}

// quick notes that an agent has answered quickly.
func (s *silences) quick(who at) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.all[who]; a != nil && !a.asking {
		delete(s.all, who)
	}
}

// settle notes what came of asking an agent beside, and says whether that is news.
func (s *silences) settle(who at, answered bool, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.all[who]
	if a == nil {
		return false // nobody wants to know any more
	}
	was := a.silences
	a.asking = false
	if answered {
		a.silences = 0
		return true
	}
	a.silences++
	a.next = now.Add(min(firstSilence<<min(a.silences-1, 10), lastSilence))
	return was == 0
}

// forget drops what is kept of the agents of a SampleDB.
func (s *silences) forget(cluster types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for who := range s.all {
		if who.cluster == cluster {
			delete(s.all, who)
		}
	}
}

// inquiry is a question to an agent.
type inquiry struct {
	who at
	// ask asks for a worker; again only finds out, beside, whether the agent answers.
	ask, again func(context.Context) error
	// tell is told when it is known more of the agent.
	tell func()
}

// sync asks an agent within the patience that there is for it now, and beside where it is not quick.
func (s *silences) sync(ctx context.Context, q inquiry) error {
	wait, beside, err := s.patience(q.who, time.Now())
	if beside {
		go s.askBeside(context.WithoutCancel(ctx), q)
	}
	if err != nil {
		return err
	}
	inTime, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	start := time.Now()
	err = q.ask(inTime)
	switch {
	case err == nil && time.Since(start) < patienceFirst:
		s.quick(q.who)
		return nil
	case err == nil || inTime.Err() == nil || ctx.Err() != nil:
		return err // a late answer; a refusal; or nobody waits any more
	}
	if s.doubt(q.who, time.Now()) {
		go s.askBeside(context.WithoutCancel(ctx), q)
	}
	return ErrDoubted
}

// askBeside finds out whether an agent answers with the longest patience.
func (s *silences) askBeside(ctx context.Context, q inquiry) {
	inTime, cancel := context.WithTimeout(ctx, patienceLast)
	defer cancel()
	err := q.again(inTime)
	// Who refuses quickly keeps nobody waiting.
	if s.settle(q.who, err == nil || inTime.Err() == nil, time.Now()) {
		q.tell()
	}
}
