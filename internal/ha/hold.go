package ha

// Hold is the witness's memory with the leader of a term in it that has lost its majority and goes on nevertheless, for as long as it
// sees there that nobody has been elected over it. It is refused (false) where a later term is on record.
func Hold(m Memory, term uint64) (Memory, bool) {
	if m.Ballot.Term > term {
		return m, false
	}
	m.Holding = max(m.Holding, term)
	return m, true
}

// Release is the witness's memory without the leader of a term that held on: it has its majority again, or has stopped.
func Release(m Memory, term uint64) Memory {
	if m.Holding == term {
		m.Holding = 0
	}
	return m
}

// HeldBefore says whether the witness has a leader of an earlier term on record that holds on.
func (m Memory) HeldBefore(term uint64) bool { return m.Holding > 0 && m.Holding < term }

// Overtake is the witness's memory when the winner of a term is about to lead, and whether it has to wait because a leader of an earlier
// term holds on: until that one has stopped and is released, or for OvertakeWait from when that memory is on record. Who is alone holds
// on from the first. It is refused (false) where a later term is on record.
func Overtake(m Memory, won Ballot, alone bool) (next Memory, wait, ok bool) {
	if m.Ballot.Term > won.Term {
		return m, false, false
	}
	if wait = m.HeldBefore(won.Term); wait {
		m.Ballot = won
	}
	if alone {
		m.Holding = won.Term
	}
	return m, wait, true
}

// MayServe says that a leader may be a primary: a majority of the instances knows of no later term, or it holds on. The witness's vote, where
// it has one, is as good as being on record there, for as long as that is believed.
func (l Local) MayServe() bool {
	return l.Alone <= l.limits().Fence || l.Holds || l.Unconfirmed <= l.limits().Hold
}

// LeaderEnded says that the server of the leader which is lost has surely ended, by that one's own word or because its agent has.
// It speaks only of one that has been seen to lead: one that was elected and never led may have been waiting for another to end. And not
// where a leader may come back by the witness's word alone, without this instance's hearing of it.
func (v View) LeaderEnded() bool {
	return v.following() && !v.Local.Memory.Record.Witnesses(v.Witness) && (v.leaderResigned() || v.Local.Refused > RefusedLimit && !v.Local.Streaming)
}
