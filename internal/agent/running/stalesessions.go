package running

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// staleAfter are the times after which clients of a former primary are ended, counted from the moment at which its Pod
// bore another label: the nodes need one or two seconds to lead no more of them here, and some nodes longer.
var staleAfter = []time.Duration{2 * time.Second, 8 * time.Second}

// staleDeadline is for ending them once.
const staleDeadline = 3 * time.Second

// StaleSessions ends the clients that have come to a former primary since it is a standby. The Service led to it as to
// the primary until its label was another. Such a session could only read, and one of a pool would stay for ever.
// Clients that want a standby open another session.
type StaleSessions struct {
	Connect func(ctx context.Context) (Session, error)
	Log     *slog.Logger
}

// EndLater ends them in a while, and again.
func (m StaleSessions) EndLater(ctx context.Context) {
	deposed := time.Now()
	for _, after := range staleAfter {
		if !pause.For(ctx, time.Until(deposed.Add(after))) {
			return
		}
		switch ended, err := m.end(ctx); {
		case err != nil:
			m.Log.Warn("clients that look for the primary could not be ended", "error", err.Error())
		case ended > 0:
			m.Log.Info("clients of a former primary were ended: they find the present one", "sessions", ended)
		}
	}
}

func (m StaleSessions) end(ctx context.Context) (ended int, err error) {
	ctx, cancel := context.WithTimeout(ctx, staleDeadline)
	defer cancel()
	session, err := m.Connect(ctx)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	return session.EndMisled(ctx)
}

// endClients ends what clients there are, where none is to be let in any more.
func (t *monitor) endClients(ctx context.Context) error {
	since, closed := t.config.closed()
	if closed = closed && t.wanted().Closed; closed {
		ended, err := endAll(ctx, t.process, t.session, since)
		if err != nil {
			return err
		}
		closed = ended == 0 // those that were told to end are seen again until they have
	}
	end, err := t.endOfCommits(ctx, closed)
	if err != nil {
		return err
	}
	t.status.Change(func(s *protocol.Status) { s.Closed, s.End = closed, end })
	return nil
}

// endAll ends the clients of a server that lets none in since then, and says how many there were. Who was logging in at
// that time is ended too: he would get in later. They come first, because who gets in meanwhile is a client then.
func endAll(ctx context.Context, process Process, session Session, since time.Time) (n int, err error) {
	logins, err := process.EndLogins(time.Since(since), func(pids []int) ([]int, error) {
		return session.NotIn(ctx, pids)
	})
	if err != nil {
		return 0, err
	}
	clients, err := session.EndClients(ctx)
	return logins + clients, err
}

// endOfCommits is where a primary's WAL ended when its last client had gone, "" where there are clients. It is asked
// for after that: what the server was asked for before them may lack the last commit. While the primary follows another
// side, it is asked for again and again, for there are commits without a client.
func (t *monitor) endOfCommits(ctx context.Context, closed bool) (string, error) {
	if !closed || !t.standing.IsPrimary() {
		return "", nil
	}
	follows, err := t.session.Follows(ctx)
	if err != nil {
		return "", err
	}
	if known := t.status.Get().End; known != "" && !follows {
		return known, nil
	}
	end, err := t.session.InsertedWAL(ctx)
	if err != nil {
		return "", err
	}
	return end.String(), nil
}

// Shut lets no client in any more, and ends those who are there.
func (r *Server) Shut(ctx context.Context, session Session) error {
	before, err := session.LoadTime(ctx)
	if err != nil {
		return err
	}
	r.Standing.shut()
	if err := r.Config.Rewrite(); err != nil {
		return err
	}
	if err := awaitReload(ctx, session, before); err != nil {
		return err
	}
	for since := time.Now(); ; {
		ended, err := endAll(ctx, r.Process, session, since)
		if err != nil || ended == 0 {
			return err
		}
		if !pause.For(ctx, endInterval) {
			return fmt.Errorf("end the clients' sessions: %w", ctx.Err())
		}
	}
}
