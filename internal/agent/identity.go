package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// identity is the instance's certificate: it issues one to itself from the
// SampleDB's authority, for its agent and its PostgreSQL server alike.
type identity struct {
	authorityPEM []byte
	authority    *pki.Authority
	names        []string
	run          string
	log          *slog.Logger
	// now is the wall clock.
	now func() time.Time
	// renewed is called with a new certificate in place.
	renewed func()

	mutex sync.Mutex
	leaf  pki.Leaf
	pair  tls.Certificate
}

func newIdentity(options Options, config protocol.Config) (*identity, error) {
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
	i := &identity{
		authorityPEM: cert, authority: authority, names: serverNames(options, config), run: options.Run, log: options.Log,
		now: time.Now, renewed: func() {},
	}
	return i, i.renew(i.now().Round(0))
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
func (i *identity) renew(now time.Time) error {
	leaf, err := i.authority.Issue(naming.IdentityInstance, i.names, now)
	if err != nil {
		return err
	}
	pair, err := leaf.TLS()
	if err != nil {
		return fmt.Errorf("use the new certificate: %w", err)
	}
	if err := i.write(leaf); err != nil {
		if before := i.current(); before.CertPEM != nil {
			err = errors.Join(err, i.write(before)) // a certificate with another one's key is none
		}
		return err
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.leaf, i.pair = leaf, pair
	return nil
}

// write writes the files.
func (i *identity) write(leaf pki.Leaf) error {
	for _, file := range []struct {
		name    string
		content []byte
	}{{postgres.FileAuthority, i.authorityPEM}, {postgres.FileCertificate, leaf.CertPEM}, {postgres.FileKey, leaf.KeyPEM}} {
		if err := postgres.WriteFile(filepath.Join(i.run, file.name), file.content, 0o600); err != nil {
			return err
		}
	}
	return i.link()
}

// current is the certificate there is.
func (i *identity) current() pki.Leaf {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.leaf
}

// folderIdentity has the same files under the names that a Secret of the type
// kubernetes.io/tls has them.
const folderIdentity = "identity"

func (i *identity) link() error {
	folder := filepath.Join(i.run, folderIdentity)
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

// renewCheck is how often it is looked whether the certificate is to be renewed. That goes by the wall clock, as its
// validity does: the timers of a process stand still while its node is suspended, and know nothing of a clock that is set.
const renewCheck = time.Minute

// renewLoop renews the certificate in time, until ctx ends. What fails is tried again with the next look: the certificate
// there is lasts for days, and the server must not end for it.
func (i *identity) renewLoop(ctx context.Context) error {
	failing := false
	for sleep(ctx, renewCheck) {
		now := i.now().Round(0) // without its monotonic reading
		if !i.due(now) {
			continue
		}
		err := i.renew(now)
		switch {
		case err == nil:
			i.log.Info("the certificate is renewed")
			i.renewed()
		case !failing:
			i.log.Error("the certificate could not be renewed, and that is tried again every minute",
				"error", err.Error(), "valid until", i.current().NotAfter)
		}
		failing = err != nil
	}
	return nil
}

// due says that the certificate is to be renewed: half of its time is over, or by a clock that has been set back it is
// not valid yet.
func (i *identity) due(now time.Time) bool {
	leaf := i.current()
	return now.Before(leaf.NotBefore) || !now.Before(leaf.RenewAt())
}

func (i *identity) certificate() (tls.Certificate, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.pair, nil
}

func (i *identity) roots() (*x509.CertPool, error) { return pki.Pool(string(i.authorityPEM)) }
