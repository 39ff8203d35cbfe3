package outside

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// The lines as agents write them: the present one, and that of releases that named no hand-over.
const (
	heldLine = `{"time":"2026-11-28T10:00:02Z","level":"INFO","msg":"the poolers hold their clients",` +
		`"handOver":"A","term":3,"after":"500ms","poolers":2}`
	slowLine = `{"time":"2026-11-28T10:01:02Z","level":"WARN","msg":"stops though not all poolers hold their ` +
		`clients: a transaction takes longer than the patience, or a pooler is slow or away","handOver":"B","term":4,` +
		`"after":"2s","poolers":"pool-1","patience":"2s"}`
	formerHeldLine = `{"time":"2026-11-28T12:02:02+02:00","level":"INFO","msg":"the poolers hold their clients",` +
		`"poolers":2,"after":"1s"}`
	formerSlowLine = `{"time":"2026-11-28T10:03:02Z","level":"WARN","msg":"stops though not all poolers hold their ` +
		`clients: a transaction takes longer than the patience, or a pooler is slow","poolers":"x","patience":"2s"}`
)

var ten = time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)

func TestHandOversAreReadFromLogs(t *testing.T) {
	other := "LOG:  the poolers hold their clients\n{\"msg\":\"the server has stopped\",\"after\":7}\n"
	all := ReadHandOvers(slowLine+"\n"+other, heldLine+"\n"+formerSlowLine+"\n"+formerHeldLine+"\n", heldLine)
	want := []HandOver{
		{"A", ten.Add(1500 * time.Millisecond), ten.Add(2 * time.Second), true},
		{"B", ten.Add(time.Minute), ten.Add(62 * time.Second), false},
		{"", ten.Add(121 * time.Second), ten.Add(122 * time.Second), true},
		{"", ten.Add(180 * time.Second), ten.Add(182 * time.Second), false},
	}
	if fmt.Sprint(all) != fmt.Sprint(want) || len(all) != len(want) {
		t.Fatalf("the logs tell of %v, want %v", all, want)
	}
	for i := range all {
		if all[i] != want[i] {
			t.Errorf("%+v, want %+v", all[i], want[i])
		}
	}
}

// An error is forgiven to the hand-over in which not all poolers held, and to no other.
func TestAnExcuseIsForItsOwnHandOver(t *testing.T) {
	held := HandOver{"A", ten, ten.Add(time.Second), true}
	slow := HandOver{"B", ten.Add(time.Minute), ten.Add(62 * time.Second), false}
	later := HandOver{"C", ten.Add(2 * time.Minute), ten.Add(121 * time.Second), true}
	all := []HandOver{held, slow, later}
	for name, c := range map[string]struct {
		at    time.Duration
		among []HandOver
		words string // "" where it is forgiven
	}{
		"while not all poolers held":           {61 * time.Second, all, ""},
		"when the server stopped after that":   {64 * time.Second, all, ""},
		"long after that":                      {90 * time.Second, all, "no primary handed over"},
		"before it":                            {59 * time.Second, all, "no primary handed over"},
		"in a hand-over before it, which held": {2 * time.Second, all, "of 10:00:00.000 A, for which all"},
		"in one after it, which held":          {122 * time.Second, all, "C, for which all poolers held"},
		"right after it, in the next one": {
			65 * time.Second, []HandOver{slow, {"D", ten.Add(64 * time.Second), ten.Add(65 * time.Second), true}}, "D",
		},
		"before all":   {-time.Second, all, "no primary handed over"},
		"without any":  {0, nil, "no primary handed over"},
		"none that is": {61 * time.Second, []HandOver{held, later}, "no primary handed over"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Forgive([]Failure{{ten.Add(61 * time.Second), errors.New("x")}, {ten.Add(c.at), errors.New("y")}},
				append([]HandOver{}, c.among...))
			if c.words == "" && err != nil {
				t.Errorf("it is not forgiven: %v", err)
			}
			if c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
				t.Errorf("it says %v, want %q", err, c.words)
			}
		})
	}
}

// What a hand-over excuses is that it ended a session.
func TestAnExcuseIsForSessionsThatEnd(t *testing.T) {
	for code, excused := range map[string]bool{"57P01": true, "08P01": true, "42P01": false, "23505": false} {
		if got := endsSession(&pgconn.PgError{Code: code}); got != excused {
			t.Errorf("%s: it is excused: %t", code, got)
		}
	}
	if !endsSession(errors.New("EOF")) {
		t.Error("a connection that ends is not excused")
	}
}

// played is a hand-over: whether all poolers held, or its log tells nothing, or only of another one an hour before, and
// whether a client saw an error in it.
type played struct{ held, silent, former, failed bool }

// play plays a hand-over, and returns what the agent logs.
func (c *Clients) play(p played) (line string) {
	time.Sleep(time.Second)
	message, at := PoolersSlow, time.Now()
	if p.held {
		message = PoolersHold
	}
	if p.former {
		at = at.Add(-time.Hour)
	}
	if !p.silent {
		line = fmt.Sprintf(`{"time":%q,"msg":%q,"after":"100ms"}`+"\n", at.Format(time.RFC3339Nano), message)
	}
	if p.failed {
		c.note(0, time.Millisecond, errors.New("server conn crashed?"))
	}
	time.Sleep(2 * stopTakes)
	return line
}

// However many hand-overs have an excuse, one has to hold without an error.
func TestOneHandOverHasToHold(t *testing.T) {
	held, slow := played{held: true}, played{}
	for name, c := range map[string]struct {
		plays []played // the last again and again
		made  int
		words string // "" where all is well
	}{
		"the first one holds":                    {[]played{held}, 1, ""},
		"the third one does":                     {[]played{slow, slow, held}, 3, ""},
		"none does":                              {[]played{slow}, MostHandOvers, "there was none"},
		"an excuse, and then one that holds":     {[]played{{failed: true}, held}, 2, ""},
		"each has an excuse":                     {[]played{{failed: true}}, MostHandOvers, "there was none"},
		"an error though all poolers held":       {[]played{{held: true, failed: true}}, 1, "all poolers held"},
		"the excuse is of the hand-over before":  {[]played{slow, {held: true, failed: true}}, 2, "all poolers held"},
		"an error of which no log knows a cause": {[]played{{silent: true, failed: true}}, 1, "no primary handed over"},
		"no log tells of any":                    {[]played{{silent: true}}, MostHandOvers, "no log tells"},
		"another has held before":                {[]played{{held: true, former: true}}, MostHandOvers, "no log tells"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clients, log, made := &Clients{}, "", 0
				err := clients.UntilHeld(t.Context(), func() []string { return []string{log} }, func() {
					log += clients.play(c.plays[min(made, len(c.plays)-1)])
					made++
				})
				if made != c.made {
					t.Errorf("%d hand-overs were made, want %d", made, c.made)
				}
				if c.words == "" && err != nil {
					t.Error(err)
				}
				if c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
					t.Errorf("it says %v, want %q", err, c.words)
				}
			})
		})
	}
}
