package sampledb

import (
	"context"

	"toban.dev/internal/operator/desired"
)

// applyConfig writes the ConfigMap from which agents and the init Job start. The first
// time, the SampleDB's authority is put on record in it.
func (r *Reconciler) applyConfig(ctx context.Context, s *scope) error {
	if s.config.Authority == "" {
		authority, _, err := r.Credentials.Bundle(s.db, s.authorities(), "")
		if err != nil {
			return err
		}
		s.config.Authority = authority
		s.config.Archive = desired.Archive(s.db, s.config.Authority, desired.VersionsOf(s.config))
		s.config = s.config.Revise()
	}
	object, err := desired.ConfigMap(s.db, s.config)
	if err != nil {
		return err
	}
	return r.apply(ctx, s.db, object)
}
