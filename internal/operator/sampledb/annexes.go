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
var annexes = []func(*world.Act, world.Rest) world.Annex{
	major.Annex,
	bluegreen.Annex,
}

// withAnnexes puts the phases of annexes to the others.
func (s *scope) withAnnexes(all []phase) []phase {
	for _, a := range s.annexes {
		for _, p := range a.Phases {
			next := slices.IndexFunc(all, func(other phase) bool { return other.name == p.Before })
			one := phase{p.Name, p.Run, gates}
			if p.Apart {
				one.kind = apart
			}
			all = slices.Insert(all, next, one)
		}
	}
	return all
}

// recordAnnexes notes what annexes have to note, and says whether there was something.
func (s *scope) recordAnnexes(ctx context.Context) (bool, error) {
	for _, a := range s.annexes {
		if a.Record == nil {
			continue
		}
		if noted, err := a.Record(ctx); noted || err != nil {
			return noted, err
		}
	}
	return false, nil
}

// look is after how long an annex wants the SampleDB to be looked at again, where that is before a pause ends.
func (s *scope) look(pause time.Duration) time.Duration {
	for _, a := range s.annexes {
		if a.Look == nil {
			continue
		}
		if soon := a.Look(); soon > 0 {
			pause = min(pause, soon)
		}
	}
	return pause
}

// endAnnexes ends what annexes do in a SampleDB that is being deleted, and names what the first of them waits for.
func (s *scope) endAnnexes(ctx context.Context) (waiting string, err error) {
	for _, a := range s.annexes {
		if a.End == nil {
			continue
		}
		if waiting, err = a.End(ctx); waiting != "" || err != nil {
			return waiting, err
		}
	}
	return "", nil
}

// saved says that an annex has another last backup, which has all.
func (s *scope) saved(ctx context.Context) (bool, error) {
	for _, a := range s.annexes {
		if a.Saved == nil {
			continue
		}
		if saved, err := a.Saved(ctx); saved || err != nil {
			return saved, err
		}
	}
	return false, nil
}

// said is what annexes say, by one of their functions.
func (s *scope) said(by func(world.Annex) func() string) (words string) {
	for _, a := range s.annexes {
		if says := by(a); says != nil {
			words += says()
		}
	}
	return words
}
