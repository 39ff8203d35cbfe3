package steps_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/change/window"
)

// Views of all kinds of changes are drawn from one sequence, so this test of their packages is beside what they have in
// common.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// image is one of the repository, by a digest.
func image(digest string) string { return "docker.io/library/postgres@" + digest }

// instance is one that runs a version out of the image with a digest.
func instance(name, version, digest string) upgrade.Instance {
	return upgrade.Instance{Name: name, Version: version, Digest: digest, Image: image(digest)}
}

// situation is that of two instances of 17.11, of which 17.12 was found in the registry.
func situation() upgrade.Situation {
	return upgrade.Situation{
		View: upgrade.View{
			Now: time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC), Major: 17,
			Instances: []upgrade.Instance{instance("x-0", "17.11", "sha256:11"), instance("x-1", "17.11", "sha256:11")},
			Image: upgrade.Image{
				Name: "postgres:17", Reference: image("sha256:12"), Digest: "sha256:12", Version: "17.12",
			},
		},
		Runs: image("sha256:11"), Ready: true,
	}
}

// draw makes views of a sequence, the same for each run.
type draw struct{ *rand.Rand }

func newDraw(seed uint64) draw { return draw{rand.New(rand.NewPCG(seed, 7))} }

// likely is true in all but one of n cases.
func (d draw) likely(n int) bool { return d.IntN(n) > 0 }

func (d draw) text(all ...string) string { return all[d.IntN(len(all))] }

// work is done more often than not: else no view would come far.
func (d draw) work() steps.Work {
	if d.likely(5) {
		return steps.Work{Started: d.likely(2), Done: true, Says: d.text("", "late words")}
	}
	return steps.Work{
		Started: d.likely(2), Done: d.likely(2), Failed: d.text("", "", "it broke"), Says: d.text("", "30 %"),
		Silent: []time.Duration{
			0, major.LostPatience - 1, major.LostPatience, major.AnswerPatience, time.Hour,
		}[d.IntN(5)],
		Lost: d.text("", "no node"),
	}
}

// since is a time at or around the end of some patience before noon.
func (d draw) since(patience ...time.Duration) time.Time {
	p := patience[d.IntN(len(patience))]
	return noon.Add(-p + time.Duration(d.IntN(3)-1))
}

func (d draw) window() *window.Window {
	return []*window.Window{
		nil, {Hour: 3, Length: time.Hour, Location: time.UTC}, {Hour: 11, Length: 2 * time.Hour, Location: time.UTC},
	}[d.IntN(3)]
}

func (d draw) phase() steps.Phase {
	all := []steps.Phase{
		"", major.PhaseWaiting, major.PhasePulling, major.PhaseChecking, major.PhaseBackingUp, major.PhaseRehearsing,
		major.PhasePreparing, major.PhaseClosing, major.PhaseUpgrading, major.PhaseStarting, major.PhaseUpgraded,
		major.PhaseFailed, bluegreen.PhasePublishing, bluegreen.PhaseCopying, bluegreen.PhaseFollowing,
		bluegreen.PhaseComparing, bluegreen.PhaseReady, bluegreen.PhaseChanging, bluegreen.PhaseChanged,
		bluegreen.PhaseChangingBack, bluegreen.PhaseCancelling, bluegreen.PhaseComingHome,
	}
	return all[d.IntN(len(all))]
}

func (d draw) major() major.MajorView {
	return major.MajorView{
		Now: noon, From: 17, To: 18, Phase: d.phase(),
		Since:   d.since(0, major.ClosePatience, major.OpenPatience, time.Hour),
		Failure: d.text("", "no room"), Tried: d.likely(2), Ready: d.likely(9),
		Busy:   d.text("", "", "", "", "a restore"),
		Window: d.window(), Asked: d.likely(2), Pull: d.work(), Check: d.work(), Backup: d.work(), Rehearsal: d.work(),
		Job: d.work(), Waits: d.likely(4),
		Instance: d.text("db-0", "db-0", "db-1"), Primary: d.text("db-0", "db-0", ""),
		Closed: d.likely(2), Stopped: d.likely(2), TakenOver: !d.likely(5), Serves: d.likely(2),
		Trouble: d.text("", "no memory"), Back: "restore it",
	}
}

func (d draw) sides() bluegreen.SidesView {
	v := bluegreen.SidesView{
		Now: noon, From: 17, To: 18, Phase: d.phase(),
		Since: d.since(0, bluegreen.PausePatience, bluegreen.PutOff, time.Hour),
		Tried: []int{0, 0, 1, bluegreen.Tries - 1, bluegreen.Tries}[d.IntN(5)], Wanted: d.likely(6),
		Failure: d.text("", "rows differ", "the way back was asked for"), Repeat: d.likely(2), Ready: d.likely(9),
		Busy: d.text("", "", "", "", "a restore"), Window: d.window(), Asked: d.likely(2),
	}
	for _, work := range []*steps.Work{
		&v.Check, &v.Backup, &v.Publish, &v.Copy, &v.Follow, &v.Compare, &v.Prepare, &v.Settle,
	} {
		*work = d.work()
	}
	v.Broken, v.Gone = d.text("", "", "", "", "a slot is gone"), !d.likely(8)
	v.Serves, v.Closed, v.Hand = []bluegreen.Colour{bluegreen.Blue, bluegreen.Green}[d.IntN(2)], d.likely(2), d.work()
	v.Waits, v.Open, v.Back, v.Accepted = d.likely(2), d.likely(4), !d.likely(4), !d.likely(3)
	v.Until = []time.Time{{}, noon, noon.Add(time.Hour)}[d.IntN(3)]
	v.Leave, v.InPlace, v.Return, v.Removed = d.work(), d.work(), d.work(), d.work()
	return v
}

func (d draw) permission() upgrade.Permission {
	return upgrade.Permission{Window: d.window(), Automatic: d.likely(2), Asked: d.likely(2), InWindow: d.likely(2)}
}

func (d draw) minor() upgrade.Situation {
	s := situation()
	s.Permission, s.Looking, s.Ready = d.permission(), !d.likely(6), d.likely(5)
	s.Image.Fixed, s.Image.Version = !d.likely(9), d.text("17.12", "17.12", "17.12", "17.11", "18.1")
	s.Runs = d.text("", s.Runs, s.Runs)
	s.Pull = []upgrade.Pull{upgrade.PullNone, upgrade.PullRunning, upgrade.PullDone, upgrade.PullFailed}[d.IntN(4)]
	s.Pulled, s.Trouble = d.text("", s.Image.Reference, s.Image.Reference), "no such host"
	s.Failed, s.Failure = d.text("", "", s.Image.Reference), "no room"
	s.FailedAt = s.Now.Add(-upgrade.RetryAfter + time.Duration(d.IntN(3)-1))
	if !d.likely(9) {
		s.Replacing, s.Left = &upgrade.Target{Image: s.Image.Reference}, d.likely(2)
	}
	if !d.likely(4) {
		s.Instances[1] = instance("x-1", "17.12", "sha256:13")
	}
	return s
}

func (d draw) finish() upgrade.Finish {
	return upgrade.Finish{
		Now: noon, Permission: d.permission(), OnRequest: !d.likely(4), Due: d.likely(2), Stale: d.likely(2),
		Ready: d.likely(4), Cramped: !d.likely(4), Works: !d.likely(9), Ended: !d.likely(9),
		FailedAt: []time.Time{{}, noon, noon.Add(-upgrade.FinishRetry), noon.Add(1 - upgrade.FinishRetry)}[d.IntN(4)],
		Left:     !d.likely(4),
	}
}

func (d draw) rehearsal() major.RehearsalView {
	v := major.RehearsalView{
		Recorded: major.Outcome(d.text("", "", "", string(major.OutcomeRunning), string(major.OutcomePassed),
			string(major.OutcomeProblems))),
		Always: !d.likely(3), Never: !d.likely(6), Archive: d.likely(4), Backup: d.text("x-1", "x-1", ""), Job: "x-r",
		Started: d.likely(2), Ended: !d.likely(3), Idle: major.RehearsalPatience + time.Duration(d.IntN(3)-1),
		Trouble: d.text("", "no node"), Says: d.text("", "replays"), RecordedSays: "as it was",
	}
	v.Found.Known, v.Found.Unknown = d.likely(2), d.text("", "no room")
	if !d.likely(3) {
		v.Found.Problems = []string{"one", "two"}[:1+d.IntN(2)]
	}
	return v
}

// What is decided of each of many views, in one sum for each result: who changes a table of steps for another reason
// than to change what is decided sees here that something else changes.
func TestDecisionsAreAsTheyWere(t *testing.T) {
	const views = 100_000
	got := map[string]hash.Hash{}
	note := func(result, text string) {
		if got[result] == nil {
			got[result] = sha256.New()
		}
		fmt.Fprintln(got[result], text)
	}
	d, forRehearsals := newDraw(20261128), newDraw(20261129)
	for range views {
		m := major.DecideMajor(d.major())
		note("major "+string(m.Phase), fmt.Sprint(m.Says, "|", m.Failure, "|", m.At))
		s := bluegreen.DecideSides(d.sides())
		note("sides "+string(s.Phase), fmt.Sprint(s.Says, "|", s.Failure, "|", s.At, s.Serves, s.PutOff, s.Task))
		o := upgrade.Decide(d.minor())
		note("minor "+string(o.Step), fmt.Sprint(o.Why, o.Target, o.Says, "|", o.At))
		step, says, at := upgrade.DecideFinish(d.finish())
		note("finish "+string(step), fmt.Sprint(says, "|", at))
		r := major.DecideRehearsal(forRehearsals.rehearsal())
		note("rehearsal "+string(r.Outcome), fmt.Sprint(r.Start, "|", r.Says))
	}
	if len(got) != len(sums) {
		t.Errorf("there are %d results, not %d", len(got), len(sums))
	}
	for _, result := range slices.Sorted(maps.Keys(got)) {
		if sum := hex.EncodeToString(got[result].Sum(nil)[:6]); sum != sums[result] {
			t.Errorf("other decisions: %q: %q,", result, sum)
		}
	}
}

// sums are those of what is decided.
var sums = map[string]string{
	"finish begin":       "0ba4673f4d22",
	"finish none":        "3c56f26c276f",
	"finish take":        "c8ddb0b5a38f",
	"finish wait":        "514eb2208b1f",
	"finish watch":       "24507a7a274f",
	"major BackingUp":    "a5f2cfc075be",
	"major Checking":     "9fba500c6bb5",
	"major Closing":      "f03ed981b03c",
	"major Failed":       "1bc3afc0bcb1",
	"major Preparing":    "7e2985894f33",
	"major Pulling":      "b8bffd80dfbd",
	"major Rehearsing":   "28c5e2c76722",
	"major Starting":     "622c26772d88",
	"major Upgraded":     "a82d400fb5b2",
	"major Upgrading":    "d6e616ae3331",
	"major Waiting":      "53460ad4cc51",
	"minor adopt":        "91cbbbf965b7",
	"minor done":         "b240a5fb588f",
	"minor fail":         "1d58aad1e068",
	"minor none":         "fb8a97dce2d0",
	"minor pull":         "078a1a655851",
	"minor refuse":       "4b7cce783428",
	"minor replace":      "25c12d5f3a4e",
	"minor take":         "48c42fa3df48",
	"minor wait":         "6c92adbda4c0",
	"rehearsal NotDone":  "fcde1e3f7bf2",
	"rehearsal Passed":   "58d566882c38",
	"rehearsal Problems": "255f2a1cdebd",
	"rehearsal Running":  "7c65e995e02e",
	"rehearsal Skipped":  "a886ee6dc359",
	"sides BackingUp":    "61543de26428",
	"sides Cancelling":   "2b070710fe59",
	"sides Changed":      "128f2eb00c6b",
	"sides Changing":     "7e03fa677a86",
	"sides ChangingBack": "35b399bbdaef",
	"sides Checking":     "9ef8ca6a5b7b",
	"sides ComingHome":   "0d431d6c8bd4",
	"sides Comparing":    "72d87ca4f740",
	"sides Copying":      "42ecc22a92bd",
	"sides Failed":       "d58b3823d15a",
	"sides Following":    "f9df6d2d4e05",
	"sides Publishing":   "cfe83693f271",
	"sides Ready":        "eb1083d87964",
	"sides Upgraded":     "4025a893af5e",
	"sides Waiting":      "a0d2da1812ac",
}
