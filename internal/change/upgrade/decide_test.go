package upgrade

import (
	"strings"
	"testing"
	"time"
	"toban.dev/internal/change/window"
)

// image is one of the repository, by a digest.
func image(digest string) string { return "docker.io/library/postgres@" + digest }

// instance is one that runs a version out of the image with a digest.
func instance(name, version, digest string) Instance {
	return Instance{Name: name, Version: version, Digest: digest, Image: image(digest)}
}

// situation is that of two instances of 17.11, of which 17.12 was found in the registry.
func situation(modify ...func(*Situation)) Situation {
	s := Situation{
		View: View{
			Now: time.Date(2026, time.November, 23, 12, 0, 0, 0, time.UTC), Major: 17,
			Instances: []Instance{instance("x-0", "17.11", "sha256:11"), instance("x-1", "17.11", "sha256:11")},
			Image: Image{
				Name: "postgres:17", Reference: image("sha256:12"), Digest: "sha256:12", Version: "17.12",
			},
		},
		Runs: image("sha256:11"), Ready: true,
	}
	for _, m := range modify {
		m(&s)
	}
	return s
}

func asked(s *Situation)      { s.Asked = true }
func unrecorded(s *Situation) { s.Runs = "" }

// automatic gives a window that opens at some hour, for two hours.
func automatic(hour int) func(*Situation) {
	return func(s *Situation) {
		s.Automatic, s.Window = true, &window.Window{Hour: hour, Length: 2 * time.Hour, Location: time.UTC}
	}
}

func pulled(state Pull) func(*Situation) {
	return func(s *Situation) { s.Pull, s.Pulled, s.Trouble = state, image("sha256:12"), "no such host" }
}

func found(version string) func(*Situation) {
	return func(s *Situation) { s.Image.Version = version }
}

func run(first, second Instance) func(*Situation) {
	return func(s *Situation) { s.Instances = []Instance{first, second} }
}

func failed(ago time.Duration) func(*Situation) {
	return func(s *Situation) {
		s.Failed, s.FailedAt, s.Failure = image("sha256:12"), s.Now.Add(-ago), "no such host"
	}
}

func TestWhetherAnUpdateBegins(t *testing.T) {
	open, closed := automatic(11), automatic(13)
	inWindow := func(s *Situation) { s.Asked, s.InWindow = true, true }
	onRequest := func(s *Situation) { s.Automatic = false }
	quiet := func(s *Situation) { s.Quiet = true }
	announced := func(at string) func(*Situation) { // for the version that was found
		return func(s *Situation) {
			s.Announced, _ = time.Parse(time.RFC3339, at)
			s.Awaited = "17.12"
		}
	}
	now, ahead := announced("2026-11-23T11:30:00Z"), "begins at 2026-11-24T11:00:00Z"
	libraries := func(s *Situation) { s.Libraries = "it has glibc 2.41 instead of 2.36" }
	sorting := func(s *Situation) { libraries(s); s.Indexes = "3 indexes" }
	unsaid := func(s *Situation) { libraries(s); s.Unsaid = "the primary has not said" }
	missed := func(s *Situation) { s.Missed = Missed(s.Announced, WhyBusy, "Job x-backup") }
	differ := func(s *Situation) { // so the target is the image that the newer one of the two runs
		s.Image.Reference, s.Image.Digest, s.Image.Version = "", "", ""
		s.Instances[1], s.Indexes = instance("x-1", "17.12", "sha256:13"), "3 indexes"
	}
	busy := func(s *Situation) { s.Busy = "Job x-backup" }
	lone := func(s *Situation) { s.Instances = s.Instances[:1] }
	looking := func(s *Situation) { s.Looking = true }
	ofAnother := func(s *Situation) { s.Failed = "x" }
	for name, c := range map[string]struct {
		modify []func(*Situation)
		step   Step
		why    Why
		says   string
	}{
		"nobody asks":                   {nil, StepWait, WhyNotAsked, "toban.dev/update=now"},
		"somebody asks":                 {[]func(*Situation){asked}, StepPull, WhyPulling, ""},
		"the window is open":            {[]func(*Situation){open}, StepPull, WhyPulling, ""},
		"it is closed":                  {[]func(*Situation){closed}, StepWait, WhyOutsideWindow, "at 2026-11-23T13"},
		"closed, and somebody asks":     {[]func(*Situation){closed, asked}, StepPull, WhyPulling, ""},
		"closed, asked for its opening": {[]func(*Situation){closed, inWindow}, StepWait, WhyOutsideWindow, ""},
		"open, asked for its opening":   {[]func(*Situation){open, onRequest, inWindow}, StepPull, WhyPulling, ""},
		"asked for the opening of none": {[]func(*Situation){inWindow}, StepPull, WhyPulling, ""},
		"open, only on request":         {[]func(*Situation){open, onRequest}, StepWait, WhyNotAsked, ""},
		"before the quiet hour": {[]func(*Situation){closed, quiet}, StepWait, WhyOutsideWindow,
			"begins at 2026-11-24T13:00:00Z: standbys restart first"},
		"announced": {[]func(*Situation){closed, quiet, announced("2026-11-23T13:00:00Z")}, StepWait,
			WhyOutsideWindow, "begins at 2026-11-23T13:00:00Z"},
		"of a lone one": {[]func(*Situation){closed, quiet, lone}, StepWait, WhyOutsideWindow,
			"only instance"},
		"in the hour, and not announced": {[]func(*Situation){open, quiet}, StepWait, WhyOutsideWindow, ahead},
		"in the hour, and announced":     {[]func(*Situation){open, quiet, now}, StepPull, WhyPulling, ""},
		"another version was": {[]func(*Situation){open, quiet, now, func(s *Situation) { s.Awaited = "17.11" }},
			StepWait, WhyOutsideWindow, ahead},
		"the hour was moved": {[]func(*Situation){open, quiet, announced("2026-11-23T10:30:00Z")},
			StepWait, WhyOutsideWindow, ahead},
		"it was missed yesterday": {[]func(*Situation){open, quiet, announced("2026-11-22T11:30:00Z")},
			StepWait, WhyOutsideWindow, ahead},
		"it was missed a week ago, of the week": {[]func(*Situation){open, quiet, announced("2026-11-16T11:30:00Z"),
			func(s *Situation) { s.Window.Days = []time.Weekday{time.Monday} }}, StepWait, WhyOutsideWindow, ahead},
		"it was missed yesterday, and why": {[]func(*Situation){open, quiet, announced("2026-11-22T11:30:00Z"), missed},
			StepWait, WhyOutsideWindow, "In the quiet hour that began at 2026-11-22T11:30:00Z it was not taken over " +
				`(Busy); the status said: "Job x-backup"`},
		"none in the quiet hour":   {[]func(*Situation){open, quiet, now, onRequest}, StepWait, WhyNotAsked, ""},
		"asked for the quiet hour": {[]func(*Situation){closed, quiet, inWindow}, StepWait, WhyOutsideWindow, ""},
		"asked for, and it is":     {[]func(*Situation){open, quiet, inWindow}, StepPull, WhyPulling, ""},
		"a backup is under way": {[]func(*Situation){open, quiet, now, busy}, StepWait, WhyBusy,
			"Job x-backup"},
		"a backup, and it is asked for": {[]func(*Situation){asked, busy}, StepPull, WhyPulling, ""},
		"it failed in the quiet hour": {[]func(*Situation){open, quiet, now, failed(time.Minute)}, StepWait,
			WhyPullFailed, "from 2026-11-23T12:09:00Z on"},
		"it failed some minutes ago": {[]func(*Situation){open, quiet, now, failed(retryQuiet)},
			StepPull, WhyPulling, ""},
		"it would sort otherwise": {[]func(*Situation){open, quiet, now, sorting}, StepWait, WhySorting,
			"glibc 2.41"},
		"it is not known yet whether": {[]func(*Situation){open, quiet, now, unsaid}, StepWait, WhySortingUnsaid,
			"It is not known yet whether indexes may be out of order"},
		"not known, in the window":   {[]func(*Situation){open, unsaid}, StepPull, WhyPulling, ""},
		"not known, and is wanted":   {[]func(*Situation){open, quiet, unsaid, asked}, StepPull, WhyPulling, ""},
		"no index is by that":        {[]func(*Situation){open, quiet, now, libraries}, StepPull, WhyPulling, ""},
		"it may sort otherwise":      {[]func(*Situation){open, quiet, now, differ}, StepWait, WhySorting, "not known"},
		"so it would in the window":  {[]func(*Situation){open, sorting}, StepPull, WhyPulling, ""},
		"so it would, and is wanted": {[]func(*Situation){open, quiet, sorting, asked}, StepPull, WhyPulling, ""},
		"it is not Ready": {[]func(*Situation){asked, func(s *Situation) { s.Ready = false }},
			StepWait, WhyNotReady, "Ready"},
		"an image by digest is never moved": {[]func(*Situation){open, func(s *Situation) { s.Image.Fixed = true }},
			StepNone, WhyFixed, ""},
		"also where somebody asks": {[]func(*Situation){asked, func(s *Situation) { s.Image.Fixed = true }},
			StepRefuse, WhyFixed, "change spec.image"},
		"nodes pull":                {[]func(*Situation){asked, pulled(PullRunning)}, StepWait, WhyPulling, ""},
		"they have it":              {[]func(*Situation){asked, pulled(PullDone)}, StepTake, WhyReplacing, ""},
		"one can't":                 {[]func(*Situation){asked, pulled(PullFailed)}, StepFail, WhyPullFailed, "no"},
		"the window closed by then": {[]func(*Situation){closed, pulled(PullDone)}, StepWait, WhyOutsideWindow, ""},
		"they have another": {[]func(*Situation){asked, pulled(PullDone),
			func(s *Situation) { s.Pulled = image("sha256:10") }}, StepPull, WhyPulling, ""},
		"it failed a moment ago": {[]func(*Situation){open, failed(time.Minute)}, StepWait, WhyPullFailed,
			"from 2026-11-23T12:59:00Z on"},
		"it failed an hour ago":        {[]func(*Situation){open, failed(time.Hour)}, StepPull, WhyPulling, ""},
		"it failed, and is asked for":  {[]func(*Situation){asked, failed(time.Minute)}, StepPull, WhyPulling, ""},
		"it failed, and nobody asks":   {[]func(*Situation){failed(time.Hour)}, StepWait, WhyPullFailed, "Ask again"},
		"it is looked for one first":   {[]func(*Situation){asked, looking}, StepWait, WhyLooking, ""},
		"another one than that failed": {[]func(*Situation){open, failed(0), ofAnother}, StepPull, WhyPulling, ""},
	} {
		t.Run(name, func(t *testing.T) { expect(t, Decide(situation(c.modify...)), c.step, c.why, c.says) })
	}
}

// What was missed of one version says nothing of another, and where nothing was said in the hour, nothing is made up.
func TestWhyAQuietHourWasMissed(t *testing.T) {
	quiet := func(s *Situation) {
		s.Quiet, s.Missed, s.Awaited = true, "In the quiet hour", "17.11"
		s.Announced = s.Now.Add(-24 * time.Hour)
	}
	if d := Decide(situation(automatic(13), quiet)); strings.Contains(d.Says, "In the quiet hour") {
		t.Errorf("of another version: %s", d.Says)
	}
	at := time.Date(2026, time.November, 23, 3, 0, 0, 0, time.UTC)
	for why, says := range map[Why]string{
		WhyNotReady:      `(NotReady); the status said: "it says so"`,
		WhyOutsideWindow: "(Unknown): the operator did not run",
		WhyUnknown:       "(Unknown): the operator did not run",
		WhyPullFailed:    `(PullFailed); the status said: "it says so"`,
	} {
		if got := Missed(at, why, "it says so"); !strings.Contains(got, says) || !IsMissed(got) {
			t.Errorf("%s: %s", why, got)
		}
	}
}

func expect(t *testing.T, d Decision, step Step, why Why, says string) {
	t.Helper()
	if d.Step != step || d.Why != why || !strings.Contains(d.Says, says) {
		t.Errorf("%+v", d)
	}
}

// Every target here is of an update that somebody asks for.
func TestWhereAnUpdateGoes(t *testing.T) {
	const none = ""
	old, other := instance("x-0", "17.11", "sha256:11"), instance("x-1", "17.12", "sha256:13")
	silent := instance("x-1", "", "sha256:11")
	foreign := instance("x-1", "17.12", "sha256:13")
	foreign.Image = ""
	nothing := func(s *Situation) { s.Image = Image{} }
	differ := func(s *Situation) { s.Runs, s.Instances = "", []Instance{old, other} }
	for name, c := range map[string]struct {
		modify []func(*Situation)
		target string
		why    Why
	}{
		"to the newer minor":           {nil, "sha256:12", WhyPulling},
		"never to an older minor":      {[]func(*Situation){found("17.10")}, none, WhyNothingNewer},
		"never to another major":       {[]func(*Situation){found("18.4")}, none, WhyNothingNewer},
		"nor to what can't be read":    {[]func(*Situation){found("18beta1")}, none, WhyNothingNewer},
		"the same minor, made anew":    {[]func(*Situation){found("17.11")}, "sha256:12", WhyPulling},
		"nothing was found":            {[]func(*Situation){nothing}, none, WhyNothingNewer},
		"an instance is silent":        {[]func(*Situation){run(old, silent)}, none, WhyUnknown},
		"they differ, and it is newer": {[]func(*Situation){differ}, "sha256:12", WhyPulling},
		"they differ, and it is older": {[]func(*Situation){differ, found("17.11")}, "sha256:13", WhyPulling},
		"what is newest is of elsewhere": {[]func(*Situation){run(old, foreign), found("17.11")},
			none, WhyNothingNewer},
		"they differ, and it is not known": {[]func(*Situation){differ, found("")}, "sha256:13", WhyPulling},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(situation(append(c.modify, asked)...))
			if d.Target.Digest != c.target || d.Why != c.why {
				t.Errorf("%+v", d)
			}
		})
	}
	// A rebuilt image of the same minor is no reason to replace instances by itself.
	expect(t, Decide(situation(automatic(11), found("17.11"))), StepNone, WhyNothingNewer, "")
}

func TestTheImageThatAllRunGoesOnRecord(t *testing.T) {
	former := instance("x-1", "17.10", "sha256:10")
	former.Former = true
	starting := instance("x-1", "17.11", "")
	starting.Image = ""
	bothElsewhere := func(digest string) func(*Situation) {
		return run(Instance{Name: "x-0", Digest: digest}, Instance{Name: "x-1", Digest: digest})
	}
	one, other := instance("x-0", "17.11", "sha256:11"), instance("x-1", "17.11", "sha256:13")
	for name, c := range map[string]struct {
		modify []func(*Situation)
		image  string // "" for none
	}{
		"all the same":                        {nil, image("sha256:11")},
		"one is not replaced yet":             {[]func(*Situation){run(one, former)}, image("sha256:11")},
		"one does not say yet":                {[]func(*Situation){run(one, starting)}, ""},
		"they differ":                         {[]func(*Situation){run(one, other)}, ""},
		"the kubelet has another name for it": {[]func(*Situation){bothElsewhere("sha256:12")}, image("sha256:12")},
		"the kubelet says no digest":          {[]func(*Situation){bothElsewhere("sha256:4")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(situation(append(c.modify, unrecorded)...))
			if adopted := d.Step == StepAdopt; adopted != (c.image != "") || adopted && d.Target.Image != c.image {
				t.Errorf("%+v", d)
			}
		})
	}
	if d := Decide(situation()); d.Step == StepAdopt {
		t.Errorf("what is on record is adopted: %+v", d)
	}
}

// What has begun to replace instances goes on, whatever changes around it.
func TestAnUpdateGoesOnToItsEnd(t *testing.T) {
	begun := func(s *Situation) {
		s.Replacing, s.Left, s.Ready = &Target{image("sha256:12"), "sha256:12", "17.12"}, true, false
	}
	expect(t, Decide(situation(begun, automatic(13))), StepReplace, WhyReplacing, "one by one")
	expect(t, Decide(situation(begun, func(s *Situation) { s.Left = false })), StepDone, WhyUpdated, "")
}
