package cluster

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What time it is the API server says, also where it refuses what is asked for.
func TestTheClockIsThatOfTheAPIServer(t *testing.T) {
	past := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", past.Format(http.TimeFormat))
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`,
	), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{Kubeconfig: file, Namespace: "n"}
	if off := time.Since(c.Now()).Abs(); off > time.Minute {
		t.Errorf("before there is a client it is off by %s", off)
	}
	api, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(t.Context(), api, "x"); err == nil {
		t.Error("it has read what there is not")
	}
	if now := c.Now(); now.Before(past) || now.After(past.Add(time.Minute)) {
		t.Errorf("afterwards it is %s", now)
	}
}
