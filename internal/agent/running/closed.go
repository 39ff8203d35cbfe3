package running

import (
	"context"
	"fmt"
	"time"

	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

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
