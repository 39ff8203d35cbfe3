package identity

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// one is the identity of db-0.
func one(t *testing.T, authority *pki.Authority, config protocol.Config) (*Identity, string, error) {
	t.Helper()
	run := t.TempDir()
	i, err := New(Options{Name: "db-0", Address: "10.0.0.7", Authority: agenttest.Folder(t,
		authority), Run: run, Log: slog.New(slog.DiscardHandler)}, config)
	return i, run, err
}

func leafOf(t *testing.T, pair tls.Certificate) *x509.Certificate {
	t.Helper()
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestWhoAnInstanceIs(t *testing.T) {
	config := protocol.Config{ServerNames: []string{"db.shop"}, Members: []protocol.Member{
		{Name: "db-0", Host: "h0"}, {Name: "db-1", Host: "h1"},
	}}
	i, run, err := one(t, agenttest.NewAuthority(t), config)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := i.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	leaf := leafOf(t, pair)
	for name, ours := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "10.0.0.7": true, "h0": true, "db.shop": true, "h1": false,
	} {
		if err := leaf.VerifyHostname(name); (err == nil) != ours {
			t.Errorf("it is called %s: %v", name, err)
		}
	}
	roots, err := i.Roots()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots}); err != nil ||
		leaf.Subject.CommonName != naming.IdentityInstance {
		t.Errorf("it is %s, %v", leaf.Subject.CommonName, err)
	}
	for link, file := range map[string]string{
		"tls.crt": postgres.FileCertificate, "tls.key": postgres.FileKey, "ca.crt": postgres.FileAuthority,
	} {
		linked, err := os.ReadFile(filepath.Join(Folder(run), link))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(run, file)); err != nil || !slices.Equal(text, linked) {
			t.Errorf("%s is not %s: %v", link, file, err)
		}
	}
}

func TestWhoseAuthorityCounts(t *testing.T) {
	ours, operators := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	if _, _, err := one(t, ours, protocol.Config{Authority: string(operators.CertPEM())}); err == nil ||
		!strings.Contains(err.Error(), "former SampleDB") {
		t.Errorf("the authority of another SampleDB: %v", err)
	}
	i, _, err := one(t, ours, protocol.Config{Authority: string(ours.CertPEM())})
	if err != nil {
		t.Fatal(err)
	}
	cas, err := i.ClientCAs(string(operators.CertPEM()))
	if err != nil || len(cas) != 3 {
		t.Fatalf("those who count are %v, %v", cas, err)
	}
	for identity, c := range map[string]struct{ authority, other *pki.Authority }{
		naming.IdentityInstance: {ours, operators}, naming.IdentityPooler: {ours, operators},
		naming.IdentityOperator: {operators, ours},
	} {
		for _, authority := range []*pki.Authority{c.authority, c.other} {
			leaf, err := authority.Issue(identity, nil, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			pair, err := leaf.TLS()
			if err != nil {
				t.Fatal(err)
			}
			_, err = leafOf(t, pair).Verify(x509.VerifyOptions{
				Roots: cas[identity], KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
			})
			if (err == nil) != (authority == c.authority) {
				t.Errorf("who says it is the %s is believed: %v", identity, err)
			}
		}
	}
}

func TestACertificateIsRenewedBeforeItEnds(t *testing.T) {
	ours := agenttest.NewAuthority(t)
	synctest.Test(t, func(t *testing.T) {
		i, _, err := one(t, ours, protocol.Config{})
		if err != nil {
			t.Fatal(err)
		}
		renewed := make(chan struct{}, 1)
		i.Renewed = func() { renewed <- struct{}{} }
		first, _ := i.Certificate()
		go func() { _ = i.Run(t.Context()) }()
		<-renewed
		second, _ := i.Certificate()
		was, is := leafOf(t, first), leafOf(t, second)
		if !time.Now().Before(was.NotAfter) || !is.NotAfter.After(was.NotAfter) {
			t.Errorf("at %v one until %v follows one until %v", time.Now(), is.NotAfter, was.NotAfter)
		}
	})
}
