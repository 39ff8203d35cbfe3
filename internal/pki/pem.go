package pki

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The forms of PEM (RFC 7468) that certificates and keys have in files and Secrets.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// certificatePEM is certificates, given in DER, as one text.
func certificatePEM(ders ...[]byte) []byte {
	var out bytes.Buffer
	for _, der := range ders {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der}))
	}
	return out.Bytes()
}

// raw is certificates in DER.
func raw(all []*x509.Certificate) [][]byte {
	var out [][]byte
	for _, c := range all {
		out = append(out, c.Raw)
	}
	return out
}

func keyPEM(key any) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}), nil
}

// Certificates are those that a text has in PEM. What is no certificate is passed over.
func Certificates(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, c)
		}
	}
	return out
}

// readCertificates is the same for what a user has written: there has to be one, and each has to be one.
func readCertificates(text []byte) ([]*x509.Certificate, error) {
	if len(text) > maxAuthority {
		return nil, fmt.Errorf("it has %d bytes, and may have %d: leave only the certificates that clients need",
			len(text), maxAuthority)
	}
	var out []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != pemCertificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a certificate in it can't be read: %w", err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	return out, nil
}

// Union are the certificates of several PEM texts, each once, in an order that depends on nothing but them. A text that
// can't be read does not count.
func Union(texts ...string) string {
	var blocks []string
	for _, text := range texts {
		all, err := readCertificates([]byte(text))
		if err != nil {
			continue
		}
		for _, c := range all {
			blocks = append(blocks, string(certificatePEM(c.Raw)))
		}
	}
	slices.Sort(blocks)
	return strings.Join(slices.Compact(blocks), "")
}

// Within says that all certificates of a PEM text are in another one.
func Within(text, other string) bool { return Union(other) == Union(text, other) }

// Pool is a set of authorities to trust, from PEM.
func Pool(authorities ...string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	for _, text := range authorities {
		if !pool.AppendCertsFromPEM([]byte(text)) {
			return nil, errors.New("an authority's certificate is not PEM")
		}
	}
	return pool, nil
}
