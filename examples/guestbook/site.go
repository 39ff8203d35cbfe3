package main

import (
	"bytes"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	longestBody    = 16 << 10
	longestName    = 80
	longestMessage = 1000
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// site is what visitors see.
type site struct {
	book *book
	log  *slog.Logger
	pod  string
}

// who says which Pod has answered.
type who struct {
	Pod     string `json:"pod"`
	Version int    `json:"version"`
}

// entries is what there is to read.
type entries struct {
	who
	Entries []entry `json:"entries"`
}

func (s site) who() who { return who{Pod: s.pod, Version: s.book.version} }

func (s site) handler(ending *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	mux.HandleFunc("GET /entries", s.list)
	mux.HandleFunc("POST /entries", s.add)
	// Through the Service NAME-leader it is the leader who answers.
	mux.HandleFunc("GET /leader", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.who()) })
	pages := http.NewCrossOriginProtection().Handler(s.logged(mux))

	all := http.NewServeMux()
	all.Handle("/", pages)
	// Alive does not ask the database: a restart would mend nothing.
	all.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.answer(w, http.StatusOK, s.who()) })
	all.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { s.ready(w, r, ending.Load()) })
	return all
}

func (s site) ready(w http.ResponseWriter, r *http.Request, ending bool) {
	if ending {
		s.refuse(w, http.StatusServiceUnavailable, errors.New("it is ending"))
		return
	}
	if err := s.book.ready(r.Context()); err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	s.answer(w, http.StatusOK, s.who())
}

func (s site) page(w http.ResponseWriter, r *http.Request) {
	all, err := s.book.newest(r.Context())
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, entries{s.who(), all}); err != nil {
		s.refuse(w, http.StatusInternalServerError, fmt.Errorf("write the page: %w", err))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = text.WriteTo(w) // the visitor may have gone
}

func (s site) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.book.newest(r.Context())
	if err != nil {
		s.refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	s.answer(w, http.StatusOK, entries{s.who(), all})
}

// add takes an entry as JSON or from the page's form. Who gives it an id may send it again.
func (s site) add(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, longestBody)
	form := !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
	e, err := read(r, form)
	if err != nil {
		s.refuse(w, http.StatusBadRequest, err)
		return
	}
	err = s.book.add(r.Context(), e)
	switch {
	case errors.Is(err, errWrittenAlready):
		s.refuse(w, http.StatusConflict, err)
	case err != nil:
		s.refuse(w, http.StatusServiceUnavailable, err)
	case form:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	default:
		s.answer(w, http.StatusCreated, map[string]any{"id": e.ID, "pod": s.pod, "version": s.book.version})
	}
}

func read(r *http.Request, form bool) (entry, error) {
	var e entry
	if form {
		if err := r.ParseForm(); err != nil {
			return e, fmt.Errorf("read the form: %w", err)
		}
		e = entry{Name: r.PostForm.Get("name"), Message: r.PostForm.Get("message"), Place: r.PostForm.Get("place")}
	} else if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		return e, fmt.Errorf("read the entry: %w", err)
	}
	if e.ID == "" {
		e.ID = rand.Text()
	}
	return e, e.check()
}

func (e entry) check() error {
	if strings.TrimSpace(e.Name) == "" || strings.TrimSpace(e.Message) == "" {
		return errors.New("an entry needs a name and a message")
	}
	for what, c := range map[string]struct {
		text    string
		longest int
	}{"id": {e.ID, longestName}, "name": {e.Name, longestName}, "place": {e.Place, longestName}, "message": {
		e.Message, longestMessage,
	}} {
		if utf8.RuneCountInString(c.text) > c.longest {
			return fmt.Errorf("the %s has more than %d characters", what, c.longest)
		}
		// PostgreSQL's text has neither.
		if !utf8.ValidString(c.text) || strings.ContainsRune(c.text, 0) {
			return fmt.Errorf("the %s is no text", what)
		}
	}
	return nil
}

func (s site) answer(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what) // the visitor may have gone
}

func (s site) refuse(w http.ResponseWriter, status int, err error) {
	s.answer(w, status, map[string]any{"error": err.Error(), "pod": s.pod, "version": s.book.version})
}

// status remembers what was answered.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// logged writes a line for each request.
func (s site) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin, answer := time.Now(), &status{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(answer, r)
		s.log.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Int("status", answer.code),
			slog.Int64("milliseconds", time.Since(begin).Milliseconds()))
	})
}
