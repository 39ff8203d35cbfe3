package guestbook_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// An update with its schema, and the way back: each version goes on with the schema of the next one.
func TestAnUpdateAndTheWayBack(t *testing.T) {
	w := begin(t)
	one := w.serve(1)
	one.answers("/readyz", http.StatusServiceUnavailable, "the schema has version 0 and this is version 1")
	w.migrate(1)
	one.answers("/readyz", http.StatusOK, `"version":1`)
	one.writes("a", "Aki", "hello")

	two := w.serve(2)
	two.answers("/readyz", http.StatusServiceUnavailable, "run guestbook migrate")
	w.migrate(2)
	two.answers("/readyz", http.StatusOK, `"version":2`)
	two.writes("b", "Yuki", "hello, too")
	one.answers("/readyz", http.StatusOK, "")
	one.writes("c", "Haru", "still here")

	w.migrate(1) // leaves the newer schema as it is
	again := w.serve(1)
	again.answers("/readyz", http.StatusOK, "")
	again.answers("/entries", http.StatusOK, "hello, too")
	again.writes("d", "Natsu", "back")
	two.answers("/entries", http.StatusOK, `"place":"Mitaka"`)
	if got := w.ask("SELECT string_agg(id || ' ' || place, ', " +
		"' ORDER BY id) FROM entry"); got != "a , b Mitaka, c , d " {
		t.Errorf("the entries are %q", got)
	}
	if got := w.ask("SELECT string_agg(number || ' ' || name, ', ' ORDER BY number) FROM " +
		"guestbook_migration"); got != "1 entry, 2 place" {
		t.Errorf("the record has %q", got)
	}
}

// A migration that fails says what is the matter, and leaves all as it was.
func TestAFailedMigration(t *testing.T) {
	w := begin(t)
	w.migrate(2)
	two := w.serve(2)
	two.writes("a", "Aki", "once")
	two.writes("b", "Aki", "twice")
	out, err := w.command(3, "migrate").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "migration 3 (one entry each)") ||
		!strings.Contains(string(out), "Key (name)=(Aki) is duplicated") {
		t.Errorf("it gives %v:\n%s", err, out)
	}
	if got := w.ask("SELECT max(number) FROM guestbook_migration"); got != "2" {
		t.Errorf("the record says version %s", got)
	}
	two.answers("/readyz", http.StatusOK, "")
	two.writes("c", "Aki", "and again")

	w.sql("DELETE FROM entry WHERE id <> 'a'")
	w.migrate(3)
	three := w.serve(3)
	three.writes("a", "Aki", "the same, sent again")
	if status, body := three.post("d", "Aki", "one more"); status != http.StatusConflict {
		t.Errorf("a second entry gets %d: %s", status, body)
	}
}

// Whoever runs it, however often and at once, each migration runs once. One that is killed has done nothing, and one
// that finds the table in use gives way and tries again.
func TestMigrationsRunOnce(t *testing.T) {
	w := begin(t)
	var all sync.WaitGroup
	for range 3 {
		c := w.command(1, "migrate")
		all.Go(func() {
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
	all.Wait()

	busy, err := w.server.Dial(t.Context(), "book", "postgres", "")
	must(t, err)
	defer busy.Close(t.Context())
	_, err = busy.Exec(t.Context(), "BEGIN; LOCK TABLE entry IN ACCESS SHARE MODE")
	must(t, err)
	if out, err := w.command(2, "migrate", "-patience", "1s").CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "lock timeout") {
		t.Errorf("a table in use gives %v:\n%s", err, out)
	}
	killed := w.command(2, "migrate")
	must(t, killed.Start())
	for end := time.Now().Add(deadline); w.ask("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%ADD COLUMN "+
		"place%' AND wait_event = 'relation'") == "0"; {
		if time.Now().After(end) {
			t.Fatal("the migration does not begin")
		}
	}
	must(t, killed.Process.Kill())
	_ = killed.Wait()

	done := make(chan error, 1)
	patient := w.command(2, "migrate")
	patient.Stderr = os.Stderr
	go func() { done <- patient.Run() }()
	tries := map[string]bool{}
	for end := time.Now().Add(deadline); len(tries) < 2; time.Sleep(20 * time.Millisecond) {
		if try := w.ask("SELECT coalesce(max(xact_start)::text, '') FROM pg_stat_activity " +
			"WHERE query LIKE '%ADD COLUMN place%' AND wait_event = 'relation'"); try != "" {
			tries[try] = true
		}
		if time.Now().After(end) {
			t.Fatalf("it does not give way and try again: %v", tries)
		}
	}
	_, err = busy.Exec(t.Context(), "COMMIT")
	must(t, err)
	must(t, <-done)
	if got := w.ask("SELECT count(*) || ' ' || max(number) FROM guestbook_migration"); got != "2 2" {
		t.Errorf("the record has %q", got)
	}
}

// When the server crashes, requests wait until it is back. None is lost, none is done twice, and meanwhile it
// says that it is not ready.
func TestACrashOfTheServer(t *testing.T) {
	w := begin(t)
	w.migrate(2)
	a := w.serve(2)
	stop, written := make(chan struct{}), make(chan int, 1)
	go func() {
		n := 0
		defer func() { written <- n }()
		for {
			select {
			case <-stop:
				return
			default:
			}
			if status, body := a.post(fmt.Sprint(n), fmt.Sprint("guest ", n), "hello"); status != http.StatusCreated {
				t.Errorf("entry %d gets %d: %s", n, status, body)
				return
			}
			n++
		}
	}()
	a.answers("/entries", http.StatusOK, "guest 20")
	w.server.Down(t)
	a.answers("/readyz", http.StatusServiceUnavailable, "error")
	if status, _ := a.get("/healthz"); status != http.StatusOK {
		t.Errorf("it says that it is not alive: %d", status)
	}
	w.server.Up(t)
	a.answers("/readyz", http.StatusOK, "")
	before := w.ask("SELECT count(*) FROM entry")
	for end := time.Now().Add(deadline); w.ask("SELECT count(*) FROM entry") == before; {
		if time.Now().After(end) {
			t.Fatal("it does not write again")
		}
	}
	close(stop)
	if n, got := <-written, w.ask("SELECT count(*) FROM entry"); got != fmt.Sprint(n) {
		t.Errorf("%d were acknowledged, and %s are there", n, got)
	}
}

// At its end it takes requests until nobody sends any more, and answers those that it has.
func TestItEndsWithoutLosingARequest(t *testing.T) {
	w := begin(t)
	w.migrate(2)
	a := w.serve(2, "-drain", "3s")
	busy, err := w.server.Dial(t.Context(), "book", "postgres", "")
	must(t, err)
	defer busy.Close(t.Context())
	_, err = busy.Exec(t.Context(), "BEGIN; LOCK TABLE entry")
	must(t, err)
	slow := make(chan string, 1)
	go func() {
		status, body := a.post("slow", "Aki", "hello")
		slow <- fmt.Sprint(status, " ", body)
	}()
	for end := time.Now().Add(deadline); w.ask("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0"; {
		if time.Now().After(end) {
			t.Fatal("the entry is not being written")
		}
	}
	a.signal(syscall.SIGTERM)
	a.answers("/readyz", http.StatusServiceUnavailable, "it is ending")
	if status, body := a.get("/leader"); status != http.StatusOK {
		t.Errorf("one who has not heard of it gets %d: %s", status, body)
	}
	for end := time.Now().Add(deadline); ; time.Sleep(20 * time.Millisecond) {
		if status, _ := a.get("/leader"); status == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it still takes requests")
		}
	}
	_, err = busy.Exec(t.Context(), "COMMIT")
	must(t, err)
	if got := <-slow; !strings.HasPrefix(got, "201 ") {
		t.Errorf("the request that it had got %s", got)
	}
	a.ends()
	if !strings.Contains(a.log.String(), `"msg":"ended"`) {
		t.Error("it does not say that it has ended")
	}
}

// What a browser sees and sends.
func TestThePage(t *testing.T) {
	w := begin(t)
	w.migrate(2)
	a := w.serve(2)
	response, err := client.PostForm(a.url+"/entries", url.Values{"name": {"秋"}, "message": {"<script>当番</script>"}})
	if status, body := answer(response, err); status != http.StatusOK ||
		!strings.Contains(body, "&lt;script&gt;当番&lt;/script&gt;") {
		t.Errorf("the form leads to %d: %s", status, body)
	}
	pod, err := os.Hostname()
	must(t, err)
	for path, words := range map[string][]string{
		"/":        {"answered by " + pod, "Version 2", "Where you come from"},
		"/entries": {`"pod":"` + pod, `"version":2`, `"name":"秋"`},
		"/leader":  {`{"pod":"` + pod + `","version":2}`},
	} {
		status, body := a.get(path)
		for _, word := range words {
			if status != http.StatusOK || !strings.Contains(body, word) {
				t.Errorf("%s gives %d and lacks %q: %s", path, status, word, body)
			}
		}
	}
	if status, body := a.post("x", "", "nobody"); status != http.StatusBadRequest {
		t.Errorf("an entry of nobody gets %d: %s", status, body)
	}
	evil, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.url+"/entries",
		strings.NewReader("name=a&message=b"))
	must(t, err)
	evil.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	evil.Header.Set("Sec-Fetch-Site", "cross-site")
	response, err = client.Do(evil)
	if status, _ := answer(response, err); status != http.StatusForbidden {
		t.Errorf("another site's form gets %d", status)
	}
}
