package upgrade

import (
	"cmp"
	"fmt"
	"time"

	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/window"
)

// RetryAfter is how long after a failure an update that begins by itself is tried again.
const RetryAfter = time.Hour

// Permission says when an update may begin.
type Permission struct {
	// Window is that of the spec, nil for none. Automatic says that an update begins by itself when it is open. Quiet
	// says that nobody has chosen it: it is the quiet hour of the SampleDB.
	Window           *window.Window
	Automatic, Quiet bool
	// Asked says that somebody asks for an update, InWindow that it is to wait for the window.
	Asked, InWindow bool
}

// Target is the image that an update brings the instances to.
type Target struct {
	// Image is by its digest, which is Digest; Version is PostgreSQL's in it.
	Image, Digest, Version string
}

// Pull is how far the nodes of the instances are with the image of a target.
type Pull string

// The states of a Pull.
const (
	PullNone    Pull = ""        // no node was asked
	PullRunning Pull = "running" // some node has not got it yet
	PullDone    Pull = "done"    // every node has it, and its version is the target's
	PullFailed  Pull = "failed"  // some node can't get it, or it is not what it should be
)

// Situation is all that a decision about an update is made of.
type Situation struct {
	View
	Permission
	// Runs is the image on record by its digest, "" for none.
	Runs string
	// Looking says that the image is being looked into, as a request asks for.
	Looking bool
	// Ready says that the SampleDB is.
	Ready bool
	// Sorting says what the libraries of the image do to indexes, "" where they are those that run.
	Sorting string
	// Replacing is the target to which the instances are being brought, nil where they are not; Left says that some
	// instance does not run it yet.
	Replacing *Target
	Left      bool
	// Pull is how far the nodes are with the image of the target that Pulled names; Trouble is why one can't.
	Pull    Pull
	Pulled  string
	Trouble string
	// Failed is the image of the last target that could not be taken, FailedAt when that was, Failure why.
	Failed   string
	FailedAt time.Time
	Failure  string
}

// Step is the whole of what is done about an update now.
type Step = steps.Phase

// The steps.
const (
	StepNone    Step = "none"
	StepAdopt   Step = "adopt"   // the image that all run goes on record
	StepRefuse  Step = "refuse"  // a request that can't be fulfilled
	StepWait    Step = "wait"    // for what the reason says
	StepPull    Step = "pull"    // the nodes are asked to
	StepFail    Step = "fail"    // nothing has been touched
	StepTake    Step = "take"    // the target goes on record: from now on the instances are replaced
	StepReplace Step = "replace" // they are being replaced
	StepDone    Step = "done"    // they all run it
)

// Why is the reason of a decision about an update.
type Why = steps.Why

// The reasons (docs/upgradesteps.md).
const (
	WhyFixed         Why = "Fixed"                // spec.image names a digest
	WhyRecorded      Why = "Recorded"             // all instances run one image, which is not on record yet
	WhyNothingNewer  Why = "NothingNewer"         // no newer image is known
	WhyUnknown       Why = "Unknown"              // some instance does not say what it runs
	WhyLooking       Why = "Looking"              // the image is being looked into first
	WhyPullFailed    Why = "PullFailed"           // a node can't get the image
	WhyNotAsked      Why = "NotAsked"             // it is only done on request
	WhySorting       Why = "Sorting"              // indexes may be out of order after it, so somebody is to ask
	WhyOutsideWindow     = steps.WhyOutsideWindow // the window is closed
	WhyNotReady      Why = "NotReady"             // the SampleDB is not
	WhyPulling       Why = "Pulling"              // the nodes get the image
	WhyReplacing     Why = "Replacing"            // the instances are being replaced
	WhyUpdated       Why = "Updated"              // all instances run it
)

// Decision says what to do about an update, and why.
type Decision struct {
	Step   Step
	Why    Why
	Target Target
	// Says is a sentence about it, "" where there is nothing to say; At is when that changes by itself, zero for never.
	Says string
	At   time.Time
}

// Decide says what to do about an update. What has begun to replace instances goes on to its end: instances that differ
// would be worse. All else is only done while it is allowed and all is well, and only forward.
func Decide(s Situation) Decision {
	switch {
	case s.Replacing != nil && s.Left:
		return Decision{StepReplace, WhyReplacing, *s.Replacing,
			"The instances are being replaced one by one", time.Time{}}
	case s.Replacing != nil:
		return Decision{Step: StepDone, Why: WhyUpdated, Target: *s.Replacing}
	case s.Image.Fixed:
		return s.nothing(WhyFixed, "spec.image names an image by its digest, which is never moved: change spec.image")
	}
	if common, found := s.common(); s.Runs == "" && found {
		return Decision{Step: StepAdopt, Why: WhyRecorded, Target: common}
	}
	if s.Asked && s.Looking {
		return Decision{Step: StepWait, Why: WhyLooking}
	}
	target, why := s.target()
	switch {
	case why == WhyUnknown:
		return Decision{Step: StepWait, Why: why}
	case target.Image == "":
		return s.nothing(why, cmp.Or(s.Image.Problem, "no newer image is known by its digest: see status.image"))
	}
	d := s.Steps(target).Decide("")
	return Decision{d.Phase, d.Why, target, d.Says, d.At}
}

// nothing is the decision where there is nothing to do: a request ends with a sentence.
func (s Situation) nothing(why Why, sentence string) Decision {
	if s.Asked {
		return Decision{Step: StepRefuse, Why: why, Says: sentence}
	}
	return Decision{Step: StepNone, Why: why}
}

// Steps are those of an update that has a target, and has replaced nothing yet: every node has the image before an
// instance is touched.
func (s Situation) Steps(target Target) steps.Table {
	const pulls = "The nodes of the instances get the image"
	automatic := s.Automatic && s.Window != nil
	failed, retry := s.Failed == target.Image && !s.Asked, s.FailedAt.Add(RetryAfter)
	pull := s.Pull
	if s.Pulled != target.Image {
		pull = PullNone
	}
	t := steps.Table{Now: s.Now, Rows: []steps.Row{
		{Phase: StepWait, Waits: []steps.Reason{
			{
				Is: failed && !automatic, Why: WhyPullFailed, Says: "Nothing has been touched, because " +
					s.Failure + ". Ask again with the annotation toban.dev/update=now",
			},
			{
				Is: !s.Asked && !automatic, Why: WhyNotAsked, Says: "Take it over with the annotation " +
					"toban.dev/update=now, or give spec.update.window, in which that is done by itself",
			},
			{
				Is: !s.Asked && s.Quiet && s.Sorting != "", Why: WhySorting, Says: "Not taken over by itself, because " +
					s.Sorting + ". Ask for it with the annotation toban.dev/update=now, or give spec.update.window",
			},
			{
				Is: failed && s.Now.Before(retry), Why: WhyPullFailed, At: retry, Says: fmt.Sprintf(
					"Nothing has been touched, because %s. It is tried again from %s on", s.Failure, stamp(retry)),
			},
		}},
		{Phase: StepWait, Window: s.announcement(), Waits: []steps.Reason{
			{Is: !s.Ready, Why: WhyNotReady, Says: "It is taken over when the SampleDB is Ready"},
		}},
		{Phase: StepTake, Waits: []steps.Reason{
			{Is: pull == PullNone, To: StepPull, Why: WhyPulling, Says: pulls},
			{Is: pull == PullRunning, To: StepWait, Why: WhyPulling, Says: pulls},
			{Is: pull == PullFailed, To: StepFail, Why: WhyPullFailed, Says: s.Trouble},
			{Is: true, Why: WhyReplacing, Says: "The instances are being replaced one by one"},
		}},
	}}
	if !s.Asked || s.InWindow {
		t.Window = s.Window
	}
	return t
}

// announcement says when an update begins, as a format for that moment. In a window that nobody has chosen it also says
// what that means for clients, and how to prevent it.
func (s Situation) announcement() string {
	switch {
	case !s.Quiet:
		return "It is taken over in the next window, which opens at %s"
	case len(s.Instances) == 1:
		return "It is taken over in the quiet hour that begins at %s: the only instance restarts. " + change
	}
	return "It is taken over in the quiet hour that begins at %s: standbys restart first, then the primary hands over. " +
		change
}

// change is how another time is chosen.
const change = "spec.update chooses another time, or none"

// common is the image that all instances run, of those made from the image that the spec names now; false where one
// does not say, or they differ.
func (s Situation) common() (Target, bool) {
	var out Target
	for _, i := range s.Instances {
		if i.Former {
			continue
		}
		if i.Digest == "" || out.Digest != "" && i.Digest != out.Digest {
			return Target{}, false
		}
		out.Digest, out.Version, out.Image = i.Digest, i.Version, cmp.Or(out.Image, i.Image)
	}
	if out.Digest != "" && out.Digest == s.Image.Digest {
		out.Image = s.Image.Reference
	}
	return out, out.Image != ""
}

// target is the image that the instances should be brought to, with the reason where there is none. It never has an
// older version than any instance runs, nor another major one.
func (s Situation) target() (Target, Why) {
	oldest, newest, differ, known := s.extent()
	if !known {
		return Target{}, WhyUnknown
	}
	found := Target{s.Image.Reference, s.Image.Digest, s.Image.Version}
	better := differ || older(oldest.Version, found.Version) || s.Asked && found.Digest != newest.Digest
	switch {
	case better && found.Image != "" && s.follows(found.Version, newest.Version):
		return found, ""
	case differ && newest.Image != "":
		return Target{newest.Image, newest.Digest, newest.Version}, ""
	}
	return Target{}, WhyNothingNewer
}

// follows says that a version is one of the major version, and not older than another.
func (s Situation) follows(version, other string) bool {
	v, err := ParseVersion(version)
	return err == nil && v.Major == s.Major && !older(version, other)
}

// extent are an instance with the oldest and one with the newest version, whether instances differ in version or image,
// and whether all of that is known.
func (s Situation) extent() (oldest, newest Instance, differ, known bool) {
	for n, i := range s.Instances {
		if !s.follows(i.Version, i.Version) || i.Digest == "" {
			return Instance{}, Instance{}, false, false
		}
		if n == 0 || older(newest.Version, i.Version) {
			newest = i
		}
		if n == 0 || older(i.Version, oldest.Version) {
			oldest = i
		}
		differ = differ || i.Digest != s.Instances[0].Digest || i.Version != s.Instances[0].Version
	}
	return oldest, newest, differ, len(s.Instances) > 0
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
