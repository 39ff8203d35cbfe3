package httppath

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// roundTrip is a function as a http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func request(t *testing.T, ctx context.Context) *http.Request { //nolint:revive // the test is first everywhere
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://store", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answers answers each call with a text.
func answers(text string) roundTrip {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
	}
}

// What waits for an answer when the way is cut gets none, also when it was done; and when the way is there again,
// nobody waits on.
func TestAnAnswerIsLostOnAWayThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		done := make(chan bool)
		w := New("the store", 0)
		client := w.Through(roundTrip(func(r *http.Request) (*http.Response, error) {
			<-done
			return answers("")(r)
		}))
		var failed error
		answered := false
		go func() {
			_, failed = client.RoundTrip(request(t, t.Context())) //nolint:bodyclose // there is none
			answered = true
		}()
		synctest.Wait()
		w.Cut()
		w.Cut() // a second time changes nothing
		done <- true
		synctest.Wait()
		if answered {
			t.Fatal("it was answered")
		}
		w.Restore()
		w.Restore()
		synctest.Wait()
		if !answered || !errors.Is(failed, ErrCut) || !strings.Contains(failed.Error(), "the way to the store is cut") {
			t.Errorf("it fails by %v", failed)
		}
	})
}

// While the way is cut nothing gets through, and who has called waits as long as patience says, or as it wants itself.
func TestForHowLongAnAnswerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New("the store", 15*time.Second)
		called := 0
		client := w.Through(roundTrip(func(r *http.Request) (*http.Response, error) {
			called++
			return answers("")(r)
		}))
		call := func(ctx context.Context) (time.Duration, error) {
			began := time.Now()
			response, err := client.RoundTrip(request(t, ctx))
			if err == nil {
				_ = response.Body.Close()
			}
			return time.Since(began), err
		}
		w.Cut()
		if took, err := call(t.Context()); took != 15*time.Second || !errors.Is(err, ErrCut) {
			t.Errorf("after %s: %v", took, err)
		}
		hurried, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		took, err := call(hurried)
		if took != time.Second || !errors.Is(err, ErrCut) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a deadline of its own after %s: %v", took, err)
		}
		if called != 0 {
			t.Errorf("%d calls got through", called)
		}
		w.Restore()
		if _, err := call(t.Context()); err != nil || called != 1 {
			t.Errorf("afterwards %d calls got through: %v", called, err)
		}
	})
}

// An answer that is being read when the way is cut does not go on.
func TestTheRestOfAnAnswerIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New("the store", time.Minute)
		response, err := w.Through(answers("abcdef")).RoundTrip(request(t, t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		part := make([]byte, 3)
		if n, err := response.Body.Read(part); n != 3 || err != nil {
			t.Fatalf("%d bytes are read: %v", n, err)
		}
		w.Cut()
		began := time.Now()
		if n, err := response.Body.Read(part); n != 0 || !errors.Is(err, ErrCut) || time.Since(began) != time.Minute {
			t.Errorf("%d bytes are read after %s: %v", n, time.Since(began), err)
		}
	})
}

func TestWithoutAWayCallsAreAsTheyWere(t *testing.T) {
	response, err := (*Path)(nil).Through(answers("x")).RoundTrip(request(t, t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}
