package serve

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/agent/agenttest"
	"toban.dev/internal/agent/identity"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// loopback is an address of this test alone, since an agent's port is always the same.
const loopback = "127.99.0.1"

// Peers may ask how an instance is; what changes anything is for the operator.
func TestWhoMayAskWhat(t *testing.T) {
	ours, operators := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	a := serving(t, ours, operators)
	config := a.Config()
	config.Parameters = map[string]string{"work_mem": "5MB"}
	config = config.Revise()
	foreign := config
	foreign.Cluster = "y"
	newer := config
	newer.Major = 18
	peer, operator := agenttest.Client(t, ours, ours, naming.IdentityInstance), agenttest.Client(t, operators, ours,
		naming.IdentityOperator)
	pooler := agenttest.Client(t, ours, ours, naming.IdentityPooler)
	restart := protocol.Restart{Reason: "test", ConfigRevision: "runs"}
	for name, c := range map[string]struct {
		call  func(ctx context.Context) (protocol.Status, error)
		words string // of the error; none wanted where empty
	}{
		"a peer asks for the status": {
			func(ctx context.Context) (protocol.Status, error) { return peer.Status(ctx, loopback) }, "",
		},
		"the operator asks for the status": {
			func(ctx context.Context) (protocol.Status, error) { return operator.Status(ctx, loopback) }, "",
		},
		"a pooler asks for the status": {
			func(ctx context.Context) (protocol.Status, error) { return pooler.Status(ctx, loopback) },
			"403 Forbidden: a pooler may not",
		},
		"a pooler asks as one": {func(ctx context.Context) (protocol.Status, error) {
			tells, err := pooler.AskAsPooler(ctx, loopback, protocol.PoolerAsks{Pooler: "pool"})
			return protocol.Status{Name: tells.Name}, err
		}, ""},
		"a peer asks as a pooler": {func(ctx context.Context) (protocol.Status, error) {
			_, err := peer.AskAsPooler(ctx, loopback, protocol.PoolerAsks{Pooler: "x-1"})
			return protocol.Status{}, err
		}, "403 Forbidden: only a pooler"},
		"a pooler sends a config": {
			func(ctx context.Context) (protocol.Status, error) { return pooler.Sync(ctx, loopback, config) },
			"403 Forbidden: only the operator",
		},
		"a pooler asks for a switchover": {func(ctx context.Context) (protocol.Status, error) {
			return pooler.Switchover(ctx, loopback, protocol.Switchover{})
		}, "403 Forbidden: only the operator"},
		"a pooler asks for a vote": {func(ctx context.Context) (protocol.Status, error) {
			_, err := pooler.Vote(ctx, loopback, ha.VoteRequest{})
			return protocol.Status{}, err
		}, "403 Forbidden: only another instance"},
		"a peer sends a config": {
			func(ctx context.Context) (protocol.Status, error) { return peer.Sync(ctx, loopback, config) },
			"403 Forbidden: only the operator",
		},
		"a peer asks for a restart": {
			func(ctx context.Context) (protocol.Status, error) { return peer.Restart(ctx, loopback, restart) },
			"403 Forbidden: only the operator",
		},
		"the operator asks for a vote": {func(ctx context.Context) (protocol.Status, error) {
			_, err := operator.Vote(ctx, loopback, ha.VoteRequest{})
			return protocol.Status{}, err
		}, "403 Forbidden: only another instance"},
		"the operator brings a record": {func(ctx context.Context) (protocol.Status, error) {
			_, err := operator.ProposeConfiguration(ctx, loopback, protocol.Proposal{})
			return protocol.Status{}, err
		}, "403 Forbidden: only another instance"},
		"the operator brings news": {func(ctx context.Context) (protocol.Status, error) {
			return operator.News(ctx, loopback, protocol.Status{})
		}, "403 Forbidden: only another instance"},
		"a peer asks for a switchover": {func(ctx context.Context) (protocol.Status, error) {
			return peer.Switchover(ctx, loopback, protocol.Switchover{})
		}, "403 Forbidden: only the operator"},
		"a peer asks to publish": {func(ctx context.Context) (protocol.Status, error) {
			return peer.Publish(ctx, loopback)
		}, "403 Forbidden: only the operator"},
		"the operator asks to publish": {func(ctx context.Context) (protocol.Status, error) {
			return operator.Publish(ctx, loopback)
		}, ""},
		"a peer asks for another password": {func(ctx context.Context) (protocol.Status, error) {
			_, err := peer.Password(ctx, loopback, protocol.PasswordRequest{Role: "app"})
			return protocol.Status{}, err
		}, "403 Forbidden: only the operator"},
		"a peer orders a fault": {func(ctx context.Context) (protocol.Status, error) {
			_, err := peer.Fault(ctx, loopback, protocol.FaultOrder{Fault: protocol.FaultKillServer})
			return protocol.Status{}, err
		}, "403 Forbidden: only the operator"},
		"the operator orders a fault that can't be done": {func(ctx context.Context) (protocol.Status, error) {
			_, err := operator.Fault(ctx, loopback, protocol.FaultOrder{Fault: protocol.FaultKillServer})
			return protocol.Status{}, err
		}, "409 Conflict: no server runs here"},
		"the operator asks a standby for another password": {func(ctx context.Context) (protocol.Status, error) {
			_, err := operator.Password(ctx, loopback, protocol.PasswordRequest{Role: "app"})
			return protocol.Status{}, err
		}, "409 Conflict: this instance is not the primary"},
		"the config is another SampleDB's": {
			func(ctx context.Context) (protocol.Status, error) { return operator.Sync(ctx, loopback, foreign) },
			"409 Conflict: this config is for y",
		},
		"the config is of a later version": {
			func(ctx context.Context) (protocol.Status, error) { return operator.Sync(ctx, loopback, newer) },
			"409 Conflict: this config is for x, PostgreSQL 18",
		},
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
			if a.Config().Cluster != "x" || a.Config().Revision == config.Revision || a.restartAsked() {
				t.Error("it has had an effect")
			}
		})
	}
	t.Run("the operator sends a config", func(t *testing.T) {
		if _, err := operator.Sync(t.Context(), loopback, config); err != nil ||
			a.Config().Revision != config.Revision {
			t.Errorf("the config is %+v, %v", a.Config(), err)
		}
	})
	t.Run("the operator asks for a restart", func(t *testing.T) {
		status, err := operator.Restart(t.Context(), loopback, restart)
		if err != nil || status.Ready || !a.restartAsked() {
			t.Errorf("the answer is %+v, %v", status, err)
		}
	})
}

// A request for a switchover that is repeated is refused by who does not lead, and not by who is at it.
func TestARepeatedRequestForASwitchover(t *testing.T) {
	ours, operators := agenttest.NewAuthority(t), agenttest.NewAuthority(t)
	a := serving(t, ours, operators)
	operator := agenttest.Client(t, operators, ours, naming.IdentityOperator)
	for name, c := range map[string]struct {
		is              func(*protocol.Status)
		to              string
		refused, begins bool
	}{
		"it leads":                        {func(s *protocol.Status) { s.Election.Leading = true }, "", false, true},
		"it leads, and is the one":        {func(s *protocol.Status) { s.Election.Leading = true }, "x-0", true, false},
		"it follows":                      {func(*protocol.Status) {}, "", true, false},
		"it waits for its poolers":        {func(s *protocol.Status) { s.HandOver = "now" }, "", false, false},
		"it has resigned":                 {func(s *protocol.Status) { s.Resigned = true }, "x-1", false, false},
		"it has resigned, and is the one": {func(s *protocol.Status) { s.Resigned = true }, "x-0", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			a.Status.Change(func(s *protocol.Status) { *s = protocol.Status{Name: "x-0"}; c.is(s) })
			a.mutex.Lock()
			a.posted = nil
			a.mutex.Unlock()
			answer, err := operator.Switchover(t.Context(), loopback, protocol.Switchover{To: c.to})
			if err != nil {
				t.Fatal(err)
			}
			a.mutex.Lock()
			defer a.mutex.Unlock()
			if (answer.SwitchoverError != "") != c.refused || (len(a.posted) > 0) != c.begins {
				t.Errorf("it answers %q, and the elections get %v", answer.SwitchoverError, a.posted)
			}
		})
	}
}

// The kubelet asks without a certificate.
func TestProbes(t *testing.T) {
	alive, ready := true, true
	says := func(is *bool, why string) func(context.Context) error {
		return func(context.Context) error {
			if *is {
				return nil
			}
			return errors.New(why)
		}
	}
	p := &Probes{
		Listen: loopback, ListenAt: protocol.Listen, Alive: says(&alive, "the elections have not moved"),
		Ready: says(&ready, "Cloning: from x-1"),
	}
	start(t, p.Serve, naming.PortProbe)
	for name, c := range map[string]struct {
		path         string
		alive, ready bool
		code         int
		words        string
	}{
		"alive":                           {"/livez", true, false, http.StatusOK, "ok"},
		"the elections hang":              {"/livez", false, true, http.StatusServiceUnavailable, "elections"},
		"ready":                           {"/readyz", true, true, http.StatusOK, "ok"},
		"not ready, and why":              {"/readyz", true, false, http.StatusServiceUnavailable, "Cloning: from x-1"},
		"the status is not for everybody": {protocol.PathStatus, true, true, http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			alive, ready = c.alive, c.ready
			code, body := get(t, fmt.Sprintf("http://%s:%d%s", loopback, naming.PortProbe, c.path))
			if code != c.code || !strings.Contains(body, c.words) {
				t.Errorf("the answer is %d, %s", code, body)
			}
		})
	}
}

// Whoever opens connections and says nothing, or too much, keeps the kubelet from nothing.
func TestProbesAreAnsweredInACrowd(t *testing.T) {
	well := func(context.Context) error { return nil }
	p := &Probes{Listen: loopback, ListenAt: protocol.Listen, Alive: well, Ready: well}
	start(t, p.Serve, naming.PortProbe)
	address := net.JoinHostPort(loopback, strconv.Itoa(naming.PortProbe))
	var silent []net.Conn
	for range 4 * plainConnections {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent = append(silent, conn)
	}
	if code, body := get(t, "http://"+address+"/livez"); code != http.StatusOK {
		t.Errorf("the kubelet's answer is %d, %s", code, body)
	}
	t.Run("the oldest connections were closed at once", func(t *testing.T) {
		_ = silent[0].SetReadDeadline(time.Now().Add(plainTimeout / 2))
		if _, err := silent[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the first connection is still open: %v", err)
		}
	})
	t.Run("a long header is refused", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/livez", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Long", strings.Repeat("x", 3*plainHeader))
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("the answer is %d", answer.StatusCode)
		}
	})
}

// instance is what an API is asked about.
type instance struct {
	*API
	mutex  sync.Mutex
	config protocol.Config
	posted []machine.Event
}

func (i *instance) current() protocol.Config {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.config
}

func (i *instance) configure(config protocol.Config) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.config = config
}

func (i *instance) post(e machine.Event) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.posted = append(i.posted, e)
}

// restartAsked says whether the elections have been asked for a restart.
func (i *instance) restartAsked() bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return slices.Contains(i.posted, machine.Event(machine.RestartAsked{}))
}

// serving is an instance that has no server and only answers.
func serving(t *testing.T, ours, operators *pki.Authority) *instance {
	t.Helper()
	return servingAs(t, identified(t, ours), operators)
}

// tellsName tells poolers this name.
type tellsName string

func (n tellsName) Answer(context.Context, protocol.PoolerAsks) protocol.InstanceTells {
	return protocol.InstanceTells{Name: string(n)}
}
func (tellsName) Hold(context.Context) (release func()) { return func() {} }

// servingAs is serving under an identity.
func servingAs(t *testing.T, who *identity.Identity, operators *pki.Authority) *instance {
	t.Helper()
	i := &instance{config: protocol.Config{Cluster: "x", Major: 17, Operator: string(operators.CertPEM())}.Revise()}
	i.API = &API{Complete: func(s protocol.Status) protocol.Status { return s },
		ListenAt: protocol.Listen,
		Name:     "x-0", Listen: loopback, Major: 17, Config: i.current, Configure: i.configure, Post: i.post,
		Status:      status.New(protocol.Status{Name: "x-0", Ready: true, ConfigRevision: "runs"}),
		Certificate: who.Certificate,
		ClientCAs:   func() (map[string]*x509.CertPool, error) { return who.ClientCAs(i.current().Operator) },
		Publish:     func() {},
		Break:       func(protocol.FaultOrder) error { return errors.New("no server runs here") },
		Poolers:     tellsName("x-0"),
		Log:         slog.New(slog.DiscardHandler),
	}
	start(t, i.Serve, naming.PortAgent)
	return i
}

// identified is the identity of an instance of the SampleDB with an authority.
func identified(t *testing.T, ours *pki.Authority) *identity.Identity {
	t.Helper()
	i, err := identity.New(identity.Options{
		Name: "x-0", Authority: agenttest.Folder(t, ours), Run: t.TempDir(), Log: slog.New(slog.DiscardHandler),
	}, protocol.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return i
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
