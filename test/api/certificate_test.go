package api

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki/pkitest"
	"toban.dev/internal/protocol"
)

func TestBadTLSIsRefusedWithItsSentence(t *testing.T) {
	w := newWorld(t)
	const sentence = "each item of tls.names must be a DNS name in lower-case letters"
	for name, c := range map[string]struct {
		tls  v1.TLSSpec
		want string
	}{
		"a URL":               {v1.TLSSpec{Names: []v1.ServerName{"https://db.example.com"}}, sentence},
		"upper case":          {v1.TLSSpec{Names: []v1.ServerName{"DB.example.com"}}, sentence},
		"a port":              {v1.TLSSpec{Names: []v1.ServerName{"db.example.com:5432"}}, sentence},
		"no address":          {v1.TLSSpec{Names: []v1.ServerName{"192.0.2.777"}}, sentence},
		"a star in between":   {v1.TLSSpec{Names: []v1.ServerName{"db.*.com"}}, sentence},
		"a range":             {v1.TLSSpec{Names: []v1.ServerName{"192.0.2.0/24"}}, sentence},
		"a line break":        {v1.TLSSpec{Names: []v1.ServerName{"db.example.com\n"}}, sentence},
		"a Secret with a '/'": {v1.TLSSpec{SecretName: "other/tls"}, "tls.secretName must be the name of a Secret"},
		"a Secret above":      {v1.TLSSpec{SecretName: ".."}, "tls.secretName must be the name of a Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			db := w.sampleDB("bad", func(db *v1.SampleDB) { db.Spec.TLS = c.tls })
			refused(t, w.api.Create(t.Context(), db), c.want)
		})
	}
	good := v1.TLSSpec{
		Names:      []v1.ServerName{"db.example.com", "*.db.example.com", "worker0", "192.0.2.7", "2001:db8::7"},
		SecretName: "shop-tls.v1",
	}
	w.must(w.api.Create(t.Context(), w.sampleDB("good", func(db *v1.SampleDB) { db.Spec.TLS = good })))
	pg := &pgv1.PostgreSQL{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foodb"},
		Spec: pgv1.PostgreSQLSpec{
			DB: "foo", User: "foo", Password: "p", Server: &pgv1.ServerReference{Name: "big"}, TLS: &good,
		},
	}
	refused(t, w.api.Create(t.Context(), pg), "with spec.server they are said there")
}

// certified has all agents say of their certificate.
func (w *world) certified(c protocol.CertificateStatus) {
	for host := range w.agents.answers {
		w.agents.change(host, func(s *protocol.Status) { s.Certificate = &c })
	}
}

// Applications are told the authority of a certificate before any server shows that.
func TestApplicationsAreToldTheAuthorityOfAGivenCertificate(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "shop-tls" })
	root := string(pkitest.NewRoot(t, "company").PEM)
	authorities := func() string {
		secret := &corev1.Secret{}
		w.read(naming.AppSecret("x"), secret)
		return string(secret.Data[naming.KeyCA])
	}
	own, password := authorities(), w.password(db)
	w.certified(protocol.CertificateStatus{Mounted: true, Waits: "until then", Authorities: root})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionCertificateServed, metav1.ConditionFalse, v1.ReasonCertificatePending)
	for range 3 {
		db = w.reconcile(db)
		w.collectSecrets()
		w.now = w.now.Add(time.Minute)
	}
	w.expect(db, v1.ConditionCertificateServed, metav1.ConditionFalse, v1.ReasonCertificatePending)
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	if got := authorities(); got != own+root {
		t.Errorf("applications are told %s", got)
	}
	if w.password(db) != password {
		t.Error("the password is another one")
	}
	if told := w.agents.configs[len(w.agents.configs)-1]; told.Given != root || told.Certificate.Secret != "shop-tls" {
		t.Errorf("agents are told %+v, %q", told.Certificate, told.Given)
	}
	until := time.Date(2030, 2, 3, 4, 5, 6, 0, time.UTC)
	w.certified(protocol.CertificateStatus{Mounted: true, Secret: "shop-tls", NotAfter: until, Authorities: root})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionCertificateServed, metav1.ConditionTrue, v1.ReasonCertificateServed)
	w.writes.take()
	db = w.reconcile(db)
	if writes := w.writes.take(); len(writes) > 0 {
		t.Errorf("at rest it writes: %v", writes)
	}
	w.certified(protocol.CertificateStatus{
		Mounted: true, Secret: "shop-tls", NotAfter: until, Authorities: root, Refusal: "tls.key is missing",
	})
	db = w.reconcile(db)
	w.expect(db, v1.ConditionCertificateServed, metav1.ConditionFalse, v1.ReasonCertificateRefused)
	if told := w.drainEvents(); !strings.Contains(told, "CertificateRefused") || !strings.Contains(told, "tls.key is") {
		t.Errorf("no event tells of it: %s", told)
	}
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "" })
	w.certified(protocol.CertificateStatus{})
	for range 3 {
		db = w.reconcile(db)
		w.collectSecrets()
		w.now = w.now.Add(time.Minute)
	}
	if got := authorities(); got != own || db.Status.ClientAuthorities != "" {
		t.Errorf("applications are told %s", got)
	}
}
