package sampledb

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// leaseReader reads the one Lease that it has, and counts how often.
type leaseReader struct {
	client.Reader
	lease *coordinationv1.Lease // nil where it is gone
	reads int
}

func (l *leaseReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.reads++
	if l.lease == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, into.GetName())
	}
	l.lease.DeepCopyInto(into.(*coordinationv1.Lease)) //nolint:errcheck // it is one
	return nil
}

// To watch Leases is a right to see all of a cluster's, and each read is a request. So a Lease that the agents know is
// read now and then; one that they don't know yet, and that of a SampleDB that goes, at each look.
func TestTheLeaseIsReadAsOftenAsItMatters(t *testing.T) {
	for name, c := range map[string]struct {
		witness string // that the agents know
		goes    bool
		reads   int // in twenty looks, thirty seconds apart
	}{
		"the agents know it":          {"lease-1", false, 2},
		"the agents know another one": {"lease-0", false, 20},
		"the SampleDB is deleted":     {"lease-1", true, 20},
	} {
		t.Run(name, func(t *testing.T) {
			db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "db-1"}}
			reader := &leaseReader{lease: leaseOf(db)}
			r := &Reconciler{Reader: reader}
			now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
			if c.goes {
				db.DeletionTimestamp = &metav1.Time{Time: now}
			}
			for range 20 {
				s := newScope(world.New(&world.Core{DB: db, Now: now, Config: protocol.Config{Witness: c.witness}}),
					r.effects())
				if err := s.ObserveLease(t.Context()); err != nil || s.Seen.Lease.UID != "lease-1" {
					t.Fatalf("the Lease is %v: %v", s.Seen.Lease, err)
				}
				if err := s.ApplyWitness(t.Context()); err != nil && !c.goes {
					t.Fatal(err)
				}
				now = now.Add(30 * time.Second)
			}
			if reader.reads != c.reads {
				t.Errorf("it was read %d times, want %d", reader.reads, c.reads)
			}
		})
	}
}

// Whoever deletes a Lease is noticed after five minutes, and a SampleDB of the same name has nothing of the former one.
func TestALeaseThatIsGoneIsNoticed(t *testing.T) {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "db-1"}}
	reader := &leaseReader{lease: leaseOf(db)}
	r := &Reconciler{Reader: reader, Agents: &cluster{}}
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	look := func(db *v1.SampleDB, at time.Time) *coordinationv1.Lease {
		t.Helper()
		s := newScope(world.New(&world.Core{DB: db, Now: at, Config: protocol.Config{Witness: "lease-1"}}), r.effects())
		if err := s.ObserveLease(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease := s.Seen.Lease; lease != nil {
			if err := s.ApplyWitness(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		return s.Seen.Lease
	}
	look(db, now)
	reader.lease = nil
	if look(db, now.Add(4*time.Minute)) == nil {
		t.Error("it was read again after four minutes")
	}
	if lease := look(db, now.Add(5*time.Minute)); lease != nil {
		t.Errorf("after five minutes it is still there: %v", lease)
	}
	reader.lease = leaseOf(db)
	look(db, now.Add(6*time.Minute))
	reader.lease = nil
	r.forget(db.UID)
	if lease := look(db, now.Add(7*time.Minute)); lease != nil {
		t.Errorf("of a SampleDB that is gone there is still %v", lease)
	}
}

func leaseOf(db *v1.SampleDB) *coordinationv1.Lease {
	lease := desired.Lease(db)
	lease.UID = "lease-1"
	yes := true
	lease.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1.GroupVersion.String(), Kind: "SampleDB", Name: db.Name, UID: db.UID, Controller: &yes,
	}}
	return lease
}
