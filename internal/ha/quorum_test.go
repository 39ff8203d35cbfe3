package ha

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

var fourVoters = []Voter{"db-0.a", "db-1.b", "db-2.c", "db-3.d"}

// subset is the voters whose bits are set.
func subset(all []Voter, bits int) []Voter {
	var some []Voter
	for i, v := range all {
		if bits&(1<<i) != 0 {
			some = append(some, v)
		}
	}
	return some
}

// quorumsOf are all quorums of these voters with leader among them.
func quorumsOf(all []Voter, leader Voter) []Quorum {
	var quorums []Quorum
	for bits := range 1 << len(all) {
		voters := subset(all, bits)
		if !slices.Contains(voters, leader) {
			continue
		}
		for acks := 1; acks <= len(voters); acks++ {
			quorums = append(quorums, Quorum{Voters: voters, Acknowledgements: acks})
		}
	}
	return quorums
}

// meets says whether a commit that these have on disk meets a quorum.
func meets(have []Voter, q Quorum) bool {
	n := 0
	for _, v := range q.Voters {
		if slices.Contains(have, v) {
			n++
		}
	}
	return n >= q.Acknowledgements
}

// satisfies says whether with the leader any count of from meet every quorum of the configuration.
func satisfies(r Configuration, leader Voter, count int, from []Voter) bool {
	for bits := range 1 << len(from) {
		some := subset(from, bits)
		if len(some) != count {
			continue
		}
		have := append(some, leader)
		if slices.ContainsFunc(r.Quorums(), func(q Quorum) bool { return !meets(have, q) }) {
			return false
		}
	}
	return count <= len(from)
}

// weakest is the least count of any set of standbys that satisfies the configuration.
func weakest(r Configuration, leader Voter) int {
	standbys := slices.DeleteFunc(slices.Clone(fourVoters), func(v Voter) bool { return v == leader })
	least := math.MaxInt
	for bits := range 1 << len(standbys) {
		from := subset(standbys, bits)
		for count := 0; count <= len(from); count++ {
			if satisfies(r, leader, count, from) {
				least = min(least, count)
			}
		}
	}
	return least
}

// TestCommitRule goes through every pair of quorums of up to four voters. That no
// other rule waits for fewer is so for the changes that are made: of one voter at a time.
func TestCommitRule(t *testing.T) {
	t.Parallel()
	leader := fourVoters[0]
	quorums := quorumsOf(fourVoters, leader)
	for _, now := range quorums {
		holds(t, Configuration{Term: 1, Version: 1, Now: now}, leader, true)
		for _, next := range quorums {
			holds(t, Configuration{Term: 1, Version: 1, Now: now, Next: &next}, leader, oneStep(now, next))
		}
	}
}

// oneStep says whether one voter is added, removed or replaced from now to next.
func oneStep(now, next Quorum) bool {
	without := func(a, b Quorum) int {
		return len(slices.DeleteFunc(slices.Clone(a.Voters), b.Has))
	}
	return without(now, next) <= 1 && without(next, now) <= 1
}

// holds checks that the rule of a configuration meets all its quorums, and that no other waits for fewer.
func holds(t *testing.T, r Configuration, leader Voter, best bool) {
	t.Helper()
	rule := CommitRule(r, leader)
	if slices.Contains(rule.From, leader) || !satisfies(r, leader, rule.Count, rule.From) {
		t.Fatalf("%v is too weak for %+v", rule, r.Quorums())
	}
	if least := weakest(r, leader); best && rule.Count != least {
		t.Fatalf("%v waits for %d, but %d would do for %+v", rule, rule.Count, least, r.Quorums())
	}
}

func TestCommitRuleOfOneThatMayNotLead(t *testing.T) {
	t.Parallel()
	next := Quorum{Voters: []Voter{"db-1.b", "db-2.c"}, Acknowledgements: 2}
	joint := ofThree
	joint.Next = &next
	for name, c := range map[string]struct {
		record Configuration
		voter  Voter
	}{
		"without a record":               {Configuration{}, "db-0.a"},
		"another memory of the same":     {ofThree, "db-0.z"},
		"one that is about to have none": {joint, "db-0.a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if rule := CommitRule(c.record, c.voter); rule.String() != `ANY 1 ("nobody")` {
				t.Errorf("the rule is %s", rule)
			}
		})
	}
}

func TestRuleString(t *testing.T) {
	t.Parallel()
	for want, rule := range map[string]Rule{
		"": {},
		`ANY 1 ("db-1.b@7","db-1.b","db-2.c@7","db-2.c")`: {1, []Voter{"db-1.b", "db-2.c"}, 7},
		`ANY 1 ("db@7","db")`:                             {1, []Voter{`d"b`}, 7},
		`ANY 1 ("nobody")`:                                {1, []Voter{Nobody}, 7},
	} {
		if rule.String() != want {
			t.Errorf("%q instead of %q", rule, want)
		}
	}
}

func TestWhoFollowsInATerm(t *testing.T) {
	t.Parallel()
	for name, follows := range map[string]bool{
		FollowerName("db-1.b", 7): true, "db-1.b": true, FollowerName("db-1.b", 6): false,
		FollowerName("db-1.b", 71): false,
	} {
		if v, is := Follower(name, 7); v != "db-1.b" || is != follows {
			t.Errorf("%s is %s, and follows in term 7: %v", name, v, is)
		}
	}
}

// TestVotesAndAcknowledgementsMeet: whatever PlanQuorum makes, who elects has one among them that acknowledged.
func TestVotesAndAcknowledgementsMeet(t *testing.T) {
	t.Parallel()
	for size := 1; size <= 7; size++ {
		var voters []Voter
		for i := range size {
			voters = append(voters, Voter(fmt.Sprintf("db-%d.x", i)))
		}
		q := Electorate{Witness: "uid"}.quorum(voters)
		votes := map[Voter]bool{}
		for _, v := range voters[min(size, q.Acknowledgements):] { // all that have not acknowledged
			votes[v] = true
		}
		if q.Elects(votes, true) {
			t.Errorf("%d voters: %v elect without any of %d that acknowledged", size, votes, q.Acknowledgements)
		}
		if (q.Witness != "") != (size == 2) {
			t.Errorf("%d voters: the witness is %q", size, q.Witness)
		}
	}
}

func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	const never = time.Duration(math.MaxInt64)
	two := Configuration{
		Term: 1, Version: 1, Now: Quorum{Voters: []Voter{"db-0.a", "db-1.b"}, Witness: "uid", Acknowledgements: 2},
	}
	for name, c := range map[string]struct {
		record  Configuration
		ages    map[Voter]time.Duration
		witness time.Duration
		want    time.Duration
	}{
		"alone it needs nobody":                 {alone, nil, never, 0},
		"of three, the better of the other two": {ofThree, map[Voter]time.Duration{"db-1.b": 5, "db-2.c": 3}, never, 3},
		"one of them is enough":                 {ofThree, map[Voter]time.Duration{"db-1.b": 5}, never, 5},
		"who is no voter confirms nothing":      {ofThree, map[Voter]time.Duration{"db-1.z": 5}, never, never},
		"nor does a witness without a vote":     {ofThree, nil, 1, never},
		"of two, the witness does":              {two, map[Voter]time.Duration{"db-1.b": 5}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			age := func(v Voter) (time.Duration, bool) { a, ok := c.ages[v]; return a, ok }
			if got := Unconfirmed(HardState{Voter: "db-0.a", Configuration: c.record}, age, c.witness); got != c.want {
				t.Errorf("unconfirmed for %d", got)
			}
		})
	}
}
