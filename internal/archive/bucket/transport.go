package bucket

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"toban.dev/internal/httppath"
)

const (
	// patience is how long a connection may stand still while something is expected
	// of it. It is no limit on a slow one: the largest object may take its time.
	patience = 15 * time.Second
	// unsent is how much the kernel keeps that has not been sent yet, in bytes. With
	// more, a slow line would seem to stand still when the last byte is written.
	unsent = 128 << 10
	// chunk is how much is written at once, in bytes, so that a slow line moves.
	chunk = 64 << 10
)

// transport is what all stores speak HTTP with. HTTP/1.1: each request has a
// connection, and patience for its own.
func transport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: patience / 2, Control: keepLittle}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &moving{conn}, nil
		},
		TLSClientConfig:       config,
		TLSHandshakeTimeout:   patience / 2,
		ExpectContinueTimeout: 2 * time.Second,
		// WAL and pieces of a backup go side by side.
		MaxIdleConnsPerHost: 32,
		IdleConnTimeout:     patience * 2 / 3, // before it counts as standing still
		// Objects are compressed already, and are to come as they lie there.
		DisableCompression: true,
	}
}

// NewWay is a way to stores, which is one for all of Config.Way that are to be cut together. On a way that is cut a
// request fails when a connection would that stands still.
func NewWay() *httppath.Path { return httppath.New("the store of the archive", patience) }

// moving is a connection that fails when nothing has moved on it for a while. A
// deadline holds for what is under way too (net.Conn), so who writes keeps the
// one alive that waits for the answer.
type moving struct{ net.Conn }

func (m *moving) Read(p []byte) (int, error) {
	if err := m.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return m.Conn.Read(p)
}

func (m *moving) Write(p []byte) (int, error) {
	written := 0
	for {
		if err := m.SetDeadline(time.Now().Add(patience)); err != nil {
			return written, err
		}
		n, err := m.Conn.Write(p[written:min(written+chunk, len(p))])
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

// trust is the TLS side of a client of public servers: the system's authorities,
// and one's own.
func trust(authority string) (*tls.Config, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, fmt.Errorf("read the system's authorities: %w", err)
	}
	if authority != "" && !pool.AppendCertsFromPEM([]byte(authority)) {
		return nil, errors.New("the authority's certificate (ca) is not PEM")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, nil
}
