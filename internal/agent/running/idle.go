package running

import (
	"context"
	"sync"
	"time"
)

// idleForgotten is after how long without a look it is not known any more whether clients do something.
const idleForgotten = 5 * time.Second

// Idle is for how long no client has done anything with the server of this instance (docs/stop.md, "Sleep").
type Idle struct {
	mutex sync.Mutex
	// done is when a client was last seen to do something, or when the server started; looked is when it was last
	// looked, zero for not yet.
	done, looked time.Time
}

// begin begins anew: what was before the server started is not known.
func (i *Idle) begin(now time.Time) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.done, i.looked = now, time.Time{}
}

// see notes for how long no session has done anything; known is false where there is none that ever did.
func (i *Idle) see(now time.Time, ago time.Duration, known bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if at := now.Add(-ago); known && at.After(i.done) {
		i.done = at
	}
	i.looked = now
}

// Lasts is for how long it has lasted, nil where that is not known.
func (i *Idle) Lasts(now time.Time) *time.Duration {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.looked.IsZero() || now.Sub(i.looked) > idleForgotten {
		return nil
	}
	lasts := now.Sub(i.done)
	return &lasts
}

// observeIdle looks for how long no client has done anything, where somebody wants to know that.
func (t *monitor) observeIdle(ctx context.Context) error {
	if !t.wanted().Idles {
		return nil
	}
	ago, known, err := t.session.Idle(ctx)
	if err != nil {
		return err
	}
	t.idle.see(time.Now(), ago, known)
	return nil
}
