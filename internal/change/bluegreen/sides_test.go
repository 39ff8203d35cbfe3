package bluegreen

import (
	"strings"
	"testing"
	"time"

	"toban.dev/internal/change/major"

	"toban.dev/internal/change/window"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// readyToChange is a view in which green follows, all rows were compared, and sides may change.
func readyToChange() SidesView {
	done := Work{Started: true, Done: true}
	return SidesView{
		Now: noon, From: 17, To: 18, Phase: PhaseReady, Since: noon, Wanted: true, Ready: true, Serves: Blue,
		Waits: true, SidesWorks: SidesWorks{
			Settle: done, Leave: done, InPlace: done, Return: done, Check: done,
			Backup: done, Publish: done, Copy: done, Follow: done, Compare: done, Prepare: done,
		},
	}
}

// changedSides is one in which green serves, and blue follows.
func changedSides() SidesView {
	v := readyToChange()
	v.Phase, v.Serves, v.Open, v.Until = PhaseChanged, Green, true, noon.Add(time.Hour)
	return v
}

func TestDecideSides(t *testing.T) {
	night := window.Window{Hour: 3, Length: time.Hour, Location: time.UTC}
	for name, c := range map[string]struct {
		view   SidesView
		change func(*SidesView)
		want   Phase
		serves Colour
		says   string
	}{
		"not ready": {readyToChange(), func(v *SidesView) { v.Ready = false },
			major.PhaseWaiting, Blue, "Ready"},
		"something can't be carried": {readyToChange(), func(v *SidesView) { v.Check = Work{Failed: "large objects"} },
			PhaseCancelling, Blue, "large objects"},
		"the copy is made": {readyToChange(), func(v *SidesView) { v.Copy = Work{Says: "30 %"} },
			PhaseCopying, Blue, "30 %"},
		"it is behind": {readyToChange(), func(v *SidesView) { v.Follow = Work{} },
			PhaseFollowing, Blue, "caught up"},
		"rows are compared": {readyToChange(), func(v *SidesView) { v.Compare = Work{} },
			PhaseComparing, Blue, "rows"},
		"rows differ": {readyToChange(), func(v *SidesView) { v.Compare = Work{Failed: "app.orders differs"} },
			PhaseCancelling, Blue, "app.orders"},
		"a slot is gone": {readyToChange(), func(v *SidesView) { v.Broken = "a slot is gone" },
			PhaseCancelling, Blue, "slot"},
		"outside the window": {readyToChange(), func(v *SidesView) { v.Window = &night },
			PhaseReady, Blue, "2026-11-21T03:00:00Z"},
		"asked not to wait": {readyToChange(), func(v *SidesView) { v.Window, v.Asked = &night, true },
			PhaseChanging, Blue, "No client"},
		"all is ready": {readyToChange(), func(*SidesView) {},
			PhaseChanging, Blue, "No client"},
		"clients would not know green": {readyToChange(), func(v *SidesView) { v.Unshown = "no certificate yet" },
			PhaseReady, Blue, "no certificate yet"},
		"clients would not know green, which is found in the pause": {readyToChange(),
			func(v *SidesView) { v.Phase, v.Unshown = PhaseChanging, "no certificate yet" },
			PhaseChanging, Blue, "No client"},
		"it was put off a moment ago": {readyToChange(), func(v *SidesView) { v.Tried, v.Failure = 1, "too slow" },
			PhaseReady, Blue, "too slow"},
		"it was put off a minute ago": {readyToChange(), func(v *SidesView) { v.Tried, v.Now = 1, noon.Add(PutOff) },
			PhaseChanging, Blue, "No client"},
		"it was put off again and again": {readyToChange(),
			func(v *SidesView) { v.Tried, v.Now = 3, noon.Add(time.Hour) },
			PhaseReady, Blue, "toban.dev/update=now"},
		"clients go": {readyToChange(), func(v *SidesView) { v.Phase = PhaseChanging },
			PhaseChanging, Blue, "No client"},
		"all is handed over, but clients are there": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Hand.Done = PhaseChanging, true
		},
			PhaseChanging, Blue, "No client"},
		"no client is there, and all is handed over": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Hand.Done, v.Closed = PhaseChanging, true, true
		},
			PhaseChanged, Green, "18 is let"},
		"all is handed over, and another primary was elected": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Hand.Done, v.Closed, v.Compare = PhaseChanging, true, true, Work{}
		},
			PhaseReady, Blue, "compared anew"},
		"the pause would be too long": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Closed, v.Now = PhaseChanging, true, noon.Add(PausePatience)
		},
			PhaseReady, Blue, "put off"},
		"somebody has made a table meanwhile": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Closed, v.Hand.Failed = PhaseChanging, true, "CREATE TABLE app.later"
		},
			PhaseReady, Blue, "app.later"},
		"not wanted any more": {readyToChange(), func(v *SidesView) { v.Wanted = false },
			PhaseCancelling, Blue, "removed"},
		"not wanted any more in the pause": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Wanted = PhaseChanging, false
		},
			PhaseCancelling, Blue, "removed"},
		"nothing is left, after the way back": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Failure, v.Removed.Done = PhaseCancelling, wayBackTaken, true
		},
			major.PhaseFailed, Blue, "serves again, with all that was written"},
		"nothing is left of it": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Failure, v.Removed.Done = PhaseCancelling, "rows differ", true
		},
			major.PhaseFailed, Blue, "rows differ"},
		"the record has changed, and nothing else": {readyToChange(), func(v *SidesView) {
			v.Phase, v.Serves = PhaseChanging, Green
		},
			PhaseChanged, Green, "18 is let"},
		"green serves": {changedSides(), func(*SidesView) {},
			PhaseChanged, Green, "17 follows it"},
		"green serves, and blue is gone": {changedSides(), func(v *SidesView) { v.Broken = "a slot is gone" },
			PhaseChanged, Green, "no way back"},
		"the spec does not matter any more": {changedSides(), func(v *SidesView) { v.Wanted = false },
			PhaseChanged, Green, "follows"},
		"accepted": {changedSides(), func(v *SidesView) { v.Accepted = true },
			PhaseChangingBack, Green, "No client"},
		"accepted, and blue still follows": {changedSides(), func(v *SidesView) { v.Accepted, v.Leave = true, Work{} },
			PhaseComingHome, Green, "stops following"},
		"accepted by itself": {changedSides(), func(v *SidesView) { v.Now, v.Leave = v.Until, Work{} },
			PhaseComingHome, Green, "stops following"},
		"blue is upgraded": {changedSides(), func(v *SidesView) {
			v.Phase, v.InPlace = PhaseComingHome, Work{Says: "Closing"}
		},
			PhaseComingHome, Green, "upgraded: Closing"},
		"blue can't be upgraded": {changedSides(), func(v *SidesView) {
			v.Phase, v.InPlace = PhaseComingHome, Work{Failed: "no room"}
		},
			PhaseComingHome, Green, "no room"},
		"blue follows again, not compared yet": {changedSides(), func(v *SidesView) {
			v.Phase, v.Compare = PhaseComingHome, Work{}
		},
			PhaseComingHome, Green, "compared"},
		"home, and all is handed over": {changedSides(), func(v *SidesView) {
			v.Phase, v.Accepted, v.Closed, v.Hand.Done = PhaseChangingBack, true, true, true
		},
			PhaseComingHome, Blue, "18 is let"},
		"home, and it takes too long": {changedSides(), func(v *SidesView) {
			v.Phase, v.Accepted, v.Now = PhaseChangingBack, true, noon.Add(PausePatience)
		},
			PhaseComingHome, Green, "put off"},
		"home, and green is removed": {changedSides(), func(v *SidesView) {
			v.Phase, v.Accepted, v.Serves = PhaseComingHome, true, Blue
		},
			PhaseComingHome, Blue, "removed"},
		"at home": {changedSides(), func(v *SidesView) {
			v.Phase, v.Accepted, v.Serves, v.Removed.Done = PhaseComingHome, true, Blue, true
		},
			major.PhaseUpgraded, Blue, "18 takes writes"},
		"blue does not follow yet": {changedSides(), func(v *SidesView) { v.Settle = Work{} },
			PhaseChanged, Green, "begins to follow"},
		"the Pod that hands over is not there": {readyToChange(), func(v *SidesView) { v.Waits = false },
			PhaseReady, Blue, "started"},
		"the Pod that hands over has found something": {readyToChange(), func(v *SidesView) {
			v.Waits, v.Hand.Failed = false, "roles differ"
		},
			PhaseReady, Blue, "roles differ"},
		"green was deleted while it served": {changedSides(), func(v *SidesView) {
			v.Gone, v.Open, v.Broken = true, false, "green was deleted"
		},
			PhaseChanged, Green, "No side serves: green was deleted"},
		"green was deleted while it served, and the way back is asked for": {changedSides(), func(v *SidesView) {
			v.Gone, v.Open, v.Back, v.Broken = true, false, true, "green was deleted"
		},
			PhaseChangingBack, Blue, "17 is let"},
		"the way back": {changedSides(), func(v *SidesView) { v.Back = true },
			PhaseChangingBack, Green, "No client"},
		"the way back, which does not wait for what green shows": {changedSides(), func(v *SidesView) {
			v.Back, v.Unshown = true, "no certificate any more"
		}, PhaseChangingBack, Green, "No client"},
		"the way back, not compared yet": {changedSides(), func(v *SidesView) {
			v.Back, v.Compare = true, Work{}
		},
			PhaseChanged, Green, "compared"},
		"no way back": {changedSides(), func(v *SidesView) { v.Back, v.Broken = true, "a slot is gone" },
			PhaseChanged, Green, "no way back"},
		"the way back, asked for before it is known what its link is": {changedSides(), func(v *SidesView) {
			v.Phase, v.Back = PhaseChanging, true
		}, PhaseChanged, Green, "18 is let"},
		"the way back, and an instance of green is down": {changedSides(), func(v *SidesView) {
			v.Open, v.Back, v.Unready = false, true, "x-green-1 does not answer"
		}, PhaseChanged, Green, "18 serves. It goes on, and sides can change, when all instances of the second side " +
			"are ready: x-green-1 does not answer"},
		"accepted, and an instance of green is down": {changedSides(), func(v *SidesView) {
			v.Open, v.Accepted, v.Unready = false, true, "x-green-1 does not answer"
		}, PhaseComingHome, Green, "ready: x-green-1 does not answer"},
		"back, and all is handed over": {changedSides(), func(v *SidesView) {
			v.Phase, v.Back, v.Closed, v.Hand.Done = PhaseChangingBack, true, true, true
		},
			PhaseChangingBack, Blue, "17 is let"},
		"back, and it takes too long": {changedSides(), func(v *SidesView) {
			v.Phase, v.Back, v.Now = PhaseChangingBack, true, noon.Add(PausePatience)
		},
			PhaseChanged, Green, "put off"},
		"blue serves again": {changedSides(), func(v *SidesView) {
			v.Phase, v.Serves = PhaseChangingBack, Blue
		},
			PhaseCancelling, Blue, "the way back was asked for"},
	} {
		t.Run(name, func(t *testing.T) {
			c.change(&c.view)
			d := DecideSides(c.view)
			if d.Phase != c.want || d.Serves != c.serves || !strings.Contains(d.Says, c.says) {
				t.Errorf("it is %s, %s serves: %q; want %s, %s: %q", d.Phase, d.Serves, d.Says, c.want, c.serves,
					c.says)
			}
		})
	}
}

// What is to be done is the first that is not done, and where a link is broken, nothing that has not begun.
func TestTheTaskIsTheFirstThatIsNotDone(t *testing.T) {
	accepted := func(v *SidesView) { v.Accepted, v.Phase = true, PhaseComingHome }
	for name, c := range map[string]struct {
		view   SidesView
		change func(*SidesView)
		want   Task
	}{
		"not published":    {readyToChange(), func(v *SidesView) { v.Publish = Work{} }, TaskPublish},
		"copied meanwhile": {readyToChange(), func(v *SidesView) { v.Copy, v.Follow = Work{}, Work{} }, ""},
		"not followed": {readyToChange(), func(v *SidesView) {
			v.Follow, v.Compare = Work{}, Work{}
		}, TaskFollow},
		"not compared": {readyToChange(), func(v *SidesView) {
			v.Compare, v.Prepare = Work{}, Work{}
		}, TaskCompare},
		"no link back":       {readyToChange(), func(v *SidesView) { v.Prepare = Work{} }, TaskPrepare},
		"no Pod hands over":  {readyToChange(), func(v *SidesView) { v.Waits = false }, TaskChange},
		"in the pause":       {readyToChange(), func(v *SidesView) { v.Phase = PhaseChanging }, ""},
		"not settled":        {changedSides(), func(v *SidesView) { v.Settle = Work{} }, TaskSettle},
		"settling failed":    {changedSides(), func(v *SidesView) { v.Settle = Work{Failed: "no slot"} }, TaskSettle},
		"nobody decides yet": {changedSides(), func(v *SidesView) { v.Follow, v.Compare = Work{}, Work{} }, ""},
		"back":               {changedSides(), func(v *SidesView) { v.Back, v.Compare = true, Work{} }, TaskCompare},
		"accepted": {changedSides(), func(v *SidesView) {
			accepted(v)
			v.Leave, v.InPlace, v.Return = Work{}, Work{}, Work{}
		}, TaskLeave},
		"blue has left":     {changedSides(), func(v *SidesView) { accepted(v); v.InPlace = Work{} }, TaskInPlace},
		"blue can't return": {changedSides(), func(v *SidesView) { accepted(v); v.Return.Failed = "x" }, TaskReturn},
		"blue is being upgraded, and green is not ready": {changedSides(), func(v *SidesView) {
			accepted(v)
			v.Open, v.InPlace, v.Return = false, Work{Started: true}, Work{}
		}, TaskInPlace},
		"blue is being upgraded, and green is being deleted": {changedSides(), func(v *SidesView) {
			accepted(v)
			v.Broken, v.InPlace, v.Return = "green was deleted", Work{Started: true}, Work{}
		}, TaskInPlace},
		"blue is being upgraded, and green is gone": {changedSides(), func(v *SidesView) {
			accepted(v)
			v.Gone, v.Open, v.InPlace, v.Return = true, false, Work{Started: true}, Work{}
		}, TaskInPlace},
		"blue's upgrade has not begun, and green is not ready": {changedSides(), func(v *SidesView) {
			accepted(v)
			v.Open, v.InPlace, v.Return = false, Work{}, Work{}
		}, ""},
		"broken, accepted": {changedSides(), func(v *SidesView) {
			accepted(v)
			v.Broken, v.Leave = "a slot is gone", Work{}
		}, ""},
		"broken in what has begun": {changedSides(), func(v *SidesView) {
			v.Broken, v.Settle = "a slot is gone", Work{Started: true}
		}, TaskSettle},
	} {
		t.Run(name, func(t *testing.T) {
			c.change(&c.view)
			if d := DecideSides(c.view); d.Task != c.want {
				t.Errorf("the task is %q, want %q: %+v", d.Task, c.want, d)
			}
		})
	}
}

// Why a change of sides was put off is said for as long as it is.
func TestWhyAChangeIsPutOffIsRemembered(t *testing.T) {
	v := readyToChange()
	v.Tried, v.Failure, v.Waits = 1, "too slow", false
	for _, now := range []time.Time{noon, noon.Add(PutOff)} {
		v.Now = now
		if d := DecideSides(v); d.Phase != PhaseReady || d.Failure != "too slow" {
			t.Errorf("it is %+v", d)
		}
	}
	// Also while all rows are compared anew because of it, on the way there and on the way back.
	back := changedSides()
	back.Tried, back.Failure, back.Back = 1, "too slow", true
	for _, v := range []SidesView{v, back} {
		v.Compare = Work{}
		if d := DecideSides(v); d.Task != TaskCompare || d.Failure != "too slow" {
			t.Errorf("it is %+v", d)
		}
	}
}

// The invariants of docs/sides.md that are a matter of this decision, in all views there are.
func TestInvariantsOfSides(t *testing.T) {
	phases := []Phase{major.PhaseWaiting, major.PhasePulling, PhaseCopying, PhaseReady, PhaseChanging, PhaseChanged,
		PhaseChangingBack, PhaseCancelling, PhaseComingHome, major.PhaseUpgraded, major.PhaseFailed}
	views := 0
	for _, phase := range phases {
		for _, serves := range []Colour{Blue, Green} {
			for n := range 1 << 12 {
				bit := func(i int) bool { return n>>i&1 == 1 }
				v := readyToChange()
				v.Phase, v.Serves, v.Until = phase, serves, noon.Add(time.Hour)
				v.Wanted, v.Ready, v.Closed, v.Open = bit(0), bit(1), bit(2), bit(3)
				v.Hand.Done, v.Compare.Done, v.Back, v.Accepted = bit(4), bit(5), bit(6), bit(7)
				v.Removed.Done, v.Repeat = bit(8), bit(9)
				if bit(8) != bit(9) {
					v.Leave = Work{}
				}
				if bit(10) {
					v.Broken = "broken"
				}
				if bit(11) {
					v.Now = noon.Add(PausePatience)
				}
				checkSides(t, v, DecideSides(v))
				views++
			}
		}
	}
	t.Logf("%d views", views)
}

// pauses says that no client is let in, removes that green is removed, ends that blue is.
func pauses(p Phase) bool  { return p == PhaseChanging || p == PhaseChangingBack }
func removes(p Phase) bool { return p == PhaseCancelling || p == major.PhaseFailed }
func ends(p Phase) bool    { return p == major.PhaseUpgraded }

// late says that a pause that has not changed anything yet has lasted for long enough.
func late(v SidesView) bool {
	before := v.Phase == PhaseChanging && v.Serves == Blue || v.Phase == PhaseChangingBack && v.Serves == Green
	return before && v.Now.Sub(v.Since) >= PausePatience
}

func checkSides(t *testing.T, v SidesView, d SidesDecision) {
	t.Helper()
	turns := d.Serves != v.Serves
	handed := pauses(v.Phase) && v.Closed && v.Hand.Done
	for words, broken := range map[string]bool{
		"it decides nothing":                        d.Phase == "" || d.Serves == "",
		"invariant 2: the side that served is open": turns && !handed,
		"invariant 3: green serves, and is removed": d.Serves == Green && removes(d.Phase),
		"invariant 3: it ends while green serves":   d.Serves == Green && ends(d.Phase) && !ends(v.Phase),
		"invariant 7: rows were not compared":       (turns || pauses(d.Phase) && !pauses(v.Phase)) && !v.Compare.Done,
		"invariant 8: the pause goes on":            late(v) && d.Phase == v.Phase && !turns,
	} {
		if broken {
			t.Fatalf("%s: %+v\n%+v", words, v, d)
		}
	}
}
