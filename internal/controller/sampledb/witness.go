package sampledb

import (
	"context"

	"toban.dev/internal/desired"
)

// applyWitness creates the Lease where there is none, and tells the agents its
// UID where that does no harm. What is in it is theirs.
func (r *Reconciler) applyWitness(ctx context.Context, s *scope) error {
	lease := s.seen.lease
	if lease == nil {
		lease = desired.Lease(s.db)
		if err := r.create(ctx, s.db, lease); err != nil {
			return err
		}
	}
	if err := mayWrite(lease, s.db, "Lease"); err != nil {
		return err
	}
	if mayWitness(s) {
		s.config.Witness = string(lease.UID)
		s.config = s.config.Revise()
	}
	return nil
}

// mayWitness says that an empty Lease says the truth: nobody goes on alone. So it
// is before there is any data, and while all instances are together. When a Lease was
// deleted and made anew, the new one knows nothing of an instance that had gone on alone
// by the former; until they are together, that one stays the witness, and a witness that
// is gone lets nobody go on.
func mayWitness(s *scope) bool {
	if s.config.Witness == "" && s.config.SystemIdentifier == "" && len(s.seen.claims) == 0 {
		return true
	}
	return s.healthy() && allVote(s) == nil
}
