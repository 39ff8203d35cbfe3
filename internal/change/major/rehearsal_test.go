package major

import (
	"strings"
	"testing"
	"time"
)

func TestDecideRehearsal(t *testing.T) {
	sound := RehearsalView{Archive: true, Backup: "x-1", Job: "x-rehearsal-0a"}
	started := func(v *RehearsalView) { v.Started = true }
	ended := func(v *RehearsalView) { v.Started, v.Ended = true, true }
	for name, c := range map[string]struct {
		change func(*RehearsalView)
		want   Outcome
		says   string
	}{
		"there is a backup":   {func(*RehearsalView) {}, OutcomeRunning, "started"},
		"it is asked for":     {func(v *RehearsalView) { v.Always = true }, OutcomeRunning, "started"},
		"it is not wanted":    {func(v *RehearsalView) { v.Never = true }, OutcomeSkipped, "Never"},
		"there is no archive": {func(v *RehearsalView) { v.Archive = false }, OutcomeSkipped, "no archive"},
		"there is no backup":  {func(v *RehearsalView) { v.Backup = "" }, OutcomeSkipped, "no complete backup"},
		"no archive, and asked for": {func(v *RehearsalView) { v.Archive, v.Always = false, true },
			OutcomeNotDone, "no archive"},
		"no backup, and asked for": {func(v *RehearsalView) { v.Backup, v.Always = "", true },
			OutcomeNotDone, "no complete"},
		"its Job is there": {func(v *RehearsalView) { started(v); v.Says = "replays WAL" },
			OutcomeRunning, "replays"},
		"the backup has gone since": {func(v *RehearsalView) { started(v); v.Backup = "" }, OutcomeRunning, ""},
		"it is not wanted any more": {func(v *RehearsalView) { started(v); v.Never = true }, OutcomeSkipped, "Never"},
		"its Pod has no node yet": {func(v *RehearsalView) { started(v); v.Trouble = "fits on no node" },
			OutcomeRunning, "node"},
		"its Pod fits on no node": {func(v *RehearsalView) {
			started(v)
			v.Trouble, v.Idle = "fits on no node", RehearsalPatience+1
		}, OutcomeNotDone, "does not run for 10m0s: fits on no node"},
		"nobody knows why it does not run": {func(v *RehearsalView) {
			started(v)
			v.Idle = RehearsalPatience + 1
		}, OutcomeNotDone, "kubectl describe job x-rehearsal-0a"},
		"all is well": {func(v *RehearsalView) { ended(v); v.Found.Known = true }, OutcomePassed, ""},
		"it has found something": {func(v *RehearsalView) {
			ended(v)
			v.Found = RehearsalFound{Known: true, Problems: []string{"one", "two"}}
		}, OutcomeProblems, "one; two"},
		"it has found something, and could not go on": {func(v *RehearsalView) {
			ended(v)
			v.Found = RehearsalFound{Problems: []string{"one"}, Unknown: "no room"}
		}, OutcomeProblems, "one"},
		"it had no room": {func(v *RehearsalView) { ended(v); v.Found.Unknown = "no room" },
			OutcomeNotDone, "no room"},
		"it was killed": {ended, OutcomeNotDone, "kubectl describe job x-rehearsal-0a"},
		"it is on record": {func(v *RehearsalView) {
			v.Recorded, v.RecordedSays, v.Backup = OutcomeProblems, "one", ""
		}, OutcomeProblems, "one"},
		"it is on record that it runs, and it is gone": {func(v *RehearsalView) { v.Recorded = OutcomeRunning },
			OutcomeRunning, "started"},
	} {
		v := sound
		c.change(&v)
		got := DecideRehearsal(v)
		if got.Outcome != c.want || !strings.Contains(got.Says, c.says) {
			t.Errorf("%s: %+v, expected %s with %q", name, got, c.want, c.says)
		}
		if got.Start != (!v.Started && got.Outcome == OutcomeRunning) {
			t.Errorf("%s: its Job is to be made: %v", name, got.Start)
		}
	}
}

// Only what has passed, or is not wanted, lets an upgrade go on; what is not known ends it with other words than what
// is a problem.
func TestWhatARehearsalMeansForTheUpgrade(t *testing.T) {
	for outcome, want := range map[Outcome]Work{
		OutcomePassed:   {Started: true, Done: true},
		OutcomeSkipped:  {Started: true, Done: true},
		OutcomeRunning:  {Started: true, Says: "why"},
		OutcomeProblems: {Started: true, Failed: "has found: why"},
		OutcomeNotDone:  {Started: true, Failed: "could not be rehearsed: why"},
		"":              {Started: true, Says: "why"},
	} {
		got := RehearsalDecision{Outcome: outcome, Says: "why"}.Work()
		if !strings.Contains(got.Failed, want.Failed) || (got.Failed == "") != (want.Failed == "") {
			t.Errorf("%s: it fails because %q", outcome, got.Failed)
		}
		got.Failed, want.Failed = "", ""
		if outcome == OutcomePassed || outcome == OutcomeSkipped || outcome == OutcomeRunning {
			if got != want {
				t.Errorf("%s: %+v", outcome, got)
			}
		}
	}
}

func TestRehearsalSentence(t *testing.T) {
	at := time.Date(2026, 11, 21, 3, 12, 40, 0, time.FixedZone("", 0))
	for want, c := range map[string]struct {
		without  time.Duration
		problems []string
	}{
		"rehearsed at 03:12: would take 9 s without writes, 0 problems": {9240 * time.Millisecond, nil},
		"rehearsed at 03:12: would take 0.8 s without writes, 1 problem: one": {
			800 * time.Millisecond, []string{"one"},
		},
		"rehearsed at 03:12: would take 600 s without writes, 2 problems: a; b": {
			10 * time.Minute, []string{"a", "b"},
		},
		"rehearsed at 03:12: 1 problem: pg_upgrade refuses": {0, []string{"pg_upgrade refuses"}},
	} {
		if got := RehearsalSentence(at, c.without, c.problems); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestParseRehearsal(t *testing.T) {
	for text, c := range map[string]struct {
		major int
		image string
		words string
	}{
		"18":                     {18, "", ""},
		"19":                     {19, "", ""}, // not released yet: a SampleDB may have it
		" 18  own.example/pg:18": {18, "own.example/pg:18", ""},
		"":                       {0, "", "no major version"},
		"now":                    {0, "", "no major version"},
		"17":                     {0, "", "17 is not newer"},
		"15":                     {0, "", "15 is not newer"},
		"99":                     {0, "", "may have"},
		"18 a b":                 {0, "", "no major version"},
	} {
		major, image, err := ParseRehearsal(text, 17)
		if c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%q: %v", text, err)
		}
		if c.words == "" && (err != nil || major != c.major || image != c.image) {
			t.Errorf("%q: %d, %q, %v", text, major, image, err)
		}
	}
}
