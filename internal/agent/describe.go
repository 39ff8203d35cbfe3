package agent

import (
	"time"

	"toban.dev/internal/agent/running"
	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/protocol"
)

// staleLimit is how long a standby may fail to stream from a primary before it is no place to read from.
const staleLimit = 10 * time.Second

// describer says in the status what the machine knows.
type describer struct {
	status *status.Board
	flags  *running.Flags
	// slack is how much longer than usual what comes from this machine is waited for.
	slack func() time.Duration
	// cancelled is how many commits were cancelled while they waited.
	cancelled func() int64
	refused   string // the last wish that could not be met
}

// describe puts what the machine knows into the status.
func (d *describer) describe(m *machine.Instance) {
	v, decision, hardState, peer := m.View(), m.Decision(), m.HardState(), m.Peer()
	d.flags.Stale.Store(max(v.Local.Stalled, v.Local.Unwritten) > staleLimit)
	d.status.Hear(v.Local.Silence)
	refused, slack := m.WishRefused(), d.slack()
	d.status.Change(func(s *protocol.Status) {
		s.Term, s.Leader, s.Data = hardState.Ballot.Term, hardState.Ballot.Leader, protocol.Data(v.Local.Data)
		s.Refusal, s.Resigned, s.InVain, s.Slack = decision.Refusal, peer.Resigned, m.InVain(), &slack
		s.Voters, s.Acknowledgements = nil, hardState.Configuration.Now.Acknowledgements
		for _, v := range hardState.Configuration.Now.Voters {
			s.Voters = append(s.Voters, v.Instance())
		}
		s.Election = protocol.Election{
			Voter: hardState.Voter, Leading: peer.Leading, Defeated: peer.Defeated, TermHistory: hardState.TermHistory,
			Underway: peer.Underway, Position: peer.Position, Configuration: hardState.Configuration,
			LeaderLost: peer.LeaderLost, Unreplayed: peer.Unreplayed, Replaying: peer.Replaying,
			Eligible: peer.Eligible, Rebuilding: peer.Rebuilding, Successor: peer.Successor,
			Stalls: peer.Stalls, Began: m.Began(), Forgotten: m.Forgotten(), Limits: m.LimitsSaid(),
			CancelledCommits: d.cancelled(),
		}
		if refused != d.refused {
			s.SwitchoverError, d.refused = refused, refused
		}
		describeDecision(s, decision, m.Trouble())
		describeVolume(s, v.Local)
	})
}

// describeDecision says what was decided, or why that can't be done.
func describeDecision(s *protocol.Status, d ha.Decision, trouble string) {
	switch runs := d.Action == ha.Lead || d.Action == ha.Follow; {
	case trouble != "":
		s.Ready, s.Reason, s.Message = false, "Failed", trouble
	case (s.Reason == running.ReasonNotAnswering || s.Reason == running.ReasonRefuses) && runs:
	case s.Reason == running.ReasonNotStreaming && d.Reason == "Follower" && !s.Streaming:
	default:
		s.Reason, s.Message = d.Reason, d.Message
	}
}

// reasonVolumeStalls is that of an instance whose volume takes no writes.
const reasonVolumeStalls = "VolumeStalls"

// describeVolume says that the volume stalls, where that is not the reason for what was decided anyway.
func describeVolume(s *protocol.Status, l ha.Local) {
	if stalling := l.Stalling(); stalling != "" && s.Reason != "ServerFailed" {
		s.Reason, s.Message = reasonVolumeStalls, stalling+": look at its disk, or at the storage that it is of"
	}
}

// reportCertificate says which certificate clients are shown. The authorities are left to whom the operator asks: they
// are too long for what instances tell each other many times a second.
func (a *Agent) reportCertificate(said protocol.CertificateStatus) {
	authorities := said.Authorities
	a.authorities.Store(&authorities)
	said.Authorities = ""
	a.status.Change(func(s *protocol.Status) { s.Certificate = &said })
}

// withAuthorities adds them to a status for the operator.
func (a *Agent) withAuthorities(s protocol.Status) protocol.Status {
	if said := a.authorities.Load(); said != nil && s.Certificate != nil {
		full := *s.Certificate
		full.Authorities = *said
		s.Certificate = &full
	}
	return s
}

// forOperator adds to a status what only the operator wants to know.
func (a *Agent) forOperator(s protocol.Status) protocol.Status {
	s = a.withAuthorities(s)
	s.Idle = a.idle.Lasts(time.Now())
	return s
}
