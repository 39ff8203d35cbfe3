package machine

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"toban.dev/internal/ha"
)

// progress is how far a voter has come, by its own word. What lies on its volume never goes back (invariant 3), so one
// that has gone back has been given an older state of its volume: it has forgotten what it promised since.
type progress struct {
	ha.Progress
	// at is when it was heard to have come so far, or never.
	at time.Duration
	// boot is the process that has said so, "" where that is not known, met when it was heard of first.
	boot string
	met  time.Duration
}

// goesBack takes in what a voter says, and whether it has gone back: by an answer to a question that was asked after it
// was heard to have come further. Any other word may be an old one that was on its way.
func (p *progress) goesBack(s PeerStatus, asked, now time.Duration) bool {
	says := ha.HardState{Voter: s.Peer.Voter, Ballot: s.Peer.Ballot, Configuration: s.Configuration}.Progress()
	if says.Voter == "" {
		return false // its agent has just started, and does not know yet
	}
	if p.Voter != says.Voter {
		*p = progress{Progress: ha.Progress{Voter: says.Voter}, at: never, boot: s.Boot, met: now}
	}
	switch {
	case says.Behind(p.Progress):
		return asked > p.at
	case p.beganBehind(s):
		return asked > p.met
	case p.boot != s.Boot:
		p.boot, p.met = s.Boot, now
	}
	if p.Behind(says) {
		p.Progress, p.at = says, now
	}
	return false
}

// beganBehind says that the voter's process began with less than one before it has said. It has mostly learned from
// others what has happened since, before it is asked.
func (p *progress) beganBehind(s PeerStatus) bool {
	return s.Began.Voter == p.Voter && p.boot != "" && p.boot != s.Boot && s.Began.Behind(p.Progress)
}

// promised notes the term that a voter has in answer to a question for its vote.
func (p *progress) promised(v ha.Voter, term uint64, now time.Duration) {
	if p.Voter == v && term > p.Term {
		p.Term, p.boot, p.at = term, "", now
	}
}

// watchProgress notes a voter that has forgotten what it promised, and takes over what others have noted.
func (i *Instance) watchProgress(s PeerStatus, asked time.Duration) {
	if slices.Contains(i.Peers(), s.Name) && i.news.entry(s.Name).progress.goesBack(s, asked, i.now) {
		i.forgets(s.Peer.Voter)
	}
	for _, v := range s.Forgotten {
		if v == i.hardState.Voter || slices.Contains(i.hardState.Configuration.Voters(), v) {
			i.forgets(v)
		}
	}
}

// forgets notes that a voter has forgotten what it promised. That is so for good: the instance
// comes back as another voter.
func (i *Instance) forgets(v ha.Voter) {
	if v == "" || i.news.forgotten[v] {
		return
	}
	i.news.forgotten[v] = true
	i.log("a voter has forgotten what it promised: its volume has gone back in time", "voter", string(v))
	i.broadcast()
}

// Forgotten are the voters that have forgotten what they promised, as long as somebody might count on them.
func (i *Instance) Forgotten() []ha.Voter {
	counted := i.hardState.Configuration.Voters()
	for _, name := range i.Peers() {
		if h := i.news.peer(name); h != nil {
			counted = append(counted, h.said.Peer.Voter)
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(i.news.forgotten)),
		func(v ha.Voter) bool { return !slices.Contains(counted, v) })
}

// beginAnew makes the instance another voter, when this one has forgotten what it promised: it has no say until it is
// on record, as one that has lost its volume. Who alone has a vote has promised nobody anything.
func (i *Instance) beginAnew() bool {
	m := i.hardState
	if !i.news.forgotten[m.Voter] || m.Configuration.Elects(map[ha.Voter]bool{m.Voter: true}, false) {
		return false
	}
	i.fenceServer("it has forgotten what it promised")
	m.Voter, m.Won = ha.NewVoter(i.name, fmt.Sprintf("%08x", i.random.Uint32())), 0
	i.log("comes back as another voter", "before", string(i.hardState.Voter), "now", string(m.Voter))
	i.store(m, nil)
	return true
}
