package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// What an agent logs of a hand-over: that its primary stops when all poolers hold their clients, or though not all do.
const (
	PoolersHold = "the poolers hold their clients"
	PoolersSlow = "stops though not all poolers hold their clients"
)

// HandOver is one for which a primary has had its poolers hold their clients, as the log of its agent tells it.
type HandOver struct {
	// Name is by what the poolers know it, "" where the agent is of a release that does not log it.
	Name string
	// Began is when the poolers were told of it, Stopped when the primary went on to stop.
	Began, Stopped time.Time
	// Held says that all poolers held all their clients by then.
	Held bool
}

// String names it: by its beginning, which every log has, and by its name.
func (h HandOver) String() string {
	return strings.TrimSpace("the hand-over of " + clock(h.Began) + " " + h.Name)
}

// clock is a moment for people who compare it with logs.
func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }

// ReadHandOvers finds the hand-overs in logs of agents, in their order. A log may come twice.
func ReadHandOvers(logs ...string) []HandOver {
	var all []HandOver
	for line := range strings.Lines(strings.Join(logs, "\n")) {
		if h, is := readHandOver(line); is {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b HandOver) int { return a.Began.Compare(b.Began) })
	return slices.Compact(all)
}

// readHandOver understands a line of an agent's log that is about a hand-over. Agents of earlier releases say how long
// they have waited in another field where they have waited in vain.
func readHandOver(line string) (h HandOver, is bool) {
	var said struct {
		Time                      time.Time
		Message                   string `json:"msg"`
		HandOver, After, Patience string
	}
	if json.Unmarshal([]byte(line), &said) != nil {
		return HandOver{}, false
	}
	held := strings.HasPrefix(said.Message, PoolersHold)
	if !held && !strings.HasPrefix(said.Message, PoolersSlow) {
		return HandOver{}, false
	}
	waited, err := time.ParseDuration(said.After)
	if err != nil {
		waited, _ = time.ParseDuration(said.Patience) // without it, the hand-over begins where it is told of
	}
	at := said.Time.UTC()
	return HandOver{Name: said.HandOver, Began: at.Add(-waited), Stopped: at, Held: held}, true
}

// Failure is a write that saw an error, and when.
type Failure struct {
	At  time.Time
	Err error
}

// stopTakes is for how long a primary that stops may end sessions whose transactions it has not waited for, on a busy
// machine. An error later than that is not of its hand-over.
const stopTakes = 10 * time.Second

// cause is the hand-over that a failure belongs to: the last that had begun by then, unless that was over long before.
// Agents and clients are on one machine, so that their clocks are the same.
func (f Failure) cause(all []HandOver) (HandOver, bool) {
	for _, h := range slices.Backward(all) {
		if !f.At.Before(h.Began) {
			return h, !f.At.After(h.Stopped.Add(stopTakes))
		}
	}
	return HandOver{}, false
}

// Forgive forgives failures of clients of poolers to the very hand-over in which not all poolers held, and no others:
// one such hand-over says nothing of another. All others are an error. The hand-overs are in their order.
func Forgive(failed []Failure, all []HandOver) error {
	var left []string
	for _, f := range failed {
		switch h, found := f.cause(all); {
		case !found:
			left = append(left, fmt.Sprintf("at %s, when no primary handed over: %v", clock(f.At), f.Err))
		case h.Held:
			left = append(left, fmt.Sprintf("at %s, in %s, for which all poolers held: %v", clock(f.At), h, f.Err))
		case !endsSession(f.Err):
			left = append(left, fmt.Sprintf("at %s, in %s, which is no reason for it: %v", clock(f.At), h, f.Err))
		}
	}
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d writes that failed have no excuse, the first %s", len(left), len(failed), left[0])
}

// endsSession says that an error is of a session that has ended: by the server (57, operator intervention), or by who
// is in between (08, connection exception; PostgreSQL 17 documentation, Appendix A). So is what no server has said.
func endsSession(err error) bool {
	var said *pgconn.PgError
	return !errors.As(err, &said) || strings.HasPrefix(said.Code, "57") || strings.HasPrefix(said.Code, "08")
}

// held is an error where not all poolers held for the last hand-over since a time, or there was none.
func held(all []HandOver, since time.Time) error {
	if len(all) == 0 || all[len(all)-1].Began.Before(since) {
		return fmt.Errorf("no log tells of a hand-over since %s", clock(since))
	}
	if last := all[len(all)-1]; !last.Held {
		return fmt.Errorf("not all poolers held for %s", last)
	}
	return nil
}

const (
	// MostHandOvers is how many hand-overs are made until all clients were held for one. Not all poolers hold where a
	// machine stands still for longer than a primary has patience; not five times in a row.
	MostHandOvers = 5
	// logsLag is how much later than the clients somebody may see what an agent has logged.
	logsLag = 5 * time.Second
)

// UntilHeld hands over until all clients were held for one hand-over, without an error, MostHandOvers times at most.
// An error that is not of a hand-over in which not all poolers held fails at once. Logs are those of all agents.
func (c *Clients) UntilHeld(ctx context.Context, logs func() []string, handOver func()) error {
	var words []string
	for range MostHandOvers {
		since := time.Now()
		handOver()
		var wrong, slow error
		_ = Until(ctx, logsLag, func(context.Context) error { // what is wrong then is told below
			all := ReadHandOvers(logs()...)
			wrong, slow = Forgive(c.Failures(), all), held(all, since)
			return cmp.Or(wrong, slow)
		})
		if wrong != nil || slow == nil {
			return wrong
		}
		words = append(words, slow.Error())
	}
	return fmt.Errorf("in %d hand-overs, there was none for which all clients were held: %s", MostHandOvers,
		strings.Join(words, "; "))
}
