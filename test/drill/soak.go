package main

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// pair is two faults of which the second comes a while after the first.
type pair struct {
	first, second fault
	pause         time.Duration
}

const (
	// and is between the names of the two faults of a round.
	and = "+"
	// longestPause is between the two faults of a pair: longer than an election takes, so
	// that the second comes before, during and after it.
	longestPause = 6 * time.Second
	// longestStrike is how long the second may take: what it is made with may be broken.
	longestStrike = time.Minute
	// pauseStep is what pauses are multiples of: a title can say them exactly.
	pauseStep = 100 * time.Millisecond
)

// pairs draws pairs without end. The same seed and the same faults make the same ones,
// however long the rounds take.
func pairs(seed uint64, all []fault) iter.Seq[pair] {
	return func(yield func(pair) bool) {
		random := rand.New(rand.NewPCG(seed, 0)) // to be repeated, not to be guessed
		for {
			p := pair{first: all[random.IntN(len(all))], second: all[random.IntN(len(all))]}
			p.pause = time.Duration(random.IntN(int(longestPause/pauseStep)+1)) * pauseStep
			if !fit(p.first, p.second) {
				continue
			}
			if !yield(p) {
				return
			}
		}
	}
}

// fit says whether the second fault can be made after the first. What needs the API
// can't be made without it.
func fit(first, second fault) bool {
	without := first.api == takesAPI && second.api == needsAPI || first.api == needsAPI && second.api == takesAPI
	return first.name != second.name && !without
}

// fitting says whether any two of the faults can be made together: pairs would look for
// ever for what is not there.
func fitting(all []fault) error {
	for _, first := range all {
		for _, second := range all {
			if fit(first, second) {
				return nil
			}
		}
	}
	return fmt.Errorf("a soak takes two faults that can be made together; these are %d", len(all))
}

// compose is the two as one fault. The second hits who is the primary by then. It may
// find nobody whom it could hit: that is noted, and the round counts.
func (p pair) compose() fault {
	return fault{
		name:     p.first.name + and + p.second.name,
		about:    fmt.Sprintf("%s; %s later %s", p.first.about, p.pause, p.second.about),
		most:     p.first.most + p.second.most,
		lasts:    max(p.first.lasts, p.second.lasts),
		pause:    p.pause,
		operator: p.first.operator || p.second.operator,
		prepare: func(ctx context.Context, s *scene) error {
			for _, f := range []fault{p.first, p.second} {
				if f.prepare == nil {
					continue
				}
				if err := f.prepare(ctx, s); err != nil {
					return err
				}
			}
			return nil
		},
		inject: func(ctx context.Context, s *scene) error {
			if err := p.first.inject(ctx, s); err != nil {
				return err
			}
			if err := wait(ctx, p.pause); err != nil {
				return err
			}
			s.note("%s followed after %s", p.second.name, p.pause)
			if err := s.recast(ctx, time.Second); err != nil {
				s.note("nobody is known to be the primary then, so it hits who was: %v", err)
			}
			once, cancel := context.WithTimeout(ctx, longestStrike)
			defer cancel()
			if err := p.second.inject(once, s); err != nil {
				s.note("it did not strike: %v", err)
			}
			return ctx.Err()
		},
	}
}

func wait(ctx context.Context, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// soak are rounds of two faults each, until the time is over.
func (d *drill) soak(chosen []fault) iter.Seq[turn] {
	end := time.Now().Add(d.options.soak)
	return func(yield func(turn) bool) {
		round := 0
		for p := range pairs(d.options.seed, chosen) {
			left := time.Until(end).Round(time.Second)
			if left <= 0 {
				return
			}
			round++
			f := p.compose()
			title := fmt.Sprintf("soak, round %d, seed %d, %s left: %s", round, d.options.seed, left, f.name)
			if !yield(turn{f, round, title}) {
				return
			}
		}
	}
}

// summary is what came of a soak in one line, and how to make it again.
func summary(seed uint64, runs []Run) string {
	illegal := sum(runs, func(r Run) int {
		if r.Linearizable == string(porcupine.Illegal) {
			return 1
		}
		return 0
	})
	wrong := sum(runs, func(r Run) int { return min(len(r.wrongs()), 1) })
	return fmt.Sprintf("seed %d: %d rounds, %d of them with something wrong: lost %d of %d acknowledged writes, "+
		"overlap %d, not linearizable %d, needless changes %d; -seed %d makes them again", seed, len(runs), wrong,
		sum(runs, func(r Run) int { return r.Lost }), sum(runs, func(r Run) int { return r.Acked }),
		sum(runs, func(r Run) int { return r.Overlap }), illegal,
		sum(runs, func(r Run) int { return r.Needless }), seed)
}

// soaked says that the runs are those of a soak.
func soaked(runs []Run) bool {
	return slices.ContainsFunc(runs, func(r Run) bool { return strings.Contains(r.Fault, and) })
}

// soakTable has a row for each round of a soak. The first row is the head.
func soakTable(runs []Run) [][]string {
	rows := [][]string{{"round", "first", "after", "second", "by itself", "Service", "multi-host", "lost", "overlap",
		"linearizable", "whole", "changes of the primary"}}
	for _, r := range runs {
		first, second, _ := strings.Cut(r.Fault, and)
		itself := "no"
		if r.ByItself {
			itself = "yes"
		}
		rows = append(rows, []string{
			fmt.Sprint(r.Round), first, fmt.Sprintf("%.1f s", r.Pause), second, itself,
			fmt.Sprintf("%.2f s", r.Service), fmt.Sprintf("%.2f s", r.Multi),
			fmt.Sprintf("%d of %d", r.Lost, r.Acked), fmt.Sprint(r.Overlap), r.Linearizable,
			fmt.Sprintf("%.2f s", r.Whole), fmt.Sprint(r.Changes),
		})
	}
	return rows
}
