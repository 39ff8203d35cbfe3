package poolers

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/pause"
	"toban.dev/internal/protocol"
)

// instance leads, and says in its log how a hand-over went.
func instance() (*Poolers, *strings.Builder) {
	log := &strings.Builder{}
	board := status.New(protocol.Status{Name: "x-0"})
	return &Poolers{
		Status: board, Log: slog.New(slog.NewTextHandler(log, nil)),
		Tells: func() protocol.InstanceTells {
			s := board.Get()
			return protocol.InstanceTells{Name: s.Name, Leads: true, Term: s.Term, HandOver: s.HandOver}
		},
	}, log
}

// polls is a pooler that asks again and again, and holds as soon as it hears of a hand-over, after a while.
func polls(ctx context.Context, p *Poolers, name string, holdsAfter time.Duration) {
	go func() {
		asks := protocol.PoolerAsks{Pooler: name}
		for ctx.Err() == nil {
			asks.Heard = p.Answer(ctx, asks)
			if asks.Heard.HandOver != asks.Holds && holdsAfter >= 0 {
				pause.For(ctx, holdsAfter)
				asks.Holds = asks.Heard.HandOver
			}
		}
	}()
	time.Sleep(10 * time.Millisecond)
}

func TestHowLongAPrimaryWaitsForItsPoolers(t *testing.T) {
	const never = -1
	for name, c := range map[string]struct {
		poolers []time.Duration // after how long each holds
		takes   time.Duration
		missing string
	}{
		"none":                    {nil, 0, ""},
		"one that holds at once":  {[]time.Duration{0}, 0, ""},
		"two":                     {[]time.Duration{0, 700 * time.Millisecond}, 700 * time.Millisecond, ""},
		"one that does not":       {[]time.Duration{0, never}, protocol.HoldPatience, "poolers=b"},
		"one that takes too long": {[]time.Duration{3 * time.Second}, protocol.HoldPatience, "poolers=a"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, log := instance()
				ctx, end := context.WithCancel(t.Context())
				defer end()
				for i, after := range c.poolers {
					polls(ctx, p, string(rune('a'+i)), after)
				}
				began := time.Now()
				release := p.Hold(t.Context())
				if took := time.Since(began); took != c.takes {
					t.Errorf("it took %s, want %s", took, c.takes)
				}
				if c.missing != "" && !strings.Contains(log.String(), c.missing+" ") {
					t.Errorf("the log does not name who did not hold: %s", log)
				}
				if said := p.Status.Get().HandOver; (said == "") != (len(c.poolers) == 0) {
					t.Errorf("it announces %q", said)
				}
				release()
				if said := p.Status.Get().HandOver; said != "" {
					t.Errorf("it announces %q after the end", said)
				}
			})
		})
	}
}

// A pooler that has not asked for a while is not waited for.
func TestAPoolerThatIsAwayIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := instance()
		p.Answer(t.Context(), protocol.PoolerAsks{Pooler: "a"})
		time.Sleep(away + time.Second)
		began := time.Now()
		p.Hold(t.Context())()
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %s", took)
		}
	})
}

// A pooler that goes away in the middle of a hand-over is not waited for; but nobody says of its clients that they are
// held. The log names the hand-over and its term, in which it has failed.
func TestAPoolerThatGoesAwayIsNotSaidToHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, log := instance()
		p.Status.Change(func(s *protocol.Status) { s.Term = 7 })
		ctx, end := context.WithCancel(t.Context())
		defer end()
		polls(ctx, p, "a", 0)
		p.Answer(t.Context(), protocol.PoolerAsks{Pooler: "b"})
		time.Sleep(away - time.Second)
		began := time.Now()
		release := p.Hold(t.Context())
		if took := time.Since(began); took >= protocol.HoldPatience {
			t.Errorf("it took %s", took)
		}
		for _, words := range []string{
			"not all poolers hold", "poolers=b ", "term=7 ", "handOver=" + p.Status.Get().HandOver + " ", "after=",
		} {
			if !strings.Contains(log.String(), words) {
				t.Errorf("the log lacks %q: %s", words, log)
			}
		}
		release()
	})
}

// A pooler is answered when something has changed, and else after a while.
func TestAPoolerIsAnsweredWhenSomethingHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := instance()
		heard := p.Answer(t.Context(), protocol.PoolerAsks{Pooler: "a"})
		began := time.Now()
		heard = p.Answer(t.Context(), protocol.PoolerAsks{Pooler: "a", Heard: heard})
		if took := time.Since(began); took != protocol.PoolerWaits {
			t.Errorf("nothing has changed, and it was answered after %s", took)
		}
		began = time.Now()
		go func() {
			time.Sleep(250 * time.Millisecond)
			p.Status.Change(func(s *protocol.Status) { s.Term = 9 })
		}()
		if heard = p.Answer(t.Context(), protocol.PoolerAsks{Pooler: "a", Heard: heard}); heard.Term != 9 ||
			time.Since(began) != 250*time.Millisecond {
			t.Errorf("it hears of term %d after %s", heard.Term, time.Since(began))
		}
	})
}
