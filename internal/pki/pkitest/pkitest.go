// Package pkitest has an authority that is not Toban's own, such as a company's, for tests.
package pkitest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"toban.dev/internal/pki"
)

// Lifetime is that of what is issued.
const Lifetime = 90 * 24 * time.Hour

// Root is an authority.
type Root struct {
	// PEM is its certificate; of one in between, that of the authority above is in root.
	PEM []byte

	cert        *x509.Certificate
	key         crypto.Signer
	root, chain []byte
}

// NewRoot makes an authority.
func NewRoot(t testing.TB, name string) *Root {
	t.Helper()
	return NewRootOf(t, name, newKey(t))
}

// NewRootOf makes one with a key.
func NewRootOf(t testing.TB, name string, key crypto.Signer) *Root {
	t.Helper()
	template := authority(name)
	r := &Root{cert: template, key: key}
	r.PEM = r.sign(t, template, key.Public())
	r.root = r.PEM
	r.cert = parse(t, r.PEM)
	return r
}

// Intermediate makes an authority below this one.
func (r *Root) Intermediate(t testing.TB, name string) *Root {
	t.Helper()
	key := newKey(t)
	text := r.sign(t, authority(name), key.Public())
	return &Root{PEM: text, cert: parse(t, text), key: key, root: r.root, chain: append(text, r.chain...)}
}

// Issue makes a certificate as cert-manager writes it.
func (r *Root) Issue(t testing.TB, names []string) pki.Given {
	t.Helper()
	return r.IssueUntil(t, names, time.Now().Add(Lifetime))
}

// IssueUntil makes one that ends at a time.
func (r *Root) IssueUntil(t testing.TB, names []string, end time.Time) pki.Given {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "given"},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: end, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	pki.AddNames(template, names)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return pki.Given{
		Certificate: append(r.sign(t, template, key.Public()), r.chain...),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		Authority:   r.root,
	}
}

// WithoutChain is a Given with nothing but its own certificate.
func WithoutChain(g pki.Given) pki.Given {
	block, _ := pem.Decode(g.Certificate)
	g.Certificate = pem.EncodeToMemory(block)
	return g
}

// Leaf is the certificate of a Given.
func Leaf(t testing.TB, g pki.Given) *x509.Certificate {
	t.Helper()
	return parse(t, g.Certificate)
}

// State is a connection to a server that shows a certificate.
func State(name string, shows *x509.Certificate) tls.ConnectionState {
	return tls.ConnectionState{ServerName: name, PeerCertificates: []*x509.Certificate{shows}}
}

func (r *Root) sign(t testing.TB, template *x509.Certificate, key crypto.PublicKey) []byte {
	t.Helper()
	template.SerialNumber = serial(t)
	der, err := x509.CreateCertificate(rand.Reader, template, r.cert, key, r.key)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func authority(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(10 * Lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	must(t, err)
	return n
}

func parse(t testing.TB, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	return c
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
