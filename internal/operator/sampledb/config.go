package sampledb

import (
	"context"

	"toban.dev/internal/operator/desired"
)

// applyConfig writes the ConfigMap from which agents and the init Job start. The first
// time, the SampleDB's authority is put on record in it.
func (s *scope) applyConfig(ctx context.Context) error {
	if s.config.Authority == "" {
		authority, _, err := s.Credentials.Bundle(s.db, s.authorities(), "")
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
	return s.apply(ctx, s.db, object)
}
