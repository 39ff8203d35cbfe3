package pod

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
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

// Awaiting is a Pod that does its work when the operator tells it to begin, and then tells what has come of it.
type Awaiting struct {
	Pod
	refuses func(id string) string

	once, toldOnce sync.Once
	// begun is closed when it is told to begin, told when the operator knows the result.
	begun, told chan struct{}
}

// Await has it be told to begin. refuses says why it is not the one that is told to begin with an id, "" where it is. A
// progress that has the result is one by which the operator knows it.
func (a *Awaiting) Await(refuses func(id string) string, hasResult func(protocol.BackupProgress) bool) {
	a.refuses = refuses
	a.begun, a.told = make(chan struct{}), make(chan struct{})
	a.Progress.More = map[string]http.HandlerFunc{"POST " + protocol.PathBegin: a.onBegin}
	a.Progress.Answered = func(p protocol.BackupProgress) {
		if hasResult(p) {
			a.toldOnce.Do(func() { close(a.told) })
		}
	}
}

// AwaitBegin waits until it is told to begin.
func (a *Awaiting) AwaitBegin(ctx context.Context) error {
	a.Progress.Step(protocol.StepAwaitsBegin)
	select {
	case <-a.begun:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", protocol.StepAwaitsBegin, ctx.Err())
	}
}

// tellPatience is for how long it waits for the operator to ask what has come of it. An operator that is away reads it
// from the Pod's termination message.
const tellPatience = 5 * time.Second

// Tell waits until the operator has asked what has come of it, and says whether it has.
func (a *Awaiting) Tell(ctx context.Context, progress protocol.BackupProgress) bool {
	a.Progress.Set(progress)
	patience := time.NewTimer(tellPatience)
	defer patience.Stop()
	select {
	case <-a.told:
		return true
	case <-patience.C:
	case <-ctx.Done():
	}
	return false
}

// onBegin is told to begin. It may be told again.
func (a *Awaiting) onBegin(w http.ResponseWriter, request *http.Request) {
	var begin protocol.UpgradeBegin
	if err := json.NewDecoder(io.LimitReader(request.Body, MaxTermination)).Decode(&begin); err != nil {
		http.Error(w, "understand the request: "+err.Error(), http.StatusBadRequest)
		return
	}
	if why := a.refuses(begin.ID); why != "" {
		http.Error(w, why, http.StatusConflict)
		return
	}
	a.once.Do(func() { close(a.begun) })
	a.Progress.Answer(w, request)
}
