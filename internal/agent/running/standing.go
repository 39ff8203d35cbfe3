package running

import (
	"sync"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// Standing is what a running server is to be, and what the monitor saw of it last. Commands change the one, the monitor
// the other, and whoever looks gets both as they go together.
type Standing struct {
	mutex    sync.Mutex
	upstream ha.Ballot // whom a standby follows, zero for nobody
	followed time.Time // when a running standby was told so, zero for never
	primary  bool      // it is configured as primary
	promoted bool      // it takes writes, by the agent's own doing
	opened   bool      // it lets clients in: that of a leader that comes back waits for a majority's word
	least    map[string]int
	seen     Seen
}

// Seen is what the monitor saw last.
type Seen struct {
	streaming bool
	received  wal.LSN
	// End is the end of the WAL of a standby that follows nobody, once known.
	End   wal.LSN
	Known bool
	// Unreplayed is how many bytes of its WAL a standby has still to replay.
	Unreplayed uint64
	// standbys are the voters that stream from a primary, written how far its WAL goes, oldest
	// where its oldest WAL begins.
	standbys        []ha.Voter
	written, oldest wal.LSN
	// failure says why the server does not serve, empty while it does; hangs that it has not answered in time, and not
	// with an error.
	failure string
	hangs   bool
	// unelected says that it takes writes, though it is run as a standby.
	unelected bool
}

// Role is what the server is.
func (s *Standing) Role() ha.Server {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.promoted {
		return ha.ServerPrimary
	}
	return ha.ServerStandby
}

// following is whom a standby follows.
func (s *Standing) following() ha.Ballot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.upstream
}

// IsPrimary says that it is configured as primary.
func (s *Standing) IsPrimary() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.primary
}

// IsOpen says that it lets clients in.
func (s *Standing) IsOpen() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.opened
}

// lowerBounds are those of a standby's parameters. See postgres.Control.
func (s *Standing) lowerBounds() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.least
}

func (s *Standing) setLeast(least map[string]int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.least = least
}

// follow makes it one that follows another leader, or nobody. What was seen of streaming was about the one before.
func (s *Standing) follow(upstream ha.Ballot) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.upstream, s.followed = upstream, time.Now()
	s.seen.Known, s.seen.streaming = false, false
}

// beginsToFollow says that it was told within some time whom to follow, and when.
func (s *Standing) beginsToFollow(within time.Duration) (since time.Time, begins bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.followed, s.upstream.Leader != "" && time.Since(s.followed) < within
}

// bePrimary makes it one that is configured as primary, and follows nobody.
func (s *Standing) bePrimary() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary, s.upstream = true, ha.Ballot{}
}

// SetPromoted notes that the server has been told to take writes.
func (s *Standing) SetPromoted() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.promoted = true
}

// Hangs says that it was seen last not to answer in time.
func (s *Standing) Hangs() bool { return s.lastSeen().hangs }

// Open lets clients in.
func (s *Standing) Open() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.opened = true
}

// shut lets no client in.
func (s *Standing) shut() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.opened = false
}

func (s *Standing) lastSeen() Seen {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.seen
}

// See notes what was seen.
func (s *Standing) See(change func(*Seen)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.seen)
}
