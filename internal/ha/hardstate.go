package ha

import (
	"fmt"
	"slices"

	"toban.dev/internal/wal"
)

// Ballot is the highest term that an instance has heard of, with the one that
// leads in it or was given the instance's vote for it. Terms only grow.
type Ballot struct {
	Term   uint64 `json:"term"`
	Leader string `json:"leader"`
}

// TermStart is where the WAL of a term begins. The list of them is an instance's
// term history: it says which leader wrote which part of its WAL. Numbers of
// timelines can't say that, since two leaders who did not know of each other may have
// chosen the same.
type TermStart struct {
	Term     uint64       `json:"term"`
	LSN      wal.LSN      `json:"lsn"`
	Timeline wal.Timeline `json:"timeline"`
}

// RestoreTerms is by how many terms a restore in place goes ahead of the latest that its instance and the archive know
// of: no election since may have used them. A term history that leaves out more than so many was restored there.
const RestoreTerms = 1000

// HardState is what an instance keeps on its volume beside the data, so that it
// outlives the process and the data directory.
type HardState struct {
	// Voter is who the instance is in votes, for as long as this hard state lasts.
	Voter  Voter  `json:"voter"`
	Ballot Ballot `json:"ballot"`
	// Won is the highest term that this instance has been elected for.
	Won           uint64        `json:"won,omitempty"`
	Configuration Configuration `json:"record"`
	TermHistory   []TermStart   `json:"lineage,omitempty"`
	// ReadLease is, in the witness's hard state alone, the term of a leader that has lost its majority and has the
	// read lease (GrantReadLease).
	ReadLease uint64 `json:"holding,omitempty"`
}

// Progress is how far a voter has come: the highest term that it has heard of, and the newest configuration of the
// quorum that it has. It never goes back.
type Progress struct {
	Voter                Voter  `json:"voter"`
	Term                 uint64 `json:"term"`
	ConfigurationTerm    uint64 `json:"configurationTerm"`
	ConfigurationVersion uint64 `json:"configurationVersion"`
}

// Progress is how far the voter has come whose hard state it is.
func (m HardState) Progress() Progress {
	return Progress{m.Voter, m.Ballot.Term, m.Configuration.Term, m.Configuration.Version}
}

// Behind says that a voter has not come as far as o in something.
func (p Progress) Behind(o Progress) bool {
	return p.Term < o.Term ||
		p.ConfigurationTerm < o.ConfigurationTerm ||
		p.ConfigurationTerm == o.ConfigurationTerm && p.ConfigurationVersion < o.ConfigurationVersion
}

// Position is how far an instance's WAL goes: the term in which its end was
// written, then the LSN.
type Position struct {
	Term uint64  `json:"term"`
	LSN  wal.LSN `json:"lsn"`
}

// Before says whether o is further than p.
func (p Position) Before(o Position) bool {
	return p.Term < o.Term || p.Term == o.Term && p.LSN < o.LSN
}

func (p Position) String() string { return fmt.Sprintf("%s of term %d", p.LSN, p.Term) }

// Position is that of a WAL that ends at end, the end of its last whole record.
func (m HardState) Position(end wal.LSN) Position {
	p := Position{LSN: end}
	for _, s := range m.TermHistory {
		if s.LSN < end {
			p.Term = s.Term
		}
	}
	return p
}

// common is how many Starts two term histories have in common.
func common(a, b []TermStart) int {
	n := 0
	for n < len(a) && n < len(b) && a[n].Term == b[n].Term && a[n].LSN == b[n].LSN {
		n++
	}
	return n
}

// CanFollow says whether a WAL of this term history that ends at end is the beginning of
// the leader's, so that the leader's can simply be received after it.
func CanFollow(mine []TermStart, end wal.LSN, leaders []TermStart) bool {
	n := common(mine, leaders)
	if n == 0 && len(mine) > 0 {
		return false
	}
	return end <= parting(leaders[n:]) && end <= parting(mine[n:])
}

// Unpromoted says that a term history ends with a term whose timeline is not known: its leader was elected, and had not
// been promoted when that was told.
func Unpromoted(history []TermStart, term uint64) bool {
	if len(history) == 0 {
		return false
	}
	last := history[len(history)-1]
	return last.Term == term && last.Timeline == 0
}

// hasTerm says that a term is in the instance's term history.
func (m HardState) hasTerm(term uint64) bool {
	return slices.ContainsFunc(m.TermHistory, func(s TermStart) bool { return s.Term == term })
}

// HoldsUnnamed says that a WAL which ends at end has some of the last terms of this history, or may have some, while
// the timelines of those are not known: none of the timelines here may be taken for abandoned then. A term before one
// whose timeline is known does not count: that one has a higher number.
func HoldsUnnamed(history []TermStart, end wal.LSN, known bool) bool {
	n := len(history)
	for n > 0 && history[n-1].Timeline == 0 {
		n--
	}
	return n < len(history) && (!known || end > parting(history[n:]))
}

// parting is the first place where any of these terms begins. They need not be in
// order: who has taken over a leader's term history, and is elected before it received
// that leader's WAL, begins its own term before the one that it never had.
func parting(starts []TermStart) wal.LSN {
	first := wal.MaxLSN
	for _, s := range starts {
		first = min(first, s.LSN)
	}
	return first
}

// Rewindable says whether pg_rewind can tell two term histories apart. It goes by the
// numbers of the timelines, so none of the leader's that this WAL has no part in
// may be one of ours. One whose number is not known, because its promotion was cut
// short, may be any.
func Rewindable(mine, leaders []TermStart) bool {
	n := common(mine, leaders)
	if n == 0 || n == len(mine) && n == len(leaders) {
		return false
	}
	unknown := func(s TermStart) bool { return s.Timeline == 0 }
	if slices.ContainsFunc(mine[n:], unknown) || slices.ContainsFunc(leaders[n:], unknown) {
		return false
	}
	for _, a := range mine {
		for _, b := range leaders[n:] {
			if a.Timeline == b.Timeline {
				return false
			}
		}
	}
	return true
}

// StillStands says that a candidate may still win a term: it has promised no later one since it stood.
func StillStands(m HardState, term uint64) bool {
	return m.Ballot == Ballot{Term: term, Leader: m.Voter.Instance()}
}

// OnlyVoter is the hard state of an instance that is the only voter from a term on, in which nobody leads.
func OnlyVoter(m HardState, term uint64) HardState {
	m.Ballot, m.Won = Ballot{Term: term}, 0
	m.Configuration = onlyVoter(m.Voter, term)
	return m
}

func onlyVoter(v Voter, term uint64) Configuration {
	return Configuration{Term: term, Version: 1, Now: Quorum{Voters: []Voter{v}, Acknowledgements: 1}}
}

// LeadAlone is the hard state of the leader of a term who is its only voter.
func LeadAlone(m HardState, term uint64) HardState {
	m.Ballot, m.Won = Ballot{Term: term, Leader: m.Voter.Instance()}, term
	m.Configuration = onlyVoter(m.Voter, term)
	return m
}
