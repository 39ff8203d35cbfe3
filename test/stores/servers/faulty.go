package servers

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"
)

const (
	// mostAtOnce bounds the requests that a Faulty passes on at the same time.
	mostAtOnce = 256
	// mostDelay bounds its delay.
	mostDelay = time.Minute
	// chunk is what goes through it at once when the bandwidth is limited, in bytes.
	chunk = 16 << 10
)

// Faulty is a proxy before an HTTP server on loopback that behaves badly on
// request. It begins as one that does not.
type Faulty struct {
	// URL is http://127.0.0.1:PORT.
	URL string

	proxy   http.Handler
	address string
	slots   chan struct{}

	mutex  sync.Mutex
	server *http.Server // nil while it is away
	// writes are how many more are let through; fewer than 0 are all of them.
	writes int
	// lost is how many answers to writes get lost.
	lost  int
	delay time.Duration
	// before, if set, sees each request before it is passed on, and may change it.
	before func(*http.Request)
	// refuse, if set, says which requests are denied, and denial what the answer says.
	refuse func(*http.Request) bool
	denial string
	// rate is in bytes per second for both directions together, 0 for no limit; free
	// is when the next byte may go.
	rate int
	free time.Time
}

// StartFaulty puts a proxy before a server, until the end of the test.
func StartFaulty(t *testing.T, target string) *Faulty {
	t.Helper()
	to, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	if ip := net.ParseIP(to.Hostname()); ip == nil || !ip.IsLoopback() {
		t.Fatalf("%s is not on loopback", target)
	}
	f := &Faulty{slots: make(chan struct{}, mostAtOnce), writes: -1, address: "127.0.0.1:0"}
	f.proxy = &httputil.ReverseProxy{
		// The host is part of what S3's clients sign: it stays theirs.
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			f.passes(r.Out)
		},
		FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			if f.loses(answer.Request.Method) {
				panic(http.ErrAbortHandler) // cuts the connection
			}
			return nil
		},
		ErrorLog: log.New(io.Discard, "", 0), // connections that are cut are what it is for
	}
	if err := f.Back(); err != nil {
		t.Fatal(err)
	}
	f.URL = "http://" + f.address
	t.Cleanup(f.Away)
	return f
}

// Away cuts all connections and refuses new ones.
func (f *Faulty) Away() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.server != nil {
		_ = f.server.Close() // it is to be abrupt
		f.server = nil
	}
}

// Back ends Away, at the same address. It is an error if another has that now.
func (f *Faulty) Back() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.server != nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", f.address)
	if err != nil {
		return err
	}
	f.address = listener.Addr().String()
	server := &http.Server{
		Handler: http.HandlerFunc(f.handle), ReadHeaderTimeout: mostDelay, ErrorLog: log.New(io.Discard, "", 0),
	}
	f.server = server
	go func() {
		if err := server.Serve(slowListener{listener, f}); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("the faulty proxy has ended: %v", err)
		}
	}()
	return nil
}

// RefuseWritesAfter lets n more writes through (PUT, POST and DELETE requests), and
// answers the others with 503. Fewer than 0 are all.
func (f *Faulty) RefuseWritesAfter(n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.writes = n
}

// LoseAnswers passes on n more writes, and cuts the connection instead of giving the answer.
func (f *Faulty) LoseAnswers(n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.lost = n
}

// Before has each request seen, and maybe changed, before it is passed on.
func (f *Faulty) Before(see func(*http.Request)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.before = see
}

// Refuse has requests denied (403), with this answer.
func (f *Faulty) Refuse(which func(*http.Request) bool, answer string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.refuse, f.denial = which, answer
}

// denies says whether a request is denied, and with what answer.
func (f *Faulty) denies(r *http.Request) (answer string, denied bool) {
	f.mutex.Lock()
	refuse, answer := f.refuse, f.denial
	f.mutex.Unlock()
	return answer, refuse != nil && refuse(r)
}

func (f *Faulty) passes(r *http.Request) {
	f.mutex.Lock()
	see := f.before
	f.mutex.Unlock()
	if see != nil {
		see(r)
	}
}

// loses says whether the answer to a request gets lost.
func (f *Faulty) loses(method string) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if reads(method) || f.lost <= 0 {
		return false
	}
	f.lost--
	return true
}

func reads(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// Bandwidth limits it to a number of bytes per second, of both directions together;
// 0 is no limit.
func (f *Faulty) Bandwidth(rate int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.rate, f.free = rate, time.Now()
}

// Delay makes every request wait before it is passed on, a minute at most.
func (f *Faulty) Delay(delay time.Duration) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.delay = min(delay, mostDelay)
}

func (f *Faulty) handle(w http.ResponseWriter, r *http.Request) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
		return
	}
	delay, refused := f.meet(r.Method)
	if !pause(r.Context(), delay) {
		return
	}
	if refused {
		http.Error(w, "no more writes", http.StatusServiceUnavailable)
		return
	}
	if answer, denied := f.denies(r); denied {
		_, _ = io.Copy(io.Discard, r.Body) // a client that still writes would see no answer
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, answer)
		return
	}
	f.proxy.ServeHTTP(w, r)
}

// meet says what becomes of a request.
func (f *Faulty) meet(method string) (delay time.Duration, refused bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if reads(method) || f.writes < 0 {
		return f.delay, false
	}
	if f.writes == 0 {
		return f.delay, true
	}
	f.writes--
	return f.delay, false
}

// pause waits; false says that ctx has ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// wait takes n bytes of the bandwidth, and waits until they may go.
func (f *Faulty) wait(n int) {
	f.mutex.Lock()
	if f.rate <= 0 {
		f.mutex.Unlock()
		return
	}
	if now := time.Now(); f.free.Before(now) {
		f.free = now
	}
	f.free = f.free.Add(time.Duration(n) * time.Second / time.Duration(f.rate))
	until := time.Until(f.free)
	f.mutex.Unlock()
	time.Sleep(min(until, mostDelay)) // this is the bandwidth itself
}

type slowListener struct {
	net.Listener
	faulty *Faulty
}

func (l slowListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &slowConn{conn, l.faulty}, nil
}

// slowConn goes through the bandwidth, byte for byte.
type slowConn struct {
	net.Conn
	faulty *Faulty
}

func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), chunk)])
	c.faulty.wait(n)
	return n, err
}

func (c *slowConn) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		part := p[written:min(written+chunk, len(p))]
		c.faulty.wait(len(part))
		n, err := c.Conn.Write(part)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
