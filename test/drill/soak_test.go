package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// draw are the first pairs of a seed.
func draw(seed uint64, count int) []string {
	var drawn []string
	for p := range pairs(seed, faults(options{})) {
		drawn = append(drawn, fmt.Sprintf("%s, %s after %s", p.first.name, p.second.name, p.pause))
		if len(drawn) == count {
			break
		}
	}
	return drawn
}

func TestASeedMakesTheSamePairsAgain(t *testing.T) {
	one, again, other := draw(7, 50), draw(7, 50), draw(8, 50)
	if !slices.Equal(one, again) {
		t.Errorf("seed 7 made\n%q and then\n%q", one, again)
	}
	if slices.Equal(one, other) {
		t.Error("another seed made the same pairs")
	}
}

func TestPairsAreMadeOfAllFaultsThatFit(t *testing.T) {
	all := faults(options{})
	first, second := map[string]bool{}, map[string]bool{}
	count := 0
	for p := range pairs(1, all) {
		if !fit(p.first, p.second) {
			t.Fatalf("%s and %s don't fit", p.first.name, p.second.name)
		}
		if p.pause < 0 || p.pause > longestPause {
			t.Fatalf("a pause of %s", p.pause)
		}
		first[p.first.name], second[p.second.name] = true, true
		if count++; count == 5000 {
			break
		}
	}
	if len(first) != len(all) || len(second) != len(all) {
		t.Errorf("of %d faults %d came first and %d came second", len(all), len(first), len(second))
	}
}

func TestWhatNeedsTheAPIIsNotMadeWithoutIt(t *testing.T) {
	away, deleted := fault{name: "away", api: takesAPI}, fault{name: "deleted", api: needsAPI}
	killed := fault{name: "killed"}
	cases := map[string]struct {
		first, second fault
		want          bool
	}{
		"the API is taken first":      {away, deleted, false},
		"the API is taken afterwards": {deleted, away, false},
		"a signal needs no API":       {away, killed, true},
		"both need it":                {deleted, fault{name: "other", api: needsAPI}, true},
		"the same twice":              {killed, killed, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fit(c.first, c.second); got != c.want {
				t.Errorf("fit = %t", got)
			}
		})
	}
	if fitting([]fault{away, deleted}) == nil || fitting([]fault{killed}) == nil {
		t.Error("a soak would look for a pair for ever")
	}
	if err := fitting([]fault{killed, away}); err != nil {
		t.Error(err)
	}
}

// someScene is one in which a instance a is the primary, and says so.
func someScene(t *testing.T) *scene {
	t.Helper()
	like, err := shapeNamed(usual)
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{world: world{shape: like}, history: newHistory(), book: &book{all: map[string]instance{}}, say: t.Logf}
	for _, member := range like.members() {
		s.book.all[member] = instance{name: member, node: "node of " + member}
	}
	if err := s.cast("drill-0"); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTheSecondFaultOfAPairHitsWhoIsPrimaryByThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someScene(t)
		time.Sleep(time.Second) // the clients have run for a while
		var hit []string
		strike := func(_ context.Context, s *scene) error {
			s.strike()
			hit = append(hit, fmt.Sprintf("%s at %s", s.primary.name, s.history.now()))
			return nil
		}
		p := pair{pause: time.Second, first: fault{name: "one", most: 1, inject: strike},
			second: fault{name: "other", most: 2, inject: strike}}
		go func() {
			time.Sleep(900 * time.Millisecond)
			s.history.noteSight(sight{instance: "drill-2", primary: true, end: s.history.now()})
		}()
		f := p.compose()
		if err := f.inject(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if want := []string{"drill-0 at 1s", "drill-2 at 2s"}; !slices.Equal(hit, want) {
			t.Errorf("hit %q, want %q", hit, want)
		}
		if s.t0 != time.Second || s.last != 2*time.Second {
			t.Errorf("the clock starts at %s, and the second is taken to last from %s on", s.t0, s.last)
		}
		if f.most != 3 || f.pause != time.Second {
			t.Errorf("the primary may change %d times, and the second comes after %s", f.most, f.pause)
		}
	})
}

func TestASecondFaultThatFindsNobodyIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := someScene(t)
		nobody := errors.New("the Pod has no process")
		p := pair{
			first:  fault{name: "one", inject: func(context.Context, *scene) error { return nil }},
			second: fault{name: "other", inject: func(context.Context, *scene) error { return nobody }},
		}
		if err := p.compose().inject(t.Context(), s); err != nil {
			t.Errorf("the round fails: %v", err)
		}
		if !strings.Contains(strings.Join(s.notes, "\n"), nobody.Error()) {
			t.Errorf("noted is %q", s.notes)
		}
		p.first.inject = p.second.inject
		if err := p.compose().inject(t.Context(), s); !errors.Is(err, nobody) {
			t.Errorf("the first fault did not strike, and the error is %v", err)
		}
	})
}

func TestASoakEndsWithWhatCameOfIt(t *testing.T) {
	got := summary(7,
		[]Run{{Acked: 5, Linearizable: "Ok"}, {Acked: 5, Lost: 1, Overlap: 2, Needless: 3, Linearizable: "Illegal"}})
	const want = "seed 7: 2 rounds, 1 of them with something wrong: lost 1 of 10 acknowledged writes, overlap 2, " +
		"not linearizable 1, needless changes 3; -seed 7 makes them again"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestASoakHasARowForEachRound(t *testing.T) {
	runs := []Run{
		{
			Fault: "node-killed+api-away", Round: 3, Service: 38.994, Multi: 0.83, Whole: 0.1, Acked: 3914, Changes: 1,
			Linearizable: "Ok", Pause: 5.2,
		},
		{Fault: "pod-deleted+server-hung", Round: 4, ByItself: true, Linearizable: "Illegal", Lost: 2, Overlap: 1},
	}
	want := "3 node-killed 5.2 s api-away no 38.99 s 0.83 s 0 of 3914 0 Ok 0.10 s 1"
	table := soakTable(runs)
	if got := strings.Join(table[1], " "); got != want || len(table) != 3 || len(table[2]) != len(table[0]) {
		t.Errorf("%q, want %q, in %d rows", got, want, len(table))
	}
	if !soaked(runs) || soaked([]Run{{Fault: "node-killed"}}) {
		t.Error("a soak is not told from other rounds")
	}
}
