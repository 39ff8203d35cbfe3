package sampledb

import (
	"context"
	"slices"
	"time"

	"toban.dev/internal/operator/sampledb/bluegreen"
	"toban.dev/internal/operator/sampledb/major"
	"toban.dev/internal/operator/sampledb/world"
)

// annexes are what a SampleDB does without. Each goes with its folder and its line here (hack/house has a test that
// takes it out). One that builds on another comes after it.
var annexes = []func(*world.Act, world.Rest, *world.Annexes){
	major.Add,
	bluegreen.Add,
}

// withAnnexes puts the phases of annexes to the others.
func (s *scope) withAnnexes(all []phase) []phase {
	for _, p := range s.annexes.Phases {
		next := slices.IndexFunc(all, func(other phase) bool { return other.name == p.Before })
		one := phase{p.Name, p.Run, gates}
		if p.Apart {
			one.kind = apart
		}
		all = slices.Insert(all, next, one)
	}
	return all
}

// untilLook is a pause, or how soon an annex wants the SampleDB to be looked at again.
func (s *scope) untilLook(pause time.Duration) time.Duration {
	for _, look := range s.annexes.Look {
		if soon := look(); soon > 0 {
			pause = min(pause, soon)
		}
	}
	return pause
}

// firstSaid asks annexes until one has something to say, or fails.
func firstSaid[T comparable](ctx context.Context, annexes []func(context.Context) (T, error)) (said T, err error) {
	var nothing T
	for _, ask := range annexes {
		if said, err = ask(ctx); said != nothing || err != nil {
			break
		}
	}
	return said, err
}

// allSaid is what annexes say.
func allSaid(annexes []func() string) (words string) {
	for _, says := range annexes {
		words += says()
	}
	return words
}
