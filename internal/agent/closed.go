package agent

import (
	"context"

	"toban.dev/internal/protocol"
)

// endClients ends what clients there are, where none is to be let in any more.
func (t *monitor) endClients(ctx context.Context) error {
	closed := t.wanted().Closed && t.config.closed()
	if closed {
		ended, err := t.session.EndClients(ctx)
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

// endOfCommits is where a primary's WAL ended when its last client had gone, "" where there are clients. It is asked
// for after that: what the server was asked for before them may lack the last commit. While the primary follows another
// side, it is asked for again and again, for there are commits without a client.
func (t *monitor) endOfCommits(ctx context.Context, closed bool) (string, error) {
	if !closed || !t.standing.isPrimary() {
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
