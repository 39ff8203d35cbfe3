package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// loopback is an address of this test alone, since an agent's port is always the same.
const loopback = "127.99.0.1"

// Peers may ask how an instance is; what changes anything is for the operator.
func TestWhoMayAskWhat(t *testing.T) {
	ours, operators := newAuthority(t), newAuthority(t)
	a := serving(t, ours, operators)
	config := a.currentConfig()
	config.Parameters = map[string]string{"work_mem": "5MB"}
	config = config.Revise()
	foreign := config
	foreign.Cluster = "y"
	newer := config
	newer.Major = 18
	peer, operator := clientOf(t, ours, ours, naming.IdentityInstance), clientOf(t, operators, ours, naming.IdentityOperator)
	restart := protocol.Restart{Reason: "test", ConfigRevision: "runs"}
	for name, c := range map[string]struct {
		call  func(ctx context.Context) (protocol.Status, error)
		words string // of the error; none wanted where empty
	}{
		"a peer asks for the status":       {func(ctx context.Context) (protocol.Status, error) { return peer.Status(ctx, loopback) }, ""},
		"the operator asks for the status": {func(ctx context.Context) (protocol.Status, error) { return operator.Status(ctx, loopback) }, ""},
		"a peer sends a config":            {func(ctx context.Context) (protocol.Status, error) { return peer.Sync(ctx, loopback, config) }, "403 Forbidden: only the operator"},
		"a peer asks for a restart":        {func(ctx context.Context) (protocol.Status, error) { return peer.Restart(ctx, loopback, restart) }, "403 Forbidden: only the operator"},
		"the operator asks for a vote": {func(ctx context.Context) (protocol.Status, error) {
			_, err := operator.Vote(ctx, loopback, ha.VoteRequest{})
			return protocol.Status{}, err
		}, "403 Forbidden: only another instance"},
		"the operator brings a record": {func(ctx context.Context) (protocol.Status, error) {
			_, err := operator.Record(ctx, loopback, protocol.Proposal{})
			return protocol.Status{}, err
		}, "403 Forbidden: only another instance"},
		"the operator brings news": {func(ctx context.Context) (protocol.Status, error) {
			return operator.News(ctx, loopback, protocol.Status{})
		}, "403 Forbidden: only another instance"},
		"a peer asks for a switchover": {func(ctx context.Context) (protocol.Status, error) {
			return peer.Switchover(ctx, loopback, protocol.Switchover{})
		}, "403 Forbidden: only the operator"},
		"the config is another SampleDB's": {func(ctx context.Context) (protocol.Status, error) { return operator.Sync(ctx, loopback, foreign) }, "409 Conflict: this config is for y"},
		"the config is of a later version": {func(ctx context.Context) (protocol.Status, error) { return operator.Sync(ctx, loopback, newer) }, "409 Conflict: this config is for x, PostgreSQL 18"},
		"the restart is for a config that is gone": {func(ctx context.Context) (protocol.Status, error) {
			return operator.Restart(ctx, loopback, protocol.Restart{ConfigRevision: "gone"})
		}, "409 Conflict: the server runs with the config runs, not gone"},
	} {
		t.Run(name, func(t *testing.T) {
			status, err := c.call(t.Context())
			switch {
			case c.words == "" && (err != nil || status.Name != "x-0"):
				t.Errorf("the answer is %+v, %v", status, err)
			case c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)):
				t.Errorf("the error is %v, want %q in it", err, c.words)
			}
			if a.currentConfig().Cluster != "x" || a.currentConfig().Revision == config.Revision || restartAsked(a) {
				t.Error("it has had an effect")
			}
		})
	}
	t.Run("the operator sends a config", func(t *testing.T) {
		if _, err := operator.Sync(t.Context(), loopback, config); err != nil || a.currentConfig().Revision != config.Revision {
			t.Errorf("the config is %+v, %v", a.currentConfig(), err)
		}
	})
	t.Run("the operator asks for a restart", func(t *testing.T) {
		status, err := operator.Restart(t.Context(), loopback, restart)
		if err != nil || status.Ready || !restartAsked(a) {
			t.Errorf("the answer is %+v, %v", status, err)
		}
	})
}

// The kubelet asks without a certificate.
func TestProbes(t *testing.T) {
	a := &Agent{Options: Options{Listen: loopback}, elections: &elections{beat: time.Now()}}
	a.begun.Store(true)
	start(t, a.serveProbes, naming.PortProbe)
	for name, c := range map[string]struct {
		path   string
		change func()
		code   int
		words  string
	}{
		"alive":                           {"/livez", func() { a.elections.beat = time.Now() }, http.StatusOK, "ok"},
		"the elections hang":              {"/livez", func() { a.elections.beat = time.Now().Add(-2 * maxSilence) }, http.StatusServiceUnavailable, "elections"},
		"ready":                           {"/readyz", func() { a.status.Ready = true }, http.StatusOK, "ok"},
		"not ready, and why":              {"/readyz", func() { a.status = protocol.Status{Reason: "Cloning", Message: "from x-1"} }, http.StatusServiceUnavailable, "Cloning: from x-1"},
		"ready, as it was seen long ago":  {"/readyz", func() { a.status.Ready, a.elections.beat = true, time.Now().Add(-time.Minute) }, http.StatusServiceUnavailable, ""},
		"the status is not for everybody": {protocol.PathStatus, func() {}, http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a.mutex.Lock()
			a.elections.beat, a.status = time.Now(), protocol.Status{}
			c.change()
			a.mutex.Unlock()
			code, body := get(t, fmt.Sprintf("http://%s:%d%s", loopback, naming.PortProbe, c.path))
			if code != c.code || !strings.Contains(body, c.words) {
				t.Errorf("the answer is %d, %s", code, body)
			}
		})
	}
}

// restartAsked says whether the elections have been asked for a restart.
func restartAsked(a *Agent) bool {
	for {
		select {
		case e := <-a.elections.events:
			if _, asked := e.(machine.RestartAsked); asked {
				return true
			}
		default:
			return false
		}
	}
}

// serving is an agent that has no server and only answers.
func serving(t *testing.T, ours, operators *pki.Authority) *Agent {
	t.Helper()
	a := serverless(t, ours, operators)
	start(t, a.serveAgent, naming.PortAgent)
	return a
}

// serverless is an agent that has no server.
func serverless(t *testing.T, ours, operators *pki.Authority) *Agent {
	t.Helper()
	folder := t.TempDir()
	key, err := ours.KeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{naming.KeyCA: ours.CertPEM(), naming.KeyCAKey: key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	memory, err := openMemory("x-0", t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{
		memory:  memory,
		Options: Options{Name: "x-0", Authority: folder, Run: t.TempDir(), Listen: loopback, Log: slog.New(slog.DiscardHandler)},
		config:  protocol.Config{Cluster: "x", Major: 17, Operator: string(operators.CertPEM())}.Revise(),
		status:  protocol.Status{Name: "x-0", Ready: true, ConfigRevision: "runs"},
		server:  realServer{&postgres.Server{}},
		life:    t.Context(),
	}
	a.elections = newElections(machine.Options{Name: "x-0", Memory: memory.Get(), Rules: machine.DefaultRules()}, a, a.Log)
	a.begun.Store(true)
	a.peers = newPeers("x-0", nil, a.post)
	if a.identity, err = newIdentity(a.Options, a.config); err != nil {
		t.Fatal(err)
	}
	return a
}

// start runs one of an agent's servers for as long as the test lasts.
func start(t *testing.T, serve func(context.Context) error, port int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	for limit := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err == nil {
			_ = conn.Close() // it listens, which is all that was asked
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("nobody listens: %v", err)
		}
	}
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority([]byte(t.Name()+time.Now().String()), "toban shop/x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// clientOf is a client with a certificate of its own authority, which trusts ours.
func clientOf(t *testing.T, own, ours *pki.Authority, identity string) *protocol.Client {
	t.Helper()
	roots, err := pki.Pool(string(ours.CertPEM()))
	if err != nil {
		t.Fatal(err)
	}
	show := func() (tls.Certificate, error) {
		leaf, err := own.Issue(identity, nil, time.Now())
		if err != nil {
			return tls.Certificate{}, err
		}
		return leaf.TLS()
	}
	c := protocol.NewClient(pki.ClientTLS(show, roots, naming.IdentityInstance), naming.PortAgent)
	t.Cleanup(c.Close)
	return c
}

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
