// Package guestbook_test runs the example application with a real PostgreSQL on this machine, as its Pods run it.
package guestbook_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/pki"
	"toban.dev/test/local/single"
)

// deadline is for what must come true: generous, for busy machines.
const deadline = 30 * time.Second

// programs are the versions of the application, built when they are first needed.
var programs struct {
	sync.Mutex
	folder string
	built  map[int]string
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "toban-guestbook-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs.folder, programs.built = folder, map[int]string{}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// program is a version of the application, built as its image's is.
func program(t *testing.T, version int) string {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if path := programs.built[version]; path != "" {
		return path
	}
	path := filepath.Join(programs.folder, fmt.Sprintf("guestbook-%d", version))
	build := exec.Command("go", "build", "-ldflags", fmt.Sprintf("-X main.version=%d", version), "-o", path,
		"toban.dev/examples/guestbook")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build version %d: %v\n%s", version, err, out)
	}
	programs.built[version] = path
	return path
}

// world is a database with its user, and what runs there.
type world struct {
	*testing.T
	server *single.Server
	// authority is the file with that of the server.
	authority string
}

func begin(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, server: single.Start(t), authority: filepath.Join(t.TempDir(), "ca.crt")}
	w.trust(w.server.Authority)
	w.server.Do(t, "postgres", "CREATE ROLE guest LOGIN PASSWORD 'pass'")
	w.server.Do(t, "postgres", "CREATE DATABASE book OWNER guest")
	return w
}

// trust writes the file by which the application knows the server.
func (w *world) trust(authorities ...*pki.Authority) {
	w.Helper()
	var text []byte
	for _, a := range authorities {
		text = append(text, a.CertPEM()...)
	}
	if err := os.WriteFile(w.authority, text, 0o600); err != nil {
		w.Fatal(err)
	}
}

// sql runs statements as superuser, ask a query.
func (w *world) sql(statements string) { w.Helper(); w.server.Do(w.T, "book", statements) }

func (w *world) ask(query string) string { w.Helper(); return w.server.Ask(w.T, "book", query) }

// command is a command of a version, with the environment that its Pod has.
func (w *world) command(version int, args ...string) *exec.Cmd {
	c := exec.Command(program(w.T, version), args...)
	c.Env = []string{
		"PGHOST=127.0.0.1", fmt.Sprintf("PGPORT=%d", w.server.Port), "PGUSER=guest", "PGPASSWORD=pass",
		"PGDATABASE=book", "PGSSLMODE=verify-full", "PGSSLROOTCERT=" + w.authority,
	}
	return c
}

func (w *world) migrate(version int) {
	w.Helper()
	if out, err := w.command(version, "migrate").CombinedOutput(); err != nil {
		w.Fatalf("migrate to version %d: %v\n%s", version, err, out)
	}
}

// app is one that serves.
type app struct {
	*testing.T
	process *exec.Cmd
	url     string
	log     *bytes.Buffer
	read    chan struct{}
}

// serve starts a version, and kills it at the end of the test if it still runs then.
func (w *world) serve(version int, flags ...string) *app {
	w.Helper()
	a := &app{
		T: w.T, process: w.command(version, append([]string{"serve", "-listen", "127.0.0.1:0"}, flags...)...),
		log: &bytes.Buffer{}, read: make(chan struct{}),
	}
	out, err := a.process.StdoutPipe()
	must(w.T, err)
	a.process.Stderr = os.Stderr
	must(w.T, a.process.Start())
	w.Cleanup(func() {
		_ = a.process.Process.Kill()
		<-a.read
		_ = a.process.Wait()
		if w.Failed() {
			w.Logf("version %d has written:\n%s", version, a.log)
		}
	})
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	must(w.T, err)
	var said struct{ Address string }
	must(w.T, json.Unmarshal([]byte(first), &said))
	a.url = "http://" + said.Address
	go func() { defer close(a.read); _, _ = io.Copy(a.log, lines) }()
	return a
}

// ends waits until it has ended by itself, and without an error.
func (a *app) ends() {
	a.Helper()
	<-a.read
	if err := a.process.Wait(); err != nil {
		a.Errorf("it ends with %v", err)
	}
}

func (a *app) signal(s syscall.Signal) { a.Helper(); must(a.T, a.process.Process.Signal(s)) }

// get is an answer's status and body; 0 where there was none.
func (a *app) get(path string) (status int, body string) {
	response, err := client.Get(a.url + path)
	return answer(response, err)
}

func (a *app) post(id, name, message string) (status int, body string) {
	text, err := json.Marshal(map[string]string{"id": id, "name": name, "message": message, "place": "Mitaka"})
	if err != nil {
		return 0, err.Error()
	}
	response, err := client.Post(a.url+"/entries", "application/json", bytes.NewReader(text))
	return answer(response, err)
}

// Each request is a connection of its own, as through a Service.
var client = &http.Client{Timeout: deadline, Transport: &http.Transport{DisableKeepAlives: true}}

func answer(response *http.Response, err error) (status int, body string) {
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(text)
}

// writes is a post that must succeed.
func (a *app) writes(id, name, message string) {
	a.Helper()
	if status, body := a.post(id, name, message); status != http.StatusCreated {
		a.Fatalf("a new entry gets %d: %s", status, body)
	}
}

// answers waits until a path is answered in a way, with a word in it.
func (a *app) answers(path string, want int, word string) {
	a.Helper()
	status, body := 0, ""
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if status, body = a.get(path); status == want && strings.Contains(body, word) {
			return
		}
	}
	a.Fatalf("%s gives %d, want %d with %q: %s", path, status, want, word, body)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
