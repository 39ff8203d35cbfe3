// Package identity is who an instance is to others: its certificate, and whom else it believes.
package identity

import (
	"bytes"
	"cmp"
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
	"toban.dev/internal/pause"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// Identity is the instance's certificate: it issues one to itself from the
// SampleDB's authority, for its agent and its PostgreSQL server alike.
type Identity struct {
	options Options
	run     string
	log     *slog.Logger
	// now is the wall clock.
	now func() time.Time
	// Renewed is called when a new certificate or another trust is in place.
	Renewed func()

	// held is the Secret that the authority was read from. Only New and Run use it.
	held secret
	// changing is held while files and what follows change, mutex for what follows alone.
	changing  sync.Mutex
	mutex     sync.Mutex
	config    protocol.Config // as last told
	authority *pki.Authority
	// trusted are the authorities (PEM) that are believed.
	trusted string
	leaf    pki.Leaf
	issued  []string // the names in leaf
	pair    tls.Certificate
	shown   shown
	// instances and operator are the authorities that were asked for last.
	instances, operator pool
}

// secret is what the Secret NAME-ca has.
type secret struct{ cert, key []byte }

// Options say who the instance is.
type Options struct {
	// Name is the instance's, Address what others reach it by, if that is known.
	Name, Address string
	// Authority is the folder with the SampleDB's authority, Given that with the user's certificate for clients
	// in a folder of its Secret's name, and Run the one in memory that takes what is used.
	Authority, Given, Run string
	// Report is told which certificate clients are shown.
	Report func(protocol.CertificateStatus)
	Log    *slog.Logger
}

// New issues the instance its first certificate.
func New(options Options, config protocol.Config) (*Identity, error) {
	held, authority, trusted, err := readAuthority(options.Authority, config)
	if err != nil {
		return nil, err
	}
	i := &Identity{
		options: options, held: held, authority: authority, trusted: trusted, run: options.Run, config: config,
		log: options.Log, now: time.Now, Renewed: func() {},
		shown: shown{known: config.Given, told: config.Given, wake: make(chan struct{}, 1)},
	}
	return i, i.renew(authority, i.now().Round(0))
}

// Check says why an instance could not issue itself a certificate.
func Check(folder string, config protocol.Config) error {
	_, _, _, err := readAuthority(folder, config)
	return err
}

// readAuthority reads the authority, and says whom the instance trusts.
func readAuthority(
	folder string, config protocol.Config,
) (held secret, authority *pki.Authority, trusted string, err error) {
	if held, err = readSecret(folder); err != nil {
		return held, nil, "", err
	}
	if authority, err = pki.ParseAuthority(held.cert, held.key); err != nil {
		return held, nil, "", err
	}
	trusted = cmp.Or(config.Authority, string(held.cert))
	if !authority.Vouches([]byte(trusted)) {
		return held, nil, "", errors.New("the Secret with the authority is that of a former SampleDB of this name: " +
			"waiting for the new one")
	}
	return held, authority, trusted, nil
}

func readSecret(folder string) (s secret, err error) {
	if s.cert, err = os.ReadFile(filepath.Join(folder, naming.KeyCA)); err != nil {
		return s, fmt.Errorf("read the SampleDB's authority: %w", err)
	}
	if s.key, err = os.ReadFile(filepath.Join(folder, naming.KeyCAKey)); err != nil {
		return s, fmt.Errorf("read the key of the SampleDB's authority: %w", err)
	}
	return s, nil
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

// renew issues a new certificate of an authority and writes the files that PostgreSQL reads.
func (i *Identity) renew(authority *pki.Authority, now time.Time) error {
	i.changing.Lock()
	defer i.changing.Unlock()
	names := serverNames(i.options, i.told())
	leaf, err := authority.Issue(naming.IdentityInstance, names, now)
	if err != nil {
		return err
	}
	pair, err := leaf.TLS()
	if err != nil {
		return fmt.Errorf("use the new certificate: %w", err)
	}
	if err := i.write(leaf, i.believed()); err != nil {
		if before := i.current(); before.CertPEM != nil {
			err = errors.Join(err, i.write(before, i.believed())) // a certificate with another one's key is none
		}
		return err
	}
	i.mutex.Lock()
	i.authority, i.leaf, i.pair, i.issued = authority, leaf, pair, names
	i.mutex.Unlock()
	_, err = i.show(now)
	return err
}

// Trust has the authorities (PEM) of a new config believed, and no others. One without the authority that this instance
// has its certificate from would part it from the others, and is not taken.
func (i *Identity) Trust(authorities string) {
	if authorities == "" || authorities == i.believed() {
		return
	}
	if err := i.trust(authorities); err != nil {
		i.log.Error("the authorities of the config are not taken", "error", err.Error())
		return
	}
	i.log.Info("other authorities are trusted", "keys", pki.KeyIDs(authorities))
	i.Renewed()
}

func (i *Identity) trust(authorities string) error {
	i.changing.Lock()
	defer i.changing.Unlock()
	if !i.issuer().Vouches([]byte(authorities)) {
		return errors.New("the one of this instance's certificate is not among them")
	}
	if err := i.write(i.current(), authorities); err != nil {
		return err
	}
	i.mutex.Lock()
	i.trusted = authorities
	i.mutex.Unlock()
	_, err := i.show(i.now().Round(0))
	return err
}

// write writes the files.
func (i *Identity) write(leaf pki.Leaf, trusted string) error {
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{postgres.FileAuthority, []byte(trusted)},
		{postgres.FileCertificate, leaf.CertPEM}, {postgres.FileKey, leaf.KeyPEM},
	} {
		if err := postgres.WriteFile(filepath.Join(i.run, file.name), file.content, 0o600); err != nil {
			return err
		}
	}
	return i.link()
}

// current is the certificate there is.
func (i *Identity) current() pki.Leaf {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.leaf
}

// issuer is the authority of the certificate there is.
func (i *Identity) issuer() *pki.Authority {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.authority
}

// believed are the authorities (PEM) that are trusted.
func (i *Identity) believed() string {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.trusted
}

// Shown says what is to be shown and trusted now, as the agent itself does.
func (i *Identity) Shown() (certificate []byte, trusted string, identity protocol.Identity) {
	certificate = i.ForClients()
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return certificate, i.trusted,
		protocol.Identity{Issuer: i.authority.ID(), Trusted: pki.KeyIDs(i.trusted)}
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
	for name, file := range map[string]string{
		"tls.crt": postgres.FileCertificate, "tls.key": postgres.FileKey, "ca.crt": postgres.FileAuthority,
	} {
		if err := os.Symlink(filepath.Join("..", file), filepath.Join(folder, name)); err != nil &&
			!errors.Is(err, os.ErrExist) {
			return fmt.Errorf("link the certificate: %w", err)
		}
	}
	return nil
}

// renewCheck is how often it is looked whether the certificate is to be renewed, or the Secret has another authority.
// The former goes by the wall clock, as its validity does: the timers of a process stand still while its node is
// suspended, and know nothing of a clock that is set.
const renewCheck = 30 * time.Second

// Run renews the certificate in time, until ctx ends. What fails is tried again with the next look: the certificate
// there is lasts for days, and the server must not end for it.
func (i *Identity) Run(ctx context.Context) error {
	failing := false
	for pause.For(ctx, renewCheck) {
		now := i.now().Round(0) // without its monotonic reading
		authority, held := i.replaced()
		if authority == nil && !i.due(now) {
			continue
		}
		err := i.renew(cmp.Or(authority, i.issuer()), now)
		switch {
		case err == nil:
			i.held = held
			i.log.Info("the certificate is renewed", "authority", i.issuer().ID())
			i.Renewed()
		case !failing:
			i.log.Error("the certificate could not be renewed, and that is tried again and again",
				"error", err.Error(), "valid until", i.current().NotAfter)
		}
		failing = err != nil
	}
	return nil
}

// replaced is the authority that the Secret has now, nil where it is the one of the certificate, or not trusted (yet).
// held is the Secret that goes with it.
func (i *Identity) replaced() (authority *pki.Authority, held secret) {
	held, err := readSecret(i.options.Authority)
	if err != nil || bytes.Equal(held.cert, i.held.cert) && bytes.Equal(held.key, i.held.key) {
		return nil, i.held // while it is being replaced it may not be there
	}
	authority, err = pki.ParseAuthority(held.cert, held.key)
	if err != nil || !authority.Vouches([]byte(i.believed())) || authority.ID() == i.issuer().ID() {
		return nil, i.held
	}
	return authority, held
}

// due says that the certificate is to be renewed: half of its time is over, or by a clock that has been set back it is
// not valid yet.
func (i *Identity) due(now time.Time) bool {
	leaf := i.current()
	return now.Before(leaf.NotBefore) || !now.Before(leaf.RenewAt())
}

// Certificate is the newest.
func (i *Identity) Certificate() (tls.Certificate, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.pair, nil
}

// Roots are those by whom the other instances are known: the SampleDB's own authorities.
func (i *Identity) Roots() (*x509.CertPool, error) { return i.instances.of(i.believed()) }

// ClientCAs are the authorities of those who may ask: the SampleDB's own for its
// instances, and the operator's for the operator. The pools are the same as long as the authorities are.
func (i *Identity) ClientCAs(operatorPEM string) (map[string]*x509.CertPool, error) {
	instances, err := i.Roots()
	if err != nil {
		return nil, err
	}
	operator, err := i.operator.of(operatorPEM)
	if err != nil {
		return nil, err
	}
	return map[string]*x509.CertPool{
		naming.IdentityInstance: instances, naming.IdentityPooler: instances, naming.IdentityOperator: operator,
	}, nil
}

// pool keeps the authorities that were asked for last, because they are asked for at each request.
type pool struct {
	mutex  sync.Mutex
	text   string
	parsed *x509.CertPool
}

// of are the authorities of a PEM text. Nobody may add to them.
func (p *pool) of(text string) (*x509.CertPool, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.parsed != nil && p.text == text {
		return p.parsed, nil
	}
	parsed, err := pki.Pool(text)
	if err != nil {
		return nil, err
	}
	p.text, p.parsed = text, parsed
	return parsed, nil
}
