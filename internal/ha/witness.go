package ha

// WitnessOperation is something that an instance asks of the witness. At most one field is set; with none it only looks.
type WitnessOperation struct {
	// Vote asks for its vote, a pre-vote or a confirmation.
	Vote *VoteRequest
	// Record has it accept a record of Leader. Voter is the witness that is meant, "" where it has no vote by the record.
	Record *Record
	Leader string
	Voter  Voter
	// Hold puts on record that the leader of a term holds on, Release that it does no longer.
	Hold, Release uint64
	// Overtake asks whether a leader of an earlier term than the one of the ballot holds on, and sees to it that it can't
	// for much longer. Alone says that who asks holds on from the first.
	Overtake *Ballot
	Alone    bool
}

// WitnessAnswer is the answer to a WitnessOperation.
type WitnessAnswer struct {
	// Granted says that the vote is given, the record accepted, or the operation was not refused.
	Granted bool
	// Wait says that a leader of an earlier term holds on.
	Wait bool
	// Reply is that to Vote.
	Reply VoteReply
}

// Apply is the witness's memory after an operation, with the answer, which counts once that is on record.
func (o WitnessOperation) Apply(m Memory) (Memory, WitnessAnswer) {
	switch {
	case o.Vote != nil:
		return voteOfWitness(m, *o.Vote)
	case o.Record != nil && o.Voter != "" && o.Voter != m.Voter:
		return m, WitnessAnswer{}
	case o.Record != nil:
		next, reply := Accept(m, o.Leader, *o.Record)
		return next, WitnessAnswer{Granted: reply.Accepted}
	case o.Hold > 0:
		next, ok := Hold(m, o.Hold)
		return next, WitnessAnswer{Granted: ok}
	case o.Release > 0:
		return Release(m, o.Release), WitnessAnswer{Granted: true}
	case o.Overtake != nil:
		next, wait, ok := Overtake(m, *o.Overtake, o.Alone)
		return next, WitnessAnswer{Granted: ok, Wait: wait}
	}
	return m, WitnessAnswer{Granted: true}
}

// voteOfWitness is the witness's vote. It has no data, and so nothing to wait for.
func voteOfWitness(m Memory, r VoteRequest) (Memory, WitnessAnswer) {
	voting := Voting{Memory: m, Witness: true}
	if r.Confirm {
		_, reply := Confirm(voting, r)
		return m, WitnessAnswer{Granted: reply.Granted, Reply: reply}
	}
	reply := Consider(voting, r)
	if !reply.Granted || r.PreVote {
		return m, WitnessAnswer{Granted: reply.Granted, Reply: reply}
	}
	voting.Memory = Promise(m, r)
	reply = Grant(voting, r)
	return voting.Memory, WitnessAnswer{Granted: reply.Granted, Reply: reply}
}
