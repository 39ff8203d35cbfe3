package agent

import (
	"sync"

	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// standing is what a running server is to be, and what the monitor saw of it last. Commands change the one, the monitor
// the other, and whoever looks gets both as they go together.
type standing struct {
	mutex    sync.Mutex
	upstream ha.Ballot // whom a standby follows, zero for nobody
	primary  bool      // it is configured as primary
	promoted bool      // it takes writes, by the agent's own doing
	opened   bool      // it lets clients in: that of a leader that comes back waits for a majority's word
	least    map[string]int
	seen     seen
}

// seen is what the monitor saw last.
type seen struct {
	streaming bool
	received  wal.LSN
	// end is the end of the WAL of a standby that follows nobody, once known.
	end   wal.LSN
	known bool
	// unreplayed is how many bytes of its WAL a standby has still to replay.
	unreplayed uint64
	// standbys are the voters that stream from a primary, written how far its WAL goes, oldest
	// where its oldest WAL begins.
	standbys        []ha.Voter
	written, oldest wal.LSN
	// failure says why the server does not serve, empty while it does.
	failure string
	// unelected says that it takes writes, though it is run as a standby.
	unelected bool
}

// role is what the server is.
func (s *standing) role() ha.Server {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.promoted {
		return ha.ServerPrimary
	}
	return ha.ServerStandby
}

// following is whom a standby follows.
func (s *standing) following() ha.Ballot {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.upstream
}

func (s *standing) isPrimary() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.primary
}

func (s *standing) isOpen() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.opened
}

// lowerBounds are those of a standby's parameters. See postgres.Control.
func (s *standing) lowerBounds() map[string]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.least
}

func (s *standing) setLeast(least map[string]int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.least = least
}

// follow makes it one that follows another leader, or nobody. What was seen of streaming was about the one before.
func (s *standing) follow(upstream ha.Ballot) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.upstream = upstream
	s.seen.known, s.seen.streaming = false, false
}

// bePrimary makes it one that is configured as primary, and follows nobody.
func (s *standing) bePrimary() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.primary, s.upstream = true, ha.Ballot{}
}

// setPromoted notes that the server has been told to take writes.
func (s *standing) setPromoted() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.promoted = true
}

// open lets clients in.
func (s *standing) open() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.opened = true
}

// shut lets no client in.
func (s *standing) shut() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.opened = false
}

func (s *standing) lastSeen() seen {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.seen
}

func (s *standing) see(change func(*seen)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	change(&s.seen)
}
