// Package agenttest has what the tests of an agent's components share: the authority of a SampleDB, and whom it
// vouches for.
package agenttest

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// NewAuthority makes an authority that no other test has.
func NewAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority([]byte(t.Name()+time.Now().String()), "toban shop/x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Folder is one with an authority, as an instance's Pod has it.
func Folder(t *testing.T, authority *pki.Authority) string {
	t.Helper()
	folder := t.TempDir()
	key, err := authority.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{naming.KeyCA: authority.CertPEM(), naming.KeyCAKey: key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Client is a client with a certificate of its own authority, which trusts ours.
func Client(t *testing.T, own, ours *pki.Authority, identity string) *protocol.Client {
	t.Helper()
	roots, err := pki.Pool(string(ours.CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	show := func() (tls.Certificate, error) {
		leaf, err := own.Issue(identity, nil, time.Now())
		if err != nil {
			return tls.Certificate{}, err
		}
		return leaf.TLS()
	}
	c := protocol.NewClient(pki.ClientTLS(show, roots, naming.IdentityInstance), naming.PortAgent)
	t.Cleanup(c.Close)
	return c
}

// FreeAddress is an address of this machine at which nobody listens.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
