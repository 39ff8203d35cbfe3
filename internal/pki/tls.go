package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// ClientTLS is the TLS side of a client: it shows a certificate and trusts
// servers with one from roots that bears the identity. A server is known by its
// identity, not by its host name: addresses of Pods change, authorities don't.
func ClientTLS(certificate func() (tls.Certificate, error), roots *x509.CertPool, identity string) *tls.Config {
	return ClientTLSBy(certificate, func() (*x509.CertPool, error) { return roots, nil }, identity)
}

// ClientTLSBy is ClientTLS with roots that are asked for at each connection, so they may change.
func ClientTLSBy(
	certificate func() (tls.Certificate, error), roots func() (*x509.CertPool, error), identity string,
) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := certificate()
			return &c, err
		},
		// The standard check asks for a host name too; VerifyConnection does all the rest of it.
		InsecureSkipVerify: true, //nolint:gosec // verified in VerifyConnection
		VerifyConnection: func(state tls.ConnectionState) error {
			pool, err := roots()
			if err != nil {
				return err
			}
			return trusted(state.PeerCertificates, pool, x509.ExtKeyUsageServerAuth, identity)
		},
	}
}

// ServerTLS is the TLS side of an agent: it takes clients that show a
// certificate with one of the identities, from the authority that vouches for that one
// and no other.
func ServerTLS(
	certificate func() (tls.Certificate, error), clientCAs func() (map[string]*x509.CertPool, error),
) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAnyClientCert,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			c, err := certificate()
			return &c, err
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			pools, err := clientCAs()
			if err != nil {
				return err
			}
			return VerifyClient(state.PeerCertificates, pools)
		},
	}
}

// VerifyClient verifies a client by the authority of the identity that it claims.
func VerifyClient(chain []*x509.Certificate, pools map[string]*x509.CertPool) error {
	_, err := verifyClient(chain, pools)
	return err
}

func verifyClient(chain []*x509.Certificate, pools map[string]*x509.CertPool) (validity, error) {
	pool, err := claimed(chain, pools)
	if err != nil {
		return validity{}, err
	}
	return verified(chain, pool, x509.ExtKeyUsageClientAuth, chain[0].Subject.CommonName)
}

// claimed are the authorities of the identity that a client claims.
func claimed(chain []*x509.Certificate, pools map[string]*x509.CertPool) (*x509.CertPool, error) {
	if len(chain) == 0 {
		return nil, errors.New("no certificate was shown")
	}
	identity := chain[0].Subject.CommonName
	pool, ok := pools[identity]
	if !ok {
		return nil, fmt.Errorf("the certificate is for %q, expected one of %q",
			identity, slices.Sorted(maps.Keys(pools)))
	}
	return pool, nil
}

func trusted(chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, identities ...string) error {
	_, err := verified(chain, roots, usage, identities...)
	return err
}

// verified verifies a chain now, and returns from when to when the same holds.
func verified(
	chain []*x509.Certificate, roots *x509.CertPool, usage x509.ExtKeyUsage, identities ...string,
) (validity, error) {
	if len(chain) == 0 {
		return validity{}, errors.New("no certificate was shown")
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{usage}}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	chains, err := chain[0].Verify(options)
	if err != nil {
		return validity{}, fmt.Errorf("the certificate of %q is not trusted: %w", chain[0].Subject.CommonName, err)
	}
	if !slices.Contains(identities, chain[0].Subject.CommonName) {
		return validity{}, fmt.Errorf("the certificate is for %q, expected one of %q",
			chain[0].Subject.CommonName, identities)
	}
	return validityOf(chains[0]), nil
}
