package identity

import (
	"crypto/x509"
	"sync"

	"toban.dev/internal/pki"
)

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
