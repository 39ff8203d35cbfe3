package bluegreen

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// greenTopic makes the second side, and removes it.
type greenTopic struct{ base }

// branch is the archive's newest one, 0 where there is one only.
func (s *greenTopic) branch() (newest int64) {
	if s.DB.Status.Backup == nil {
		return 0
	}
	several := false
	for _, w := range s.DB.Status.Backup.Windows {
		several = several || newest != 0 && w.Branch != newest
		newest = max(newest, w.Branch)
	}
	if !several {
		return 0
	}
	return newest
}

// createGreenCertificate makes the certificate that green shows clients: NAME's authority issues it, for NAME's names.
func (s *greenTopic) createGreenCertificate(ctx context.Context, green *v1.SampleDB) error {
	name := naming.GreenCertificate(s.DB.Name)
	all, err := s.Revisions(ctx, name)
	if err != nil {
		return err
	}
	epoch, trusted := s.Authority.Issuer, s.Config.Authority
	revision, err := s.KeepRevision(ctx, name, all, sides.GreenCertificateRevision(s.DB, epoch, trusted))
	if err != nil {
		return err
	}
	authority, err := s.Credentials.Authority(s.DB, epoch)
	if err != nil {
		return fmt.Errorf("make the authority: %w", err)
	}
	leaf, err := authority.IssueLasting(naming.IdentityGreen, sides.GreenNames(s.DB), s.Now)
	if err != nil {
		return fmt.Errorf("issue the certificate of %s: %w", name, err)
	}
	secret := sides.GreenCertificateSecret(s.DB, revision, leaf.CertPEM, leaf.KeyPEM, trusted)
	_, err = s.CreateSecret(ctx, revision, secret, green != nil)
	return err
}

// removeGreenCertificate removes it with what it belongs to.
func (s *greenTopic) removeGreenCertificate(ctx context.Context) error {
	all, err := s.Revisions(ctx, naming.GreenCertificate(s.DB.Name))
	if err != nil {
		return err
	}
	for i := range all {
		if err := s.DeleteRevision(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// configOfGreen is what green's agents are told, nil where there is none yet.
func (s *greenTopic) configOfGreen(ctx context.Context, green *v1.SampleDB) (*protocol.Config, error) {
	if green == nil {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	object, err := world.Find(ctx, s.Client, green, naming.ConfigMap(green.Name), &corev1.ConfigMap{})
	if object == nil || err != nil {
		return nil, err
	}
	config, err := desired.ParseConfig(object)
	if err != nil {
		return nil, err
	}
	return &config, nil
}
