package world

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// leaseBelieved is for how long a Lease that the agents know is taken to be there. It is read past the cache, so that
// each read costs the API server something, and only somebody who deletes it changes what is read of it.
const leaseBelieved = PauseResting

// leases remembers the Leases that agents know as their witness, by the UID of the SampleDB. The zero value is ready
// for use; it is safe for concurrent use.
type leases struct {
	mu  sync.Mutex
	all map[types.UID]leaseRead
}

type leaseRead struct {
	lease *coordinationv1.Lease
	at    time.Time
}

// Recent is the Lease of a SampleDB as it was read, nil where that was too long ago.
func (l *leases) Recent(uid types.UID, now time.Time) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.all[uid]; ok && now.Before(last.at.Add(leaseBelieved)) {
		return last.lease
	}
	return nil
}

// Read remembers what says whose a Lease is, unless that was remembered lately: what was not read now is not newer now.
func (l *leases) Read(uid types.UID, lease *coordinationv1.Lease, now time.Time) {
	if l.Recent(uid, now) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[types.UID]leaseRead{}
	}
	l.all[uid] = leaseRead{at: now, lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID,
		Labels: lease.Labels, OwnerReferences: lease.OwnerReferences,
	}}}
}

func (l *leases) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, uid)
}
