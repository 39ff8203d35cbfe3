package versions

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/upgrade"
	"toban.dev/internal/change/window"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/work/maintenance"
)

var (
	hour  = time.Date(2026, time.November, 23, 3, 0, 0, 0, time.UTC)
	quiet = upgrade.Permission{Quiet: true, Window: &window.Window{Hour: 3, Length: time.Hour, Location: time.UTC}}
)

// announced is an update that was to begin in the quiet hour, as the status had it last: it was written in that hour.
func announced(step string, why upgrade.Why, message, failure string) v1.UpdateStatus {
	at, since := metav1.NewTime(hour), metav1.NewTime(hour)
	return v1.UpdateStatus{Step: step, Reason: string(why), Message: message, Failure: failure, To: "17.12",
		Begins: &at, Since: &since}
}

// since is the same, written at another time than at the beginning of the hour.
func since(u v1.UpdateStatus, after time.Duration) v1.UpdateStatus {
	at := metav1.NewTime(hour.Add(after))
	u.Since = &at
	return u
}

// Why a quiet hour was missed is what was said last in it, and stays until the next one is over.
func TestWhatWasInTheWayInTheQuietHour(t *testing.T) {
	before, after := hour.Add(-time.Hour), hour.Add(time.Hour)
	busy := announced(v1.UpdateWaiting, upgrade.WhyBusy, "It is taken over when this has ended: Job x-backup", "")
	failed := announced(v1.UpdateFailed, upgrade.WhyPullFailed, "It is tried again", "no such host")
	silent := announced(v1.UpdateWaiting, upgrade.WhyOutsideWindow, "It is taken over in the quiet hour",
		upgrade.Missed(hour.Add(-24*time.Hour), upgrade.WhyBusy, "as before"))
	pulled := silent
	pulled.Failure = "no such host"
	ofWindow := busy
	at := metav1.NewTime(hour.Add(-2 * time.Hour))
	ofWindow.Begins = &at
	for name, c := range map[string]struct {
		update v1.UpdateStatus
		now    time.Time
		want   string // "" for nothing
	}{
		"it was busy": {busy, after,
			`2026-11-23T03:00:00Z it was not taken over (Busy); the status said: "It is`},
		"what it says is from before it":  {since(busy, -time.Minute), after, "(Unknown): the operator did not run"},
		"what it says is from after it":   {since(busy, time.Hour), after, "(Unknown): the operator did not run"},
		"a node could not get it, ahead":  {pulled, before, ""},
		"it was of a window that is gone": {ofWindow, after, ""},
		"it is busy, in the hour":         {busy, hour, ""},
		"a node could not get it":         {failed, after, `(PullFailed); the status said: "no such host"`},
		"nothing was said in the hour":    {silent, after, "(Unknown): the operator did not run"},
		"it was missed before, and ahead": {silent, before, "as before"},
	} {
		got := missedHour(c.update, quiet, c.now)
		if !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := missedHour(busy, upgrade.Permission{Window: quiet.Window}, after); got != "" {
		t.Errorf("of a window that somebody has chosen: %q", got)
	}
}

// The announcement of the next hour names it, once, and so does the status until then.
func TestTheNextAnnouncementSaysWhyTheLastWasMissed(t *testing.T) {
	s := topicsOf(world.Core{DB: &v1.SampleDB{}, Now: hour.Add(time.Hour)})
	last := announced(v1.UpdateWaiting, upgrade.WhyBusy, "Job x-backup", "")
	next := upgrade.Decision{At: hour.Add(24 * time.Hour)}
	for range 2 {
		s.Update = &v1.UpdateStatus{To: "17.12", Reason: string(upgrade.WhyOutsideWindow)}
		s.announceUpdate(last, next, missedHour(last, quiet, s.Now))
		if u := s.Update; !strings.Contains(u.Failure, `(Busy); the status said: "Job x-backup"`) ||
			!u.Begins.Time.Equal(next.At) {
			t.Fatalf("the status has %+v", u)
		}
		last = *s.Update
	}
}

// Before the primary has said which indexes there are, it is not known that they are in danger.
func TestWhichIndexesThereAreIsNotKnownYet(t *testing.T) {
	for name, c := range map[string]struct {
		found   *maintenance.Report
		indexes string
		unsaid  bool
	}{
		"it has not said":  {nil, "", true},
		"it could not say": {&maintenance.Report{Problem: "no"}, "indexes on texts", false},
		"there are some":   {&maintenance.Report{Dependent: 3}, "up to 3 indexes", false},
		"there are none":   {&maintenance.Report{}, "", false},
	} {
		s := topicsOf(primarySays(c.found))
		s.Image = &v1.ImageStatus{}
		libraries, indexes, unsaid := s.sortingChange()
		if libraries == "" || indexes != c.indexes || (unsaid != "") != c.unsaid {
			t.Errorf("%s: %q, %q, %q", name, libraries, indexes, unsaid)
		}
	}
}

// What waits when its time comes says since then that it does: so it was said in that hour.
func TestWhatWaitsInTheQuietHourSaysSoAnew(t *testing.T) {
	before := since(announced(v1.UpdateWaiting, upgrade.WhyOutsideWindow, "", ""), -13*time.Hour)
	for name, c := range map[string]struct {
		now  time.Duration
		step string
		want time.Duration
	}{
		"before it":             {-time.Minute, v1.UpdateWaiting, -13 * time.Hour},
		"in it":                 {time.Minute, v1.UpdateWaiting, time.Minute},
		"a failure has its own": {time.Minute, v1.UpdateFailed, -13 * time.Hour},
	} {
		was := before
		was.Step = c.step
		s := topicsOf(world.Core{DB: &v1.SampleDB{}, Now: hour.Add(c.now)})
		for range 2 {
			s.Update = &v1.UpdateStatus{To: "17.12", Step: c.step, Since: s.Stamp()}
			s.keepOfUpdate(was, upgrade.Decision{Step: upgrade.StepWait, Why: upgrade.WhyBusy})
			if got := s.Update.Since.Sub(hour); got != c.want {
				t.Errorf("%s: since %s", name, got)
			}
			was = *s.Update
			s.Now = s.Now.Add(time.Second)
		}
	}
}

// nobody are other topics that know of no instance.
type nobody struct{ Others }

func (nobody) InstanceStatuses() []v1.InstanceStatus { return nil }

// What was announced stays while a new primary has not said which indexes it has, and no longer: one whose agent is of
// an earlier release never does. Another version than that one was not announced.
func TestAPrimaryThatNeverSaysWhichIndexesItHasIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		to   string
		want []string
	}{
		"it was announced":         {"17.12", []string{"OutsideWindow", "OutsideWindow", "SortingUnsaid"}},
		"another version is newer": {"17.13", []string{"SortingUnsaid", "SortingUnsaid", "SortingUnsaid"}},
	} {
		last := announced(v1.UpdateWaiting, upgrade.WhyOutsideWindow, "", "")
		s := New(worldtest.Act(world.Core{DB: &v1.SampleDB{}, Now: hour.Add(-12 * time.Hour)}), nobody{})
		s.Memory, s.Update = &world.Memory{}, &last
		unsaid := upgrade.Decision{Step: upgrade.StepWait, Why: upgrade.WhySortingUnsaid,
			Target: upgrade.Target{Image: "image", Version: c.to}}
		for _, want := range c.want {
			s.noteUpdate(unsaid, nil, "")
			if s.Update.Reason != want || s.Update.To != c.to && want != "OutsideWindow" {
				t.Errorf("%s: the status has %+v, want %s", name, s.Update, want)
			}
			s.Now = s.Now.Add(unsaidPatience - time.Second)
		}
	}
}
