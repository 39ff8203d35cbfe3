package drill

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres/sql"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// The ways in which the clients of a drill connect.
const (
	wayService = "Service"
	wayHosts   = "Hosts"
	wayPooler  = "Pooler"
)

// drillConnect is how long a connection may take, to one host.
const drillConnect = time.Second

// PodOptions are what the Pod of a FaultDrill is told. It has what an application has, and nothing else.
type PodOptions struct {
	// App is the folder with the Secret NAME-app, Hosts are the names of the instances, with commas between them.
	App, Hosts string
	// Standbys says that it is read from standbys, too.
	Standbys bool
	// Schema is made for the rows, and removed at the end.
	Schema string
	// Observe is for how long the clients write, AbortAfter for how long one may be without an acknowledged write.
	Observe, AbortAfter time.Duration
	// AbortWhen is a query that says when to give up, "" for none.
	AbortWhen string
	// Probe is where the kubelet asks whether the clients write steadily, Termination the file for the result.
	Probe, Termination string
}

// RunPod writes as applications do while somebody else breaks something, and leaves what it has seen where the kubelet
// finds it, whatever came of it.
func RunPod(ctx context.Context, o PodOptions) error {
	result, err := o.measure(ctx)
	left := protocol.DrillResult{
		Began: result.Began, Ended: result.Ended, Aborted: result.Aborted, ByQuery: result.ByQuery,
	}
	var words []*string
	for _, c := range result.Clients {
		left.Clients = append(left.Clients, protocol.DrillClient(c))
	}
	for i := range left.Clients {
		words = append(words, &left.Clients[i].FirstError)
	}
	left.Error = pod.Words(err)
	return errors.Join(err, pod.Leave(o.Termination, &left, append(words, &left.Error)...))
}

func (o PodOptions) measure(ctx context.Context) (Result, error) {
	app, err := readApp(o.App)
	if err != nil {
		return Result{}, err
	}
	var steady atomic.Bool
	stop, err := serveSteady(ctx, o.Probe, steady.Load)
	if err != nil {
		return Result{}, err
	}
	defer stop()
	ways := []Way{
		{Name: wayService, Connect: app.connectTo(app.host)},
		{Name: wayHosts, Connect: app.connectTo(strings.Split(o.Hosts, ",")...)},
	}
	if app.pool != "" {
		ways = append(ways, Way{Name: wayPooler, Connect: app.connectToPooler})
	}
	var standbys []Way
	if o.Standbys {
		for _, host := range strings.Split(o.Hosts, ",") {
			standbys = append(standbys, Way{Name: host, Connect: app.connectToAny(host)})
		}
	}
	return Run(ctx, Options{
		Ways: ways, Standbys: standbys, Schema: o.Schema, Observe: o.Observe, AbortAfter: o.AbortAfter,
		AbortWhen: o.AbortWhen, Steady: func() { steady.Store(true) },
		Log: slog.New(slog.NewJSONHandler(os.Stderr, nil)),
	})
}

// application is what is in a Secret NAME-app.
type application struct {
	host, user, password, database string
	pool                           string // the pooler's host, "" for none
	port                           uint16
	tls                            func(host string) *tls.Config
}

func readApp(folder string) (*application, error) {
	read := map[string]string{}
	for _, key := range []string{
		naming.KeyHost, naming.KeyPort, naming.KeyUsername, naming.KeyPassword, naming.KeyDatabase, naming.KeyCA,
	} {
		text, err := os.ReadFile(filepath.Join(folder, key))
		if err != nil {
			return nil, fmt.Errorf("read how applications connect: %w", err)
		}
		read[key] = string(text)
	}
	port, err := strconv.ParseUint(read[naming.KeyPort], 10, 16)
	if err != nil {
		return nil, fmt.Errorf("understand the port in %s: %w", folder, err)
	}
	roots, err := pki.Pool(read[naming.KeyCA])
	if err != nil {
		return nil, err
	}
	pool, err := os.ReadFile(filepath.Join(folder, naming.KeyPoolHost))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read how applications connect: %w", err)
	}
	return &application{
		pool: string(pool),
		host: read[naming.KeyHost], port: uint16(port), user: read[naming.KeyUsername],
		password: read[naming.KeyPassword], database: read[naming.KeyDatabase],
		tls: func(host string) *tls.Config {
			return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}
		},
	}, nil
}

// connectTo connects to the first of some hosts that is a primary, as libpq does with target_session_attrs=primary.
func (a *application) connectTo(hosts ...string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		var failed []error
		for _, host := range hosts {
			conn, err := a.connect(ctx, host)
			if err == nil {
				return conn, nil
			}
			failed = append(failed, err)
			if ctx.Err() != nil {
				break
			}
		}
		return nil, errors.Join(failed...)
	}
}

// connect opens a session with a primary.
func (a *application) connect(ctx context.Context, host string) (*pgx.Conn, error) {
	return a.connectWith(ctx, host, func(config *pgx.ConnConfig) {
		config.ConnectTimeout = drillConnect
		config.RuntimeParams = a.settings(config.RuntimeParams)
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	})
}

// settings are those of every session of Toban, but for one: a primary whose volume gets full refuses writes by its
// default, as it does those of applications.
func (a *application) settings(own map[string]string) map[string]string {
	out := sql.Settings(a.user, own)
	delete(out, "default_transaction_read_only")
	return out
}

// connectToAny opens a session with an instance, whatever it is.
func (a *application) connectToAny(host string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) {
		return a.connectWith(ctx, host, func(config *pgx.ConnConfig) {
			config.RuntimeParams = a.settings(config.RuntimeParams)
		})
	}
}

// connectToPooler opens a session with the pooler. PgBouncer leads to no server that is not the primary, and takes no
// settings for a session.
func (a *application) connectToPooler(ctx context.Context) (*pgx.Conn, error) {
	return a.connectWith(ctx, a.pool, func(*pgx.ConnConfig) {})
}

func (a *application) connectWith(ctx context.Context, host string, with func(*pgx.ConnConfig)) (*pgx.Conn, error) {
	config, err := sql.Connection{
		Hosts: []string{host}, Port: a.port, TLS: a.tls, Database: a.database, Role: a.user, Password: a.password,
	}.Config(map[string]string{"application_name": "toban fault drill"})
	if err != nil {
		return nil, err
	}
	with(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", host, err)
	}
	return conn, nil
}

// serveSteady answers the kubelet whether the clients write steadily.
func serveSteady(ctx context.Context, address string, steady func() bool) (stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the kubelet: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !steady() {
			http.Error(w, "the clients do not write steadily yet", http.StatusServiceUnavailable)
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: pod.ConnectPatience}
	go func() { _ = server.Serve(listener) }()
	return func() { pod.EndServer(server) }, nil
}
