package kube

import (
	"errors"
	"net/http"
	"sync"

	"k8s.io/client-go/rest"
)

// errCut is why a call to the Kubernetes API fails while the way to it is cut.
var errCut = errors.New("the way to the Kubernetes API is cut, by a FaultDrill")

// way is the way to the Kubernetes API, for all calls of one instance. While it is cut, it is as one on which all
// packets are lost: no call gets an answer, and each ends by its own deadline, or when the way is there again.
type way struct {
	mutex sync.Mutex
	// back is closed when the way is there again; nil while it is there.
	back chan struct{}
}

// through is a client's config with which all calls take this way.
func (w *way) through(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return traveller{w, next} })
	return config
}

// cut has calls get no answer, until restore.
func (w *way) cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.back == nil {
		w.back = make(chan struct{})
	}
}

// restore has calls reach the API again.
func (w *way) restore() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.back != nil {
		close(w.back)
		w.back = nil
	}
}

// isCut is closed when the way is there again; nil where it is there.
func (w *way) isCut() <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.back
}

// traveller makes calls by a way.
type traveller struct {
	way  *way
	next http.RoundTripper
}

// RoundTrip is http.RoundTripper's. What was asked before the way was cut may have been done: its answer is lost.
func (t traveller) RoundTrip(r *http.Request) (*http.Response, error) {
	if back := t.way.isCut(); back != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper has to
		}
		return nil, wait(r, back)
	}
	response, err := t.next.RoundTrip(r)
	if back := t.way.isCut(); back != nil {
		if err == nil {
			_ = response.Body.Close() // nobody gets it
		}
		return nil, wait(r, back)
	}
	return response, err
}

// wait waits for an answer that does not come, as long as who has asked does.
func wait(r *http.Request, back <-chan struct{}) error {
	select {
	case <-r.Context().Done():
		return errors.Join(errCut, r.Context().Err())
	case <-back:
		return errCut
	}
}
