package ha

import "testing"

func TestHold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before HardState
		term   uint64
		ok     bool
		after  uint64
	}{
		"the leader of the latest term":       {HardState{Ballot: Ballot{4, "db-0"}}, 4, true, 4},
		"one whose term is not on record yet": {HardState{Ballot: Ballot{3, "db-1"}}, 4, true, 4},
		"after one that held on before":       {HardState{Ballot: Ballot{3, "db-1"}, ReadLease: 3}, 4, true, 4},
		"not when a later term is on record":  {HardState{Ballot: Ballot{5, "db-1"}}, 4, false, 0},
	} {
		after, ok := GrantReadLease(c.before, c.term)
		if ok != c.ok || after.ReadLease != c.after || after.Ballot != c.before.Ballot {
			t.Errorf("%s: %v, %+v", name, ok, after)
		}
	}
	if m := ReleaseReadLease(HardState{ReadLease: 4}, 4); m.ReadLease != 0 {
		t.Error("it has its majority again, and has the read lease")
	}
	if m := ReleaseReadLease(HardState{ReadLease: 5}, 4); m.ReadLease != 5 {
		t.Error("it releases another")
	}
}

func TestPreempt(t *testing.T) {
	t.Parallel()
	won := Ballot{5, "db-1"}
	for name, c := range map[string]struct {
		before   HardState
		alone    bool
		wait, ok bool
		after    HardState
	}{
		"nobody has the read lease": {
			HardState{Ballot: Ballot{4, "db-0"}}, false, false, true, HardState{Ballot: won},
		},
		"the one before does": {
			HardState{Ballot: Ballot{4, "db-0"}, ReadLease: 4}, false, true, true, HardState{Ballot: won, ReadLease: 4},
		},
		"one before that": {
			HardState{Ballot: Ballot{4, "db-2"}, ReadLease: 3}, false, true, true, HardState{Ballot: won, ReadLease: 3},
		},
		"it does itself": {
			HardState{Ballot: won, ReadLease: 5}, false, false, true, HardState{Ballot: won, ReadLease: 5},
		},
		"it is alone": {HardState{Ballot: won}, true, false, true, HardState{Ballot: won, ReadLease: 5}},
		"it is alone, and another before": {
			HardState{Ballot: won, ReadLease: 4}, true, true, true, HardState{Ballot: won, ReadLease: 4},
		},
		"a later term is on record": {
			HardState{Ballot: Ballot{6, "db-2"}, ReadLease: 4}, false, false, false,
			HardState{Ballot: Ballot{6, "db-2"}, ReadLease: 4},
		},
	} {
		after, wait, ok := Preempt(c.before, won, c.alone)
		if wait != c.wait || ok != c.ok || after.Ballot != c.after.Ballot || after.ReadLease != c.after.ReadLease {
			t.Errorf("%s: wait %v, ok %v, %+v", name, wait, ok, after)
		}
	}
	m, _ := AcceptConfiguration(HardState{Ballot: won, ReadLease: 4}, "db-1", Configuration{Term: 5, Version: 1})
	if m.ReadLease != 0 {
		t.Error("who leads since has not ended what came before")
	}
	if m, _ = AcceptConfiguration(HardState{Ballot: won, ReadLease: 5}, "db-1",
		Configuration{Term: 5, Version: 1}); m.ReadLease != 5 {
		t.Error("its own record ends its holding on")
	}
}

func TestLeaderEnded(t *testing.T) {
	t.Parallel()
	followed := standby("db-1", 4, "db-0")
	refused := local(func(l *Local) { l.Refused, l.Streaming = RefusedLimit+1, false })
	resigned := leader("db-0", 4)
	resigned.Leading, resigned.Resigned = false, true
	for name, c := range map[string]struct {
		view  View
		ended bool
	}{
		"one that leads has not": {three("db-1", followed, hears("db-0", leader("db-0", 4))), false},
		"nor one that is silent": {three("db-1", followed, silent), false},
		"its agent has ended":    {three("db-1", followed, refused), true},
		"not while its stream is there": {
			three("db-1", followed, refused, local(func(l *Local) { l.Streaming = true })), false,
		},
		"it says so": {three("db-1", followed, hears("db-0", resigned)), true},
		"not of one that was never seen to lead": {
			three("db-1", followed, refused, local(func(l *Local) { l.Following = 3 })), false,
		},
		"not where the witness has a vote": {
			three("db-1", followed, refused, local(func(l *Local) { l.HardState.Configuration.Now.Witness = "uid" }),
				func(v *View) { v.Witness = "uid" }), false,
		},
	} {
		if ended := c.view.LeaderEnded(); ended != c.ended {
			t.Errorf("%s: %v", name, ended)
		}
	}
}
