package machine

import (
	"time"

	"toban.dev/internal/ha"
)

// Handover is what the process of an instance tells the program that takes it over (docs/agentupdate.md, "An agent is
// replaced in place"): how its server is, and what it has heard, with the time of that by the clock that both measure
// by. All else is forgotten. What the hard state says is not in it, but which one it goes with.
type Handover struct {
	Voter  ha.Voter  `json:"voter"`
	Ballot ha.Ballot `json:"ballot"`
	Won    uint64    `json:"won"`
	// IDs is the last id that was given to a command.
	IDs     uint64        `json:"ids"`
	Server  HandedServer  `json:"server"`
	Data    DataSeen      `json:"data"`
	Heard   []HandedNews  `json:"heard"`
	Forgot  []ha.Voter    `json:"forgotten,omitempty"`
	Witness HandedWitness `json:"witness"`
	// Serves is until when a primary may go on if it hears of nobody any more, 0 where that has no end.
	Serves time.Duration `json:"serves,omitempty"`
}

// HandedServer is how the server is that runs.
type HandedServer struct {
	Run       uint64       `json:"run"`
	Role      ha.Server    `json:"role"`
	Following ha.Ballot    `json:"following"`
	Begins    ha.TermStart `json:"begins"`
	Proven    bool         `json:"proven"`
	Rule      ha.Rule      `json:"rule"`
	Seen      ServerSeen   `json:"seen"`
}

// HandedNews is what another instance has said last. The times are those of heard.
type HandedNews struct {
	Status    PeerStatus    `json:"status"`
	Asked     time.Duration `json:"asked"`
	At        time.Duration `json:"at"`
	Counts    time.Duration `json:"counts"`
	Slack     time.Duration `json:"slack,omitempty"`
	Voted     time.Duration `json:"voted"`
	VotedTerm uint64        `json:"votedTerm,omitempty"`
	// Progress is how far it has ever been, said by the process Boot, at ProgressAt; Met is when that was heard of
	// first.
	Progress   ha.Progress   `json:"progress"`
	ProgressAt time.Duration `json:"progressAt"`
	Boot       string        `json:"boot,omitempty"`
	Met        time.Duration `json:"met"`
}

// HandedWitness is what was on record at the witness, when it was asked at a time.
type HandedWitness struct {
	Seen ha.HardState  `json:"seen"`
	At   time.Duration `json:"at"`
}

// leastServe is how much time a primary must have left until its fence: nearly all of ha.FenceLimit, as it has when a
// majority has just answered.
const leastServe = 1100 * time.Millisecond

// HandOver is what is to be handed over at a time. If the moment is not good for that, busy says why.
func (i *Instance) HandOver(now time.Duration) (h Handover, busy string) {
	i.now = now
	if busy = i.busy(); busy != "" {
		return h, busy
	}
	s := i.server
	h = Handover{
		Voter: i.hardState.Voter, Ballot: i.hardState.Ballot, Won: i.hardState.Won, IDs: i.ids, Data: i.watch.data,
		Server: HandedServer{
			Run: s.run, Role: s.role, Following: s.following, Begins: s.begins, Proven: s.proven, Rule: i.rule(),
			Seen: s.seen,
		},
		Forgot: i.Forgotten(), Witness: HandedWitness{i.witness.seen, i.witness.at},
	}
	for _, n := range i.news.heard {
		if n.at != never {
			h.Heard = append(h.Heard, n.handOver())
		}
	}
	if s.role == ha.ServerPrimary && !i.alone() {
		h.Serves = i.servesUntil()
	}
	return h, ""
}

func (h *heard) handOver() HandedNews {
	return HandedNews{
		Status: h.said, Asked: h.asked, At: h.at, Counts: h.counts, Slack: h.slack, Voted: h.voted,
		VotedTerm: h.votedTerm,
		Progress:  h.progress.Progress, ProgressAt: h.progress.at, Boot: h.progress.boot, Met: h.progress.met,
	}
}

// busy says what the instance is at that the next program could not go on with, "" for nothing.
func (i *Instance) busy() string {
	if i.server.role == ha.ServerStopped || i.server.run == 0 {
		return "no server runs"
	}
	if at := i.busyWith(); at != "" {
		return at
	}
	switch s := i.server; {
	case i.watch.unwritten > 0 && i.watch.unwritten >= ha.SlowLimit/2:
		return "the volume is slow"
	case !s.seen.Answers || s.seen.Failure != "":
		return "the server does not answer"
	case s.role == ha.ServerPrimary:
		return i.busyLeader()
	case s.following != i.hardState.Ballot || !s.seen.Streaming:
		return "the server does not stream"
	}
	return ""
}

// busyWith is what the instance itself is doing or is to do that has to end before, "" for nothing.
func (i *Instance) busyWith() string {
	switch {
	case !i.free() || i.storing != nil || len(i.waiting) > 0 || i.server.stopping:
		return "something is being done with the server or the hard state"
	case i.campaign != nil || i.preemption != nil || i.comeback != nil || len(i.votes) > 0:
		return "an election is under way"
	case i.wish.Resign || i.wish.restartServer:
		return "the instance is to resign, to stop, or to restart its server"
	case i.last.Action != ha.Lead && i.last.Action != ha.Follow || i.trouble.err != "" || i.watch.unelected:
		return "the instance neither leads nor follows: " + i.last.Reason
	}
	return ""
}

// busyLeader is busy for a primary.
func (i *Instance) busyLeader() string {
	s := i.server
	switch {
	case !i.Leads() || !s.confirmed || !s.open:
		return "the instance is about to lead"
	case i.quorum.tighter != nil || s.demanded != 0 || i.hardState.Configuration.Next != nil:
		return "the quorum is being changed"
	case i.witness.wanted || i.witness.releases > 0:
		return "the majority is in doubt"
	case !i.alone() && i.servesUntil()-i.now < leastServe:
		return "no majority has answered for a moment"
	}
	return ""
}

// alone says that the instance is the only voter.
func (i *Instance) alone() bool {
	return i.hardState.Configuration.Elects(map[ha.Voter]bool{i.hardState.Voter: true}, false)
}

// Fits says that a handover goes with a hard state.
func (h *Handover) Fits(m ha.HardState) bool {
	return h.Voter == m.Voter && h.Ballot == m.Ballot && h.Won == m.Won && h.Server.Run != 0 &&
		(h.Server.Role == ha.ServerStandby && h.Server.Following == m.Ballot ||
			h.Server.Role == ha.ServerPrimary && leads(m, m.Voter.Instance()))
}

// takeOver begins with what was handed over. What was heard is as old as it is.
func (i *Instance) takeOver(h *Handover) {
	primary := h.Server.Role == ha.ServerPrimary
	i.ids, i.watch.data = h.IDs, h.Data
	i.server = server{
		run: h.Server.Run, role: h.Server.Role, following: h.Server.Following, confirmed: primary,
		proven: h.Server.Proven, open: true, begins: h.Server.Begins, seen: h.Server.Seen, rule: h.Server.Rule,
	}
	for _, n := range h.Heard {
		i.news.heard[n.Status.Name] = &heard{
			said: n.Status, asked: n.Asked, at: n.At, counts: n.Counts, slack: n.Slack, voted: n.Voted,
			votedTerm: n.VotedTerm,
			refused:   never,
			progress:  progress{Progress: n.Progress, at: n.ProgressAt, boot: n.Boot, met: n.Met},
		}
		i.news.present[n.Status.Name] = n.Status.Peer
	}
	for _, v := range h.Forgot {
		i.news.forgotten[v] = true
	}
	i.witness.seen, i.witness.at = h.Witness.Seen, h.Witness.At
}
