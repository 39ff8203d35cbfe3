// Package serve is what an agent answers: its peers and the operator over mTLS, and the kubelet's probes.
package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pause"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
)

const (
	// maxConfig bounds a config that is read from the network (bytes).
	maxConfig = 4 << 20
	// applyDeadline is how long the answer to a new config waits for its effect.
	applyDeadline = 1500 * time.Millisecond
)

// API answers peers and the operator.
type API struct {
	// Name is the instance's, Listen the address to listen on, "" for all, ListenAt listens there; Major
	// is PostgreSQL's version.
	Name, Listen string
	ListenAt     ListenAt
	Major        int
	Status       *status.Board
	Config       func() protocol.Config
	// Certificate is shown, ClientCAs are those of who may ask, by their identity.
	Certificate func() (tls.Certificate, error)
	ClientCAs   func() (map[string]*x509.CertPool, error)
	// Post hands an event to the elections; Ask does, too, and waits for the answer.
	Post func(machine.Event)
	Ask  func(ctx context.Context, event func(id uint64) machine.Event) (machine.Effect, error)
	// Configure takes a new config, OnStatus what a peer says of itself unasked.
	Configure func(protocol.Config)
	// Complete adds to a status what only the operator wants to know.
	Complete func(protocol.Status) protocol.Status
	OnStatus func(protocol.Status)
	// Connect makes a session with a database of the server.
	Connect database.Connect
	// GoOnAs takes a program and rehearses it. The agent goes on as it when begin is called.
	GoOnAs func(ctx context.Context, is protocol.Program, body io.Reader) (begin func(), err error)
	// Poolers answers them, nil where nobody does.
	Poolers Poolers
	// Publish has the role of this instance published once more.
	Publish func()
	// Break does a fault to this instance.
	Break func(protocol.FaultOrder) error
	Log   *slog.Logger
}

// Serve serves peers and the operator over mTLS.
func (a *API) Serve(ctx context.Context) error { return a.serveMTLS(ctx, a.routes()) }

// routes are who may ask for what, and who answers.
func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	instance := func(path string, handle http.HandlerFunc) {
		mux.Handle("POST "+path, only(naming.IdentityInstance, "another instance", handle))
	}
	operator := func(path string, handle http.HandlerFunc) {
		mux.Handle("POST "+path, only(naming.IdentityOperator, "the operator", handle))
	}
	mux.Handle("GET "+protocol.PathStatus, notForPoolers(a.handleStatus))
	mux.Handle("POST "+protocol.PathPooler, only(naming.IdentityPooler, "a pooler", reads(readJSON, a.handlePooler)))
	instance(protocol.PathNews, reads(readJSON, a.handleNews))
	instance(protocol.PathVote, reads(readKnown, a.handleVote))
	instance(protocol.PathRecord, reads(readKnown, a.handleConfiguration))
	operator(protocol.PathSwitchover, reads(readJSON, a.handleSwitchover))
	operator(protocol.PathSync, reads(readJSON, a.handleSync))
	operator(protocol.PathPublish, a.handlePublish)
	operator(protocol.PathRestart, reads(readJSON, a.handleRestart))
	operator(protocol.PathDatabase, reads(readJSON, a.handleDatabase))
	operator(protocol.PathPassword, reads(readJSON, a.handlePassword))
	operator(protocol.PathProgram, a.handleProgram)
	operator(protocol.PathFault, reads(readKnown, a.handleFault))
	return mux
}

// ServeWaiting serves the operator, and nobody else, while the agent waits for its volume.
func (a *API) ServeWaiting(ctx context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET "+protocol.PathStatus, only(naming.IdentityOperator, "the operator", a.handleStatus))
	mux.Handle("POST "+protocol.PathSync, only(naming.IdentityOperator, "the operator", reads(readJSON, a.handleSync)))
	return a.serveMTLS(ctx, mux)
}

// serveMTLS serves those whom somebody vouches for.
func (a *API) serveMTLS(ctx context.Context, mux *http.ServeMux) error {
	server := &http.Server{Handler: a.trusted(mux), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: 2 * time.Minute,
		TLSConfig: pki.ServerTLS(a.Certificate, a.ClientCAs), ConnContext: withClient}
	return serveUntil(ctx, server, a.ListenAt, at(a.Listen, naming.PortAgent),
		func(l net.Listener) error { return server.ServeTLS(l, "", "") })
}

// clientKey is under which the context of a connection has its client.
type clientKey struct{}

func withClient(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, clientKey{}, &pki.Client{})
}

// clientOf is the client of the connection that a request has come by.
func clientOf(r *http.Request) *pki.Client {
	if client, ok := r.Context().Value(clientKey{}).(*pki.Client); ok {
		return client
	}
	return &pki.Client{}
}

// trusted lets in who is still trusted: a connection may be older than the last change of that.
func (a *API) trusted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pools, err := a.ClientCAs()
		if err == nil {
			err = clientOf(r).Verify(r.TLS.PeerCertificates, pools)
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
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

// notForPoolers lets everybody in but poolers, which take connections from outside: they learn no more than they need.
func notForPoolers(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.PeerCertificates[0].Subject.CommonName == naming.IdentityPooler {
			http.Error(w, "a pooler may not ask for this", http.StatusForbidden)
			return
		}
		next(w, r)
	})
}

// handleNews takes what another instance says of itself without being asked.
func (a *API) handleNews(w http.ResponseWriter, _ *http.Request, status protocol.Status) {
	a.OnStatus(status)
	writeJSON(w, a.Status.Get())
}

// handleVote answers a candidate.
func (a *API) handleVote(w http.ResponseWriter, r *http.Request, request ha.VoteRequest) {
	answer, err := a.Ask(r.Context(),
		func(id uint64) machine.Event { return machine.VoteAsked{ID: id, Request: request} })
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

// handleConfiguration takes the configuration of the quorum from a leader.
func (a *API) handleConfiguration(w http.ResponseWriter, r *http.Request, proposal protocol.Proposal) {
	offered := machine.Proposal{Leader: proposal.Leader, Voter: proposal.Voter, Configuration: proposal.Configuration}
	answer, err := a.Ask(r.Context(),
		func(id uint64) machine.Event { return machine.ConfigurationProposed{ID: id, Proposal: offered} })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	reply, _ := answer.(machine.ReplyConfiguration)
	writeJSON(w, reply.Reply)
}

// handleSwitchover asks the leader to leave the lead to another instance.
func (a *API) handleSwitchover(w http.ResponseWriter, _ *http.Request, request protocol.Switchover) {
	status := a.Status.Get()
	isAtIt := status.Resigned || status.HandOver != "" // the request is repeated until another one leads
	switch {
	case request.To == a.Name || !status.Election.Leading && !isAtIt:
		status.SwitchoverError = "this instance does not lead, or is the one that is to lead"
		writeJSON(w, status)
		return
	case !isAtIt && status.SwitchoverError == "":
		a.Log.Info("asked to resign", "to", request.To, "reason", request.Reason)
		a.Post(machine.ResignAsked{To: request.To})
	}
	a.Status.Change(func(s *protocol.Status) { s.SwitchoverError = "" }) // it has been told
	writeJSON(w, status)
}

func (a *API) handleStatus(w http.ResponseWriter, _ *http.Request) { writeJSON(w, a.Status.Get()) }

// handleSync takes a config and answers when it has had its effect, or after a while.
func (a *API) handleSync(w http.ResponseWriter, r *http.Request, config protocol.Config) {
	if config.Cluster != a.Config().Cluster || config.Major != a.Major {
		http.Error(w,
			fmt.Sprintf("this config is for %s, PostgreSQL %d", config.Cluster, config.Major), http.StatusConflict)
		return
	}
	a.Configure(config)
	a.awaitApplied(r.Context(), config.Revision)
	writeJSON(w, a.Complete(a.Status.Get()))
}

func (a *API) awaitApplied(ctx context.Context, revision string) {
	ctx, cancel := context.WithTimeout(ctx, applyDeadline)
	defer cancel()
	for {
		s := a.Status.Get()
		runs := s.Role != protocol.RoleNone
		if !runs || s.ConfigRevision == revision || s.RejectedRevision == revision ||
			!pause.For(ctx, 20*time.Millisecond) {
			return
		}
	}
}

// handlePublish has the role published once more.
func (a *API) handlePublish(w http.ResponseWriter, r *http.Request) {
	a.Publish()
	a.handleStatus(w, r)
}

// handleRestart has the server restarted.
func (a *API) handleRestart(w http.ResponseWriter, _ *http.Request, request protocol.Restart) {
	if status := a.Status.Get(); status.ConfigRevision != request.ConfigRevision {
		http.Error(w, fmt.Sprintf("the server runs with the config %s, not %s",
			status.ConfigRevision, request.ConfigRevision), http.StatusConflict)
		return
	}
	a.Log.Info("a restart is asked for", "reason", request.Reason)
	if a.restartsElsewhere() {
		a.Post(machine.ResignAsked{Restart: true})
	} else {
		// No other restart may begin before this one is over.
		a.Status.Change(func(s *protocol.Status) { s.Ready = false })
		a.Post(machine.RestartAsked{})
	}
	writeJSON(w, a.Status.Get())
}

// restartsElsewhere says whether a restart of this server is better a switchover:
// the others have been restarted before. Not so for parameters that a standby can't
// have lower than its primary: there all run with the old ones until the primary restarts.
func (a *API) restartsElsewhere() bool {
	status := a.Status.Get()
	return status.Election.Leading &&
		len(status.Voters) > 1 && !slices.ContainsFunc(status.PendingRestart, postgres.BoundsStandby)
}

// reads has a handler answer what a request says, which is read by readJSON or readKnown.
func reads[T any](
	read func(http.ResponseWriter, *http.Request, any) error, handle func(http.ResponseWriter, *http.Request, T),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var said T
		if err := read(w, r, &said); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		handle(w, r, said)
	}
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

// handleFault breaks this instance, for a FaultDrill.
func (a *API) handleFault(w http.ResponseWriter, _ *http.Request, order protocol.FaultOrder) {
	at := time.Now()
	if err := a.Break(order); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	writeJSON(w, protocol.FaultResult{At: at})
}

// readKnown reads a request that binds whoever grants it. One with something in it that is not known here is refused:
// of what a newer release asks, a part must not be taken for the whole.
func readKnown(w http.ResponseWriter, r *http.Request, into any) error {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxConfig))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("understand the request by version %d of the protocol: %w", protocol.Version, err)
	}
	return nil
}

// handleProgram takes a program that the agent is to go on as. The whole answer is sent before it does: its connections
// end then.
func (a *API) handleProgram(w http.ResponseWriter, r *http.Request) {
	is := protocol.Program{
		SHA256: r.Header.Get(protocol.HeaderProgram), Architecture: r.Header.Get(protocol.HeaderArchitecture),
	}
	a.Log.Info("a program is given", "sha256", is.SHA256, "bytes", r.ContentLength)
	begin, err := a.GoOnAs(r.Context(), is, http.MaxBytesReader(w, r.Body, protocol.MaxProgram))
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	defer begin()
	text, err := json.Marshal(a.Status.Get())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)                      // who hung up asks again
	_ = http.NewResponseController(w).Flush() // likewise
}

// Poolers are those that send clients to this instance.
type Poolers interface {
	// Answer answers one of them.
	Answer(ctx context.Context, asks protocol.PoolerAsks) protocol.InstanceTells
	// Hold has them hold their clients until release.
	Hold(ctx context.Context) (release func())
}

// handlePooler tells a pooler how this instance is, when that changes.
func (a *API) handlePooler(w http.ResponseWriter, r *http.Request, asks protocol.PoolerAsks) {
	if a.Poolers == nil {
		http.Error(w, "this agent has no part for poolers", http.StatusNotFound)
		return
	}
	writeJSON(w, a.Poolers.Answer(r.Context(), asks))
}

// databaseDeadline bounds one request about a database. Copying template0 takes long on a slow disk only.
const databaseDeadline = time.Minute

// handleDatabase makes a database and its roles as the operator declares them. Only the leader does: what
// it commits, the others get, and its commits wait for them as a user's do.
func (a *API) handleDatabase(w http.ResponseWriter, r *http.Request, request protocol.DatabaseRequest) {
	if !a.leads(w) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), databaseDeadline)
	defer cancel()
	work := database.Ensure
	if request.Drop {
		work = database.Drop
	}
	changed, err := work(ctx, a.Connect, request.Declared)
	for _, what := range changed {
		a.Log.Info("a database was changed as declared", "claimant", request.Declared.Claimant, "what", what)
	}
	result := protocol.DatabaseResult{Changed: changed}
	if err != nil && !errors.As(err, &result.Refusal) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	writeJSON(w, result)
}

// handlePassword gives an application's role another password. As above, only the leader does.
func (a *API) handlePassword(w http.ResponseWriter, r *http.Request, request protocol.PasswordRequest) {
	if !a.leads(w) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), databaseDeadline)
	defer cancel()
	var result protocol.PasswordResult
	err := database.SetPassword(ctx, a.Connect, request.Role, request.Verifier)
	if err != nil && !errors.As(err, &result.Refusal) {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	if err == nil && request.Verifier != "" {
		a.Log.Info("a role has another password, as the operator asked for", "role", request.Role)
	}
	writeJSON(w, result)
}

// leads says that this instance is the primary, and answers where it is not.
func (a *API) leads(w http.ResponseWriter) bool {
	status := a.Status.Get()
	if status.Election.Leading && status.Role == protocol.RolePrimary {
		return true
	}
	http.Error(w, "this instance is not the primary", http.StatusConflict)
	return false
}
