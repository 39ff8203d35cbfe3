package api

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/pki"
)

// The operator can't see Secrets, so it tries to create them now and then also while all is well.
func TestADeletedSecretComesBackAtRest(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	for _, name := range []string{naming.AppSecret("x"), naming.AuthoritySecret("x")} {
		before := &corev1.Secret{}
		w.read(name, before)
		w.must(w.api.Delete(t.Context(), before))
		w.writes.take()
		db = w.reconcile(db)
		if writes := w.writes.take(); len(writes) > 0 {
			t.Errorf("it tries at once, and so at every reconcile: %v", writes)
		}
		w.now = w.now.Add(16 * time.Minute)
		db = w.reconcile(db)
		after := &corev1.Secret{}
		w.read(name, after)
		for key, value := range before.Data {
			if string(after.Data[key]) != string(value) {
				t.Errorf("%s of %s is another one now", key, name)
			}
		}
	}
}

// Who may write ConfigMaps can't make the operator believe in another authority.
func TestAForeignAuthorityIsTakenBack(t *testing.T) {
	w := newWorld(t)
	db := w.started("x")
	own := &corev1.ConfigMap{}
	w.read(naming.ConfigMap("x"), own)
	config, err := desired.ParseConfig(own)
	w.must(err)
	evil, err := pki.NewAuthority([]byte("a seed of somebody else, 32 bytes"), "toban "+w.namespace+"/x", time.Now())
	w.must(err)
	right := config.Authority
	config.Authority = string(evil.CertPEM())
	theirs, err := desired.ConfigMap(db, config.Revise())
	w.must(err)
	own.Data = theirs.Data
	w.must(w.api.Update(t.Context(), own))
	w.reconcile(db)
	w.read(naming.ConfigMap("x"), own)
	config, err = desired.ParseConfig(own)
	w.must(err)
	if config.Authority != right {
		t.Error("the ConfigMap keeps the authority that somebody else has put there")
	}
	for _, given := range w.agents.configs {
		if strings.Contains(given.Authority, string(evil.CertPEM())) {
			t.Error("an agent was given it")
		}
	}
}
