package upgrade

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"toban.dev/internal/change/steps"
	"toban.dev/internal/change/window"
)

const (
	// RetryAfter is how long after a failure an update that begins by itself is tried again, and retryQuiet in a quiet
	// hour, which is over soon.
	RetryAfter = time.Hour
	retryQuiet = 10 * time.Minute
	// Notice is for how long at least an update in a quiet hour is announced before it begins.
	Notice = 12 * time.Hour
)

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
	// Busy is what is under way that a restart would cut off, "" for nothing.
	Busy string
	// Indexes are those that another library may put out of order, "" for none. Libraries says that the image that was
	// found has others than run, or that this is not known; "" where it has the same.
	Indexes, Libraries string
	// Unsaid is why it is not known yet whether there are such indexes, "" where it is known.
	Unsaid string
	// Announced is when the update to the version Awaited begins by itself, as was said before; zero for never. Missed
	// is a sentence about why it did not in the last quiet hour, "" where none was missed.
	Announced time.Time
	Awaited   string
	Missed    string
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
	WhySortingUnsaid Why = "SortingUnsaid"        // whether they may is not known yet
	WhyOutsideWindow     = steps.WhyOutsideWindow // the window is closed
	WhyNotReady      Why = "NotReady"             // the SampleDB is not
	WhyBusy          Why = "Busy"                 // what is under way would be cut off
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
	quiet, begins := s.Quiet && !s.Asked, s.begins(target)
	pull := s.Pull
	if s.Pulled != target.Image {
		pull = PullNone
	}
	t := steps.Table{Now: s.Now, Rows: []steps.Row{
		{Phase: StepWait, Waits: s.waitsForPerson(target)},
		{Phase: StepWait, Waits: []steps.Reason{
			{Is: quiet && s.Now.Before(begins), Why: WhyOutsideWindow, At: begins,
				Says: s.announcement(target, begins)},
		}},
		{Phase: StepWait, Window: "It is taken over in the next window, which opens at %s", Waits: []steps.Reason{
			{Is: !s.Ready, Why: WhyNotReady, Says: "It is taken over when the SampleDB is Ready"},
			{Is: quiet && s.Busy != "", Why: WhyBusy, Says: "It is taken over when this has ended: " + s.Busy},
		}},
		{Phase: StepTake, Waits: []steps.Reason{
			{Is: pull == PullNone, To: StepPull, Why: WhyPulling, Says: pulls},
			{Is: pull == PullRunning, To: StepWait, Why: WhyPulling, Says: pulls},
			{Is: pull == PullFailed, To: StepFail, Why: WhyPullFailed, Says: s.Trouble},
			{Is: true, Why: WhyReplacing, Says: "The instances are being replaced one by one"},
		}},
	}}
	if !quiet && (!s.Asked || s.InWindow) {
		t.Window = s.Window
	}
	return t
}

// waitsForPerson are the reasons why an update waits for a person, or for a while after a failure.
func (s Situation) waitsForPerson(target Target) []steps.Reason {
	automatic := s.Automatic && s.Window != nil
	failed, after := s.Failed == target.Image && !s.Asked, RetryAfter
	if s.Quiet {
		after = retryQuiet
	}
	retry, libraries, sorting := s.FailedAt.Add(after), s.libraries(target), s.sorting(target)
	return []steps.Reason{
		{
			Is: failed && !automatic, Why: WhyPullFailed, Says: "Nothing has been touched, because " +
				s.Failure + ". Ask again with the annotation toban.dev/update=now",
		},
		{
			Is: !s.Asked && !automatic, Why: WhyNotAsked, Says: "Take it over with the annotation " +
				"toban.dev/update=now: by spec.update or spec.stopWindows that is never done by itself",
		},
		{
			Is: !s.Asked && s.Quiet && sorting != "", Why: WhySorting, Says: "It is not taken over by itself: " +
				sorting + ". Ask for it with the annotation toban.dev/update=now, or give spec.update.window",
		},
		{
			Is: !s.Asked && s.Quiet && libraries != "" && s.Unsaid != "", Why: WhySortingUnsaid,
			Says: fmt.Sprintf("It is not known yet whether indexes may be out of order after it: %s, and %s. To have "+
				"it taken over all the same, ask for it with the annotation toban.dev/update=now", libraries, s.Unsaid),
		},
		{
			Is: failed && s.Now.Before(retry), Why: WhyPullFailed, At: retry, Says: fmt.Sprintf(
				"Nothing has been touched, because %s. It is tried again from %s on", s.Failure, stamp(retry)),
		},
	}
}

// libraries says that an image has other libraries than run, or that this is not known, as of one that was not looked
// into; "" where it has the same.
func (s Situation) libraries(target Target) string {
	if target.Digest != s.Image.Digest {
		return "it is not known which libraries it has"
	}
	return s.Libraries
}

// sorting is why a person should decide on an update, "" where no index is in danger.
func (s Situation) sorting(target Target) string {
	libraries := s.libraries(target)
	if libraries == "" || s.Indexes == "" {
		return ""
	}
	return fmt.Sprintf("%s, and %s may be out of order after it, until they are rebuilt", libraries, s.Indexes)
}

// begins is when an update to a target begins in a quiet hour: when it was announced, as long as that hour is not over.
// After one that was missed, because something was in the way, it is the same hour of another day.
func (s Situation) begins(target Target) time.Time {
	if !s.Quiet {
		return time.Time{}
	}
	daily := *s.Window
	daily.Days = nil
	switch {
	case s.Announced.IsZero() || s.Awaited != target.Version || !s.QuietAt(s.Announced):
		return s.Window.Next(s.Now.Add(Notice))
	case s.Now.Before(s.Announced.Add(daily.Length)):
		return s.Announced
	}
	return daily.Next(s.Now.Add(Notice))
}

// missedWords begin what Missed says.
const missedWords = "In the quiet hour that began at "

// Missed is a sentence about a quiet hour that is over, and in which an announced update did not begin. The reason and
// its words are what the status said last in that hour, "" for nothing.
func Missed(began time.Time, why Why, said string) string {
	if why == WhyOutsideWindow || why == WhyUnknown || said == "" { // in that hour nothing was said
		return fmt.Sprintf("%s%s it was not taken over (%s): the operator did not run, or some instance did not say "+
			"what it runs", missedWords, stamp(began), WhyUnknown)
	}
	return fmt.Sprintf("%s%s it was not taken over (%s); the status said: \"%s\"", missedWords, stamp(began), why, said)
}

// IsMissed says that a sentence is one of Missed's.
func IsMissed(sentence string) bool { return strings.HasPrefix(sentence, missedWords) }

// QuietAt says that a moment is in the quiet hour of some day: in no other hour is something announced.
func (p Permission) QuietAt(moment time.Time) bool {
	if !p.Quiet {
		return false
	}
	daily := *p.Window
	daily.Days = nil
	return daily.Open(moment)
}

// announcement says when an update begins, what that means for clients, and how to prevent it: nobody has chosen the
// time. If it should have begun before, it says why it did not.
func (s Situation) announcement(target Target, begins time.Time) string {
	missed := ""
	if s.Missed != "" && s.Awaited == target.Version {
		missed = ". " + s.Missed
	}
	what := "standbys restart first, then the primary hands over"
	if len(s.Instances) == 1 {
		what = "the only instance restarts"
	}
	return fmt.Sprintf("It is taken over in the quiet hour that begins at %s: %s. spec.update chooses another time, "+
		"or none%s", stamp(begins), what, missed)
}

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
