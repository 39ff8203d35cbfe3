package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// DatabaseTLS is ClientTLSBy for connections to the PostgreSQL servers, which may show a certificate that the user
// gives (given are the certificates of its authority, PEM; "" where there is none). Such a server is known by the name
// that it is called by, which ForHost says.
func DatabaseTLS(
	certificate func() (tls.Certificate, error), roots func() (*x509.CertPool, error), identity, given string,
) (*tls.Config, error) {
	config := ClientTLSBy(certificate, roots, identity)
	if given == "" {
		return config, nil
	}
	users, err := Pool(given)
	if err != nil {
		return nil, err
	}
	own := config.VerifyConnection
	config.VerifyConnection = func(state tls.ConnectionState) error {
		ours := own(state)
		if ours == nil {
			return nil
		}
		if err := named(state, users); err != nil {
			return errors.Join(ours, err)
		}
		return nil
	}
	return config, nil
}

// named verifies a server by an authority and its name.
func named(state tls.ConnectionState, roots *x509.CertPool) error {
	if state.ServerName == "" || len(state.PeerCertificates) == 0 {
		return errors.New("the server has no name or no certificate to be known by")
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), DNSName: state.ServerName}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := state.PeerCertificates[0].Verify(options); err != nil {
		return fmt.Errorf("the server's certificate is not one of %s: %w", state.ServerName, err)
	}
	return nil
}

// ForHost is a configuration for one host of several.
func ForHost(config *tls.Config, host string) *tls.Config {
	if config == nil {
		return nil
	}
	out := config.Clone()
	out.ServerName = host
	if verify := config.VerifyConnection; verify != nil {
		out.VerifyConnection = func(state tls.ConnectionState) error {
			state.ServerName = host // crypto/tls leaves out addresses
			return verify(state)
		}
	}
	return out
}
