package ha

// WitnessOperation is something that an instance asks of the witness. At most one field is set;
// with none it only looks.
type WitnessOperation struct {
	// Vote asks for its vote, a pre-vote or a confirmation.
	Vote *VoteRequest
	// Configuration has it accept a configuration of Leader. Voter is the witness that is meant, "" where it has no
	// vote by the configuration.
	Configuration *Configuration
	Leader        string
	Voter         Voter
	// ReadLease puts on record that the leader of a term has the read lease, Release that it does no longer.
	ReadLease, ReleaseReadLease uint64
	// Preempt asks whether a leader of an earlier term than the one of the ballot has the read lease, and sees to it
	// that it can't for much longer. Alone says that who asks has the read lease from the first.
	Preempt *Ballot
	Alone   bool
}

// WitnessAnswer is the answer to a WitnessOperation.
type WitnessAnswer struct {
	// Granted says that the vote is given, the configuration accepted, or the operation was not refused.
	Granted bool
	// Wait says that a leader of an earlier term has the read lease.
	Wait bool
	// Reply is that to Vote.
	Reply VoteReply
}

// Apply is the witness's hard state after an operation, with the answer, which counts once that is on record.
func (o WitnessOperation) Apply(m HardState) (HardState, WitnessAnswer) {
	switch {
	case o.Vote != nil:
		return voteOfWitness(m, *o.Vote)
	case o.Configuration != nil && o.Voter != "" && o.Voter != m.Voter:
		return m, WitnessAnswer{}
	case o.Configuration != nil:
		next, reply := AcceptConfiguration(m, o.Leader, *o.Configuration)
		return next, WitnessAnswer{Granted: reply.Accepted}
	case o.ReadLease > 0:
		next, ok := GrantReadLease(m, o.ReadLease)
		return next, WitnessAnswer{Granted: ok}
	case o.ReleaseReadLease > 0:
		return ReleaseReadLease(m, o.ReleaseReadLease), WitnessAnswer{Granted: true}
	case o.Preempt != nil:
		next, wait, ok := Preempt(m, *o.Preempt, o.Alone)
		return next, WitnessAnswer{Granted: ok, Wait: wait}
	}
	return m, WitnessAnswer{Granted: true}
}

// voteOfWitness is the witness's vote. It has no data, and so nothing to wait for.
func voteOfWitness(m HardState, r VoteRequest) (HardState, WitnessAnswer) {
	voting := Voting{HardState: m, Witness: true}
	if r.Confirm {
		_, reply := Confirm(voting, r)
		return m, WitnessAnswer{Granted: reply.Granted, Reply: reply}
	}
	reply := Consider(voting, r)
	if !reply.Granted || r.PreVote {
		return m, WitnessAnswer{Granted: reply.Granted, Reply: reply}
	}
	voting.HardState = Promise(m, r)
	reply = Grant(voting, r)
	return voting.HardState, WitnessAnswer{Granted: reply.Granted, Reply: reply}
}
