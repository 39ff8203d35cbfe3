package restore

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

// refuses is what an instance says that has data and is not elected.
func refuses(voter ha.Voter, refusal string, quorum ...ha.Voter) protocol.Status {
	return protocol.Status{Data: protocol.DataPresent, Refusal: refusal, Election: protocol.Election{
		Voter: voter, Configuration: ha.Configuration{Term: 3, Version: 1, Now: ha.Quorum{Voters: quorum}},
	}}
}

func TestWhetherThoseWithDataMayElect(t *testing.T) {
	const noMajority, notAVoter = ha.RefusedNoMajority, ha.RefusedNotAVoter
	newest := refuses("x-1.a", notAVoter, "x-0.a")
	newest.Election.Configuration.Term = 4
	for name, c := range map[string]struct {
		x0, x1 protocol.Status
		may    bool
	}{
		"two of three lost": {refuses("x-0.a", noMajority, "x-0.a", "x-1.a", "x-2.a"), protocol.Status{}, false},
		"one of three lost, and the other two do not hear each other": {
			refuses("x-0.a", noMajority, "x-0.a", "x-1.a", "x-2.a"),
			refuses("x-1.a", noMajority, "x-0.a", "x-1.a", "x-2.a"), true,
		},
		"the primary went on alone and is lost": {refuses("x-1.a", notAVoter, "x-0.a"), protocol.Status{}, false},
		"the primary that went on alone starts": {
			refuses("x-0.a", "EndUnknown", "x-0.a"), refuses("x-1.a", notAVoter, "x-0.a"), true,
		},
		"the newest configuration counts": {refuses("x-0.b", noMajority, "x-0.b"), newest, false},
		"one is not refused":              {refuses("x-0.a", "", "x-0.a", "x-1.a"), protocol.Status{}, true},
		"nothing is known":                {protocol.Status{}, protocol.Status{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := topicsOf(world.Core{DB: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, Now: time.Unix(1e9,
				0)})
			s.Config.Members = []protocol.Member{{Name: "x-0"}, {Name: "x-1"}, {Name: "x-2"}}
			s.DB.Status.Conditions = []metav1.Condition{{
				Type: v1.ConditionAvailable, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Unix(1e8, 0),
			}}
			s.Seen.Answers = map[string]protocol.Status{"x-0": c.x0, "x-1": c.x1, "x-2": {Data: protocol.DataEmpty}}
			if may := s.mayElect(); may != c.may {
				t.Errorf("they may elect: %t, want %t", may, c.may)
			}
		})
	}
}
