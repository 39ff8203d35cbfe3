package drills

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/sampledb/world"
)

// drillsTopic makes FaultDrills when they are due.
type drillsTopic struct {
	*world.Act
	// DrillPlanned is when a drill is due.
	DrillPlanned plannedDrill
}

// drillLate is how long after its time a drill of the schedule may still be created. One that is later is left out:
// nothing is broken at another time than the user has chosen.
const drillLate = 10 * time.Minute

// drillPlan is what decides whether a drill of the schedule is due.
type drillPlan struct {
	spec *v1.DrillsSpec // nil for no schedule
	now  time.Time
	// since is when the SampleDB was created, and allowed whether it may be broken.
	since   time.Time
	allowed bool
	// last is for when the newest drill of the schedule was due, and fault which one it had; zero for none.
	last  time.Time
	fault v1.FaultDrillFault
}

// plannedDrill is what follows of a drillPlan.
type plannedDrill struct {
	// due is for when a drill has to be made now, zero for none, and fault which one it has.
	due   time.Time
	fault v1.FaultDrillFault
	// Next is when the schedule asks for the next, zero where it never does.
	Next time.Time
}

// decide says whether a drill is due. An error is of the schedule, and for the user.
func (p drillPlan) decide() (plannedDrill, error) {
	if p.spec == nil {
		return plannedDrill{}, nil
	}
	schedule, err := world.ParseComing("spec.drills.schedule", p.spec.Schedule, p.spec.TimeZone)
	if err != nil || schedule == nil {
		return plannedDrill{}, err
	}
	out := plannedDrill{Next: schedule.Next(p.now)}
	if p.allowed {
		from := slices.MaxFunc([]time.Time{p.now.Add(-drillLate), p.last, p.since}, time.Time.Compare)
		out.due, out.fault = world.Latest(schedule, from, p.now), p.following()
	}
	return out, nil
}

// following is the fault after the last one in the list of the spec, the first where that is none of them.
func (p drillPlan) following() v1.FaultDrillFault {
	faults := p.spec.Faults
	if len(faults) == 0 {
		return ""
	}
	return faults[(slices.Index(faults, p.fault)+1)%len(faults)]
}

// ObserveDrills reads the FaultDrills that name this SampleDB, whoever made them, the newest last.
func (s *drillsTopic) ObserveDrills(ctx context.Context) error {
	var err error
	if s.Seen.Drills, err = index.Drills(ctx, s.Client, s.DB.Namespace, s.DB.Name); err != nil {
		return err
	}
	slices.SortFunc(s.Seen.Drills, func(a, b v1.FaultDrill) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return nil
}

// ApplyDrills creates the FaultDrill that is due, and removes those of the schedule that are not kept.
func (s *drillsTopic) ApplyDrills(ctx context.Context) error {
	s.DrillPlanned, _ = s.drillPlan().decide() // DrillsPassed tells what is wrong with a schedule
	if err := s.beginDrill(ctx); err != nil {
		return err
	}
	for _, name := range s.surplusDrills() {
		drill := &v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Namespace: s.DB.Namespace, Name: name}}
		if err := s.Client.Delete(ctx, drill); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete FaultDrill %s: %w", name, err)
		}
	}
	return nil
}

// beginDrill creates the FaultDrill that is due. Its name is made of when it was due, so there is no second one.
func (s *drillsTopic) beginDrill(ctx context.Context) error {
	if s.DrillPlanned.due.IsZero() {
		return nil
	}
	drill := desired.ScheduledDrill(s.DB, s.DrillPlanned.due, s.DrillPlanned.fault)
	err := s.Client.Create(ctx, drill, client.FieldOwner(naming.FieldOwner))
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return world.Refused(err, "FaultDrill", drill.Name)
	}
	s.AddEvent(world.EventDrill, fmt.Sprintf("%s is to break an instance (%s): the schedule asks for it", drill.Name,
		drill.Spec.Fault))
	return nil
}

// drillPlan is what the next drill depends on.
func (s *drillsTopic) drillPlan() drillPlan {
	p := drillPlan{
		spec: s.DB.Spec.Drills, now: s.Now, since: s.DB.CreationTimestamp.Time,
		allowed: desired.AllowsDrills(s.DB) && !s.DB.Stops(),
	}
	for _, d := range s.Seen.Drills {
		if at, scheduled := s.drillDue(d); scheduled && at.After(p.last) {
			p.last, p.fault = at, d.Spec.Fault
		}
	}
	return p
}

// drillDue is for when the schedule of this SampleDB has asked for a drill; false where it has not.
func (s *drillsTopic) drillDue(d v1.FaultDrill) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, d.Annotations[naming.AnnotationDue])
	return at, err == nil && metav1.IsControlledBy(&d, s.DB)
}

// surplusDrills are the names of those of the schedule that are over and not to be kept.
func (s *drillsTopic) surplusDrills() (names []string) {
	if s.DB.Spec.Drills == nil {
		return nil
	}
	for _, d := range s.Seen.Drills {
		if _, scheduled := s.drillDue(d); scheduled && d.Status.CompletedAt != nil && d.DeletionTimestamp == nil {
			names = append(names, d.Name)
		}
	}
	return names[:max(0, len(names)-int(s.DB.Spec.Drills.Keep))]
}

// DrillsPassed says what came of the last drill. Without a schedule and without a drill there is no verdict. It does
// not depend on whether a drill may begin now.
func (s *drillsTopic) DrillsPassed() world.Verdict {
	spec := s.DB.Spec.Drills
	planned, invalid := s.drillPlan().decide()
	switch {
	case invalid != nil:
		return world.No(v1.ReasonScheduleInvalid, invalid.Error())
	case spec != nil && !desired.AllowsDrills(s.DB):
		return world.No(v1.ReasonDrillNotAllowed,
			fmt.Sprintf("spec.drills asks for drills, and the SampleDB does not allow "+
				"them: kubectl annotate sampledb %s %s=%s",
				s.DB.Name, world.RequestFaultDrills, naming.FaultDrillsAllowed))
	}
	for _, d := range slices.Backward(s.Seen.Drills) {
		if passed := meta.FindStatusCondition(d.Status.Conditions, v1.ConditionPassed); passed != nil {
			return verdictOf(d, *passed)
		}
	}
	if spec == nil {
		return world.Verdict{}
	}
	message := "no drill has ended with a result yet"
	if !planned.Next.IsZero() {
		message += "; the next one is at " + planned.Next.UTC().Format(time.RFC3339)
	}
	return world.Verdict{Status: metav1.ConditionUnknown, Reason: v1.ReasonNoDrillYet, Message: message}
}

// verdictOf tells of a drill that has ended with a result.
func verdictOf(d v1.FaultDrill, passed metav1.Condition) world.Verdict {
	at := passed.LastTransitionTime.UTC().Format(time.RFC3339)
	if passed.Status == metav1.ConditionTrue {
		return world.Yes(v1.ReasonLastDrillPassed, fmt.Sprintf("%s (%s of %s) has passed at %s: %s", d.Name, d.Faults(),
			d.Instances(), at, passed.Message))
	}
	return world.No(v1.ReasonLastDrillNotPassed, fmt.Sprintf("%s (%s of %s) has not passed at %s: %s: %s", d.Name,
		d.Faults(), d.Instances(), at, passed.Reason, passed.Message))
}
