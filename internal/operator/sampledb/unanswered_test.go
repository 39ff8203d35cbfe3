package sampledb

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

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
		if got := u.note("db", types.UID(c.pod), c.answered, begin.Add(c.at)); got != c.want {
			t.Errorf("%s: for %s, expected %s", c.what, got, c.want)
		}
	}
	u.forget("db")
	if got := u.note("db", "", false, begin.Add(2*time.Hour)); got != 0 {
		t.Errorf("one that is forgotten has not answered for %s", got)
	}
}
