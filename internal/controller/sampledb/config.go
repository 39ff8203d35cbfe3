package sampledb

import (
	"context"
	"fmt"

	"toban.dev/internal/desired"
)

// applyConfig writes the ConfigMap from which agents and the init Job start. The first
// time, the SampleDB's authority is put on record in it.
func (r *Reconciler) applyConfig(ctx context.Context, s *scope) error {
	if s.config.Authority == "" {
		authority, err := r.Credentials.Authority(s.db)
		if err != nil {
			return fmt.Errorf("make the authority: %w", err)
		}
		s.config.Authority = string(authority.CertPEM())
		s.config.Archive = desired.Archive(s.db, s.config.Authority)
		s.config = s.config.Revise()
	}
	object, err := desired.ConfigMap(s.db, s.config)
	if err != nil {
		return err
	}
	return r.apply(ctx, s.db, object)
}
