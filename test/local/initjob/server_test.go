// Package initjob_test runs the init Job's work against a real PostgreSQL on
// this machine, with the certificates and the access rules of a SampleDB.
package initjob_test

import (
	"crypto/tls"
	"testing"
	"time"

	"toban.dev/test/local/single"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// server is a PostgreSQL to which the init Job goes.
type server struct{ *single.Server }

func start(t *testing.T) *server {
	t.Helper()
	return &server{single.Start(t)}
}

// tls is that of the init Job.
func (s *server) tls(t *testing.T, identity string) *tls.Config {
	t.Helper()
	leaf, err := s.Authority.Issue(naming.IdentityInit, nil, time.Now())
	must(t, err)
	roots, err := pki.Pool(string(s.Authority.CertPEM()))
	must(t, err)
	return pki.ClientTLS(leaf.TLS, roots, identity)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
