package drills

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func TestDecideWhenADrillIsDue(t *testing.T) {
	const sunday, killed, deleted = "2026-11-22 04:00:00", v1.FaultServerKilled, v1.FaultPodDeleted
	now := func(text string) func(*drillPlan) { return func(p *drillPlan) { p.now = worldtest.At(text) } }
	after := func(f v1.FaultDrillFault) func(*drillPlan) { return func(p *drillPlan) { p.fault = f } }
	for name, c := range map[string]struct {
		change func(*drillPlan)
		due    string
		fault  v1.FaultDrillFault
	}{
		"at its time":          {func(*drillPlan) {}, sunday, killed},
		"ten minutes later":    {now("2026-11-22 04:09:59"), sunday, killed},
		"not later than that":  {now("2026-11-22 04:10:00"), "", ""},
		"not before":           {now("2026-11-22 03:59:59"), "", ""},
		"once":                 {func(p *drillPlan) { p.last = worldtest.At(sunday) }, "", ""},
		"not what may not be":  {func(p *drillPlan) { p.allowed = false }, "", ""},
		"without a schedule":   {func(p *drillPlan) { p.spec = nil }, "", ""},
		"not what is younger":  {func(p *drillPlan) { p.since = worldtest.At(sunday) }, "", ""},
		"the next fault":       {after(killed), sunday, deleted},
		"the first after all":  {after(deleted), sunday, killed},
		"the first after none": {after(v1.FaultPodKilled), sunday, killed},
		"in a time zone": {func(p *drillPlan) {
			p.spec.TimeZone, p.now = "Asia/Tokyo", worldtest.At("2026-11-21 19:00:00")
		}, "2026-11-21 19:00:00", killed},
	} {
		t.Run(name, func(t *testing.T) {
			p := drillPlan{
				spec: &v1.DrillsSpec{
					Schedule: "0 4 * * 0", Faults: []v1.FaultDrillFault{killed, deleted},
				},
				now: worldtest.At(sunday), since: worldtest.At("2026-11-01 00:00:00"), allowed: true,
				last: worldtest.At("2026-11-15 04:00:00"),
			}
			c.change(&p)
			got, err := p.decide()
			due := ""
			if !got.due.IsZero() {
				due = got.due.Format(time.DateTime)
			}
			if err != nil || due != c.due || c.due != "" && got.fault != c.fault {
				t.Errorf("%s of %s, want %s of %s (%v)", got.fault, due, c.fault, c.due, err)
			}
			if p.spec != nil && !got.Next.After(p.now) {
				t.Errorf("the next one is at %s", got.Next)
			}
		})
	}
}

// drilledScope is of a SampleDB with drills, each with its result, the newest last.
func drilledScope(results ...string) *Topics {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{
		Name: "shop", UID: "1", Annotations: map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed},
	}}
	db.Spec.Drills = &v1.DrillsSpec{Schedule: "@daily", Keep: 2}
	s := topicsOf(world.Core{DB: db})
	for i, result := range results {
		d := *desired.ScheduledDrill(db, worldtest.At("2026-11-20 00:00:00").AddDate(0, 0, i), v1.FaultServerKilled)
		if result != "" {
			d.Status.CompletedAt = &metav1.Time{}
		}
		if status := metav1.ConditionStatus(result); status == "True" || status == "False" {
			d.Status.Conditions = []metav1.Condition{{Type: v1.ConditionPassed, Status: status, Message: "1.2 s"}}
		}
		s.Seen.Drills = append(s.Seen.Drills, d)
	}
	return s
}

func TestWhatCameOfTheLastDrill(t *testing.T) {
	for name, c := range map[string]struct {
		s      *Topics
		change func(*Topics)
		reason string
	}{
		"passed":                        {drilledScope("False", "True"), nil, v1.ReasonLastDrillPassed},
		"not passed":                    {drilledScope("True", "False"), nil, v1.ReasonLastDrillNotPassed},
		"passed, the next is under way": {drilledScope("True", ""), nil, v1.ReasonLastDrillPassed},
		"passed, the next had none":     {drilledScope("True", "Failed"), nil, v1.ReasonLastDrillPassed},
		"none yet":                      {drilledScope(), nil, v1.ReasonNoDrillYet},
		"none had a result":             {drilledScope("Failed", ""), nil, v1.ReasonNoDrillYet},
		"not allowed": {drilledScope("True"), func(s *Topics) {
			s.DB.Annotations = nil
		}, v1.ReasonDrillNotAllowed},
		"by hand only": {drilledScope("True"), func(s *Topics) {
			s.DB.Annotations, s.DB.Spec.Drills = nil, nil
		}, v1.ReasonLastDrillPassed},
		"neither": {drilledScope(), func(s *Topics) { s.DB.Spec.Drills = nil }, ""},
		"a bad schedule": {drilledScope("True"), func(s *Topics) {
			s.DB.Spec.Drills.Schedule = "sometimes"
		}, v1.ReasonScheduleInvalid},
		"a schedule that never comes": {drilledScope("True"), func(s *Topics) {
			s.DB.Spec.Drills.Schedule = "0 3 31 2 *"
		}, v1.ReasonScheduleInvalid},
	} {
		if c.change != nil {
			c.change(c.s)
		}
		got := c.s.DrillsPassed()
		unknown := c.reason == v1.ReasonNoDrillYet
		if got.Reason != c.reason || unknown != (got.Status == metav1.ConditionUnknown) {
			t.Errorf("%s: %+v, want %s", name, got, c.reason)
		}
	}
}

// Of the drills of the schedule that are over, the newest are kept. What users have asked for is theirs.
func TestDrillsThatAreNotKept(t *testing.T) {
	s := drilledScope("True", "Failed", "False", "True", "")
	by := v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
	by.Status.CompletedAt = &metav1.Time{}
	s.Seen.Drills = slices.Insert(s.Seen.Drills, 0, by)
	if got := strings.Join(s.surplusDrills(), " "); got != "shop-20261120-000000 shop-20261121-000000" {
		t.Errorf("%s go", got)
	}
	s.DB.Spec.Drills = nil
	if got := s.surplusDrills(); got != nil {
		t.Errorf("without a schedule %s go", got)
	}
}
