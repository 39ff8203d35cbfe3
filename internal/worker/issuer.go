package worker

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
)

// issuer makes its own certificates with the SampleDB's authority, a new one before the last has expired.
// It is safe for concurrent use.
type issuer struct {
	authority *pki.Authority
	roots     *x509.CertPool
	identity  string
	names     []string

	mu   sync.Mutex
	leaf pki.Leaf
}

// newIssuer reads the authority from a folder with the Secret NAME-ca.
func newIssuer(folder, identity string, names ...string) (*issuer, error) {
	cert, err := os.ReadFile(filepath.Join(folder, naming.KeyCA))
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(folder, naming.KeyCAKey))
	if err != nil {
		return nil, fmt.Errorf("read the authority's key: %w", err)
	}
	authority, err := pki.ParseAuthority(cert, key)
	if err != nil {
		return nil, err
	}
	roots, err := pki.Pool(string(cert))
	if err != nil {
		return nil, err
	}
	return &issuer{authority: authority, roots: roots, identity: identity, names: names}, nil
}

// current is the certificate to show now.
func (i *issuer) current() (pki.Leaf, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if now := time.Now(); i.leaf.CertPEM == nil || now.After(i.leaf.RenewAt()) {
		leaf, err := i.authority.Issue(i.identity, i.names, now)
		if err != nil {
			return pki.Leaf{}, err
		}
		i.leaf = leaf
	}
	return i.leaf, nil
}

// certificate is current as crypto/tls takes it.
func (i *issuer) certificate() (tls.Certificate, error) {
	leaf, err := i.current()
	if err != nil {
		return tls.Certificate{}, err
	}
	return leaf.TLS()
}
