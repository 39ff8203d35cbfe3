package major

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"toban.dev/internal/change/upgrade"

	"toban.dev/internal/change/steps"
)

// Outcome is what came of a rehearsal (docs/upgrade.md, "The rehearsal").
type Outcome = steps.Phase

// The outcomes. That it is not known whether there are problems is not that there are some, nor that there are none.
const (
	OutcomeRunning  Outcome = "Running"
	OutcomePassed   Outcome = "Passed"
	OutcomeProblems Outcome = "Problems"
	OutcomeNotDone  Outcome = "NotDone"
	OutcomeSkipped  Outcome = "Skipped"
)

// RehearsalPatience is for how long the Pod of a rehearsal may do nothing, before it is taken for one that can't run.
const RehearsalPatience = 10 * time.Minute

// RehearsalView is all that a decision about a rehearsal is made of.
type RehearsalView struct {
	// Recorded is what came of it, "" where that is not known yet, with what was said.
	Recorded     Outcome
	RecordedSays string
	// Always says that it is to be done whatever there is, Never that it is not; neither that it is where it can be.
	Always, Never bool
	// Archive says that there is an archive, Backup which backup there is to restore, "" for none.
	Archive bool
	Backup  string
	// Job is the name of its Job, Started that there is one, Ended that it has ended for good.
	Job            string
	Started, Ended bool
	// Idle is for how long no container of it has run or ended, Trouble what keeps them from it, "" where that is not
	// known. Says is how far it is.
	Idle          time.Duration
	Trouble, Says string
	// Found is what it has left.
	Found RehearsalFound
}

// RehearsalFound is what the Pod of a rehearsal has left.
type RehearsalFound struct {
	// Known says that it came to its end. Then Problems are all that there are.
	Known    bool
	Problems []string
	// Unknown is why it is not known whether there are problems, "" where nobody says.
	Unknown string
}

// RehearsalDecision is what came of a rehearsal, or that it is to be done.
type RehearsalDecision struct {
	Outcome Outcome
	// Start says that its Job is to be made.
	Start bool
	Says  string
}

// DecideRehearsal says what is to be done about a rehearsal.
func DecideRehearsal(v RehearsalView) RehearsalDecision {
	d := v.Steps().Decide("")
	return RehearsalDecision{Outcome: d.Phase, Start: d.Phase == OutcomeRunning && !v.Started, Says: d.Says}
}

// Steps is the one step of a rehearsal, with what may come of it. That something can't be rehearsed is the end of it
// only where the spec asks for it.
func (v RehearsalView) Steps() steps.Table {
	without, why := OutcomeSkipped, "not rehearsed: "
	if v.Always {
		without, why = OutcomeNotDone, ""
	}
	return steps.Table{Rows: []steps.Row{{Phase: OutcomeRunning, Waits: []steps.Reason{
		{Is: v.Recorded != "" && v.Recorded != OutcomeRunning, To: v.Recorded, Says: v.RecordedSays},
		{Is: v.Never, To: OutcomeSkipped, Says: "not rehearsed: spec.upgrade.rehearse is Never"},
		{
			Is: v.Ended && len(v.Found.Problems) > 0, To: OutcomeProblems,
			Says: strings.Join(v.Found.Problems, "; "),
		},
		{Is: v.Ended && v.Found.Known, To: OutcomePassed},
		{Is: v.Ended, To: OutcomeNotDone, Says: cmp.Or(v.Found.Unknown,
			"its Pod has ended without saying why: kubectl describe job "+v.Job)},
		{
			Is: v.Started && v.Idle > RehearsalPatience, To: OutcomeNotDone,
			Says: fmt.Sprintf("its Pod does not run for %s: %s", RehearsalPatience, cmp.Or(v.Trouble,
				fmt.Sprintf("kubectl describe job %s, and its Pod, say why", v.Job))),
		},
		{Is: v.Started, Says: cmp.Or(v.Trouble, v.Says)},
		{Is: !v.Archive, To: without, Says: why + "there is no archive (spec.backup) whose backup could be restored"},
		{Is: v.Backup == "", To: without, Says: why + "there is no complete backup in the archive"},
		{Is: true, Says: "its Pod is being started"},
	}}}}
}

// Work is a rehearsal as something that an upgrade needs.
func (d RehearsalDecision) Work() Work {
	switch d.Outcome {
	case OutcomePassed, OutcomeSkipped:
		return Work{Started: true, Done: true}
	case OutcomeProblems:
		return Work{Started: true, Failed: "the rehearsal on a copy has found: " + d.Says}
	case OutcomeNotDone:
		return Work{Started: true, Failed: "the upgrade could not be rehearsed: " + d.Says +
			". (To upgrade without a rehearsal set spec.upgrade.rehearse to Never)"}
	case OutcomeRunning:
	}
	return Work{Started: !d.Start, Says: d.Says}
}

// RehearsalSentence says for people what a rehearsal has found that came to its end at a time: how long a real upgrade
// has no clients, and the problems.
func RehearsalSentence(at time.Time, without time.Duration, problems []string) string {
	text := "rehearsed at " + at.UTC().Format("15:04") + ": "
	if without > 0 {
		text += "would take " + seconds(without) + " without writes, "
	}
	switch len(problems) {
	case 0:
		return text + "0 problems"
	case 1:
		return text + "1 problem: " + problems[0]
	}
	return text + fmt.Sprintf("%d problems: %s", len(problems), strings.Join(problems, "; "))
}

// seconds are whole ones, but for a few.
func seconds(d time.Duration) string {
	if d < 5*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// ParseRehearsal reads what a rehearsal is asked for with, by a server of a major version: a newer one, and an image
// after it, or none.
func ParseRehearsal(text string, from int) (major int, image string, err error) {
	words := strings.Fields(text)
	if len(words) == 0 || len(words) > 2 {
		return 0, "", fmt.Errorf("%q is no major version, nor one with an image after it, as in \"18 postgres:18.1\"",
			text)
	}
	major, err = strconv.Atoi(words[0])
	if err != nil || !upgrade.Known(major) {
		return 0, "", fmt.Errorf("%q is no major version that a SampleDB may have, as %d is", words[0],
			upgrade.Newest())
	}
	if major <= from {
		return 0, "", fmt.Errorf("the data has PostgreSQL %d: %d is not newer", from, major)
	}
	if len(words) == 2 {
		image = words[1]
	}
	return major, image, nil
}
