package fleet

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
)

// ObserveLease reads the Lease, where it has not been read lately. In a deletion it is read each time: who it belongs
// to may have changed a moment ago.
func (s *fleetTopic) ObserveLease(ctx context.Context) (err error) {
	if s.DB.DeletionTimestamp == nil {
		if s.Seen.Lease = s.Leases.Recent(s.DB.UID, s.Now); s.Seen.Lease != nil {
			return nil
		}
	}
	s.Seen.Lease, err = world.Find(ctx, s.Reader, s.DB, naming.Lease(s.DB.Name), &coordinationv1.Lease{})
	return err
}

// ApplyWitness creates the Lease where there is none, and tells the agents its
// UID where that does no harm. What is in it is theirs.
func (s *fleetTopic) ApplyWitness(ctx context.Context) error {
	lease := s.Seen.Lease
	if lease == nil {
		lease = desired.Lease(s.DB)
		if err := s.Create(ctx, s.DB, lease); err != nil {
			return err
		}
	}
	if err := world.MayWrite(lease, s.DB, "Lease"); err != nil {
		return err
	}
	if s.mayWitness() {
		s.Config.Witness = string(lease.UID)
		s.Config = s.Config.Revise()
	}
	if s.Config.Witness == string(lease.UID) {
		s.Leases.Read(s.DB.UID, lease, s.Now)
	}
	return nil
}

// mayWitness says that an empty Lease says the truth: nobody goes on alone. So it
// is before there is any data, and while all instances are together. When a Lease was
// deleted and made anew, the new one knows nothing of an instance that had gone on alone
// by the former; until they are together, that one stays the witness, and a witness that
// is gone lets nobody go on.
func (s *fleetTopic) mayWitness() bool {
	if s.Config.Witness == "" && s.Config.SystemIdentifier == "" && len(s.Seen.Claims) == 0 {
		return true
	}
	return s.Healthy() && s.AllVote() == nil
}
