package myapp

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWhoLeads(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 21, 8, minute, 0, 0, time.UTC) }
	pod := func(name string, minute int, modify ...func(*candidate)) candidate {
		c := candidate{name: name, ready: true, current: true, created: at(minute)}
		for _, m := range modify {
			m(&c)
		}
		return c
	}
	leads := func(c *candidate) { c.leads = true }
	unready := func(c *candidate) { c.ready = false }
	old := func(c *candidate) { c.current = false }
	for name, c := range map[string]struct {
		candidates []candidate
		want       string
	}{
		"nobody is there":                 {nil, ""},
		"nobody is ready":                 {[]candidate{pod("a", 0, unready), pod("b", 1, unready, leads)}, ""},
		"the oldest":                      {[]candidate{pod("a", 2), pod("b", 1), pod("c", 3)}, "b"},
		"of two that are as old, by name": {[]candidate{pod("b", 1), pod("a", 1)}, "a"},
		"who leads stays":                 {[]candidate{pod("a", 1), pod("b", 2, leads)}, "b"},
		"who leads stays, though it is about to be replaced": {[]candidate{pod("a", 1), pod("b", 2, leads, old)}, "b"},
		"who led is not ready": {
			[]candidate{pod("a", 1), pod("b", 0, leads, unready)}, "a",
		},
		"one that stays before one that is replaced":    {[]candidate{pod("a", 1, old), pod("b", 2)}, "b"},
		"one that is replaced, where there is no other": {[]candidate{pod("a", 1, old), pod("b", 2, unready)}, "a"},
		"of two that bear the label one stays":          {[]candidate{pod("a", 2, leads), pod("b", 1, leads)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			rand.Shuffle(len(c.candidates),
				func(i, j int) { c.candidates[i], c.candidates[j] = c.candidates[j], c.candidates[i] })
			if got := lead(c.candidates); got != c.want {
				t.Errorf("%q leads, want %q", got, c.want)
			}
		})
	}
}
