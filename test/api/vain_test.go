package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// mostStormWrites is how often the status may be written in five minutes without a leader.
const mostStormWrites = 12

// Elections that are in vain for long are a condition with a sentence. Though the agents say something else at each
// look, few statuses are written, and one event tells of it.
func TestElectionsInVainAreSaidAndSeldomWritten(t *testing.T) {
	w := newWorld(t)
	db := w.started("x", instances(3), withoutBackup)
	w.drainEvents()
	w.writes.take()
	says := []string{"LeaderLost", "Resting", "BetterCandidate", "NoMajority"}
	var events strings.Builder
	for look := range 30 {
		for i := range 3 {
			w.agents.change(fmt.Sprintf("10.1.0.%d", i+1), func(s *protocol.Status) {
				late := time.Second << (look % 2)
				s.Role, s.Ready, s.Streaming, s.Slack = protocol.RoleStandby, false, false, &late
				s.Term, s.InVain, s.Reason = uint64(look+2), 3*look+4, says[(look+i)%len(says)]
				if s.Message, s.Refusal = fmt.Sprintf("term %d", look), s.Reason; s.Reason == "LeaderLost" {
					s.Refusal = ""
				}
			})
		}
		db = w.reconcile(db)
		events.WriteString(w.drainEvents())
	}
	message := w.expect(db, v1.ConditionAvailable, metav1.ConditionFalse, v1.ReasonElectionsInVain)
	for _, part := range []string{"instances campaign in vain", "the machines of x-0, x-1, x-2 are busy"} {
		if !strings.Contains(message, part) {
			t.Errorf("it does not say %q: %s", part, message)
		}
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonElectionsInVain)
	w.expect(db, v1.ConditionOnTime, metav1.ConditionFalse, v1.ReasonMachineBusy)
	written := slices.DeleteFunc(w.writes.take(), func(s string) bool { return !strings.HasSuffix(s, "/status") })
	if len(written) > mostStormWrites {
		t.Errorf("in five minutes the status was written %d times", len(written))
	}
	if got := strings.Count(events.String(), "NotPromoted"); got != 1 {
		t.Errorf("%d events tell that none is promoted: %s", got, events.String())
	}
	if db.Status.Refusal != v1.ReasonElectionsInVain || db.Status.Phase != "Unavailable" {
		t.Errorf("none is promoted for %q, phase %s", db.Status.Refusal, db.Status.Phase)
	}
	w.endStorm(db)
}

// endStorm has an instance lead again, and all be on time.
func (w *world) endStorm(db *v1.SampleDB) {
	w.Helper()
	w.lead("x-0", 99)
	onTime := time.Duration(0)
	for host := range w.agents.answers {
		w.agents.change(host, func(s *protocol.Status) {
			s.Ready, s.Refusal, s.InVain, s.Slack = true, "", 0, &onTime
		})
	}
	w.expect(w.reconcile(db), v1.ConditionAvailable, metav1.ConditionTrue, v1.ReasonPrimaryReady)
	w.now = w.now.Add(5 * time.Minute)
	db = w.reconcile(db)
	w.expect(db, v1.ConditionOnTime, metav1.ConditionTrue, v1.ReasonOnTime)
	w.writes.take()
	db = w.reconcile(db)
	if got := w.writes.take(); len(got) > 0 {
		w.Errorf("at rest it writes %v", got)
	}
	for host := range w.agents.answers { // an earlier release again
		w.agents.change(host, func(s *protocol.Status) { s.Slack = nil })
	}
	if db = w.reconcile(db); meta.FindStatusCondition(db.Status.Conditions, v1.ConditionOnTime) != nil {
		w.Error("nobody says whether machines are on time, and the condition is there")
	}
}
