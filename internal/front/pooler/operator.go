package pooler

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

const (
	// waitingAgain is how often it is looked whether clients wait, while the operator wants to know that.
	waitingAgain = 250 * time.Millisecond
	// maxWaitingAsks bounds a question (bytes).
	maxWaitingAsks = 4 << 10
)

// operator answers the operator, over mTLS, whether clients are held and wait (docs/stop.md, "Sleep"). Nobody else is
// answered, and nobody at all where the database never sleeps.
type operator struct {
	state func() State
	// ask is what PgBouncer answers to a command.
	ask func(ctx context.Context, command string) ([]map[string]string, error)
	// certificate is a folder with tls.crt and tls.key, authority the operator's (PEM).
	certificate string
	authority   func() string
}

// serve answers until ctx ends.
func (o *operator) serve(ctx context.Context, listen string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+protocol.PathWaiting, o.handleWaiting)
	server := &http.Server{
		Handler: o.trusted(mux), TLSConfig: pki.ServerTLS(o.pair, o.clientCAs), MaxHeaderBytes: maxWaitingAsks,
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
	}
	listener, err := protocol.Listen(ctx, net.JoinHostPort(listen, strconv.Itoa(naming.PortAgent)))
	if err != nil {
		return fmt.Errorf("listen for the operator: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answer the operator: %w", err)
	}
	return nil
}

func (o *operator) pair() (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(o.certificate, naming.KeyTLSCertificate),
		filepath.Join(o.certificate, naming.KeyTLSKey))
	if err != nil {
		return pair, fmt.Errorf("read the pooler's certificate: %w", err)
	}
	return pair, nil
}

// clientCAs vouch for who may ask: the operator alone.
func (o *operator) clientCAs() (map[string]*x509.CertPool, error) {
	authority := o.authority()
	if authority == "" {
		return nil, errors.New("nobody is answered: the database never sleeps")
	}
	pool, err := pki.Pool(authority)
	if err != nil {
		return nil, err
	}
	return map[string]*x509.CertPool{naming.IdentityOperator: pool}, nil
}

// trusted lets in who is still trusted: a connection may be older than the last change of that.
func (o *operator) trusted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pools, err := o.clientCAs()
		if err == nil {
			err = pki.VerifyClient(r.TLS.PeerCertificates, pools)
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// handleWaiting answers when something else is true than the operator has heard, or after protocol.WaitingWaits.
func (o *operator) handleWaiting(w http.ResponseWriter, r *http.Request) {
	var asks protocol.WaitingAsks
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWaitingAsks)) // to its end: so it is seen who hangs up
	if err == nil {
		err = json.Unmarshal(text, &asks)
	}
	if err != nil {
		http.Error(w, fmt.Sprintf("understand the question: %v", err), http.StatusBadRequest)
		return
	}
	tells, err := o.await(r.Context(), asks.Heard)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(tells) // who hung up asks again
}

func (o *operator) await(ctx context.Context, heard *protocol.PoolTells) (protocol.PoolTells, error) {
	ctx, cancel := context.WithTimeout(ctx, protocol.WaitingWaits)
	defer cancel()
	for {
		tells, err := o.tells(context.WithoutCancel(ctx))
		if err != nil || heard == nil || tells != *heard || !pause.For(ctx, waitingAgain) {
			return tells, err
		}
	}
}

// tells is how the clients are now.
func (o *operator) tells(ctx context.Context) (tells protocol.PoolTells, err error) {
	pools, err := o.ask(ctx, "SHOW POOLS")
	if err != nil {
		return tells, err
	}
	tells.Held = o.state().Held
	for _, pool := range pools {
		if pool["database"] == consoleDatabase {
			continue
		}
		if err := countClients(pool, tells.Held, &tells); err != nil {
			return tells, err
		}
	}
	return tells, nil
}

// countClients adds the clients of one of PgBouncer's pools.
func countClients(pool map[string]string, held bool, tells *protocol.PoolTells) error {
	column, sum := "sv_active", &tells.Active
	if held {
		column, sum = "cl_waiting", &tells.Waiting
	}
	n, err := strconv.Atoi(pool[column])
	if err != nil {
		return fmt.Errorf("understand %s of PgBouncer's pools: %w", column, err)
	}
	*sum += n
	return nil
}
