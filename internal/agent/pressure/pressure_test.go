package pressure

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSlackFollowsLatenessForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gauge
		for _, c := range []struct{ late, slack time.Duration }{
			{100 * time.Millisecond, 0}, {300 * time.Millisecond, 0}, {350 * time.Millisecond, time.Second},
			{3 * time.Second, time.Second}, {600 * time.Millisecond, 2 * time.Second},
			{4 * time.Second, 8 * time.Second},
		} {
			time.Sleep(apart)
			if g.Late(c.late); g.Slack() != c.slack {
				t.Errorf("after %s late the slack is %s, want %s", c.late, g.Slack(), c.slack)
			}
		}
		time.Sleep(window + time.Second)
		if g.Slack() != 0 || g.Busy() {
			t.Errorf("for ever the slack is %s, busy %v", g.Slack(), g.Busy())
		}
	})
}

// An agent that was stopped finds all of it late at once when it goes on. Others must not wait longer for its machine,
// unless the kernel says that tasks had to wait.
func TestAPauseOfTheAgentAloneIsNoSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gauge
		time.Sleep(12 * time.Second)
		g.Late(12 * time.Second)
		g.Late(9 * time.Second)
		time.Sleep(apart / 2)
		g.Late(300 * time.Millisecond)
		if g.Slack() != 0 {
			t.Errorf("after one pause the slack is %s", g.Slack())
		}
		time.Sleep(confirms)
		g.look(time.Now(), stall{})
		time.Sleep(time.Second)
		if !g.look(time.Now(), stall{waited: time.Second}) {
			t.Error("tasks have waited for a second, and it is not seen")
		}
		if g.Late(time.Second); g.Slack() != 4*time.Second {
			t.Errorf("where tasks wait, something late by a second makes a slack of %s", g.Slack())
		}
		time.Sleep(confirms)
		if g.note(12*time.Second, false); g.Slack() != 0 {
			t.Errorf("after a pause on a calm machine the slack is %s", g.Slack())
		}
		if g.note(300*time.Millisecond, true); g.Slack() != time.Second {
			t.Errorf("a short wait at the end of a pause makes a slack of %s", g.Slack())
		}
	})
}

// What comes again a moment later, when nothing confirms it any more, takes no time from what was confirmed.
func TestWhatComesAtOnceAgainShortensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gauge
		g.Late(3 * time.Second)
		time.Sleep(confirms - apart/2)
		g.Late(3 * time.Second)
		time.Sleep(apart * 3 / 4)
		g.Late(3 * time.Second)
		if time.Sleep(window + 5*time.Second); g.Slack() != 8*time.Second {
			t.Errorf("the slack is %s", g.Slack())
		}
	})
}

// On a node that is well used tasks wait for some of the time. What they have waited before a pause of the agent alone
// does not count for the pause.
func TestAPauseOnANodeThatIsWellUsedIsNoSlack(t *testing.T) {
	var g Gauge
	now := time.Now()
	g.look(now, stall{})
	if g.look(now.Add(1500*time.Millisecond), stall{waited: 700 * time.Millisecond}) { // the pause took 700 ms of it
		t.Error("tasks waited for less than half of the time")
	}
}

// What was given up tells that it came late only where tasks wait: else it may have hung.
func TestWhatIsGivenUpIsLateWhereTasksWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, share := time.Duration(0), 0.0
		g := Gauge{Stalled: func() time.Duration { return waits }}
		gaveUp := func() {
			began := g.Mark()
			time.Sleep(1200 * time.Millisecond)
			waits += time.Duration(share * float64(1200*time.Millisecond))
			g.GivenUp(began)
			time.Sleep(2 * apart)
		}
		for n := range 8 {
			share = float64(n) / 10
			gaveUp()
		}
		if g.Slack() != 0 {
			t.Errorf("a server that hangs on a calm machine makes a slack of %s", g.Slack())
		}
		g.look(time.Now(), stall{})
		time.Sleep(time.Second)
		g.look(time.Now(), stall{waited: time.Second})
		if g.GivenUp(Mark{time.Now().Add(-1200 * time.Millisecond), stall{waited: waits}}); g.Slack() != 4*time.Second {
			t.Errorf("where tasks wait the slack is %s", g.Slack())
		}
	})
}

// A machine that becomes busy at the moment at which something begins is busy before the kernel is asked the next time.
func TestWhatBeginsWithAStallIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := time.Duration(0)
		g := Gauge{Stalled: func() time.Duration { return waits }}
		began := g.Mark()
		time.Sleep(600 * time.Millisecond)
		waits = 500 * time.Millisecond
		if g.GivenUp(began); !g.Busy() || g.Slack() != 2*time.Second {
			t.Errorf("busy %t, and a slack of %s", g.Busy(), g.Slack())
		}
	})
}

// A machine that stands still every now and then has slack from its second stall on, without a gap, though the kernel
// says nothing.
func TestStallsNowAndThenKeepTheirSlack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gauge
		g.Late(3 * time.Second)
		for range 10 {
			time.Sleep(25 * time.Second)
			if g.Late(3 * time.Second); g.Slack() != 8*time.Second {
				t.Fatalf("the slack is %s", g.Slack())
			}
			time.Sleep(4 * time.Second)
			if g.Slack() != 8*time.Second {
				t.Fatalf("between stalls the slack is %s", g.Slack())
			}
		}
	})
}

// The slack is there when the next stall begins, however far apart they are, as long as each confirms the next.
func TestTheNextStallBeginsWithSlack(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Second, window + 2*time.Second, confirms - time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var g Gauge
			const stall = 3 * time.Second
			g.Late(stall)
			for n := range 10 {
				time.Sleep(every - stall)
				if n > 1 && g.Slack() != 8*time.Second {
					t.Fatalf("every %s: the slack is %s when stall %d begins", every, g.Slack(), n)
				}
				time.Sleep(stall)
				g.Late(stall)
			}
			time.Sleep(2 * confirms)
			if g.Slack() != 0 {
				t.Errorf("every %s: for ever the slack is %s", every, g.Slack())
			}
		})
	}
}

func TestBusyIsWhereTasksWaitAndThingsComeLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g Gauge
		stalled := time.Duration(0)
		pass := func(share float64) {
			for range 3 {
				time.Sleep(time.Second)
				stalled += time.Duration(share * float64(time.Second))
				g.look(time.Now(), stall{waited: stalled})
			}
		}
		if pass(0.95); g.Busy() {
			t.Error("that tasks wait is enough")
		}
		g.Late(300 * time.Millisecond)
		if pass(0.95); !g.Busy() {
			t.Error("it is not busy though things come late and tasks wait")
		}
		pass(0.5)
		if pass(0.5); g.Busy() {
			t.Error("it is busy though tasks do not wait")
		}
	})
}

func TestWhatTheKernelSays(t *testing.T) {
	const pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 total=9\n"
	if got := waitedIn([]byte(pressure)); got != 2500*time.Millisecond {
		t.Errorf("tasks have waited for %s", got)
	}
	for text, want := range map[string]time.Duration{
		"nr_periods 3\nthrottled_usec 1500000\n": 1500 * time.Millisecond,
		"throttled_time 1500000000":              1500 * time.Millisecond,
		"":                                       0,
		"throttled_usec much":                    0,
	} {
		if got := throttledIn([]byte(text)); got != want {
			t.Errorf("%q: held for %s", text, got)
		}
	}
	if kernelStalls()().since(stall{}) < 0 {
		t.Error("less than nothing")
	}
	var nobody *Gauge
	nobody.GivenUp(nobody.Mark())
	if nobody.Late(time.Hour); nobody.Slack() != 0 || nobody.Busy() {
		t.Error("nil sees something")
	}
}
