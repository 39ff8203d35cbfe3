package agent

import "sync"

// waitLock is a mutex that is held while something takes time, as a query of the server does. Who waits for it waits at
// a channel and not at a sync.Mutex: only so a test in virtual time (testing/synctest) knows that nothing but time goes
// on meanwhile. The zero value is ready for use.
type waitLock struct {
	once sync.Once
	held chan struct{}
}

func (l *waitLock) Lock() {
	l.make()
	l.held <- struct{}{}
}

// TryLock locks it if nobody holds it.
func (l *waitLock) TryLock() bool {
	l.make()
	select {
	case l.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *waitLock) make() { l.once.Do(func() { l.held = make(chan struct{}, 1) }) }

func (l *waitLock) Unlock() { <-l.held }
