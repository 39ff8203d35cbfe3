package guestbook_test

import (
	"net/http"
	"testing"
	"time"

	"toban.dev/internal/pki"
)

// While the authority of the server changes, the file has both for a time. The application goes on, and reads it
// without being started again.
func TestTheAuthorityOfTheServerChanges(t *testing.T) {
	w := begin(t)
	w.migrate(1)
	a := w.serve(1, "-patience", "2s")
	a.writes("a", "Aki", "hello")
	former := w.server.Authority
	next, err := pki.NewAuthority([]byte("another seed"), "another", time.Now())
	must(t, err)
	anew := func() {
		w.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'guestbook'")
	}
	w.trust(former, next)
	anew()
	a.writes("b", "Yuki", "it has both")
	w.server.Certify(t, next)
	anew()
	a.writes("c", "Haru", "the server shows the next one")
	w.trust(next)
	anew()
	a.writes("d", "Natsu", "the former one is gone")

	w.trust(former)
	anew()
	if status, body := a.post("e", "Fuyu", "hello"); status == http.StatusCreated {
		t.Errorf("it has written to a server that it does not know: %s", body)
	}
}
