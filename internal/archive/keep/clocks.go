package keep

import (
	"fmt"
	"time"
)

// clocksDiffer is by how much a clock may differ from another without a word of it: days are kept, and what is
// given up has got nothing new for hours.
const clocksDiffer = time.Hour

// Clock is what time it is by a clock.
type Clock struct {
	// Whose names it, for people.
	Whose string
	// Now is zero where it does not say.
	Now time.Time
	// Behind is by how much it may be behind because of the way by which it is known.
	Behind time.Duration
}

// ByClocks is a policy that believes no clock alone: now is the earliest of its own, which is that of who removes, and
// of others. So nothing is too old that is so only by one clock. It goes on in a store that is full, which takes
// nothing that would say how late it is there. Where clocks differ, it says so, if anything is kept by days.
func (p Policy) ByClocks(own string, others ...Clock) (earliest Policy, differ string) {
	earliest = p
	for _, c := range others {
		if c.Now.IsZero() {
			continue
		}
		if c.Now.Before(earliest.Now) {
			earliest.Now = c.Now
		}
		ahead := p.Now.Sub(c.Now)
		if p.Age > 0 && differ == "" && (ahead > clocksDiffer+c.Behind || ahead < -clocksDiffer) {
			differ = fmt.Sprintf("it is %s by %s, and %s by %s: what is kept for days goes by the earlier. Set the "+
				"clocks right", words(p.Now), own, words(c.Now), c.Whose)
		}
	}
	return earliest, differ
}

func words(at time.Time) string { return at.UTC().Format(time.RFC3339) }
