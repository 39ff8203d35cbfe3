package upgrade

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/change/window"
)

func TestWhatIsLeftAfterAChangeOfTheImage(t *testing.T) {
	now := time.Date(2026, 11, 22, 2, 0, 0, 0, time.UTC)
	open := Permission{Window: &window.Window{Hour: 1, Length: 2 * time.Hour, Location: time.UTC}, Automatic: true}
	closed := Permission{Window: &window.Window{Hour: 4, Length: 2 * time.Hour, Location: time.UTC}, Automatic: true}
	with := func(p Permission, change func(*Permission)) Permission { change(&p); return p }
	asked := func(p *Permission) { p.Asked = true }
	inWindow := func(p *Permission) { p.Asked, p.InWindow = true, true }
	for name, c := range map[string]struct {
		f    Finish
		want FinishStep
		says string
	}{
		"nothing is to be done":    {Finish{Ready: true}, FinishNone, ""},
		"an act has made it due":   {Finish{Ready: true, Due: true}, FinishBegin, ""},
		"and the window is closed": {Finish{Ready: true, Due: true, Permission: closed}, FinishBegin, ""},
		"and it is only done on request": {
			Finish{Ready: true, Due: true, OnRequest: true}, FinishWait, "reindex=now",
		},
		"and instances are replaced":      {Finish{Due: true}, FinishWait, "Ready"},
		"it was so before":                {Finish{Ready: true, Stale: true}, FinishWait, "reindex=now"},
		"it was so before, in the window": {Finish{Ready: true, Stale: true, Permission: open}, FinishBegin, ""},
		"it was so before, and the window is closed": {
			Finish{Ready: true, Stale: true, Permission: closed}, FinishWait, "opens at 2026-11-22T04:00:00Z"},
		"in the window, on request only": {
			Finish{Ready: true, Stale: true, Permission: open, OnRequest: true}, FinishWait, "reindex=now"},
		"somebody asks": {Finish{Ready: true, Permission: with(Permission{}, asked)}, FinishBegin, ""},
		"somebody asks, on request only": {
			Finish{Ready: true, OnRequest: true, Stale: true, Permission: with(closed, asked)}, FinishBegin, ""},
		"somebody asks for the window": {
			Finish{Ready: true, Stale: true, Permission: with(closed, inWindow)}, FinishWait, "opens at"},
		"somebody asks for the window, and there is none": {
			Finish{Ready: true, Stale: true, Permission: with(Permission{}, inWindow)}, FinishBegin, ""},
		"there is no room": {
			Finish{Ready: true, Due: true, Cramped: true}, FinishWait, "spec.storage.size",
		},
		"there is no room, and one asks": {
			Finish{Ready: true, Due: true, Cramped: true, Permission: with(open, asked)}, FinishBegin, "",
		},
		"the Job works": {Finish{Ready: true, Due: true, Works: true}, FinishWatch, ""},
		"it has ended":  {Finish{Ended: true}, FinishTake, ""},
		"it has failed": {
			Finish{Ready: true, Due: true, FailedAt: now.Add(-time.Minute)}, FinishWait, "tried again",
		},
		"it has failed an hour ago": {
			Finish{Ready: true, Due: true, FailedAt: now.Add(-time.Hour)}, FinishBegin, "",
		},
		"it has failed, and somebody asks": {
			Finish{Ready: true, FailedAt: now, Permission: with(Permission{}, asked)}, FinishBegin, ""},
		"there are duplicates": {Finish{Ready: true, Stale: true, Due: true, Left: true}, FinishWait, "Mend"},
		"there are duplicates, and somebody asks": {
			Finish{Ready: true, Stale: true, Left: true, Permission: with(Permission{}, asked)}, FinishBegin, ""},
	} {
		c.f.Now = now
		step, says, _ := DecideFinish(c.f)
		if step != c.want || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s (%s), want %s (%s)", name, step, says, c.want, c.says)
		}
	}
}
