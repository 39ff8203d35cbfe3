package protocol

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/pki"
)

const (
	instance = "toban:instance"
	operator = "toban:operator"
	other    = "toban:init"
)

var now = time.Now()

// certificates makes one certificate after the other.
type certificates func() (tls.Certificate, error)

// none shows no certificate.
func none() (tls.Certificate, error) { return tls.Certificate{}, nil }

func TestWhoMayTalkToAnAgent(t *testing.T) {
	ours, operators, stranger := authority(t, "ours"), authority(t, "operators"), authority(t, "ours")
	for name, c := range map[string]struct {
		server, client certificates
		ok             bool
	}{
		"an instance of the same SampleDB": {issued(ours, instance), issued(ours, instance), true},
		"the operator":                     {issued(ours, instance), issued(operators, operator), true},
		"a client of another identity":     {issued(ours, instance), issued(ours, other), false},
		"a client of another authority":    {issued(ours, instance), issued(stranger, instance), false},
		"a client without a certificate":   {issued(ours, instance), none, false},
		"a client that is out of date":     {issued(ours, instance), expired(ours, instance), false},
		"a client that can't show any":     {issued(ours, instance), broken, false},
		"a server of another identity":     {issued(ours, other), issued(ours, instance), false},
		"a server of another authority":    {issued(stranger, instance), issued(ours, instance), false},
		"a server that is out of date":     {expired(ours, instance), issued(ours, instance), false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			port := serve(t, c.server, pool(t, ours, operators), func(w http.ResponseWriter, _ *http.Request) {
				asked = true
				_, _ = io.WriteString(w, `{"name":"x-0","ready":true}`)
			})
			status, err := client(t, c.client, pool(t, ours), port).Status(t.Context(), "127.0.0.1")
			if (err == nil) != c.ok || asked != c.ok {
				t.Errorf("it was accepted: %t, want %t (%v)", asked, c.ok, err)
			}
			if c.ok && (status.Name != "x-0" || !status.Ready) {
				t.Errorf("the answer is %+v", status)
			}
		})
	}
}

// The operator's authority becomes known with a config, while connections are there.
func TestAuthoritiesAreAskedForEachTime(t *testing.T) {
	ours, operators := authority(t, "ours"), authority(t, "operators")
	roots := pool(t, ours)
	port := serveWith(t, pki.ServerTLS(issued(ours, instance), vouch(func() *x509.CertPool { return roots })),
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	ask := func() error {
		_, err := client(t, issued(operators, operator), pool(t, ours), port).Status(t.Context(), "127.0.0.1")
		return err
	}
	if ask() == nil {
		t.Error("the operator is accepted before its authority is known")
	}
	roots = pool(t, ours, operators)
	if err := ask(); err != nil {
		t.Errorf("the operator is refused: %v", err)
	}
}

func TestWhatIsSent(t *testing.T) {
	ours := authority(t, "ours")
	var method, path, body string
	port := serve(t, issued(ours, instance), pool(t, ours), func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		method, path, body = r.Method, r.URL.Path, string(text)
		_, _ = io.WriteString(w, `{"name":"x-0","lsn":"0/3000060","standbys":["x-1"]}`)
	})
	c := client(t, issued(ours, instance), pool(t, ours), port)
	want := Status{Name: "x-0", LSN: "0/3000060", Standbys: []string{"x-1"}}
	restart := Restart{Reason: "hoge", ConfigRevision: "7"}
	for name, call := range map[string]struct {
		do     func() (Status, error)
		method string
		path   string
		body   any
	}{
		"status": {func() (Status, error) { return c.Status(t.Context(), "127.0.0.1") }, "GET", "/v1/status", nil},
		"sync": {
			func() (Status, error) { return c.Sync(t.Context(), "127.0.0.1", config()) }, "POST", "/v1/sync", config(),
		},
		"restart": {
			func() (Status, error) { return c.Restart(t.Context(), "127.0.0.1", restart) },
			"POST", "/v1/restart", restart,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := call.do()
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the answer is %+v, %v", got, err)
			}
			wanted := ""
			if call.body != nil {
				text, err := json.Marshal(call.body)
				if err != nil {
					t.Fatal(err)
				}
				wanted = string(text)
			}
			if method != call.method || path != call.path || body != wanted {
				t.Errorf("asked was %s %s %s", method, path, body)
			}
		})
	}
}

func TestAnswersThatAreNoStatus(t *testing.T) {
	ours := authority(t, "ours")
	for name, c := range map[string]struct {
		code  int
		body  string
		words []string
	}{
		"a refusal": {http.StatusForbidden, "only the operator may ask for this\n", []string{
			"127.0.0.1", "403 Forbidden", ": only the operator may ask for this",
		}},
		"a refusal without end":  {http.StatusConflict, strings.Repeat("ü", maxBody), []string{"409 Conflict", "üüü…"}},
		"a refusal with nothing": {http.StatusInternalServerError, "", []string{"500 Internal Server Error"}},
		"an answer without end": {http.StatusOK, `{"name":"` + strings.Repeat("x", maxBody) + `"}`, []string{
			"127.0.0.1", "is longer than 4194304 bytes",
		}},
		"half an answer":  {http.StatusOK, `{"name":`, []string{"understand the answer of the agent at 127.0.0.1"}},
		"an empty answer": {http.StatusOK, "", []string{"understand the answer of the agent at 127.0.0.1"}},
		"no JSON":         {http.StatusOK, "ok", []string{"understand the answer of the agent at 127.0.0.1"}},
		"a field of a wrong type": {http.StatusOK, `{"ready":"yes"}`,
			[]string{"understand the answer of the agent at 127.0.0.1", "ready"}},
	} {
		t.Run(name, func(t *testing.T) {
			port := serve(t, issued(ours, instance), pool(t, ours), func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			status, err := client(t, issued(ours, instance), pool(t, ours), port).Status(t.Context(), "127.0.0.1")
			if err == nil || !reflect.DeepEqual(status, Status{}) {
				t.Fatalf("got %+v, %v", status, err)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error lacks %q: %s", w, err)
				}
			}
			if text := err.Error(); len(text) > 2*maxComplaint || strings.Contains(text, "\n") ||
				strings.Contains(text, "\uFFFD") {
				t.Errorf("the error is not readable: %d bytes: %.200q", len(text), text)
			}
		})
	}
}

func TestNobodyThere(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := portOf(t, listener)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	ours := authority(t, "ours")
	_, err = client(t, issued(ours, instance), pool(t, ours), port).Status(t.Context(), "127.0.0.1")
	if err == nil || !strings.Contains(err.Error(), "ask the agent at 127.0.0.1") {
		t.Errorf("the error is %v", err)
	}
}

func authority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	// Of the same name and of another key, each time.
	a, err := pki.NewAuthority([]byte(t.Name()+time.Now().String()), name, now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func pool(t *testing.T, all ...*pki.Authority) *x509.CertPool {
	t.Helper()
	p := x509.NewCertPool()
	for _, a := range all {
		p.AppendCertsFromPEM(a.CertPEM())
	}
	return p
}

func issued(a *pki.Authority, identity string) certificates { return issuedAt(a, identity, now) }

// expired shows a certificate whose time is over.
func expired(a *pki.Authority, identity string) certificates {
	return issuedAt(a, identity, now.Add(-pki.LeafLifetime-time.Minute))
}

func issuedAt(a *pki.Authority, identity string, at time.Time) certificates {
	return func() (tls.Certificate, error) {
		leaf, err := a.Issue(identity, nil, at)
		if err != nil {
			return tls.Certificate{}, err
		}
		return leaf.TLS()
	}
}

func broken() (tls.Certificate, error) { return tls.Certificate{}, errors.New("the key is gone") }

func client(t *testing.T, show certificates, roots *x509.CertPool, port int) *Client {
	t.Helper()
	c := NewClient(pki.ClientTLS(show, roots, instance), port)
	t.Cleanup(c.Close)
	return c
}

func serve(t *testing.T, show certificates, roots *x509.CertPool, handler http.HandlerFunc) int {
	t.Helper()
	return serveWith(t, pki.ServerTLS(show, vouch(func() *x509.CertPool { return roots })), handler)
}

// vouch has the same authorities vouch for both identities.
func vouch(roots func() *x509.CertPool) func() (map[string]*x509.CertPool, error) {
	return func() (map[string]*x509.CertPool, error) {
		return map[string]*x509.CertPool{instance: roots(), operator: roots()}, nil
	}
}

// Each authority vouches for its own: an instance's can't make an operator.
func TestAnAuthorityVouchesForItsOwnIdentityOnly(t *testing.T) {
	ours, operators := authority(t, "ours"), authority(t, "operators")
	port := serveWith(t, pki.ServerTLS(issued(ours, instance), func() (map[string]*x509.CertPool, error) {
		return map[string]*x509.CertPool{instance: pool(t, ours), operator: pool(t, operators)}, nil
	}), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) })
	for name, c := range map[string]struct {
		shows certificates
		ok    bool
	}{
		"an instance":                           {issued(ours, instance), true},
		"the operator":                          {issued(operators, operator), true},
		"an operator made by an instance":       {issued(ours, operator), false},
		"an instance made by the operator's CA": {issued(operators, instance), false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := client(t, c.shows, pool(t, ours), port).Status(t.Context(),
				"127.0.0.1"); (err == nil) != c.ok {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}

// serveWith serves as an agent does, on a port of 127.0.0.1.
func serveWith(t *testing.T, config *tls.Config, handler http.HandlerFunc) int {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	port := portOf(t, server.Listener)
	server.Listener = tls.NewListener(server.Listener, config)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // refused handshakes are what is tested
	server.Start()
	t.Cleanup(server.Close)
	return port
}

func portOf(t *testing.T, l net.Listener) int {
	t.Helper()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listening on %v", l.Addr())
	}
	return address.Port
}
