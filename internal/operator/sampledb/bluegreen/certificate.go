package bluegreen

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/sides"
)

// greenUnshown is why green does not show clients the certificate that they know, "" where every instance does.
func greenUnshown(green *v1.SampleDB) string {
	if green == nil {
		return ""
	}
	c := meta.FindStatusCondition(green.Status.Conditions, v1.ConditionCertificateServed)
	switch {
	case c == nil:
		return fmt.Sprintf("the SampleDB %s has not said yet which certificate it shows", green.Name)
	case c.Status != metav1.ConditionTrue:
		return fmt.Sprintf("the SampleDB %s does not show clients the certificate that they know: %s", green.Name,
			c.Message)
	}
	return ""
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
