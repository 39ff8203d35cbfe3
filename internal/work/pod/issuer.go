package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
)

// Issuer makes its own certificates with the SampleDB's authority, a new one before the last has expired, or when the
// authority is another one. It is safe for concurrent use.
type Issuer struct {
	folder, identity string
	names            []string

	mu        sync.Mutex
	cert, key []byte
	authority *pki.Authority
	leaf      pki.Leaf
}

// NewIssuer reads the authority from a folder with the Secret NAME-ca, and what is trusted of NAME-config.
func NewIssuer(folder, identity string, names ...string) (*Issuer, error) {
	i := &Issuer{folder: folder, identity: identity, names: names}
	if err := i.read(); err != nil {
		return nil, err
	}
	_, err := i.Roots()
	return i, err
}

// read takes the authority that is there now.
func (i *Issuer) read() error {
	cert, err := os.ReadFile(filepath.Join(i.folder, naming.KeyCA))
	if err != nil {
		return fmt.Errorf("read the authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(i.folder, naming.KeyCAKey))
	if err != nil {
		return fmt.Errorf("read the authority's key: %w", err)
	}
	if bytes.Equal(cert, i.cert) && bytes.Equal(key, i.key) {
		return nil
	}
	authority, err := pki.ParseAuthority(cert, key)
	if err != nil {
		return err
	}
	i.cert, i.key, i.authority, i.leaf = cert, key, authority, pki.Leaf{}
	return nil
}

// Trusted are the authorities (PEM) that are trusted now: two during a rotation.
func (i *Issuer) Trusted() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(i.folder, naming.KeyTrusted))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(i.folder, naming.KeyCA))
	}
	if err != nil {
		return nil, fmt.Errorf("read which authorities are trusted: %w", err)
	}
	return text, nil
}

// Roots are those that are trusted now.
func (i *Issuer) Roots() (*x509.CertPool, error) {
	text, err := i.Trusted()
	if err != nil {
		return nil, err
	}
	return pki.Pool(string(text))
}

// Trusts says that a client is still trusted: its connection may be older than the last change of that.
func (i *Issuer) Trusts(client *x509.Certificate) bool {
	roots, err := i.Roots()
	if err != nil {
		return false
	}
	_, err = client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err == nil
}

// current is the certificate to show now.
func (i *Issuer) current() (pki.Leaf, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	_ = i.read() // while it is being replaced, what was read last goes on
	if now := time.Now(); i.leaf.CertPEM == nil || now.After(i.leaf.RenewAt()) {
		leaf, err := i.authority.Issue(i.identity, i.names, now)
		if err != nil {
			return pki.Leaf{}, err
		}
		i.leaf = leaf
	}
	return i.leaf, nil
}

// Certificate is current as crypto/tls takes it.
func (i *Issuer) Certificate() (tls.Certificate, error) {
	leaf, err := i.current()
	if err != nil {
		return tls.Certificate{}, err
	}
	return leaf.TLS()
}

// DatabaseTLS opens sessions with the SampleDB's servers. given are further authorities (PEM) by which they are known.
func (i *Issuer) DatabaseTLS(given string) (*tls.Config, error) {
	return pki.DatabaseTLS(i.Certificate, i.Roots, naming.IdentityInstance, given)
}

// filesChecked is how often files are compared with what they should have.
const filesChecked = 10 * time.Second

// Files writes the certificate, its key and what is trusted into a folder, and again when they are others, until ctx
// ends.
func (i *Issuer) Files(ctx context.Context, folder string) error {
	var last pki.Leaf
	var believed []byte
	write := func() error {
		leaf, err := i.current()
		if err != nil {
			return err
		}
		trusted, err := i.Trusted()
		if err != nil {
			return err
		}
		if bytes.Equal(leaf.CertPEM, last.CertPEM) && bytes.Equal(trusted, believed) {
			return nil
		}
		err = errors.Join(
			postgres.WriteFile(filepath.Join(folder, "tls.crt"), leaf.CertPEM, 0o600),
			postgres.WriteFile(filepath.Join(folder, "tls.key"), leaf.KeyPEM, 0o600),
			postgres.WriteFile(filepath.Join(folder, "ca.crt"), trusted, 0o600))
		if err == nil {
			last, believed = leaf, trusted
		}
		return err
	}
	if err := write(); err != nil {
		return err
	}
	go func() {
		for pause.For(ctx, filesChecked) {
			_ = write() // it is tried again
		}
	}()
	return nil
}
