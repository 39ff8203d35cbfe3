package work

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// PodOptions are what each process that works on an archive in a Pod of its own is told.
type PodOptions struct {
	// Settings is the file with the settings, Authority the folder with the SampleDB's authority.
	Settings, Authority string
	// Run is a folder in memory for keys and the socket.
	Run string
	// Address is where the operator reaches the Pod, Listen where to tell it how far the work is.
	Address, Listen string
	// Termination is the file for the result.
	Termination string
}

// pod is such a process at work.
type pod struct {
	PodOptions
	own      *issuer
	progress progressServer
	log      *slog.Logger
}

func newPod(o PodOptions) pod {
	return pod{PodOptions: o, log: slog.New(slog.NewJSONHandler(os.Stdout, nil))}
}

// begin reads the settings, which name the operator, and tells that from then on how far this is, until stop is called.
func (p *pod) begin(ctx context.Context, identity string, settings any, operator *string) (stop func(), err error) {
	if err := readSettings(p.Settings, settings); err != nil {
		return nil, err
	}
	if p.own, err = newIssuer(p.Authority, identity, p.Address); err != nil {
		return nil, err
	}
	stop, _, err = p.progress.serve(ctx, p.own, *operator, p.Listen)
	return stop, err
}

func readSettings(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("understand the settings %s: %w", path, err)
	}
	return nil
}

// telling is a context in which it is told when the store is away, and waited for.
func (p *pod) telling(ctx context.Context) context.Context {
	return transfer.WithWaits(ctx, func(err error) {
		p.progress.step("waits for the store: " + err.Error())
		p.log.Warn("waits for the store", "error", err.Error())
	})
}

// progressServer tells the operator how far a Pod is.
type progressServer struct {
	// more are other questions that the operator may ask, by their patterns.
	more map[string]http.HandlerFunc
	// answered is called with what the operator has been told. It may be nil.
	answered func(protocol.BackupProgress)

	mu  sync.Mutex
	now protocol.BackupProgress
}

func (p *progressServer) set(now protocol.BackupProgress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// step changes what is being done; how much has been copied stays.
func (p *progressServer) step(words string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Step = words
}

func (p *progressServer) get() protocol.BackupProgress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// answer says how far it is.
func (p *progressServer) answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	now := p.get()
	if json.NewEncoder(w).Encode(now) == nil && p.answered != nil { // else the operator asks again
		p.answered(now)
	}
}

// serve answers the operator, whose authority is given in PEM, and nobody else, and returns the port.
func (p *progressServer) serve(
	ctx context.Context, own *issuer, operator, address string,
) (stop func(), port int, err error) {
	clientCAs := func() (map[string]*x509.CertPool, error) {
		pool, err := pki.Pool(operator)
		return map[string]*x509.CertPool{naming.IdentityOperator: pool}, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathBackup, p.answer)
	for pattern, handler := range p.more {
		mux.HandleFunc(pattern, handler)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, 0, fmt.Errorf("listen for the operator: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: connectPatience}
	go func() { _ = server.Serve(tls.NewListener(listener, pki.ServerTLS(own.certificate, clientCAs))) }()
	bound, _ := listener.Addr().(*net.TCPAddr)
	return func() { endServer(server) }, bound.Port, nil
}

// endServer ends a server. Answers that are under way reach the operator.
func endServer(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = server.Shutdown(ctx)
	_ = server.Close()
}
