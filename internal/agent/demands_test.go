package agent

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
)

// steps are what was done to a server, in order.
type steps struct {
	done    []string
	demands *demands
	broken  string // the step that fails
	slow    time.Duration
}

func (s *steps) step(what string) error {
	s.done = append(s.done, what)
	if s.broken == what {
		return errors.New("broken")
	}
	return nil
}

func (s *steps) apply(ctx context.Context) error {
	select {
	case <-time.After(s.slow):
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.step("apply " + s.demands.rule().String())
}

func (s *steps) AwaitEnforced(context.Context) error { return s.step("await") }

func (s *steps) Barrier(_ context.Context, rule string) error { return s.step("barrier " + rule) }

// demanding is a server of which demands are made, and the events that the machine gets.
func demanding(running bool) (*steps, *[]machine.Event) {
	s, events := &steps{}, &[]machine.Event{}
	s.demands = &demands{
		enforced: func() {},
		server:   s, post: func(e machine.Event) { *events = append(*events, e) },
		primary: func() func(context.Context) error {
			if !running {
				return nil
			}
			return s.apply
		},
	}
	return s, events
}

var anyOne = ha.Rule{Count: 1, From: []ha.Voter{"db-1.b", "db-2.c"}}

func TestADemandIsInForceBeforeItIsDone(t *testing.T) {
	nobody := ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}.String()
	for name, c := range map[string]struct {
		demand  machine.Demand
		running bool
		broken  string
		steps   []string
		failed  bool
	}{
		"a rule": {machine.Demand{Rule: anyOne}, true, "", []string{"apply " + anyOne.String()}, false},
		"a rule with a barrier": {
			machine.Demand{Rule: anyOne, Barrier: true}, true, "",
			[]string{"apply " + anyOne.String(), "barrier " + anyOne.String()}, false,
		},
		"first of all nothing at all": {
			machine.Demand{Rule: anyOne, Enforce: true}, true, "",
			[]string{"apply " + nobody, "await", "apply " + anyOne.String()}, false,
		},
		"which is not in force": {
			machine.Demand{Rule: anyOne, Enforce: true}, true, "await", []string{"apply " + nobody, "await"}, true,
		},
		"no server": {machine.Demand{Rule: anyOne}, false, "", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, events := demanding(c.running)
				s.broken, c.demand.ID = c.broken, 7
				s.demands.begin(t.Context(), c.demand)
				synctest.Wait()
				if !slices.Equal(s.done, c.steps) || len(*events) != 1 {
					t.Fatalf("it did %q, and said %v", s.done, *events)
				}
				if done, ok := (*events)[0].(machine.Done); !ok || done.ID != 7 || (done.Err != "") != c.failed {
					t.Errorf("the machine hears %+v", (*events)[0])
				}
				s.demands.giveUp()
			})
		})
	}
}

// Of two demands the later one counts, and the earlier one does nothing any more once that begins.
func TestALaterDemandGivesTheEarlierUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, events := demanding(true)
		s.slow = time.Second
		s.demands.begin(t.Context(), machine.Demand{ID: 1, Rule: ha.Rule{Count: 2, From: anyOne.From}, Barrier: true})
		synctest.Wait()
		s.demands.begin(t.Context(), machine.Demand{ID: 2, Rule: anyOne})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(s.done, []string{"apply " + anyOne.String()}) || s.demands.rule().String() != anyOne.String() {
			t.Errorf("it did %q, and the rule is %v", s.done, s.demands.rule())
		}
		first, _ := (*events)[0].(machine.Done)
		last, _ := (*events)[1].(machine.Done)
		if len(*events) != 2 || first.ID != 1 || first.Err == "" || last.ID != 2 || last.Err != "" {
			t.Errorf("the machine hears %+v", *events)
		}
		s.demands.giveUp()
	})
}

func TestWithoutADemandNobodyAcknowledges(t *testing.T) {
	s, _ := demanding(true)
	if rule := s.demands.rule(); rule.Count != 1 || !slices.Equal(rule.From, []ha.Voter{ha.Nobody}) {
		t.Errorf("the rule is %v", rule)
	}
	s.demands.require(anyOne)
	if rule := s.demands.rule(); rule.String() != anyOne.String() {
		t.Errorf("the rule is %v", rule)
	}
}
