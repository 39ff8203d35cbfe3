package console

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

//go:embed assets
var embedded embed.FS

// Options are how a console is started.
type Options struct {
	API   client.WithWatch
	Verbs Verbs
	// Namespace is the one that is shown, "" for all.
	Namespace string
	// Write allows changes.
	Write bool
	// Flags are those by which the commands that are shown reach the same cluster.
	Flags []string
	// Version is that of the program.
	Version string
}

// Server is a console.
type Server struct {
	Options
	feed  *feed
	guard *guard
}

// New is a console that listens there.
func New(listener net.Listener, o Options) *Server {
	s := &Server{Options: o, feed: newFeed(o.API, o.Namespace)}
	s.guard = newGuard(listener.Addr().String(), s.routes())
	return s
}

// URL is where the console is, with the token. OnceURL leads there one single time.
func (s *Server) URL() string { return s.guard.url() }

// OnceURL leads to the URL one single time, for a command line, which others on the machine can read.
func (s *Server) OnceURL() string { return s.guard.onceURL() }

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.guard, ReadHeaderTimeout: 5 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	following := make(chan struct{})
	go func() {
		defer close(following)
		s.feed.run(ctx)
	}()
	go func() {
		<-ctx.Done()
		_ = server.Close() // streams never end by themselves
	}()
	err := server.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		<-following
		return nil
	}
	return fmt.Errorf("serve the console: %w", err)
}

func (s *Server) routes() http.Handler {
	files, err := fs.Sub(embedded, "assets")
	if err != nil {
		panic(err) // the folder is compiled in
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /api/stream", s.stream)
	mux.HandleFunc("GET /api/logs", answer(s.logs))
	mux.HandleFunc("GET /api/restore", answer(s.restore))
	mux.HandleFunc("GET /api/command", answer(s.command))
	mux.HandleFunc("POST /api/do", answer(s.do))
	return mux
}

// refusal is an answer that is no error of the API.
type refusal struct {
	code  int
	words string
}

func (r refusal) Error() string { return r.words }

// answer writes what a handler returns as JSON; an error as a Trouble.
func answer(handle func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := handle(r)
		code := http.StatusOK
		var no refusal
		switch {
		case errors.As(err, &no):
			code, out = no.code, Trouble{Kind: troubleFailed, Message: no.words}
		case err != nil:
			code, out = http.StatusBadGateway, troubleOf(err, "")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(out) // a browser that has gone is told nothing
	}
}

// named is the SampleDB that a request names, as the feed has it.
func (s *Server) named(r *http.Request) (*v1.SampleDB, error) {
	q := r.URL.Query()
	db, _ := s.feed.database(q.Get("namespace"), q.Get("name"))
	if db == nil {
		return nil, refusal{http.StatusNotFound, fmt.Sprintf("there is no SampleDB %s in namespace %s",
			q.Get("name"), q.Get("namespace"))}
	}
	return db, nil
}

// mostLines is how many lines of a log are read at most.
const mostLines = 5000

// logs are the last lines of a log.
func (s *Server) logs(r *http.Request) (any, error) {
	db, err := s.named(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	lines, err := strconv.ParseInt(q.Get("lines"), 10, 64)
	if err != nil || lines < 1 || lines > mostLines {
		return nil, refusal{http.StatusBadRequest, fmt.Sprintf("lines must be a number from 1 to %d", mostLines)}
	}
	content, err := s.Verbs.Logs(r.Context(), db.Namespace, db.Name, q.Get("instance"), lines)
	if err != nil && len(content) == 0 {
		return nil, err //nolint:wrapcheck // it says of which Pod
	}
	out := shownLogs{Lines: []json.RawMessage{}}
	if err != nil {
		out.Problem = err.Error()
	}
	return out.read(content)
}

// shownLogs are lines of logs, and why some are missing.
type shownLogs struct {
	Lines   []json.RawMessage `json:"lines"`
	Problem string            `json:"problem,omitempty"`
}

func (l shownLogs) read(content []byte) (shownLogs, error) {
	for decoder := json.NewDecoder(bytes.NewReader(content)); ; {
		var line json.RawMessage
		err := decoder.Decode(&line)
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return l, fmt.Errorf("read the lines of the log: %w", err)
		}
		l.Lines = append(l.Lines, line)
	}
}

// restore are the ways back to a moment.
func (s *Server) restore(r *http.Request) (any, error) {
	db, err := s.named(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	asked := Asked{Database: db, To: q.Get("to"), Into: q.Get("into"), Table: q.Get("table")}
	if err := asked.check(); err != nil {
		return nil, refusal{http.StatusBadRequest, err.Error()}
	}
	return waysOf(asked, s.Flags, s.Verbs.Clone)
}

// command is the command of an action, to be shown before it is done.
func (s *Server) command(r *http.Request) (any, error) {
	q := r.URL.Query()
	a := Action{Namespace: q.Get("namespace"), Name: q.Get("name"), What: q.Get("what"), Instance: q.Get("instance")}
	args, err := a.args()
	if err != nil {
		return nil, refusal{http.StatusBadRequest, err.Error()}
	}
	return map[string]string{"command": command(args, a.Namespace, s.Flags)}, nil
}

// mostBody is how long a request may be.
const mostBody = 4096

// do does what is asked for, if the console may.
func (s *Server) do(r *http.Request) (any, error) {
	if !s.Write {
		return nil, refusal{http.StatusForbidden, "this console only reads: start it with --write to change things"}
	}
	var a Action
	if err := json.NewDecoder(io.LimitReader(r.Body, mostBody)).Decode(&a); err != nil {
		return nil, refusal{http.StatusBadRequest, "the request is no action in JSON: " + err.Error()}
	}
	_, err := a.args()
	if err = errors.Join(err, a.confirmed()); err != nil {
		return nil, refusal{http.StatusBadRequest, err.Error()}
	}
	said, err := s.Verbs.Do(r.Context(), a)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is the verb's
	}
	return map[string]string{"said": said}, nil
}
