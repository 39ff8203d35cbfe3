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
	l.once.Do(func() { l.held = make(chan struct{}, 1) })
	l.held <- struct{}{}
}

func (l *waitLock) Unlock() { <-l.held }
