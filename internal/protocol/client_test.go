package protocol

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Over a connection that is not kept nothing more is said: the client closes it by itself.
func TestIdleConnectionsAreKeptAsLongAsIsSaid(t *testing.T) {
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.StartTLS()
	defer server.Close()
	address, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("the server listens at no port")
	}
	c := NewClient(&tls.Config{InsecureSkipVerify: true}, address.Port)
	c.KeepIdle(time.Millisecond)
	if _, err := c.Status(t.Context(), "127.0.0.1"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still there")
	}
}
