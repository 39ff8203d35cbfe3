package identity

import (
	"bytes"
	"context"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

const (
	// showInterval is how often it is looked whether the user's Secret has another certificate. The kubelet brings one
	// within a minute or two.
	showInterval = 5 * time.Second
	// spread is how long clients may take to have the authorities that they were told: the kubelet writes a changed
	// Secret into their Pods within 90 s.
	spread = 2 * time.Minute
)

// shown is what clients are shown: a certificate of our own, or the user's.
type shown struct {
	mutex sync.Mutex // held while it is decided and written
	wake  chan struct{}
	// given is the user's certificate that is shown, with its Secret; nil for none.
	given  *pki.Shown
	secret string
	// told are the authorities that clients have been told last, since when, and known those that they had time to
	// take.
	told  string
	since time.Time
	known string
	// text and servers are what lies in the files, said what was reported.
	text, servers []byte
	said          protocol.CertificateStatus
}

// Follow takes a new config: other names are issued, and another certificate is shown, soon after.
func (i *Identity) Follow(config protocol.Config) {
	i.mutex.Lock()
	i.config = config
	i.mutex.Unlock()
	select {
	case i.shown.wake <- struct{}{}:
	default:
	}
}

// told is the config as last told.
func (i *Identity) told() protocol.Config {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.config
}

// Show keeps what clients are shown as the config and the user's Secret want it, until ctx ends. Nothing of that ends a
// session or restarts the server. What fails is tried again with the next look.
func (i *Identity) Show(ctx context.Context) error {
	failing := false
	for ctx.Err() == nil {
		changed, err := i.look()
		if changed {
			i.Renewed()
		}
		if err != nil && !failing {
			i.log.Error("the certificate for clients could not be written, and that is tried again",
				"error", err.Error())
		}
		failing = err != nil
		timer := time.NewTimer(pause.Until(showInterval))
		select {
		case <-ctx.Done():
		case <-i.shown.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// look issues another certificate where the names have changed, and shows what is to be shown.
func (i *Identity) look() (changed bool, err error) {
	now := i.now().Round(0)
	if i.renamed() {
		if err := i.renew(i.issuer(), now); err != nil {
			return false, err
		}
		i.log.Info("the certificate has other names now")
		changed = true
	}
	another, err := i.show(now)
	return changed || another, err
}

// ForClients is the certificate (DER) that a server which has read its files shows to clients.
func (i *Identity) ForClients() []byte {
	i.shown.mutex.Lock()
	defer i.shown.mutex.Unlock()
	block, _ := pem.Decode(i.shown.text)
	if block == nil {
		return nil
	}
	return block.Bytes
}

// renamed says that the config wants other names than were issued.
func (i *Identity) renamed() bool {
	wanted := serverNames(i.options, i.told())
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return !slices.Equal(wanted, i.issued)
}

// show writes what clients are shown, and reports it. It says whether that is another certificate than before.
func (i *Identity) show(now time.Time) (changed bool, err error) {
	s := &i.shown
	s.mutex.Lock()
	defer s.mutex.Unlock()
	config := i.told()
	s.spread(config.Given, now)
	said := i.take(config, now)
	leaf := i.current()
	text, until := append(slices.Clone(leaf.CertPEM), leaf.KeyPEM...), leaf.NotAfter
	if s.given != nil {
		text, until = s.given.PEM, s.given.NotAfter
		said.Secret = s.secret
	}
	said.NotAfter = until
	servers := []byte(i.believed() + config.Given)
	if _, err := i.replace(postgres.FileServers, &s.servers, servers); err != nil {
		return false, err
	}
	if changed, err = i.replace(postgres.FileClients, &s.text, text); err != nil {
		return false, err
	}
	i.report(said)
	return changed, nil
}

// report says what is shown, where that is something new.
func (i *Identity) report(said protocol.CertificateStatus) {
	s := &i.shown
	if said == s.said {
		return
	}
	if said.Refusal != "" && said.Refusal != s.said.Refusal {
		i.log.Warn("the certificate in the Secret is not taken", "reason", said.Refusal)
	}
	if said.Secret != s.said.Secret {
		i.log.Info("clients are shown another certificate", "secret", said.Secret, "valid until", said.NotAfter)
	}
	s.said = said
	if i.options.Report != nil {
		i.options.Report(said)
	}
}

// spread notes which authorities clients have been told, and which they had time to take. What an agent finds in its
// first config clients were told before.
func (s *shown) spread(given string, now time.Time) {
	if given != s.told {
		s.told, s.since = given, now
	}
	if now.Before(s.since) || now.Sub(s.since) >= spread {
		s.known = s.told
	}
}

// take looks at the user's Secret, and takes its certificate where that may be shown. One that may not leaves the
// former in its place for as long as that is valid.
func (i *Identity) take(config protocol.Config, now time.Time) protocol.CertificateStatus {
	s := &i.shown
	wanted := config.Certificate
	if wanted == nil {
		s.given, s.secret = nil, ""
		return protocol.CertificateStatus{}
	}
	folder := filepath.Join(i.options.Given, wanted.Secret)
	said := protocol.CertificateStatus{Mounted: isFolder(folder)}
	candidate, err := read(folder).Check(required(config), now)
	switch {
	case !said.Mounted:
	case err != nil:
		said.Refusal = err.Error()
	case !pki.Within(string(candidate.Authority), s.told):
		said.Waits = "until its authority is in ca.crt of the Secret for applications"
	case !pki.Within(string(candidate.Authority), s.known):
		said.Waits = "until applications had time to read its authority in ca.crt of their Secret"
	default:
		s.given, s.secret = &candidate, wanted.Secret
	}
	if s.given != nil && now.After(s.given.NotAfter) {
		s.given, s.secret = nil, ""
	}
	if s.given != nil {
		said.Authorities = string(s.given.Authority)
	}
	if err == nil {
		said.Authorities = pki.Union(said.Authorities, string(candidate.Authority))
	}
	return said
}

// required are the names that a user's certificate must have: those that applications and standbys use.
func required(config protocol.Config) []string {
	names := slices.Clone(config.Certificate.Names)
	for _, m := range config.Members {
		names = append(names, m.Host)
	}
	return names
}

// isFolder says that the Pod has the user's Secret, or would have it if it were there.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// read is what is in the user's Secret. A key that can't be read is missing.
func read(folder string) pki.Given {
	content := func(key string) []byte {
		text, err := os.ReadFile(filepath.Join(folder, key))
		if err != nil {
			return nil
		}
		return text
	}
	return pki.Given{
		Certificate: content(naming.KeyTLSCertificate), Key: content(naming.KeyTLSKey),
		Authority: content(naming.KeyCA),
	}
}

// replace writes a file whose content has changed.
func (i *Identity) replace(file string, last *[]byte, content []byte) (changed bool, err error) {
	if bytes.Equal(*last, content) {
		return false, nil
	}
	if err := postgres.WriteFile(filepath.Join(i.run, file), content, 0o600); err != nil {
		return false, err
	}
	*last = content
	return true, nil
}
