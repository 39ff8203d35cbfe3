package peers

import (
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
)

// said is what the machine hears of a status.
func said(s protocol.Status) machine.PeerStatus {
	return machine.PeerStatus{
		Name: s.Name, Boot: s.Boot, Number: s.Number, Peer: asPeer(s), Configuration: s.Election.Configuration,
		Began: s.Election.Began, Forgotten: s.Election.Forgotten, Limits: s.Election.Limits,
		Silence: s.Election.Silence,
	}
}

func asPeer(s protocol.Status) ha.Peer {
	e := s.Election
	peer := ha.Peer{
		Voter:            e.Voter,
		Data:             ha.Data(s.Data),
		SystemIdentifier: s.SystemIdentifier,
		Ballot:           ha.Ballot{Term: s.Term, Leader: s.Leader},
		Leading:          e.Leading,
		Underway:         e.Underway,
		Resigned:         s.Resigned,
		Defeated:         e.Defeated,
		Successor:        e.Successor,
		TermHistory:      e.TermHistory,
		Position:         e.Position,
		Unreplayed:       e.Unreplayed,
		Replaying:        e.Replaying,
		Streaming:        s.Streaming,
		LeaderLost:       e.LeaderLost,
		Eligible:         e.Eligible,
		Rebuilding:       e.Rebuilding,
		Stalls:           e.Stalls,
	}
	if lsn, err := wal.ParseLSN(s.Oldest); err == nil {
		peer.Oldest = lsn
	}
	if lsn, err := wal.ParseLSN(s.LSN); err == nil && e.Leading {
		peer.Written = lsn
	}
	return peer
}
