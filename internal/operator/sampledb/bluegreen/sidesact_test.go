package bluegreen

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/change/bluegreen"
	"toban.dev/internal/change/major"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/operator/sampledb/world/worldtest"
	"toban.dev/internal/protocol"
)

// For as long as an upgrade by a second side lasts, its condition says that this strategy is on trial.
func TestTheConditionSaysThatBlueGreenIsOnTrial(t *testing.T) {
	for phase, c := range map[major.Phase]struct {
		serves  string
		onTrial bool
	}{
		bluegreen.PhasePublishing: {v1.SideBlue, true}, bluegreen.PhaseReady: {v1.SideBlue, true},
		bluegreen.PhaseChanged: {v1.SideGreen, true}, bluegreen.PhaseComingHome: {v1.SideBlue, true},
		major.PhaseUpgraded: {v1.SideBlue, false}, major.PhaseFailed: {v1.SideBlue, false},
	} {
		s := topicsOn(worldtest.OfTwoSides(string(phase)))
		s.Upgrade = s.DB.Status.Upgrade
		s.Upgrade.Sides.Serves, s.Upgrade.Message = c.serves, "it goes on"
		got := s.sidesVerdict(bluegreen.SidesDecision{Phase: phase}).Message
		if strings.Contains(got, "on trial") != c.onTrial || !strings.Contains(got, "it goes on") {
			t.Errorf("%s: it says %q", phase, got)
		}
	}
}

// What the servers refuse because others were compared is compared anew before the next try, by another Job than the
// one that has ended well. Nothing else is compared anew, and so it is as often as a change is tried at most.
func TestServersThatWereNotComparedAreComparedAnew(t *testing.T) {
	for reason, anew := range map[string]bool{
		bluegreen.NotCompared: true, bluegreen.TooFewSlots: false, "": false,
	} {
		s := topicsOn(worldtest.OfTwoSides(v1.SidesReady))
		s.Upgrade = s.DB.Status.Upgrade
		jobs := func() (names []string) {
			for _, work := range []protocol.SidesWork{protocol.SidesFollow, protocol.SidesCompare} {
				names = append(names, s.sidesOf(work, nil).JobName(s.DB))
			}
			return names
		}
		before := jobs()
		s.Upgrade.Sides.Done = slices.Clone(before)
		w := sidesWork{change: sidesRun{result: &protocol.SidesResult{}}}
		if reason != "" {
			w.change.result.Refusals = []protocol.UpgradeFinding{{Reason: reason}}
		}
		w.jobs = map[protocol.SidesWork]sides.Step{
			protocol.SidesFollow:  s.sidesOf(protocol.SidesFollow, nil),
			protocol.SidesCompare: s.sidesOf(protocol.SidesCompare, nil),
		}
		s.noteSides(w, bluegreen.SidesDecision{Phase: bluegreen.PhaseReady, PutOff: true, Failure: "as it is",
			Serves: bluegreen.Blue})
		after := jobs()
		if after[0] != before[0] || (after[1] != before[1]) != anew || s.Upgrade.Sides.Tried != 1 {
			t.Errorf("%q: after %v the Jobs are %v", reason, before, after)
		}
		// Meanwhile nothing is counted once more.
		s.noteSides(w, bluegreen.SidesDecision{Phase: bluegreen.PhaseComparing, Serves: bluegreen.Blue})
		if now := jobs(); !slices.Equal(now, after) {
			t.Errorf("%q: while it is compared, the Jobs become %v", reason, now)
		}
	}
}

// Who reads on a reader has gone before sides change, too. One that runs no server, does not answer, or is on its way
// out, is not waited for.
func TestReadersAreClosedToo(t *testing.T) {
	a := worldtest.OfTwoSides(v1.SidesChanging)
	a.DB.Spec.Instances, a.Config.Closed, a.Config.Revision = 1, true, "new"
	s := topicsOn(a)
	s.Seen.Answers = map[string]protocol.Status{
		"x-0": {Role: protocol.RolePrimary, Ready: true, Closed: true, ConfigRevision: "new"},
	}
	const standby = protocol.RoleStandby
	for what, c := range map[string]struct {
		answer *protocol.Status
		goes   bool
		want   bool
	}{
		"does not answer":     {nil, false, true},
		"copies":              {&protocol.Status{Role: protocol.RoleNone}, false, true},
		"has the former one":  {&protocol.Status{Role: standby, ConfigRevision: "old"}, false, false},
		"has it, and goes":    {&protocol.Status{Role: standby, ConfigRevision: "old"}, true, true},
		"has the present one": {&protocol.Status{Role: standby, ConfigRevision: "new"}, false, true},
	} {
		pod := &corev1.Pod{}
		if c.goes {
			pod.DeletionTimestamp = &metav1.Time{}
		}
		s.Seen.Readers.Pods = map[int]*corev1.Pod{0: pod}
		s.Seen.Readers.Answers = map[string]protocol.Status{}
		if c.answer != nil {
			s.Seen.Readers.Answers["x-readers-0"] = *c.answer
		}
		var v bluegreen.SidesView
		if s.nameReaders(&v); v.Hand.Says != "" {
			t.Errorf("a reader that %s: while no sides change, it says %q", what, v.Hand.Says)
		}
		v.Phase = bluegreen.PhaseChanging
		if s.nameReaders(&v); strings.HasPrefix(v.Hand.Says, "x-readers-0 ") == c.want {
			t.Errorf("a reader that %s: the pause waits for %q", what, v.Hand.Says)
		}
		if got := s.AllClosed(); got != c.want || (len(s.OpenReaders()) == 0) != c.want {
			t.Errorf("a reader that %s: all are closed: %v, open are %v", what, got, s.OpenReaders())
		}
	}
}

// A second side that serves, and of which an instance is down, says which.
func TestWhyTheSecondSideIsNotReadyIsSaid(t *testing.T) {
	green := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x-green"}}
	ready := func(status metav1.ConditionStatus) {
		meta.SetStatusCondition(&green.Status.Conditions, metav1.Condition{Type: v1.ConditionReady, Status: status,
			Reason: v1.ReasonInstancesUnready, Message: "x-green-1 does not answer"})
	}
	if got := greenUnready(green, false); got != "the SampleDB x-green is not Ready" {
		t.Errorf("where nothing is known it says %q", got)
	}
	ready(metav1.ConditionFalse)
	if got := greenUnready(green, false); !strings.Contains(got, "x-green is not Ready, because x-green-1 does not") {
		t.Errorf("it says %q", got)
	}
	if got := greenUnready(green, true); got != "" {
		t.Errorf("closed, which it is not to be Ready for, it says %q", got)
	}
	ready(metav1.ConditionTrue)
	if got := greenUnready(green, false); got != "" {
		t.Errorf("ready, it says %q", got)
	}
}
