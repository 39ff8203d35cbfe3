package agents

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// pooler answers as one does.
type pooler struct {
	mutex  sync.Mutex
	tells  protocol.PoolTells
	silent bool
	// changed is closed when it tells something else. kept has the questions that wait for that, left those that were
	// given up.
	changed    chan struct{}
	kept, left chan protocol.PoolTells
}

func (p *pooler) tell(tells protocol.PoolTells, silent bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.tells, p.silent = tells, silent
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *pooler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asks protocol.WaitingAsks
	text, err := io.ReadAll(r.Body) // to its end, so that it is seen who hangs up
	if r.URL.Path != protocol.PathWaiting || err != nil || json.Unmarshal(text, &asks) != nil {
		http.Error(w, "what?", http.StatusBadRequest)
		return
	}
	for {
		p.mutex.Lock()
		tells, silent, changed := p.tells, p.silent, p.changed
		p.mutex.Unlock()
		if silent {
			http.Error(w, "PgBouncer does not answer", http.StatusServiceUnavailable)
			return
		}
		if asks.Heard == nil || *asks.Heard != tells {
			_ = json.NewEncoder(w).Encode(tells)
			return
		}
		p.kept <- tells
		select {
		case <-changed:
		case <-r.Context().Done():
			p.left <- tells
			return
		}
	}
}

// listen has it listen over mTLS, and returns who may ask it, with the config of its SampleDB.
func (p *pooler) listen(t *testing.T) (a *HTTPS, config protocol.Config) {
	t.Helper()
	now := time.Now()
	own, err := pki.NewAuthority(bytes.Repeat([]byte{7}, 32), "x", now)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := pki.NewAuthority(bytes.Repeat([]byte{9}, 32), "operator", now)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(authority *pki.Authority, identity string) func() (tls.Certificate, error) {
		leaf, err := authority.Issue(identity, nil, now)
		if err != nil {
			t.Fatal(err)
		}
		return leaf.TLS
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	server.TLSConfig = pki.ServerTLS(shows(own, naming.IdentityPooler), func() (map[string]*x509.CertPool, error) {
		pool, err := pki.Pool(string(operator.CertPEM()))
		return map[string]*x509.CertPool{naming.IdentityOperator: pool}, err
	})
	go func() { _ = server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	show := shows(operator, naming.IdentityOperator)
	a = &HTTPS{
		Certificate: func(string) (tls.Certificate, error) { return show() },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, listener.Addr().String())
		},
	}
	config = protocol.Config{
		Namespace: "shop", Cluster: "x", Authority: string(own.CertPEM()), Operator: string(operator.CertPEM()),
	}
	return a, config
}

// Poolers are asked all the time, and a SampleDB is looked at when one tells something else, or does not answer any
// more. Then nothing is known of it.
func TestPoolersAreHeard(t *testing.T) {
	p := &pooler{
		changed: make(chan struct{}), kept: make(chan protocol.PoolTells, 9), left: make(chan protocol.PoolTells, 9),
	}
	a, config := p.listen(t)
	changed := a.Changed()
	hears := func(what string, want map[string]protocol.PoolTells) {
		t.Helper()
		select {
		case e := <-changed:
			if e.Object.GetName() != "x" || e.Object.GetNamespace() != "shop" {
				t.Errorf("%s: looked at is %s", what, e.Object.GetName())
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: nobody is told", what)
		}
		got := a.Waiting("uid", []string{"10.0.0.1"}, config)
		if len(got) != len(want) || got["10.0.0.1"] != want["10.0.0.1"] {
			t.Errorf("%s: it is known %+v, want %+v", what, got, want)
		}
		if len(want) > 0 {
			<-p.kept // the next question
		}
	}
	if got := a.Waiting("uid", []string{"10.0.0.1"}, config); len(got) > 0 {
		t.Errorf("at once it is known %+v", got)
	}
	hears("the first answer", map[string]protocol.PoolTells{"10.0.0.1": {}})
	waits := protocol.PoolTells{Held: true, Waiting: 1}
	p.tell(waits, false)
	hears("a client waits", map[string]protocol.PoolTells{"10.0.0.1": waits})
	p.tell(waits, true)
	hears("it does not answer", nil)
	p.tell(waits, false)
	hears("it answers again", map[string]protocol.PoolTells{"10.0.0.1": waits})
	if got := a.Waiting("uid", nil, config); len(got) > 0 || len(a.poolers.of) > 0 {
		t.Errorf("of nobody it is known %+v, asked are %v", got, a.poolers.of)
	}
	select {
	case <-p.left:
	case <-time.After(time.Minute):
		t.Error("a pooler is still asked")
	}
}
