package secrets

import (
	"context"
	"fmt"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// secretsTopic creates the Secrets.
type secretsTopic struct{ base }

// ApplySecrets creates the Secrets. The operator may create Secrets but neither
// read nor change them, so it can't know whether they are there: it tries
// as long as some instance is not ready, less and less often, and seldom at rest, where somebody may have deleted one.
func (s *secretsTopic) ApplySecrets(ctx context.Context) error {
	authority, app := s.All.authoritySecretsWritten()
	resting := s.Healthy() && s.Rotation().Written && authority && app && s.PoolSecretWritten()
	if !s.Attempts.Due(s.DB.UID, s.Now, resting) {
		return nil
	}
	trusted := s.TrustedEpochs()
	there, err := s.createAuthoritySecret(ctx)
	if err != nil || s.TrustedEpochs() != trusted {
		return err // where others are trusted, the config has to say so first
	}
	more := []func(context.Context) (bool, error){}
	if desired.Initialises(s.DB) {
		more = append(more, s.All.createAppSecret)
	}
	if s.PoolerWanted() {
		more = append(more, s.Others.CreatePoolSecret)
	}
	for _, create := range more {
		one, err := create(ctx)
		if err != nil {
			return err
		}
		there = there || one
	}
	s.Attempts.Made(s.DB.UID, s.Now, there)
	return nil
}

// createAuthoritySecret creates NAME-ca with the authority that issues certificates, and says whether one was there. A
// former one goes with its revision.
func (s *secretsTopic) createAuthoritySecret(ctx context.Context) (there bool, err error) {
	all, err := s.Revisions(ctx, naming.AuthoritySecret(s.DB.Name))
	if err != nil {
		return false, err
	}
	for _, have := range all {
		if found := have.Revision - 1; found > s.Authority.Issuer { // the other records are out of date, or lost
			s.Authority.Issuer, s.Authority.Epoch = found, max(s.Authority.Epoch, found)
			return true, nil // what else follows from that, the next reconcile sees to
		}
	}
	epoch := s.Authority.Issuer
	authority, err := s.Credentials.Authority(s.DB, epoch)
	if err != nil {
		return false, fmt.Errorf("make the authority: %w", err)
	}
	key, err := authority.KeyPEM()
	if err != nil {
		return false, err
	}
	cert := authority.Find([]byte(s.Config.Authority))
	if cert == nil {
		cert = authority.CertPEM()
	}
	revision, err := s.KeepRevision(ctx, naming.AuthoritySecret(s.DB.Name), all,
		desired.AuthorityRevision(s.DB, epoch))
	if err != nil {
		return false, err
	}
	there, err = s.CreateSecret(ctx, revision, desired.AuthoritySecret(s.DB, revision, cert, key),
		s.Authority.Secret == epoch)
	if err == nil && !there {
		s.Authority.Secret = epoch
	}
	return there, err
}
