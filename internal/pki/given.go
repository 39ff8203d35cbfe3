package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Given is a certificate that is not our own: with its key and the certificates of its authority (PEM), as a Secret of
// the type kubernetes.io/tls has them.
type Given struct{ Certificate, Key, Authority []byte }

// maxAuthority bounds the certificates of an authority (bytes): they go into configurations.
const maxAuthority = 32 << 10

// Shown is a Given that may be shown: nothing is in it but what was checked.
type Shown struct {
	// PEM is the certificate with its chain and its key, in one text, which a file has at once or not at all.
	PEM []byte
	// Authority are the certificates of the authority, one after the other.
	Authority []byte
	NotAfter  time.Time
}

// Check is a Given as it may be shown to clients that call the server by any of the names. Its error is a sentence for
// the user, about the keys of the Secret.
func (g Given) Check(names []string, now time.Time) (Shown, error) {
	for _, part := range []struct {
		key     string
		content []byte
	}{{"tls.crt", g.Certificate}, {"tls.key", g.Key}, {"ca.crt", g.Authority}} {
		if len(bytes.TrimSpace(part.content)) == 0 {
			return Shown{}, fmt.Errorf("%s is missing: all of tls.crt, tls.key and ca.crt have to be there", part.key)
		}
	}
	pair, err := tls.X509KeyPair(g.Certificate, g.Key)
	if err != nil {
		return Shown{}, fmt.Errorf("tls.key is not the key of tls.crt, or one of them is not PEM: %w", err)
	}
	leaf := pair.Leaf
	authority, err := readCertificates(g.Authority)
	if err != nil {
		return Shown{}, fmt.Errorf("ca.crt: %w", err)
	}
	for _, check := range []error{
		valid(leaf, now), algorithm(leaf), lacks(leaf, names), chain(pair, authority, now),
	} {
		if check != nil {
			return Shown{}, check
		}
	}
	text, err := shownPEM(pair)
	return Shown{PEM: text, Authority: certificatePEM(raw(authority)...), NotAfter: leaf.NotAfter}, err
}

func valid(leaf *x509.Certificate, now time.Time) error {
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("the certificate has expired on %s: renew it", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// algorithm refuses what has no digest of its own: SCRAM binds itself to the digest of the certificate (RFC 5929,
// tls-server-end-point), and PostgreSQL refuses every password without one.
func algorithm(leaf *x509.Certificate) error {
	if leaf.SignatureAlgorithm == x509.PureEd25519 {
		return errors.New("the certificate is signed with Ed25519, with which PostgreSQL can't check passwords: " +
			"have it signed with ECDSA or RSA")
	}
	return nil
}

// lacks says which names the certificate is not valid for.
func lacks(leaf *x509.Certificate, names []string) error {
	var missing []string
	for _, name := range names {
		if leaf.VerifyHostname(name) != nil && !slices.Contains(leaf.DNSNames, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the certificate is not valid for %s: issue one with all names that "+
			"docs/security.md lists", strings.Join(missing, ", "))
	}
	return nil
}

// chain refuses what clients can't follow to ca.crt. libpq follows it to an authority that has signed itself, and no
// less.
func chain(pair tls.Certificate, authority []*x509.Certificate, now time.Time) error {
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, c := range authority {
		if bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignatureFrom(c) == nil {
			options.Roots.AddCert(c)
		}
	}
	for _, der := range pair.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			options.Intermediates.AddCert(c)
		}
	}
	if _, err := pair.Leaf.Verify(options); err != nil {
		return fmt.Errorf("tls.crt does not lead to an authority in ca.crt that has signed itself: tls.crt needs all "+
			"certificates between the two, and ca.crt the root: %w", err)
	}
	return nil
}

// shownPEM is the chain and the key in one text.
func shownPEM(pair tls.Certificate) ([]byte, error) {
	key, err := keyPEM(pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("tls.key has a key of a kind that can't be used: %w", err)
	}
	return append(certificatePEM(pair.Certificate...), key...), nil
}
