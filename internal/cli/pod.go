package cli

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
	"strconv"
	"sync"

	"github.com/spf13/pflag"

	"toban.dev/internal/backup"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// podOptions are what each process that works on an archive in a Pod of its own is told.
type podOptions struct {
	settings, authority, run, address, termination, listen string
}

// flags declares them; the settings are in the file of this path.
func (o *podOptions) flags(f *pflag.FlagSet, settings string) {
	f.StringVar(&o.settings, "settings", settings, "file with the settings")
	f.StringVar(&o.authority, "authority", naming.PathAuthority, "folder with the SampleDB's authority")
	f.StringVar(&o.run, "run", naming.PathRun, "folder in memory for keys and the socket")
	f.StringVar(&o.address, "address", os.Getenv("POD_IP"), "address that the operator reaches this Pod by")
	f.StringVar(&o.termination, "termination-log", "/dev/termination-log", "file for the result")
	f.StringVar(&o.listen, "listen", ":"+strconv.Itoa(naming.PortAgent), "where to tell the operator how far it is")
}

// pod is such a process at work.
type pod struct {
	podOptions
	own      *issuer
	progress progressServer
	log      *slog.Logger
}

func newPod(o podOptions) pod {
	return pod{podOptions: o, log: slog.New(slog.NewJSONHandler(os.Stdout, nil))}
}

// begin reads the settings, which name the operator, and tells that from then on how far this is, until stop is called.
func (p *pod) begin(ctx context.Context, identity string, settings any, operator *string) (stop func(), err error) {
	if err := readSettings(p.podOptions.settings, settings); err != nil {
		return nil, err
	}
	if p.own, err = newIssuer(p.authority, identity, p.address); err != nil {
		return nil, err
	}
	stop, _, err = p.progress.serve(ctx, p.own, *operator, p.listen)
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
	return backup.WithWaits(ctx, func(err error) {
		p.progress.step("waits for the store: " + err.Error())
		p.log.Warn("waits for the store", "error", err.Error())
	})
}

// progressServer tells the operator how far a Pod is.
type progressServer struct {
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

// serve answers the operator, whose authority is given in PEM, and nobody else, and returns the port.
func (p *progressServer) serve(
	ctx context.Context, own *issuer, operator, address string,
) (stop func(), port int, err error) {
	clientCAs := func() (map[string]*x509.CertPool, error) {
		pool, err := pki.Pool(operator)
		return map[string]*x509.CertPool{naming.IdentityOperator: pool}, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathBackup, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(p.get()) // the operator asks again
	})
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, 0, fmt.Errorf("listen for the operator: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: connectPatience}
	go func() { _ = server.Serve(tls.NewListener(listener, pki.ServerTLS(own.certificate, clientCAs))) }()
	bound, _ := listener.Addr().(*net.TCPAddr)
	return func() { _ = server.Close() }, bound.Port, nil
}
