package world

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhatIsSaidOfMachinesChangesSeldom(t *testing.T) {
	begin := time.Unix(1e9, 0)
	busy, busier, well, nothing := No("Busy", "1"), No("Busy", "2"), Yes("OnTime", ""), Verdict{}
	unheard := Verdict{Status: metav1.ConditionUnknown}
	busiest := No("Busy", "3")
	weight := map[Verdict]time.Duration{busiest: time.Second}
	const minute = time.Minute
	for name, steps := range map[string][]struct {
		at         time.Duration
		next, said Verdict
	}{
		"the first word is said at once": {{0, busy, busy}},
		"other words wait":               {{0, busy, busy}, {4 * minute, busier, busy}, {5 * minute, busier, busier}},
		"that all is well waits, and not from the last time that it was not": {
			{0, busy, busy}, {4 * minute, busy, busy}, {5*minute - 1, well, busy}, {5 * minute, well, well},
		},
		"that it is not so any more waits less": {
			{0, well, well}, {29 * time.Second, busy, well}, {30 * time.Second, busy, busy},
		},
		"what goes on and off is told twice in five minutes": {
			{0, busy, busy}, {minute, well, busy}, {2 * minute, busy, busy}, {5 * minute, well, well},
			{6 * minute, busy, busy}, {7 * minute, well, busy}, {10 * minute, well, busy}, {11 * minute, well, well},
		},
		"more of it waits less": {
			{0, busy, busy}, {29 * time.Second, busiest, busy}, {30 * time.Second, busiest, busiest},
			{minute, busy, busiest}, {4 * minute, busy, busiest},
		},
		"what is not known changes nothing for a while": {
			{0, busy, busy}, {29 * time.Second, unheard, busy}, {40 * time.Second, busy, busy},
			{69 * time.Second, unheard, busy}, {70 * time.Second, unheard, nothing}, {80 * time.Second, busier, busier},
		},
		"what is not known is not said": {{0, unheard, nothing}},
		"nothing is said at once, and what comes after it": {
			{0, busy, busy}, {time.Second, nothing, nothing}, {2 * time.Second, busier, busier},
		},
	} {
		var p paced
		for _, c := range steps {
			if got := p.Say("db", begin.Add(c.at), QuietPause, weight[c.next], c.next); got != c.said {
				t.Errorf("%s: at %s it says %+v", name, c.at, got)
			}
		}
		p.Forget("db")
		if got := p.Say("db", begin, QuietPause, 0, busier); got != busier {
			t.Errorf("%s: of one that was forgotten it says %+v", name, got)
		}
	}
}

func TestForHowLongAPodHasNotAnswered(t *testing.T) {
	begin := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var u unanswered
	for _, c := range []struct {
		what     string
		pod      string
		at       time.Duration
		answered bool
		want     time.Duration
	}{
		{"it answers", "a", 0, true, 0},
		{"nobody has asked for an hour, and it does not answer", "a", time.Hour, false, 0},
		{"it goes on so", "a", time.Hour + time.Minute, false, time.Minute},
		{"it answers again", "a", time.Hour + 3*time.Minute, true, 0},
		{"and does not", "a", time.Hour + 4*time.Minute, false, 0},
		{"it is replaced", "b", time.Hour + 5*time.Minute, false, 0},
		{"that one does not answer either", "b", time.Hour + 6*time.Minute, false, time.Minute},
		{"there is none", "", time.Hour + 7*time.Minute, false, 0},
		{"there is still none", "", time.Hour + 9*time.Minute, false, 2 * time.Minute},
	} {
		if got := u.Note("db", types.UID(c.pod), c.answered, begin.Add(c.at)); got != c.want {
			t.Errorf("%s: for %s, expected %s", c.what, got, c.want)
		}
	}
	u.Forget("db")
	if got := u.Note("db", "", false, begin.Add(2*time.Hour)); got != 0 {
		t.Errorf("one that is forgotten has not answered for %s", got)
	}
}
