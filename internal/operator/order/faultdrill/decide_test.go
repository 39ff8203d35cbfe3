package faultdrill

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/protocol"
)

var (
	now     = time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
	running = order.View{Job: order.Job{State: jobs.Running, Message: "does not write yet"}}
	ended   = order.View{Job: order.Job{State: jobs.Complete}}
)

// lookAt is a look at a drill.
func lookAt(drill *v1.FaultDrill) *scope {
	return &scope{Task: &order.Task[*v1.FaultDrill]{Object: drill, At: now}}
}

func ago(d time.Duration) time.Time { return now.Add(-d) }

// seen is what clients have left that wrote until a second ago.
func seen(modify ...func(*protocol.DrillResult)) *protocol.DrillResult {
	r := &protocol.DrillResult{Began: ago(31 * time.Second), Ended: ago(time.Second), Clients: []protocol.DrillClient{
		{Way: "Service", Outage: 1200 * time.Millisecond, Acknowledged: 1000},
		{Way: "Hosts", Outage: 800 * time.Millisecond, Acknowledged: 1100},
	}}
	for _, m := range modify {
		m(r)
	}
	return r
}

// wanted is what is expected of a decision.
type wanted struct {
	Action     order.Action
	Over, Undo bool
}

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		view   view
		want   wanted
		reason string
		words  string
	}{
		"it may begin": {view{}, wanted{Action: order.ActionCreate}, v1.ReasonRunning, "started"},
		"no SampleDB":  {view{notFound: true}, wanted{}, v1.ReasonSampleDBNotFound, ""},
		"nobody has allowed it": {
			view{notAllowed: "does not allow", notReady: "x"}, wanted{}, v1.ReasonDrillNotAllowed, "does not allow",
		},
		"something else is wrong": {
			view{notReady: "not Durable"}, wanted{}, v1.ReasonNotReadyForDrill, "not Durable",
		},
		"its clients begin": {view{View: running}, wanted{}, v1.ReasonRunning, "does not write yet"},
		"they write": {
			view{View: running, steady: true}, wanted{Action: ActionStrike}, v1.ReasonRunning, "",
		},
		"they write, and something is wrong by now": {
			view{View: running, steady: true, notReady: "not Durable"}, wanted{}, v1.ReasonRunning, "not Durable",
		},
		"they write, and it is not allowed any more": {
			view{View: running, steady: true, notAllowed: "does not allow"}, wanted{}, v1.ReasonRunning, "not allow",
		},
		"the fault was ordered, and the operator stopped": {
			view{View: running, steady: true, ordered: ago(time.Second), instance: "shop-1"},
			wanted{Action: order.ActionStop, Over: true}, v1.ReasonFailed, "shop-1",
		},
		"the fault was done": {
			view{View: running, ordered: ago(time.Second), struck: ago(time.Second), instance: "shop-1", notReady: "x"},
			wanted{}, v1.ReasonRunning, "shop-1 was broken",
		},
		"it was done to several": {
			view{View: running, ordered: ago(time.Second), struck: ago(time.Second), instance: "shop-0, shop-1"},
			wanted{}, v1.ReasonRunning, "shop-0, shop-1 were broken",
		},
		"the Job is gone after the fault": {
			view{ordered: ago(time.Second), struck: ago(time.Second)}, wanted{Over: true}, v1.ReasonFailed, "gone",
		},
		"the Job is gone, and the server hangs": {
			view{ordered: ago(time.Second), struck: ago(time.Second), lasts: 10 * time.Second},
			wanted{Over: true, Undo: true}, v1.ReasonFailed, "gone",
		},
		"the clients have failed": {
			view{View: order.View{Job: order.Job{State: jobs.Failed, Message: "no such role"}}}, wanted{Over: true},
			v1.ReasonFailed, "no such role",
		},
		"the clients have ended, and nothing was broken": {
			view{View: ended, result: seen(), notReady: "not Durable"}, wanted{Over: true},
			v1.ReasonFailed, "not Durable",
		},
		"the clients have ended before the fault was over": {
			view{View: ended, result: seen(), struck: ago(5 * time.Second), lasts: 6 * time.Second, wholeSince: now},
			wanted{Over: true, Undo: true}, v1.ReasonFailed, "spec.observe",
		},
		"the clients have ended after the fault was over, by a clock that is slow": {
			view{
				View: ended, struck: ago(5 * time.Second), lasts: 5 * time.Second, wholeSince: now,
				result: seen(func(r *protocol.DrillResult) { r.Ended = ago(time.Hour) }),
			},
			wanted{Over: true}, v1.ReasonCompleted, "",
		},
		"the clients have ended, and what they left is gone": {
			view{View: ended, struck: ago(time.Minute), wholeSince: now}, wanted{Over: true},
			v1.ReasonFailed, "removed",
		},
		"not whole yet": {
			view{View: ended, result: seen(), struck: ago(30 * time.Second)}, wanted{}, v1.ReasonRunning, "not Ready",
		},
		"something else is lacking yet": {
			view{View: ended, result: seen(), struck: ago(30 * time.Second),
				lacks: "its archive has not caught up yet"},
			wanted{}, v1.ReasonRunning, "the clients have ended; its archive has not caught up yet",
		},
		"whole again": {
			view{View: ended, result: seen(), struck: ago(30 * time.Second), wholeSince: ago(20 * time.Second)},
			wanted{Over: true}, v1.ReasonCompleted, "2100 writes acknowledged, none lost",
		},
		"not whole in time": {
			view{View: ended, result: seen(), struck: ago(6 * time.Minute)}, wanted{Over: true},
			v1.ReasonCompleted, "not Ready and Durable again",
		},
		"the clients have given up, and the server hangs": {
			view{View: ended, result: seen(func(r *protocol.DrillResult) { r.Aborted = true }), lasts: time.Minute,
				struck: ago(30 * time.Second), wholeSince: now},
			wanted{Over: true, Undo: true}, v1.ReasonCompleted, "given up",
		},
		"the clients have given up, the server hangs, and nothing is whole yet": {
			view{View: ended, result: seen(func(r *protocol.DrillResult) { r.Aborted = true }), lasts: time.Minute,
				struck: ago(30 * time.Second)},
			wanted{Undo: true}, v1.ReasonRunning, "not Ready and Durable",
		},
		"a person is to break something": {
			view{View: running, ordered: ago(time.Second), struck: ago(time.Second), instance: "shop", byHand: true},
			wanted{}, v1.ReasonRunning, "break now what you want to break",
		},
		"the Job is somebody else's": {
			view{View: order.View{Job: order.Job{State: jobs.Complete, Foreign: true}}}, wanted{},
			v1.ReasonBackupNameTaken, "",
		},
		"it is cancelled before": {view{View: order.View{Cancel: true}}, wanted{Over: true}, v1.ReasonCancelled, ""},
		"it is cancelled while the server hangs": {
			view{View: order.View{Cancel: true, Job: running.Job}, ordered: ago(time.Second), struck: ago(time.Second),
				lasts: time.Minute},
			wanted{Action: order.ActionStop, Over: true, Undo: true}, v1.ReasonCancelled, "",
		},
		"it takes too long": {
			view{View: order.View{Deadline: ago(time.Second)}, notReady: "not Durable"}, wanted{Over: true},
			v1.ReasonDeadlineExceeded, "not Durable",
		},
		"its Pod takes too long": {
			view{View: order.View{Job: order.Job{State: jobs.Late, Message: "DeadlineExceeded"}}}, wanted{Over: true},
			v1.ReasonDeadlineExceeded, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.view
			v.Now = now
			v.objectives.WholeWithin = metav1.Duration{Duration: 5 * time.Minute}
			if v.Deadline.IsZero() {
				v.Deadline = now.Add(time.Hour)
			}
			if c.want.Action == "" {
				c.want.Action = order.ActionNone
			}
			got := decide(v)
			if got.Action != c.want.Action || got.Over != c.want.Over || got.Undo != c.want.Undo ||
				got.Reason != c.reason || !strings.Contains(got.Message, c.words) {
				t.Errorf("decided %+v", got)
			}
			if (got.Verdict != nil) != (got.Reason == v1.ReasonCompleted) {
				t.Errorf("the verdict is %+v", got.Verdict)
			}
		})
	}
}

func TestWhichInstancesFit(t *testing.T) {
	db := &v1.SampleDB{Status: v1.SampleDBStatus{Primary: "x-0", InstanceStatuses: []v1.InstanceStatus{
		{Name: "x-0", Ready: true, Voter: true, Zone: "a"}, {Name: "x-1", Ready: true, Zone: "b"},
		{Name: "x-2", Ready: true, Voter: true, Zone: "a"}, {Name: "x-3", Ready: true, Voter: true},
	}}}
	for instance, want := range map[v1.FaultDrillInstance][]string{
		v1.DrillPrimary: {"x-0"}, v1.DrillStandby: {"x-2"}, v1.DrillAll: {"x-0", "x-1", "x-2", "x-3"},
		v1.DrillZone: {"x-0", "x-2"},
	} {
		if got := fitting(db, v1.FaultDrillPart{Instance: instance}, "a"); !slices.Equal(got, want) {
			t.Errorf("%s: %q fit", instance, got)
		}
	}
	if got := fitting(&v1.SampleDB{}, v1.FaultDrillPart{Instance: v1.DrillPrimary}, ""); len(got) > 0 {
		t.Errorf("without a primary %q fit", got)
	}
	volume := v1.FaultDrillPart{Fault: v1.FaultVolumeLost, Instance: v1.DrillPrimary}
	if got := fitting(db, volume, ""); !slices.Equal(got, []string{"x-2"}) {
		t.Errorf("the volume of %q is lost", got)
	}
	if got := zones(db); got != "a, b" {
		t.Errorf("they are in %s", got)
	}
}

// What lasts is known of each fault, and the drill lasts as long as one of its faults.
func TestForHowLongADrillLasts(t *testing.T) {
	for name, c := range map[string]struct {
		faults []v1.FaultDrillFault
		want   time.Duration
	}{
		"one that is over when it is done": {[]v1.FaultDrillFault{v1.FaultServerKilled}, 0},
		"one that lasts":                   {[]v1.FaultDrillFault{v1.FaultAPIAway}, time.Minute},
		"an archive that is away":          {[]v1.FaultDrillFault{v1.FaultArchiveAway}, time.Minute},
		"several that do not":              {[]v1.FaultDrillFault{v1.FaultPodKilled, v1.FaultLeaderKilled}, 0},
		"one of several": {
			[]v1.FaultDrillFault{v1.FaultPodKilled, v1.FaultPoolersKilled, v1.FaultReplayPaused}, time.Minute,
		},
	} {
		spec := v1.FaultDrillSpec{Fault: c.faults[0], Duration: metav1.Duration{Duration: time.Minute}}
		for _, fault := range c.faults[1:] {
			spec.Meanwhile = append(spec.Meanwhile, v1.FaultDrillPart{Fault: fault})
		}
		if got := lasts(spec); got != c.want {
			t.Errorf("%s: it lasts for %s", name, got)
		}
	}
}

// What several faults are done to is named once, however many faults an instance has.
func TestWhatIsBroken(t *testing.T) {
	s := lookAt(&v1.FaultDrill{Status: v1.FaultDrillStatus{
		Instance: "x-0, x-1, x-2", Meanwhile: []string{"x-1", "x-pool"},
	}})
	if got := s.broken(); got != "x-0, x-1, x-2, x-pool" {
		t.Errorf("%s is broken", got)
	}
	if got := lookAt(&v1.FaultDrill{}).broken(); got != "" {
		t.Errorf("before, %s is broken", got)
	}
}

func TestJudge(t *testing.T) {
	lost := func(r *protocol.DrillResult) { r.Clients[1].Lost = 3 }
	read := func(r *protocol.DrillResult) {
		r.Clients = append(r.Clients, protocol.DrillClient{Way: "Standbys", Reads: 9, Staleness: 7 * time.Second})
	}
	aborted := func(r *protocol.DrillResult) { r.Aborted = true }
	byQuery := func(r *protocol.DrillResult) { r.ByQuery = true }
	for name, c := range map[string]struct {
		result *protocol.DrillResult
		max    time.Duration
		whole  time.Time
		reason string
		says   string
	}{
		"all is well": {seen(), 2 * time.Second, ago(50 * time.Second), v1.ReasonObjectivesMet,
			"longest outage 1.20s (Service 1.20s, Hosts 0.80s; allowed: 2s); 2100 writes acknowledged, none lost; " +
				"Ready and Durable again after 10s"},
		"the conditions were late": {
			seen(), 2 * time.Second, ago(time.Minute), v1.ReasonObjectivesMet, "again after 1s",
		},
		"standbys are read, too": {seen(read), 2 * time.Second, ago(50 * time.Second), v1.ReasonObjectivesMet,
			"standbys answered up to 7.00s late; longest outage 1.20s (Service 1.20s, Hosts 0.80s; allowed: 2s)"},
		"just allowed":    {seen(), 1200 * time.Millisecond, ago(50 * time.Second), v1.ReasonObjectivesMet, ""},
		"too long":        {seen(), time.Second, ago(50 * time.Second), v1.ReasonOutageTooLong, ""},
		"writes are lost": {seen(lost, aborted), time.Second, time.Time{}, v1.ReasonWritesLost, "3 lost"},
		"given up": {
			seen(aborted), time.Hour, ago(50 * time.Second), v1.ReasonOutageTooLong, "given up after 1m0s",
		},
		"a query said so": {
			seen(aborted, byQuery), time.Hour, ago(50 * time.Second), v1.ReasonAbortedByQuery, "abortWhen said so; ",
		},
		"not whole":      {seen(), time.Hour, time.Time{}, v1.ReasonNotWholeInTime, "Durable again after 30s"},
		"whole too late": {seen(), time.Hour, ago(20 * time.Second), v1.ReasonNotWholeInTime, "again after 40s"},
	} {
		v := view{View: order.View{Now: now}, result: c.result, struck: ago(time.Minute), wholeSince: c.whole,
			abortAfter: time.Minute}
		v.objectives.MaxOutage.Duration, v.objectives.WholeWithin.Duration = c.max, 30*time.Second
		got := judge(v)
		if got.Reason != c.reason || !strings.Contains(got.Message, c.says) ||
			got.Passed != (c.reason == v1.ReasonObjectivesMet) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhichDrillGoesFirst(t *testing.T) {
	drill := func(name string, created time.Time, begun bool) *v1.FaultDrill {
		d := &v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(created)}}
		if begun {
			d.Status.StartedAt = &metav1.Time{Time: created}
		}
		return d
	}
	begun, old, young := drill("c", now, true), drill("b", ago(time.Hour), false), drill("a", now, false)
	for _, pair := range [][2]*v1.FaultDrill{
		{begun, old}, {begun, young}, {old, young}, {young, drill("b", now, false)},
	} {
		if !goesFirst(pair[0], pair[1]) || goesFirst(pair[1], pair[0]) {
			t.Errorf("%s does not go before %s", pair[0].Name, pair[1].Name)
		}
	}
}
