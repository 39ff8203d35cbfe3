package machine

import (
	"testing"

	"toban.dev/internal/ha"
)

// A change of the quorum: the rule of both, then the configuration of both, which a majority of each accepts, then the
// configuration of the next alone, and its rule.
func TestAChangeOfTheQuorumGoesStepByStep(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = func(e Effect) bool {
		switch e.(type) {
		case Demand, Store:
			return true
		}
		return false
	}
	r.wanted = nil
	r.step(Configured{
		Config: Config{Members: []string{"db-0", "db-1"}, SystemIdentifier: "7", Witness: "uid", API: true},
	})
	r.others(asIs)
	r.pass(changeRest)
	demands := wants[Demand](r)
	if len(demands) != 1 || !demands[0].Barrier || len(wants[Store](r)) > 0 {
		t.Fatalf("it begins with %+v", r.wanted)
	}
	r.step(Done{ID: demands[0].ID})
	joint := wants[Store](r)
	if len(joint) != 1 || joint[0].HardState.Configuration.Next == nil {
		t.Fatalf("after the barrier it wants %+v", r.wanted)
	}
	if proposed := wants[Propose](r); len(proposed) > 0 &&
		proposed[len(proposed)-1].Proposal.Configuration.Next != nil {
		t.Error("it proposes what is not on its own disk")
	}
	r.step(Stored{ID: joint[0].ID})
	for _, d := range wants[Demand](r)[1:] {
		r.step(Done{ID: d.ID})
	}
	r.others(asIs)
	r.pass(offerInterval)
	record := r.HardState().Configuration
	if len(wants[Store](r)) != 1 {
		t.Fatal("the next quorum is on record before anybody has accepted both")
	}
	for _, v := range voters[1:] {
		r.step(ConfigurationAnswered{Voter: v, Configuration: record, Reply: ha.AcceptReply{Accepted: true}})
	}
	final := wants[Store](r)
	if len(final) != 2 || final[1].HardState.Configuration.Next != nil ||
		len(final[1].HardState.Configuration.Now.Voters) != 2 {
		t.Fatalf("after all have accepted it wants %+v", final)
	}
}

// A change whose configuration the disk does not take is put off, and begun anew: with the rule
// of both, and the barrier.
func TestAChangeThatIsNotWrittenIsBegunAnew(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.holds = func(e Effect) bool { _, is := e.(Store); return is }
	r.wanted = nil
	r.step(Configured{
		Config: Config{Members: []string{"db-0", "db-1"}, SystemIdentifier: "7", Witness: "uid", API: true},
	})
	r.others(asIs)
	r.pass(changeRest)
	joint := wants[Store](r)
	if len(joint) != 1 || joint[0].HardState.Configuration.Next == nil {
		t.Fatalf("it does not change the quorum: %+v", r.wanted)
	}
	r.step(Stored{ID: joint[0].ID, Err: "no space left on device"})
	r.wanted = nil
	r.others(asIs)
	r.pass(2 * changeRest)
	demands, again := wants[Demand](r), wants[Store](r)
	if len(again) != 1 || again[0].HardState.Configuration.Next == nil || len(demands) == 0 ||
		!demands[len(demands)-1].Barrier {
		t.Errorf("it is not begun anew: %s", r.Instance)
	}
}

// Who is no member any more is looked at as long as it has a vote: one that has lost its hard
// state can't be waited for.
func TestThoseThatLeaveAreKnownInTheElectorate(t *testing.T) {
	t.Parallel()
	r := served(t)
	r.step(Configured{Config: Config{Members: []string{"db-0"}, SystemIdentifier: "7", Witness: "uid", API: true}})
	r.other("db-1.b", func(p *ha.Peer) { p.Voter = "db-1.new" })
	if s := r.electorate().Standbys["db-1"]; s.Voter != "db-1.new" {
		t.Errorf("db-1 is %+v", s)
	}
}

// Only who follows in the leader's own term counts.
func TestTheRuleHasTheLeadersTerm(t *testing.T) {
	t.Parallel()
	promotion := func(r *rig) ha.Rule { return wants[Command](r)[len(wants[Command](r))-1].Rule }
	if rule := promotion(elected(t)); rule.Term != 5 || rule.Count == 0 {
		t.Errorf("who is promoted in term 5 demands %s", rule)
	}
	if rule := served(t).server.rule; rule.Term != 4 || rule.Count == 0 {
		t.Errorf("who comes back in term 4 demands %s", rule)
	}
}
