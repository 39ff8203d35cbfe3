package api

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// memory remembers what the API server has answered to reads in a namespace, until somebody writes there: nothing else
// changes what it would answer, because here are no controllers and kubelets. The operator itself reads most objects
// from its cache, which costs the API server nothing either; without a memory that is half of the work of these tests.
// All clients of a server share one, so that no write is missed.
type memory struct {
	mu sync.Mutex
	// pages are what is known of each namespace. A write begins a new page, and so does its end: who has asked
	// meanwhile writes the answer on a page that nobody reads any more.
	pages map[string]*page
	// unseen are the namespaces to which somebody writes past us. They have no page.
	unseen map[string]bool
}

// page has answers by what was asked, and by whom.
type page struct {
	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	status string
	code   int
	header http.Header
	body   []byte
}

// memories are those of the API servers, by their addresses.
var memories sync.Map

// remember gives the clients of an API server a memory.
func remember(server *rest.Config) {
	m := &memory{pages: map[string]*page{}, unseen: map[string]bool{}}
	memories.Store(server.Host, m)
	server.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			namespace := namespaceOf(r.URL.Path)
			if r.Method != http.MethodGet {
				return m.write(next, r, namespace)
			}
			return m.read(next, r, namespace)
		})
	})
}

// writesPastUs says that somebody writes to a namespace by a way of his own: all is read there each time.
func writesPastUs(server *rest.Config, namespace string) {
	known, _ := memories.Load(server.Host)
	if m, ok := known.(*memory); ok {
		m.without(namespace)
	}
}

// namespaceOf is the namespace of the objects of a path, "" for none.
func namespaceOf(path string) string {
	_, rest, _ := strings.Cut(path, "/namespaces/")
	namespace, _, inside := strings.Cut(rest, "/")
	if !inside {
		return ""
	}
	return namespace
}

// write lets a request through that changes something in a namespace, or anywhere.
func (m *memory) write(next http.RoundTripper, r *http.Request, namespace string) (*http.Response, error) {
	m.turn(namespace)
	defer m.turn(namespace)
	response, err := next.RoundTrip(r)
	if err != nil {
		m.without(namespace) // who knows when it will be done
	}
	return response, err
}

// turn begins a new page for a namespace, or for all of them.
func (m *memory) turn(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if namespace == "" {
		clear(m.pages)
	}
	delete(m.pages, namespace)
}

func (m *memory) without(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unseen[namespace] = true
	delete(m.pages, namespace)
}

// page is the present one of a namespace, nil for none.
func (m *memory) page(namespace string) *page {
	m.mu.Lock()
	defer m.mu.Unlock()
	if namespace == "" || m.unseen[namespace] {
		return nil
	}
	if m.pages[namespace] == nil {
		m.pages[namespace] = &page{answers: map[string]answer{}}
	}
	return m.pages[namespace]
}

// read answers a request from memory, or asks.
func (m *memory) read(next http.RoundTripper, r *http.Request, namespace string) (*http.Response, error) {
	p := m.page(namespace)
	if p == nil || r.URL.Query().Has("watch") {
		return next.RoundTrip(r)
	}
	question := strings.Join([]string{r.URL.RequestURI(), r.Header.Get("Accept"), r.Header.Get("Accept-Encoding"),
		r.Header.Get("Impersonate-User"), r.Header.Get("Authorization")}, "\n")
	if known, ok := p.find(question); ok {
		return known.to(r), nil
	}
	response, err := next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusNotFound {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	given := answer{status: response.Status, code: response.StatusCode, header: response.Header, body: body}
	p.keep(question, given)
	return given.to(r), nil
}

func (p *page) find(question string) (answer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, ok := p.answers[question]
	return known, ok
}

func (p *page) keep(question string, given answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers[question] = given
}

// to is the answer to a request, as if the server had given it.
func (a answer) to(r *http.Request) *http.Response {
	return &http.Response{
		Status: a.status, StatusCode: a.code, Proto: "HTTP/2.0", ProtoMajor: 2, Header: maps.Clone(a.header),
		Body: io.NopCloser(bytes.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}
}
