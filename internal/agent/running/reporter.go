package running

import (
	"sync/atomic"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// reporter tells the machine how a running server is.
type reporter struct {
	run      uint64 // the command that started the server
	standing *Standing
	status   *status.Board
	full     *atomic.Bool // the volume has no room for WAL
	post     func(machine.Event)
}

// report tells what was seen last.
func (r *reporter) report(answers bool) {
	following, seen := r.standing.following(), r.standing.lastSeen()
	r.post(machine.ServerSeen{
		Run: r.run, Following: following.Term, Answers: answers, Streaming: seen.streaming, Received: seen.received,
		End: seen.End, Known: seen.Known, Unreplayed: seen.Unreplayed, Standbys: seen.standbys, Written: seen.written,
		Oldest: seen.oldest, Failure: seen.failure, Unelected: seen.unelected, Full: r.full.Load(),
	})
}

// unelected tells of a server that was promoted, though it is run as a standby: the machine ends it.
func (r *reporter) unelected() {
	r.standing.See(func(s *Seen) { s.unelected = true })
	r.status.Change(func(s *protocol.Status) { s.Ready, s.Streaming = false, false })
	r.report(true)
}
