package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// gather is how long further changes are waited for before a view is made.
	gather = 100 * time.Millisecond
	// beat is how often a view is sent though nothing has changed: so the page knows that the program runs.
	beat = 10 * time.Second
	// lagPause is between two questions to a primary, lagPatience how long one may take.
	lagPause    = 5 * time.Second
	lagPatience = 15 * time.Second
)

// View is what the page shows: the fleet, or one database.
type View struct {
	// At is when it was made.
	At metav1.Time `json:"at"`
	// Namespace is the one that is shown, "" for all; Write says that changes are allowed.
	Namespace string    `json:"namespace"`
	Write     bool      `json:"write"`
	Version   string    `json:"version"`
	Troubles  []Trouble `json:"troubles"`
	// Loading says that the databases were not read yet.
	Loading bool  `json:"loading"`
	Fleet   []Row `json:"fleet,omitempty"`
	// Database is nil where the one that is asked for is gone.
	Database *Database `json:"database,omitempty"`
	// Replication is what the primary says, ReplicationTrouble why it was not asked, or has not answered.
	Replication        *Replication `json:"replication,omitempty"`
	ReplicationTrouble *Trouble     `json:"replicationTrouble,omitempty"`
}

// stream sends views as they change, as server-sent events (WHATWG HTML, 9.2).
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	namespace, name := q.Get("namespace"), q.Get("name")
	w.Header().Set("Content-Type", "text/event-stream")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	lag := &lagWatch{changed: make(chan struct{}, 1)}
	if name != "" {
		go lag.run(ctx, s, namespace, name)
	}
	send := sender{w: w, flush: http.NewResponseController(w).Flush}
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for again := false; ; {
		next := s.feed.changed()
		if err := send.view(s.view(namespace, name, lag), again); err != nil {
			return // the browser has gone
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			again = true
			continue
		case <-lag.changed:
		case <-next:
		}
		again = false
		select {
		case <-ctx.Done():
			return
		case <-time.After(gather):
		}
	}
}

// view is what is to be shown now.
func (s *Server) view(namespace, name string, lag *lagWatch) View {
	v := View{At: metav1.Now(), Namespace: s.Namespace, Write: s.Write, Version: s.Version,
		Troubles: s.feed.troubles(), Loading: !s.feed.known(resourceDatabases)}
	if name == "" {
		v.Fleet = Fleet(s.feed.databases())
		return v
	}
	if db, seen := s.feed.database(namespace, name); db != nil {
		one := DatabaseOf(db, seen)
		v.Database = &one
		v.Replication, v.ReplicationTrouble = lag.get()
	}
	return v
}

// sender sends a view where it is another than the last.
type sender struct {
	w     http.ResponseWriter
	flush func() error
	last  []byte
}

func (s *sender) view(v View, again bool) error {
	at := v.At
	v.At = metav1.Time{}
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the view: %w", err)
	}
	if !again && bytes.Equal(content, s.last) {
		return nil
	}
	s.last = content
	v.At = at
	if content, err = json.Marshal(v); err != nil {
		return fmt.Errorf("write the view: %w", err)
	}
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", content); err != nil {
		return err //nolint:wrapcheck // nobody is told
	}
	return s.flush()
}

// lagWatch asks a primary again and again, while somebody looks.
type lagWatch struct {
	mu      sync.Mutex
	last    *Replication
	trouble *Trouble
	changed chan struct{}
}

func (l *lagWatch) run(ctx context.Context, s *Server, namespace, name string) {
	for ctx.Err() == nil {
		limit, cancel := context.WithTimeout(ctx, lagPatience)
		out, err := s.Verbs.Replication(limit, namespace, name)
		cancel()
		l.set(out, err)
		select {
		case <-ctx.Done():
		case <-time.After(lagPause):
		}
	}
}

func (l *lagWatch) set(out Replication, err error) {
	l.mu.Lock()
	l.last, l.trouble = &out, nil
	if err != nil {
		trouble := troubleOf(err, "create pods/exec")
		l.last, l.trouble = nil, &trouble
	}
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *lagWatch) get() (*Replication, *Trouble) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last, l.trouble
}
