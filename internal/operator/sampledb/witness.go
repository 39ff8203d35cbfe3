package sampledb

import (
	"context"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// leaseBelieved is for how long a Lease that the agents know is taken to be there. It is read past the cache, so that
// each read costs the API server something, and only somebody who deletes it changes what is read of it.
const leaseBelieved = pauseResting

// observeLease reads the Lease, where it has not been read lately. In a deletion it is read each time: who it belongs
// to may have changed a moment ago.
func (s *fleetTopic) observeLease(ctx context.Context) (err error) {
	if s.db.DeletionTimestamp == nil {
		if s.seen.lease = s.leases.recent(s.db.UID, s.now); s.seen.lease != nil {
			return nil
		}
	}
	s.seen.lease, err = find(ctx, s.Reader, s.db, naming.Lease(s.db.Name), &coordinationv1.Lease{})
	return err
}

// applyWitness creates the Lease where there is none, and tells the agents its
// UID where that does no harm. What is in it is theirs.
func (s *fleetTopic) applyWitness(ctx context.Context) error {
	lease := s.seen.lease
	if lease == nil {
		lease = desired.Lease(s.db)
		if err := s.create(ctx, s.db, lease); err != nil {
			return err
		}
	}
	if err := mayWrite(lease, s.db, "Lease"); err != nil {
		return err
	}
	if s.mayWitness() {
		s.config.Witness = string(lease.UID)
		s.config = s.config.Revise()
	}
	if s.config.Witness == string(lease.UID) {
		s.leases.read(s.db.UID, lease, s.now)
	}
	return nil
}

// mayWitness says that an empty Lease says the truth: nobody goes on alone. So it
// is before there is any data, and while all instances are together. When a Lease was
// deleted and made anew, the new one knows nothing of an instance that had gone on alone
// by the former; until they are together, that one stays the witness, and a witness that
// is gone lets nobody go on.
func (s *fleetTopic) mayWitness() bool {
	if s.config.Witness == "" && s.config.SystemIdentifier == "" && len(s.seen.claims) == 0 {
		return true
	}
	return s.healthy() && s.allVote() == nil
}

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

// recent is the Lease of a SampleDB as it was read, nil where that was too long ago.
func (l *leases) recent(uid types.UID, now time.Time) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.all[uid]; ok && now.Before(last.at.Add(leaseBelieved)) {
		return last.lease
	}
	return nil
}

// read remembers what says whose a Lease is, unless that was remembered lately: what was not read now is not newer now.
func (l *leases) read(uid types.UID, lease *coordinationv1.Lease, now time.Time) {
	if l.recent(uid, now) != nil {
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

func (l *leases) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, uid)
}
