package pod

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// ConnectPatience bounds one host, so that one that swallows packets does not keep the others from being asked.
const ConnectPatience = 5 * time.Second

// Progress tells the operator how far a Pod is.
type Progress struct {
	// More are other questions that the operator may ask, by their patterns.
	More map[string]http.HandlerFunc
	// Answered is called with what the operator has been told. It may be nil.
	Answered func(protocol.BackupProgress)

	mu  sync.Mutex
	now protocol.BackupProgress
}

// Set says anew how far it is.
func (p *Progress) Set(now protocol.BackupProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// Step changes what is being done; how much has been copied stays.
func (p *Progress) Step(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Step = words
}

// Get is how far it is.
func (p *Progress) Get() protocol.BackupProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Answer says how far it is.
func (p *Progress) Answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	now := p.Get()
	if json.NewEncoder(w).Encode(now) == nil && p.Answered != nil { // else the operator asks again
		p.Answered(now)
	}
}

// serve answers the operator, whose authority is given in PEM, and nobody else, and returns the port.
func (p *Progress) serve(
	ctx context.Context, own *Issuer, operator, address string,
) (stop func(), port int, err error) {
	clientCAs := func() (map[string]*x509.CertPool, error) {
		pool, err := pki.Pool(operator)
		return map[string]*x509.CertPool{naming.IdentityOperator: pool}, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathBackup, p.Answer)
	for pattern, handler := range p.More {
		mux.HandleFunc(pattern, handler)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, 0, fmt.Errorf("listen for the operator: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: ConnectPatience}
	go func() { _ = server.Serve(tls.NewListener(listener, pki.ServerTLS(own.Certificate, clientCAs))) }()
	bound, _ := listener.Addr().(*net.TCPAddr)
	return func() { EndServer(server) }, bound.Port, nil
}

// EndServer ends a server. Answers that are under way reach the operator.
func EndServer(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx)
	_ = server.Close()
}
