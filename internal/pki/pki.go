// Package pki makes and reads the certificates of a SampleDB: each has an
// authority of its own, whose key only its instances and its init Job have, and
// they issue themselves what they need, so that no certificate waits for the
// operator. It depends on the standard library alone.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Lifetimes. A leaf is renewed by its holder after half of its own.
const (
	AuthorityLifetime = 20 * 365 * 24 * time.Hour
	LeafLifetime      = 30 * 24 * time.Hour
	// skew lets a machine whose clock is behind accept a new certificate.
	skew = time.Hour
)

// Authority can issue certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Derive makes length bytes for one purpose from a root secret (HKDF-SHA256,
// RFC 5869). The same root, id and purpose always give the same bytes.
func Derive(root []byte, id, purpose string, length int) []byte {
	out, err := hkdf.Key(sha256.New, root, []byte(id), purpose, length)
	if err != nil {
		panic(err) // only a length over 255 hashes fails
	}
	return out
}

// NewAuthority makes an authority from 32 secret bytes. The same parameters always
// give the same key and certificate (signed as RFC 6979 says, without randomness), so
// that it never changes with who made it and when.
func NewAuthority(seed []byte, name string, notBefore time.Time) (*Authority, error) {
	return NewAuthorityUntil(seed, name, notBefore, notBefore.Add(AuthorityLifetime))
}

// NewAuthorityUntil is NewAuthority with an end of its own.
func NewAuthorityUntil(seed []byte, name string, notBefore, notAfter time.Time) (*Authority, error) {
	key, err := privateKey(seed)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(Derive(seed, name, "serial", 15)),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             notBefore.Add(-skew),
		NotAfter:              notAfter,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign authority %q: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back authority %q: %w", name, err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// privateKey maps a seed to a P-256 key: the first derived number that is a valid scalar.
func privateKey(seed []byte) (*ecdsa.PrivateKey, error) {
	for i := range 100 {
		key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), Derive(seed, "p256", fmt.Sprint(i), 32))
		if err == nil {
			return key, nil
		}
	}
	return nil, errors.New("no valid key can be derived from the seed")
}

// ParseAuthority reads an authority from PEM.
func ParseAuthority(cert, key []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read authority: %w", err)
	}
	private, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("read authority: the key is %T, expected ECDSA", pair.PrivateKey)
	}
	return &Authority{cert: pair.Leaf, key: private}, nil
}

// CertPEM is the authority's certificate, which is public.
func (a *Authority) CertPEM() []byte { return certificatePEM(a.cert.Raw) }

// KeyPEM is the authority's private key (PKCS #8).
func (a *Authority) KeyPEM() ([]byte, error) { return keyPEM(a.key) }

// Vouches says whether one of the certificates (PEM) is this authority's own: of the same key and signed with it,
// whatever the bytes of the signature.
func (a *Authority) Vouches(certificates []byte) bool { return a.Find(certificates) != nil }

// Find is the one of several certificates (PEM) that is this authority's own, nil where none is.
func (a *Authority) Find(certificates []byte) []byte {
	for _, c := range Certificates(certificates) {
		if a.key.PublicKey.Equal(c.PublicKey) && c.CheckSignatureFrom(c) == nil {
			return certificatePEM(c.Raw)
		}
	}
	return nil
}

// ID names the authority by its key: see KeyIDs.
func (a *Authority) ID() string { return keyID(a.cert) }

// KeyIDs name the keys of certificates (PEM), in their order: by SHA-256 of the public key, whatever else a
// certificate says.
func KeyIDs(text string) []string {
	var out []string
	for _, c := range Certificates([]byte(text)) {
		out = append(out, keyID(c))
	}
	return out
}

func keyID(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:8])
}

// Leaf is an issued certificate with its key.
type Leaf struct {
	CertPEM, KeyPEM []byte
	NotBefore       time.Time
	NotAfter        time.Time
}

// RenewAt is when the holder should issue itself a new one.
func (l Leaf) RenewAt() time.Time { return l.NotBefore.Add(l.NotAfter.Sub(l.NotBefore) / 2) }

// TLS is the leaf as crypto/tls takes it.
func (l Leaf) TLS() (tls.Certificate, error) { return tls.X509KeyPair(l.CertPEM, l.KeyPEM) }

// Issue makes a certificate for both ends of a connection. Names that are IP
// addresses become address entries, the others DNS names.
func (a *Authority) Issue(identity string, names []string, now time.Time) (Leaf, error) {
	return a.issue(identity, names, now, now.Add(LeafLifetime))
}

// IssueLasting is Issue for a holder that can't issue itself another one: it is valid for as long as the authority.
func (a *Authority) IssueLasting(identity string, names []string, now time.Time) (Leaf, error) {
	return a.issue(identity, names, now, a.cert.NotAfter)
}

func (a *Authority) issue(identity string, names []string, now, until time.Time) (Leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Leaf{}, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Leaf{}, fmt.Errorf("make a serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: identity},
		NotBefore:    now.Add(-skew),
		NotAfter:     until,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	AddNames(template, names)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Leaf{}, fmt.Errorf("sign certificate of %q: %w", identity, err)
	}
	private, err := keyPEM(key)
	if err != nil {
		return Leaf{}, err
	}
	return Leaf{
		CertPEM:   certificatePEM(der),
		KeyPEM:    private,
		NotBefore: template.NotBefore,
		NotAfter:  template.NotAfter,
	}, nil
}

// AddNames adds names and addresses to a certificate.
func AddNames(template *x509.Certificate, names []string) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
}
