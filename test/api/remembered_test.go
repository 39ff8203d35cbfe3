package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// What is read again is not asked for again, unless something was written there, or could have been.
func TestReadsAreRememberedUntilSomebodyWrites(t *testing.T) {
	const path = "/api/v1/namespaces/a/pods"
	for what, test := range map[string]struct {
		// between happens between two reads of path.
		between func(*requests)
		asked   bool
	}{
		"nothing happens":            {func(*requests) {}, false},
		"something is written there": {func(r *requests) { r.do(http.MethodPut, path+"/x", "") }, true},
		"something is deleted there": {func(r *requests) { r.do(http.MethodDelete, path+"/x", "") }, true},
		"in another namespace": {func(r *requests) {
			r.do(http.MethodPut, "/api/v1/namespaces/b/pods/x", "")
		}, false},
		"in none":                  {func(r *requests) { r.do(http.MethodPost, "/api/v1/nodes", "") }, true},
		"the namespace is deleted": {func(r *requests) { r.do(http.MethodDelete, "/api/v1/namespaces/a", "") }, true},
		"a write may still come": {func(r *requests) {
			r.fails = true
			r.do(http.MethodPut, path+"/x", "")
			r.read(path)
		}, true},
		"somebody writes past us": {func(r *requests) { writesPastUs(r.config, "a") }, true},
		"another user has read":   {func(r *requests) { r.do(http.MethodGet, path, "another") }, false},
		"something was read meanwhile": {func(r *requests) {
			r.during = func() { r.during = nil; r.read(path) } // before it is written, and answered before
			r.do(http.MethodPut, path+"/x", "")
		}, true},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRequests(t)
			r.read(path)
			test.between(r)
			before := r.asked
			if got, want := r.read(path), fmt.Sprint(r.written); test.asked && got != want {
				t.Errorf("it reads %s, and %s times something was written", got, want)
			}
			if asked := r.asked > before; asked != test.asked {
				t.Errorf("it is asked for: %t", asked)
			}
		})
	}
	r := newRequests(t)
	r.read(path)
	r.told = func() {
		if got := r.read(path); got != "1" {
			t.Errorf("who is told of a write before it is answered reads %s", got)
		}
	}
	r.do(http.MethodPut, path+"/x", "")
	r = newRequests(t)
	for range 2 {
		r.do(http.MethodGet, path, "another")
		r.read(path)
		r.read(path + "?watch=true")
	}
	if r.asked != 4 {
		t.Errorf("%d requests: two users ask once, and a watch is one each time", r.asked)
	}
}

// requests are those of a client to an API server that answers with how often something was written.
type requests struct {
	*testing.T
	config         *rest.Config
	way            http.RoundTripper
	asked, written int
	// fails lets a write fail, during is what happens while one is under way, told when it is done.
	fails        bool
	during, told func()
}

func newRequests(t *testing.T) *requests {
	r := &requests{T: t, config: &rest.Config{Host: t.Name()}}
	remember(r.config)
	r.way = r.config.WrapTransport(roundTripper(r.answer))
	return r
}

func (r *requests) answer(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if r.during != nil {
			r.during()
		}
		r.written++
		if r.told != nil {
			r.told()
		}
		if r.fails {
			return nil, errors.New("the connection is lost")
		}
	} else {
		r.asked++
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(fmt.Sprint(r.written)))}, nil
}

func (r *requests) read(path string) string {
	r.Helper()
	return r.do(http.MethodGet, path, "")
}

// do makes a request, as a user, and returns the answer.
func (r *requests) do(method, path, user string) string {
	r.Helper()
	request, err := http.NewRequestWithContext(r.Context(), method, "https://localhost"+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	request.Header.Set("Impersonate-User", user)
	response, err := r.way.RoundTrip(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.Fatal(err)
	}
	return string(body)
}
