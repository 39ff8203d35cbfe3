package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/window"
	"toban.dev/internal/operator/sampledb/world"
)

const (
	// handOverSettles is for how long all has to be well before the primary hands over to a preferred instance: one
	// that comes and goes gets no lead.
	handOverSettles = 30 * time.Second
	// handOverRests is how long after a switchover the next one to a preferred instance is. So a zone that comes and
	// goes costs one hand-over an hour at most, and what a user has asked for is not undone at once.
	handOverRests = time.Hour
	// handOverLag is how far a preferred instance may be behind the primary, in bytes of WAL: one segment, which it
	// receives and replays within the time of the hand-over.
	handOverLag = 16 << 20
)

// preference is what a decision about a hand-over to a preferred instance is made of.
type preference struct {
	now     time.Time
	policy  v1.HandOver
	primary string // "" where none is known to take writes
	// candidates are the wanted instances, the primary among them, by ordinal.
	candidates []world.Candidate
	// asked is to whom a switchover is asked for, "" for none.
	asked string
	// unready is why the database is not as it should be, busy what is under way that a hand-over would disturb; "" for
	// nothing. ready is since when it is as it should be.
	unready, busy string
	ready         time.Time
	// last is when a switchover was asked for last, zero for never; refused why it could not be, "" where it could.
	last    time.Time
	refused string
	// window is when the primary may hand over, where the policy is InWindow.
	window *window.Window
}

// preferredStep is what to do about a preferred instance, and why. The primary should hand over to target, "" for
// nobody; at is when that may change by itself, zero where something tells.
type preferredStep struct {
	world.Verdict
	target string
	at     time.Time
}

// decidePreferred says whether the primary hands over to an instance that is preferred to it. The rules in their order:
// what is not known moves nothing; only one that can take over is handed to; only while all is well and nothing else is
// under way; and not often.
func decidePreferred(p preference) preferredStep {
	best, leads, done := p.best()
	if done != nil {
		return preferredStep{Verdict: *done}
	}
	both := fmt.Sprintf("%s is preferred to %s, which hands over ", best.Words(), leads.Words())
	says := func(at time.Time, reason, format string, args ...any) preferredStep {
		return preferredStep{Verdict: world.No(reason, both+fmt.Sprintf(format, args...)), at: at}
	}
	switch {
	case p.asked != "":
		return preferredStep{Verdict: world.No(v1.ReasonHandingOver,
			fmt.Sprintf("%s is asked for a switchover to %s", leads.Name, p.asked))}
	case p.policy == v1.HandOverOnRequest:
		return says(time.Time{}, v1.ReasonHandOverOnRequest, "when that is asked for")
	case p.unready != "":
		return says(time.Time{}, v1.ReasonHandOverWaits, "when all is well again: %s", p.unready)
	case p.busy != "":
		return says(time.Time{}, v1.ReasonHandOverWaits, "after %s", p.busy)
	case best.Behind < 0 || best.Behind > handOverLag:
		return says(p.now.Add(world.PauseStuck), v1.ReasonHandOverWaits, "when %s has nearly all WAL", best.Name)
	}
	if at, why := p.later(); why != "" {
		return says(at, v1.ReasonHandOverWaits, "not before %s: %s", at.UTC().Format(time.RFC3339), why)
	}
	return preferredStep{Verdict: world.No(v1.ReasonHandingOver, both+"now"), target: best.Name}
}

// later is before when the primary does not hand over, and why; "" where the moment is good.
func (p preference) later() (at time.Time, why string) {
	settled, rested := p.ready.Add(handOverSettles), p.last.Add(handOverRests)
	switch {
	case p.now.Before(rested) && p.refused != "":
		return rested, "the last switchover was refused: " + p.refused
	case p.now.Before(rested):
		return rested, "the last switchover was less than an hour ago"
	case p.now.Before(settled):
		return settled, "all has to be well for half a minute"
	case p.window != nil && !p.window.Open(p.now):
		return p.window.Next(p.now), "update.window opens then"
	}
	return time.Time{}, ""
}

// best is the most preferred instance that can take over from the one that leads; done says why there is none.
func (p preference) best() (best, leads world.Candidate, done *world.Verdict) {
	says := func(v world.Verdict) (world.Candidate, world.Candidate, *world.Verdict) {
		return world.Candidate{}, world.Candidate{}, &v
	}
	i := slices.IndexFunc(p.candidates, func(c world.Candidate) bool { return c.Name == p.primary })
	if i < 0 {
		return says(notPreferred("no instance is known to take writes"))
	}
	leads = p.candidates[i]
	if !leads.Ranked {
		return says(notPreferred("the zone of " + leads.Name + ", which leads, is not known"))
	}
	better := slices.DeleteFunc(slices.Clone(p.candidates),
		func(c world.Candidate) bool { return c.Rank >= leads.Rank })
	slices.SortStableFunc(better, func(a, b world.Candidate) int { return cmp.Compare(a.Rank, b.Rank) })
	ranked := slices.DeleteFunc(slices.Clone(better), func(c world.Candidate) bool { return !c.Ranked })
	able := slices.IndexFunc(ranked, func(c world.Candidate) bool { return c.Unable == "" })
	switch {
	case len(better) == 0:
		return says(world.Yes(v1.ReasonPreferred, "no instance is preferred to "+leads.Words()))
	case len(ranked) == 0:
		return says(notPreferred("the zone of " + better[0].Name + " is not known"))
	case able < 0:
		return says(world.No(v1.ReasonPreferredUnready, fmt.Sprintf("%s is preferred to %s, and can't take over: %s",
			ranked[0].Words(), leads.Words(), ranked[0].Unable)))
	}
	return ranked[able], leads, nil
}

func notPreferred(message string) world.Verdict {
	return world.Verdict{Status: metav1.ConditionUnknown, Reason: v1.ReasonPreferredUnknown, Message: message}
}
