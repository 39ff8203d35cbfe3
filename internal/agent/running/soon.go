package running

import (
	"context"
	"time"

	"toban.dev/internal/pause"
)

// endInterval is how soon the end of the WAL is asked for again while it is not known: less and less often.
const endInterval = 20 * time.Millisecond

// awaitEnd has the end of the WAL asked for again soon while it is not known, or not replayed.
func (t *monitor) awaitEnd(ctx context.Context, known bool) {
	if known {
		t.end.pauses = pause.Growing{Least: endInterval, Most: standbyLook}
		return
	}
	t.poke.observe()
	t.end.pauses.For(ctx)
}

// streamPatience is for how long a standby that has been told to follow another leader is helped to stream. It is
// looked at again after streamInterval, and then less and less often, up to slowStreamInterval.
const (
	streamPatience     = 2 * time.Second
	streamInterval     = 25 * time.Millisecond
	slowStreamInterval = 100 * time.Millisecond
)

// beginning is how a standby begins to stream that has just been told whom to follow.
type beginning struct {
	// since is when it was told so, streams that it was seen to stream since.
	since   time.Time
	streams bool
	pauses  pause.Growing
}

// awaitStream has a standby that has just been told whom to follow ask for WAL at once, and looks again soon.
// PostgreSQL ends the stream of the timeline that it had with the new leader first, and asks for the next one only
// after wal_retrieve_retry_interval; until then it acknowledges nothing, and commits wait for it. A receiver that has
// just connected passes for one that streams, also for the timeline that is about to end: so two looks must see it.
func (t *monitor) awaitStream(ctx context.Context, streams bool) {
	since, begins := t.standing.beginsToFollow(streamPatience)
	b := &t.beginning
	twice := streams && b.streams
	if b.streams = streams; b.since != since { // it may have been asked before it was told
		*b = beginning{since: since, pauses: pause.Growing{Least: streamInterval, Most: slowStreamInterval}}
		twice = false
	}
	if twice || !begins {
		return
	}
	if !streams {
		_ = t.session.WakeIdle(ctx) // refused where it is promoted meanwhile
	}
	t.poke.observe()
	b.pauses.For(ctx)
}
