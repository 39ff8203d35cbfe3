// Package httppath is the way to a service over HTTP, which a FaultDrill may cut on purpose. It knows neither the
// service nor who asks it.
package httppath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// ErrCut is why a call fails while the way is cut.
var ErrCut = errors.New("is cut, by a FaultDrill")

// Path is the way to one service, for all calls of a process. While it is cut, it is as one on which all packets are
// lost: no call gets an answer, also one that was under way, and each ends when who has called gives it up, or when the
// way is there again.
type Path struct {
	to       string
	patience time.Duration

	mutex sync.Mutex
	// back is closed when the way is there again; nil while it is there.
	back chan struct{}
}

// New is the way to a service, which is called so in errors. Patience is for how long an answer is waited for at most,
// 0 for as long as who has called does.
func New(to string, patience time.Duration) *Path { return &Path{to: to, patience: patience} }

// Through has calls take this way. Without a way they are as they were.
func (w *Path) Through(next http.RoundTripper) http.RoundTripper {
	if w == nil {
		return next
	}
	return traveller{w, next}
}

// Cut has calls get no answer, until Restore.
func (w *Path) Cut() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.back == nil {
		w.back = make(chan struct{})
	}
}

// Restore has calls get answers again.
func (w *Path) Restore() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.back != nil {
		close(w.back)
		w.back = nil
	}
}

// isCut is closed when the way is there again; nil where it is there.
func (w *Path) isCut() <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.back
}

// wait waits for an answer that does not come.
func (w *Path) wait(ctx context.Context, back <-chan struct{}) error {
	cut := fmt.Errorf("the way to %s %w", w.to, ErrCut)
	var given <-chan time.Time
	if w.patience > 0 {
		timer := time.NewTimer(w.patience)
		defer timer.Stop()
		given = timer.C
	}
	select {
	case <-ctx.Done():
		return errors.Join(cut, ctx.Err())
	case <-given:
	case <-back:
	}
	return cut
}

// traveller makes calls by a way.
type traveller struct {
	way  *Path
	next http.RoundTripper
}

// RoundTrip is http.RoundTripper's. What was asked before the way was cut may have been done: its answer is lost.
func (t traveller) RoundTrip(r *http.Request) (*http.Response, error) {
	if back := t.way.isCut(); back != nil {
		if r.Body != nil {
			_ = r.Body.Close() // a RoundTripper has to
		}
		return nil, t.way.wait(r.Context(), back)
	}
	response, err := t.next.RoundTrip(r)
	if back := t.way.isCut(); back != nil {
		if err == nil {
			_ = response.Body.Close() // nobody gets it
		}
		return nil, t.way.wait(r.Context(), back)
	}
	if err != nil {
		return nil, err
	}
	response.Body = content{response.Body, t.way, r.Context()}
	return response, nil
}

// content is that of an answer on its way.
type content struct {
	io.ReadCloser
	way *Path
	ctx context.Context //nolint:containedctx // of the request, which bounds it too
}

// Read is io.Reader's. What has arrived while the way is cut is lost.
func (c content) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if back := c.way.isCut(); back != nil {
		return 0, c.way.wait(c.ctx, back)
	}
	return n, err
}
