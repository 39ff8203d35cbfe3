package machine

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// copier is db-1, which has lost its way to the leader of term 4 and copies its data anew since a
// moment. Its WAL ends at 100.
func copier(t *testing.T) (r *rig, copies Command) {
	t.Helper()
	r = standby(t)
	r.holds = func(e Effect) bool { c, is := e.(Command); return is && c.Kind == Clone }
	r.other("db-0.a", func(p *ha.Peer) { p.Oldest = 500 }) // the WAL that follows is gone
	r.step(ServerSeen{Run: r.server.run, Following: 4, Answers: true, Received: 100})
	for _, c := range wants[Command](r) {
		if c.Kind == Clone {
			copies = c
		}
	}
	if copies.ID == 0 || r.watch.end != 100 {
		t.Fatalf("it does not copy: %s", r.Instance)
	}
	r.now += 100 * time.Millisecond
	return r, copies
}

func TestDataIsGivenUpOnWhatOthersHaveSaidSinceTheCopyBegan(t *testing.T) {
	t.Parallel()
	leads := func(r *rig) { r.other("db-0.a", func(p *ha.Peer) { p.Written = 0x70 }) }
	has := func(end wal.LSN) func(r *rig) {
		return func(r *rig) { r.other("db-2.c", func(p *ha.Peer) { p.Position.LSN = end }) }
	}
	for name, c := range map[string]struct {
		said    []func(*rig)
		refusal string
	}{
		"both have answered since":       {[]func(*rig){leads, has(100)}, ""},
		"the other has answered before":  {[]func(*rig){leads}, "db-2 does not answer"},
		"the leader has answered before": {[]func(*rig){has(100)}, "not known who leads"},
		"it has more WAL than the other": {[]func(*rig){leads, has(99)}, "must have it up to 0/64"},
		"another leads a later term by now": {[]func(*rig){leads, has(100), func(r *rig) {
			r.other("db-2.c", func(p *ha.Peer) { p.Ballot, p.Leading = ha.Ballot{Term: 9, Leader: "db-2"}, true })
		}}, "an earlier term"},
		"how far its WAL goes is not known, and the other has less than the leader": {
			[]func(*rig){leads, has(0x6f), func(r *rig) {
				r.watch.known, r.watch.end = false, 0
			}}, "must have it up to 0/70",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, copies := copier(t)
			for _, say := range c.said {
				say(r)
			}
			r.step(DiscardAsked{ID: copies.ID})
			replies := wants[ReplyDiscard](r)
			if len(replies) != 1 {
				t.Fatalf("the answers are %+v", replies)
			}
			if needed := replies[0].Needed; (needed == "") != (c.refusal == "") ||
				!strings.Contains(needed, c.refusal) {
				t.Errorf("got %q, expected %q", needed, c.refusal)
			}
			if empty := r.Peer().Data == ha.DataEmpty; empty != (c.refusal == "") {
				t.Errorf("the others are told that there is no data: %v", empty)
			}
		})
	}
}
