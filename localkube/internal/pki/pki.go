// Package pki makes the cluster's keys, certificates and kubeconfigs. Each is
// made once and kept as files: a cluster that is started again keeps its
// identities, and one that was half made gets what is missing.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is how long a certificate is good for. Nothing renews them: a
// cluster for trying and testing is made anew long before that.
const validity = 10 * 365 * 24 * time.Hour

// A Store is a directory of NAME.crt and NAME.key.
type Store struct{ Dir string }

// Cert is the path of a pair's certificate.
func (s Store) Cert(name string) string { return filepath.Join(s.Dir, name+".crt") }

// Key is the path of a pair's key.
func (s Store) Key(name string) string { return filepath.Join(s.Dir, name+".key") }

// A Subject is whom a certificate is for. With Hosts it can serve too.
type Subject struct {
	Name  string   // the user's name to Kubernetes
	Group string   // the user's group to Kubernetes
	Hosts []string // addresses and names
}

// Authority makes a certificate authority, if there is none of that name yet.
func (s Store) Authority(name string) error {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "localkube " + name},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	return s.ensure(name, "", template)
}

// Issue makes a certificate for subject signed by the authority, if there is
// none of that name yet.
func (s Store) Issue(authority, name string, subject Subject) error {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: subject.Name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if subject.Group != "" {
		template.Subject.Organization = []string{subject.Group}
	}
	for _, host := range subject.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	if len(subject.Hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return s.ensure(name, authority, template)
}

// KeyPair makes a key without a certificate (NAME.key) and its public half
// (NAME.crt), if there is none yet: what service account tokens are signed with.
func (s Store) KeyPair(name string) error {
	if complete(s.Cert(name)) {
		return nil
	}
	key, err := s.newKey(name)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	return writePEM(s.Cert(name), "PUBLIC KEY", public)
}

// ensure makes the pair unless it is complete. The certificate is written last
// and in one go, so a pair with a certificate is complete.
func (s Store) ensure(name, authority string, template *x509.Certificate) error {
	if complete(s.Cert(name)) {
		return nil
	}
	key, err := s.newKey(name)
	if err != nil {
		return err
	}
	parent, signer := template, key
	if authority != "" {
		if parent, signer, err = s.load(authority); err != nil {
			return err
		}
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	template.NotBefore = time.Now().Add(-time.Hour) // for clocks that are set back
	template.NotAfter = time.Now().Add(validity)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return fmt.Errorf("make the certificate %s: %w", name, err)
	}
	return writePEM(s.Cert(name), "CERTIFICATE", der)
}

func (s Store) newKey(name string) (*ecdsa.PrivateKey, error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key %s: %w", name, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(s.Key(name), "EC PRIVATE KEY", der)
}

func (s Store) load(name string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certDER, err := readPEM(s.Cert(name))
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := readPEM(s.Key(name))
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("parse %s: %w", s.Cert(name), err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("parse %s: %w", s.Key(name), err)
	}
	return cert, key, nil
}

func complete(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%s holds no PEM: run `localkube down` and start anew", path)
	}
	return block.Bytes, nil
}

func writePEM(path, kind string, der []byte) error {
	return write(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// write writes in one go: a reader sees all of it or nothing.
func write(path string, data []byte) error {
	temporary := path + ".new"
	if err := os.WriteFile(temporary, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
