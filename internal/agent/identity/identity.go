// Package identity is who an instance is to others: its certificate, and whom else it believes.
package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toban.dev/internal/agent/pause"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// Identity is the instance's certificate: it issues one to itself from the
// SampleDB's authority, for its agent and its PostgreSQL server alike.
type Identity struct {
	authorityPEM []byte
	authority    *pki.Authority
	names        []string
	run          string
	// Renewed is called with a new certificate in place.
	Renewed func()

	mutex sync.Mutex
	leaf  pki.Leaf
	pair  tls.Certificate
}

// Options say who the instance is.
type Options struct {
	// Name is the instance's, Address what others reach it by, if that is known.
	Name, Address string
	// Authority is the folder with the SampleDB's authority, Run the one in memory that takes the certificate.
	Authority, Run string
}

// New issues the instance its first certificate.
func New(options Options, config protocol.Config) (*Identity, error) {
	cert, err := os.ReadFile(filepath.Join(options.Authority, naming.KeyCA))
	if err != nil {
		return nil, fmt.Errorf("read the SampleDB's authority: %w", err)
	}
	key, err := os.ReadFile(filepath.Join(options.Authority, naming.KeyCAKey))
	if err != nil {
		return nil, fmt.Errorf("read the key of the SampleDB's authority: %w", err)
	}
	authority, err := pki.ParseAuthority(cert, key)
	if err != nil {
		return nil, err
	}
	if config.Authority != "" && !authority.Vouches([]byte(config.Authority)) {
		return nil, errors.New("the Secret with the authority is that of a former SampleDB of this name: waiting for the new one")
	}
	i := &Identity{authorityPEM: cert, authority: authority, names: serverNames(options, config), run: options.Run, Renewed: func() {}}
	return i, i.renew(time.Now())
}

// serverNames are all that a client may call this server by.
func serverNames(options Options, config protocol.Config) []string {
	names := append([]string{"localhost", "127.0.0.1"}, config.ServerNames...)
	if options.Address != "" {
		names = append(names, options.Address)
	}
	for _, m := range config.Members {
		if m.Name == options.Name {
			names = append(names, m.Host)
		}
	}
	return names
}

// renew issues a new certificate and writes the files that PostgreSQL reads.
func (i *Identity) renew(now time.Time) error {
	leaf, err := i.authority.Issue(naming.IdentityInstance, i.names, now)
	if err != nil {
		return err
	}
	pair, err := leaf.TLS()
	if err != nil {
		return fmt.Errorf("use the new certificate: %w", err)
	}
	for file, content := range map[string][]byte{
		postgres.FileAuthority: i.authorityPEM, postgres.FileCertificate: leaf.CertPEM, postgres.FileKey: leaf.KeyPEM,
	} {
		if err := postgres.WriteFile(filepath.Join(i.run, file), content, 0o600); err != nil {
			return err
		}
	}
	if err := i.link(); err != nil {
		return err
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.leaf, i.pair = leaf, pair
	return nil
}

// folderLinks has the same files under the names that a Secret of the type
// kubernetes.io/tls has them.
const folderLinks = "identity"

// Folder is where the certificate lies, as a Secret of the type kubernetes.io/tls has it, in the folder run.
func Folder(run string) string { return filepath.Join(run, folderLinks) }

func (i *Identity) link() error {
	folder := Folder(i.run)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the folder of the certificate: %w", err)
	}
	for name, file := range map[string]string{"tls.crt": postgres.FileCertificate, "tls.key": postgres.FileKey, "ca.crt": postgres.FileAuthority} {
		if err := os.Symlink(filepath.Join("..", file), filepath.Join(folder, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link the certificate: %w", err)
		}
	}
	return nil
}

// Run renews the certificate in time, until ctx ends.
func (i *Identity) Run(ctx context.Context) error {
	for {
		i.mutex.Lock()
		due := time.Until(i.leaf.RenewAt())
		i.mutex.Unlock()
		if !pause.For(ctx, max(due, time.Minute)) {
			return nil
		}
		if err := i.renew(time.Now()); err != nil {
			return err
		}
		i.Renewed()
	}
}

// Certificate is the newest.
func (i *Identity) Certificate() (tls.Certificate, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.pair, nil
}

// Roots are those by whom the other instances are known: the SampleDB's own authority.
func (i *Identity) Roots() (*x509.CertPool, error) { return pki.Pool(string(i.authorityPEM)) }

// ClientCAs are the authorities of those who may ask: the SampleDB's own for its
// instances, and the operator's for the operator.
func (i *Identity) ClientCAs(operatorPEM string) (map[string]*x509.CertPool, error) {
	instances, err := i.Roots()
	if err != nil {
		return nil, err
	}
	operator, err := pki.Pool(operatorPEM)
	if err != nil {
		return nil, err
	}
	return map[string]*x509.CertPool{naming.IdentityInstance: instances, naming.IdentityOperator: operator}, nil
}
