//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/pki/pkitest"
)

// psqlPod is an application's Pod with the mount that docs/security.md shows.
const psqlPod = `
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 999, seccompProfile: {type: RuntimeDefault}}
  volumes: [{name: shop-ca, secret: {secretName: shop-app, items: [{key: ca.crt, path: ca.crt}]}}]
  containers:
    - name: app
      image: postgres:17
      command: [sleep, infinity]
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      volumeMounts: [{name: shop-ca, mountPath: /var/run/toban/shop, readOnly: true}]
      env: [{name: DATABASE_URL, valueFrom: {secretKeyRef: {name: shop-app, key: uri}}}]
`

// A client knows the server by the connection string alone, from the cluster and from outside; then by a certificate
// that the user gives.
func TestLongClientsKnowTheServer(t *testing.T) {
	s := begin(t)
	s.apply(sampleDB("shop", 2, "service: {type: NodePort}"))
	s.ready("shop")
	s.apply(psqlPod)
	s.run("wait", "pod/client", "--for=condition=Ready", "--timeout=3m")
	s.known("by its own authority")

	outside := s.access("shop", "shop")
	var service corev1.Service
	must(t, s.Get(s.ctx, "service/shop", &service))
	outside = outside.At("worker0", "worker0")
	outside.Port = uint16(service.Spec.Ports[0].NodePort)
	if _, err := outside.Patient().Ask(s.ctx, "SELECT 1"); err == nil || !strings.Contains(err.Error(), "worker0") {
		t.Errorf("by a name that it does not have: %v", err)
	}
	open, err := s.access("shop", "shop").Patient().Connect(s.ctx)
	must(t, err)
	defer open.Close(context.Background())
	s.patch("shop", `{"tls":{"names":["worker0"]}}`)
	s.until(func(ctx context.Context) error {
		_, err := outside.Ask(ctx, "SELECT 1")
		return err
	})
	must(t, open.Ping(s.ctx))

	root := pkitest.NewRoot(t, "company")
	domain := "." + string(s.Namespace) + ".svc"
	names := []string{"shop" + domain, "shop-ro" + domain, "*.shop-instances" + domain, "worker0"}
	s.give(root.Issue(t, names))
	s.patch("shop", `{"tls":{"names":["worker0"],"secretName":"shop-tls"}}`)
	s.run("wait", "sampledb/shop", "--for=condition=CertificateServed", "--timeout=8m")
	s.ready("shop")
	s.known("by the user's authority")
	first := s.condition("shop", v1.ConditionCertificateServed, "True", v1.ReasonCertificateServed)

	// What does not fit is told; what fits is taken, and no session ends.
	again, err := s.access("shop", "shop").Patient().Connect(s.ctx)
	must(t, err)
	defer again.Close(context.Background())
	s.give(root.Issue(t, names[1:]))
	words := s.condition("shop", v1.ConditionCertificateServed, "False", v1.ReasonCertificateRefused)
	if !strings.Contains(words, "not valid for "+names[0]) {
		t.Errorf("it says %s", words)
	}
	s.give(root.IssueUntil(t, names, pkitest.Leaf(t, root.Issue(t, names)).NotAfter.AddDate(0, 0, 1)))
	s.until(func(context.Context) error {
		now := s.run("get", "sampledb", "shop", "-o",
			`jsonpath={.status.conditions[?(@.type=="CertificateServed")].message}`)
		if now == first || !strings.Contains(now, "every instance shows") {
			return errors.New(now)
		}
		return nil
	})
	s.known("by the user's authority, with another certificate")
	must(t, again.Ping(s.ctx))
}

// known has psql in the application's Pod connect with the connection string as it is.
func (s *story) known(how string) {
	s.Helper()
	s.until(func(context.Context) error {
		out, err := s.Kubectl(s.ctx, "exec", "client", "--", "sh", "-c",
			`psql "$DATABASE_URL" -XAtc "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"`)
		if err != nil || strings.TrimSpace(out) != "t" {
			return fmt.Errorf("%s psql says %q, %w", how, out, err)
		}
		return nil
	})
}

// give writes the Secret shop-tls as cert-manager does.
func (s *story) give(g pki.Given) {
	s.Helper()
	text, err := yaml.Marshal(corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop-tls"},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			naming.KeyTLSCertificate: g.Certificate, naming.KeyTLSKey: g.Key, naming.KeyCA: g.Authority,
		},
	})
	must(s.T, err)
	file := filepath.Join(s.TempDir(), "secret.yaml")
	must(s.T, os.WriteFile(file, text, 0o600))
	s.run("apply", "-f", file)
}
