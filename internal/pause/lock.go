package pause

import "sync"

// Lock is a mutex that is held while something takes time, as a query of the server does. Who waits for it waits at
// a channel and not at a sync.Mutex: only so a test in virtual time (testing/synctest) knows that nothing but time goes
// on meanwhile. The zero value is ready for use.
type Lock struct {
	once sync.Once
	held chan struct{}
}

// Lock waits until nobody else holds it.
func (l *Lock) Lock() {
	l.make()
	l.held <- struct{}{}
}

// TryLock locks it if nobody holds it.
func (l *Lock) TryLock() bool {
	l.make()
	select {
	case l.held <- struct{}{}:
		return true
	default:
		return false
	}
}

func (l *Lock) make() { l.once.Do(func() { l.held = make(chan struct{}, 1) }) }

// Unlock lets the next one have it.
func (l *Lock) Unlock() { <-l.held }
