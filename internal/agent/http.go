package agent

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

const (
	// maxConfig bounds a config that is read from the network (bytes).
	maxConfig = 4 << 20
	// applyDeadline is how long the answer to a new config waits for its effect.
	applyDeadline = 1500 * time.Millisecond
)

// serveAgent serves peers and the operator over mTLS.
func (a *Agent) serveAgent(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathStatus, a.handleStatus)
	mux.Handle("POST "+protocol.PathNews, only(naming.IdentityInstance, "another instance", a.handleNews))
	mux.Handle("POST "+protocol.PathVote, only(naming.IdentityInstance, "another instance", a.handleVote))
	mux.Handle("POST "+protocol.PathRecord, only(naming.IdentityInstance, "another instance", a.handleRecord))
	mux.Handle("POST "+protocol.PathSwitchover, only(naming.IdentityOperator, "the operator", a.handleSwitchover))
	mux.Handle("POST "+protocol.PathSync, only(naming.IdentityOperator, "the operator", a.handleSync))
	mux.Handle("POST "+protocol.PathRestart, only(naming.IdentityOperator, "the operator", a.handleRestart))
	mux.Handle("POST "+protocol.PathDatabase, only(naming.IdentityOperator, "the operator", a.handleDatabase))
	return a.serveMTLS(ctx, mux)
}

// serveMTLS serves those whom somebody vouches for.
func (a *Agent) serveMTLS(ctx context.Context, mux *http.ServeMux) error {
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		TLSConfig: pki.ServerTLS(a.identity.certificate, a.vouchers)}
	return a.serveUntil(ctx, server, naming.PortAgent, func(l net.Listener) error { return server.ServeTLS(l, "", "") })
}

// vouchers are the authorities of those who may ask: the SampleDB's own for its
// instances, and the operator's for the operator.
func (a *Agent) vouchers() (map[string]*x509.CertPool, error) {
	instances, err := pki.Pool(string(a.identity.authorityPEM))
	if err != nil {
		return nil, err
	}
	operator, err := pki.Pool(a.currentConfig().Operator)
	if err != nil {
		return nil, err
	}
	return map[string]*x509.CertPool{naming.IdentityInstance: instances, naming.IdentityOperator: operator}, nil
}

// serveProbes serves the kubelet's probes.
func (a *Agent) serveProbes(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		probe(w, a.alive(), "the elections have not moved for a minute")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		status := a.Status()
		probe(w, a.ready(), status.Reason+": "+status.Message)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	return a.serveUntil(ctx, server, naming.PortProbe, server.Serve)
}

func probe(w http.ResponseWriter, ok bool, why string) {
	if !ok {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ok\n") // the kubelet that hung up asks again
}

// serveUntil serves until ctx ends.
func (a *Agent) serveUntil(ctx context.Context, server *http.Server, port int, serve func(net.Listener) error) error {
	listener, err := a.listener(ctx, net.JoinHostPort(a.Listen, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("serve peers, operator and probes: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // an answer cut off is asked for again
	defer stop()
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve port %d: %w", port, err)
	}
	return nil
}

// only lets nobody but the holder of an identity ask for something.
func only(identity, who string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName != identity {
			http.Error(w, "only "+who+" may ask for this", http.StatusForbidden)
			return
		}
		next(w, r)
	})
}

// handleNews takes what another instance says of itself without being asked.
func (a *Agent) handleNews(w http.ResponseWriter, r *http.Request) {
	var status protocol.Status
	if err := readJSON(w, r, &status); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.peers.told(status)
	writeJSON(w, a.Status())
}

// handleVote answers a candidate.
func (a *Agent) handleVote(w http.ResponseWriter, r *http.Request) {
	var request ha.VoteRequest
	if err := readKnown(w, r, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, err := a.elections.ask(r.Context(), func(id uint64) machine.Event { return machine.VoteAsked{ID: id, Request: request} })
	reply, ok := answer.(machine.ReplyVote)
	if err == nil && (!ok || reply.Failed) {
		err = errors.New("this instance can't vote: it is not known how far its WAL goes")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, reply.Reply)
}

// handleRecord takes the record of the quorum from a leader.
func (a *Agent) handleRecord(w http.ResponseWriter, r *http.Request) {
	var proposal protocol.Proposal
	if err := readKnown(w, r, &proposal); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	offered := machine.Proposal{Leader: proposal.Leader, Voter: proposal.Voter, Record: proposal.Record}
	answer, err := a.elections.ask(r.Context(), func(id uint64) machine.Event { return machine.RecordProposed{ID: id, Proposal: offered} })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	reply, _ := answer.(machine.ReplyRecord)
	writeJSON(w, reply.Reply)
}

// handleSwitchover asks the leader to leave the lead to another instance.
func (a *Agent) handleSwitchover(w http.ResponseWriter, r *http.Request) {
	var request protocol.Switchover
	if err := readJSON(w, r, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	status := a.Status()
	if !status.Election.Leading || request.To == a.Name {
		status.SwitchoverError = "this instance does not lead, or is the one that is to lead"
		writeJSON(w, status)
		return
	}
	if status.SwitchoverError == "" {
		a.Log.Info("asked to resign", "to", request.To, "reason", request.Reason)
		a.post(machine.ResignAsked{To: request.To})
	}
	a.report(func(s *protocol.Status) { s.SwitchoverError = "" }) // it has been told
	writeJSON(w, status)
}

func (a *Agent) handleStatus(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.Status()) }

// handleSync takes a config and answers when it has had its effect, or after a while.
func (a *Agent) handleSync(w http.ResponseWriter, r *http.Request) {
	var config protocol.Config
	if err := readJSON(w, r, &config); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if config.Cluster != a.currentConfig().Cluster || config.Major != a.currentConfig().Major {
		http.Error(w, fmt.Sprintf("this config is for %s, PostgreSQL %d", config.Cluster, config.Major), http.StatusConflict)
		return
	}
	a.setConfig(config)
	a.awaitApplied(r.Context(), config.Revision)
	writeJSON(w, a.Status())
}

func (a *Agent) setConfig(config protocol.Config) {
	a.mutex.Lock()
	a.config = config
	a.mutex.Unlock()
	a.post(machine.Configured{Config: a.machineConfig(config)})
	if r := a.current.Load(); r != nil {
		r.look()
	}
}

func (a *Agent) awaitApplied(ctx context.Context, revision string) {
	ctx, cancel := context.WithTimeout(ctx, applyDeadline)
	defer cancel()
	for {
		s := a.Status()
		runs := s.Role != protocol.RoleNone
		if !runs || s.ConfigRevision == revision || s.RejectedRevision == revision || !sleep(ctx, 20*time.Millisecond) {
			return
		}
	}
}

// handleRestart has the server restarted.
func (a *Agent) handleRestart(w http.ResponseWriter, r *http.Request) {
	var request protocol.Restart
	if err := readJSON(w, r, &request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if status := a.Status(); status.ConfigRevision != request.ConfigRevision {
		http.Error(w, fmt.Sprintf("the server runs with the config %s, not %s", status.ConfigRevision, request.ConfigRevision), http.StatusConflict)
		return
	}
	a.Log.Info("a restart is asked for", "reason", request.Reason)
	if a.restartsElsewhere() {
		a.post(machine.ResignAsked{Restart: true})
	} else {
		a.report(func(s *protocol.Status) { s.Ready = false }) // no other restart may begin before this one is over
		a.post(machine.RestartAsked{})
	}
	writeJSON(w, a.Status())
}

// restartsElsewhere says whether a restart of this server is better a switchover:
// the others have been restarted before. Not so for parameters that a standby can't
// have lower than its primary: there all run with the old ones until the primary restarts.
func (a *Agent) restartsElsewhere() bool {
	status := a.Status()
	return status.Election.Leading && len(status.Voters) > 1 && !slices.ContainsFunc(status.PendingRestart, postgres.BoundsStandby)
}

func readJSON(w http.ResponseWriter, r *http.Request, into any) error {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfig)).Decode(into); err != nil {
		return fmt.Errorf("understand the request: %w", err)
	}
	return nil
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // who hung up asks again
}
