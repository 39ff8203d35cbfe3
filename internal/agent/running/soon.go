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

// streamPatience is for how long a standby that has been told to follow another leader is helped to stream, and
// streamInterval how soon it is looked at again meanwhile.
const (
	streamPatience = 2 * time.Second
	streamInterval = 25 * time.Millisecond
)

// awaitStream has a standby that has just been told whom to follow ask for WAL at once, and looks again soon.
// PostgreSQL ends the stream of the timeline that it had with the new leader first, and asks for the next one only
// after wal_retrieve_retry_interval; until then it acknowledges nothing, and commits wait for it.
func (t *monitor) awaitStream(ctx context.Context, streams bool) {
	if streams || !t.standing.beginsToFollow(streamPatience) {
		return
	}
	_ = t.session.WakeIdle(ctx) // refused where it is promoted meanwhile
	t.poke.observe()
	pause.For(ctx, streamInterval)
}
