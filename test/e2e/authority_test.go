//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// One annotation replaces the authority, under load. Sessions that are open stay, nothing restarts, backups work before
// and after, and a certificate of the former authority is no use any more.
func TestLongRotationOfTheAuthority(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 3))
	s.ready("shop")
	access := s.access("shop", naming.ReadWriteService("shop"))
	writer, err := outside.StartWriter(s.ctx, access)
	must(t, err)
	defer writer.Stop()
	s.rowsAtLeast("shop", 50)
	session, err := access.Patient().Connect(s.ctx)
	must(t, err)
	defer session.Close(s.ctx)
	backend, started, former := backendOf(s, session), s.startedAt("shop"), s.secretOf("shop-ca")

	s.run("annotate", "sampledb", "shop", naming.AnnotationRotateAuthority+"=0s")
	s.authorityAlone("shop", 1)
	now := s.secretOf("shop-ca")
	ids := pki.KeyIDs(string(now[naming.KeyCA]))
	if ids[0] == pki.KeyIDs(string(former[naming.KeyCA]))[0] {
		t.Fatal("NAME-ca has the former authority")
	}
	if app := pki.KeyIDs(string(s.secretOf("shop-app")[naming.KeyCA])); len(app) != 1 || app[0] != ids[0] {
		t.Errorf("applications trust %v, want %v", app, ids)
	}
	if now := backendOf(s, session); now != backend {
		t.Errorf("the session had the process %d and has %d", backend, now)
	}
	if now := s.startedAt("shop"); now != started {
		t.Errorf("the servers started at %s, and before the rotation at %s", now, started)
	}
	for i := range 3 {
		shown, err := s.inside(naming.Instance("shop", i),
			"SELECT count(*) FROM pg_stat_ssl WHERE issuer_dn LIKE '%/shop 1'")
		must(t, err)
		t.Logf("%s has %s sessions by certificates of the new authority", naming.Instance("shop", i), shown)
	}
	s.rowsAtLeast("shop", s.count("shop")+50)
	writer.Stop()
	writer.Use(s.access("shop", naming.ReadWriteService("shop")))
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged rows are lost, from %d", len(lost), writer.Acknowledged(), lost[0])
	}
	s.inTime(writer, outside.Undisturbed)

	// An instance that starts now, and one that takes over, are of the new authority from the first moment.
	s.run("delete", "pod", naming.Instance("shop", 2))
	s.ready("shop")
	s.switchOver("shop")
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)
}

// secretOf is what a Secret has.
func (s *story) secretOf(name string) map[string][]byte {
	s.Helper()
	var secret corev1.Secret
	must(s.T, s.Get(s.ctx, "secret/"+name, &secret))
	return secret.Data
}

// patienceAuthority is for a rotation of the authority: two minutes for each of two steps, and what the kubelet needs
// to bring a changed Secret.
const patienceAuthority = 15 * time.Minute

// authorityAlone waits until the authority of an epoch is the only one that is trusted.
func (s *story) authorityAlone(name string, epoch int64) {
	s.Helper()
	began := time.Now()
	must(s.T, outside.Until(s.ctx, patienceAuthority, func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		a := db.Status.Authority
		if a == nil || a.Epoch != epoch || a.Oldest != epoch ||
			!meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionAuthorityRotated) {
			return fmt.Errorf("the authority is %+v: %+v", a,
				meta.FindStatusCondition(db.Status.Conditions, v1.ConditionAuthorityRotated))
		}
		return nil
	}))
	s.Logf("the authority was replaced in %s", time.Since(began).Round(time.Second))
}
