package pki

import (
	"crypto/x509"
	"sync"
	"time"
)

// Client is the client of one connection. The connection may be older than what is trusted now, so a server asks at
// each request. To verify a certificate costs more than most answers: it is done again when other authorities are
// trusted, and when a certificate expires.
type Client struct {
	mutex sync.Mutex
	// certificate was verified by roots, and validity is for how long that holds.
	certificate *x509.Certificate
	roots       *x509.CertPool
	validity    validity
}

// Verify is VerifyClient for what the client of this connection has shown. Pools that are the same ones as before have
// the same authorities.
func (c *Client) Verify(chain []*x509.Certificate, pools map[string]*x509.CertPool) error {
	roots, err := claimed(chain, pools)
	if err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.certificate == chain[0] && c.roots == roots && c.validity.has(time.Now()) {
		return nil
	}
	c.certificate = nil
	if c.validity, err = verifyClient(chain, pools); err != nil {
		return err
	}
	c.certificate, c.roots = chain[0], roots
	return nil
}

// validity is the time in which all certificates of a chain are valid.
type validity struct{ from, until time.Time }

func validityOf(chain []*x509.Certificate) validity {
	v := validity{chain[0].NotBefore, chain[0].NotAfter}
	for _, c := range chain[1:] {
		if c.NotBefore.After(v.from) {
			v.from = c.NotBefore
		}
		if c.NotAfter.Before(v.until) {
			v.until = c.NotAfter
		}
	}
	return v
}

func (v validity) has(now time.Time) bool { return !now.Before(v.from) && !now.After(v.until) }
