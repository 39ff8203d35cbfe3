package ha

import (
	"testing"
	"time"
)

// unwritten says for how long the volume has not taken a write.
func unwritten(d time.Duration) func(*View) { return local(func(l *Local) { l.Unwritten = d }) }

// stalls is a peer whose volume stalls.
func stalls(p Peer) Peer { p.Stalls, p.Eligible = true, false; return p }

func TestDecideOnAVolumeThatStalls(t *testing.T) {
	t.Parallel()
	both := func(v *View) {
		v.Peers["db-1"], v.Peers["db-2"] = follower("db-1", 4, "db-0"), follower("db-2", 4, "db-0")
	}
	lead := func(changes ...func(*View)) View {
		return three("db-0", primary("db-0", 4), append([]func(*View){both}, changes...)...)
	}
	lost := without(follower("db-2", 1, "db-0"))
	stand := func(changes ...func(*View)) View {
		return three("db-1", standby("db-1", 1, "db-0"),
			append([]func(*View){silent, hears("db-2", lost)}, changes...)...)
	}
	async := func(v *View) {
		v.Async = true
		v.Local.HardState.Configuration.Now.Acknowledgements = 1
	}
	check(t, map[string]decided{
		"a leader makes way":      {lead(unwritten(StallLimit + 1)), Fence, "", "ServerFailed"},
		"in async, too":           {lead(unwritten(StallLimit+1), async), Fence, "", "ServerFailed"},
		"not on one that is busy": {lead(unwritten(StallLimit)), Lead, "", "Leader"},
		"not while the others' may be about to stall": {
			lead(unwritten(StallLimit+1), hears("db-1", full(follower("db-1", 4, "db-0"))),
				hears("db-2", full(follower("db-2", 4, "db-0")))), Lead, "", "Leader",
		},
		"not while one of them can't vote": {
			lead(unwritten(StallLimit+1), hears("db-2", stalls(follower("db-2", 4, "db-0")))), Lead, "", "Leader",
		},
		"not alone": {three("db-0", primary("db-0", 4), unwritten(time.Hour),
			local(func(l *Local) { l.HardState.Configuration = alone })), Lead, "", "Leader"},
		"a leader that is about to come back gives up": {
			lead(unwritten(StallLimit+1), local(func(l *Local) { l.Server = ServerStopped })),
			Fence, "", "ServerFailed",
		},
		"a standby stands for election":             {stand(), Campaign, "", "LeaderLost"},
		"not on one that is about to stall":         {stand(unwritten(SlowLimit + 1)), Follow, "db-0", "VolumeStalls"},
		"on one that is busy it does":               {stand(unwritten(SlowLimit)), Campaign, "", "LeaderLost"},
		"not when the other can't keep its promise": {stand(hears("db-2", stalls(lost))), Follow, "db-0", "NoMajority"},
	})
}

// Whichever of the server and the volume fails first: the decision names the volume.
func TestADecisionNamesTheVolume(t *testing.T) {
	for after, want := range map[time.Duration]string{
		0:              "it hangs: another instance takes over",
		SlowLimit + 1:  "it hangs; the volume has not taken a write for 1s: another instance takes over",
		StallLimit + 1: "it hangs; the volume has not taken a write for 2s: another instance takes over",
	} {
		v := three("db-0", primary("db-0", 4), hears("db-1", follower("db-1", 4, "db-0")),
			hears("db-2", follower("db-2", 4, "db-0")),
			local(func(l *Local) { l.Failed, l.Unwritten = "it hangs", after }))
		if d := failed(v); d == nil || d.Message != want {
			t.Errorf("after %s: %+v, want %q", after, d, want)
		}
	}
}
