package ha

// GrantReadLease is the witness's hard state when the leader of a term has lost its majority and goes on for
// those who read, for as long as it sees there that nobody has been elected over it. It is refused (false)
// where a later term is in it.
func GrantReadLease(m HardState, term uint64) (HardState, bool) {
	if m.Ballot.Term > term {
		return m, false
	}
	m.ReadLease = max(m.ReadLease, term)
	return m, true
}

// ReleaseReadLease is the witness's hard state without the read lease of a term: its leader has its
// majority again, or has stopped.
func ReleaseReadLease(m HardState, term uint64) HardState {
	if m.ReadLease == term {
		m.ReadLease = 0
	}
	return m
}

// ReadLeaseBefore says whether a leader of an earlier term has the read lease.
func (m HardState) ReadLeaseBefore(term uint64) bool { return m.ReadLease > 0 && m.ReadLease < term }

// Preempt is the witness's hard state when the winner of a term is about to lead, and whether the winner has to wait
// because a leader of an earlier term has the read lease: until that one has stopped and has given it back, or for
// PreemptWait from when the later term is in the Lease. It is in it also where nobody has the read lease: a leader of
// an earlier term could take it afterwards, and have it for as long as the winner's promotion takes, and longer. Who is
// alone takes the read lease where no other has it. The word that another has it stays, so that a winner that is
// interrupted and asks again still waits. It is refused (false) where a later term is in it.
func Preempt(m HardState, won Ballot, alone bool) (next HardState, wait, ok bool) {
	if m.Ballot.Term > won.Term {
		return m, false, false
	}
	wait = m.ReadLeaseBefore(won.Term)
	m.Ballot = won
	if alone && !wait {
		m.ReadLease = won.Term
	}
	return m, wait, true
}

// MayServe says that a leader may be a primary: a majority of the instances knows of no later term, or it has the read
// lease. The witness's vote, where it has one, is as good as being on record there, for as long as that is believed.
func (l Local) MayServe() bool {
	return l.Alone <= l.limits().Fence || l.HasReadLease || l.Unconfirmed <= l.limits().ReadLease
}

// LeaderEnded says that the server of the leader which is lost has surely ended, by that one's own word or because its
// agent has. It speaks only of one that has been seen to lead: one that was elected and never led may have been
// waiting for another to end. And not where a leader may come back by the witness's word alone, without this
// instance's hearing of it.
func (v View) LeaderEnded() bool {
	return v.following() && !v.Local.HardState.Configuration.Witnesses(v.Witness) &&
		(v.leaderResigned() || v.Local.Refused > RefusedLimit && !v.Local.Streaming)
}
