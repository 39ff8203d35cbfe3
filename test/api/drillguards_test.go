package api

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/complete"
	"toban.dev/internal/cli/drill"
	"toban.dev/internal/naming"
)

func byHand(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultByHand }

// While a person breaks something, the drill breaks nothing itself: it says when, measures, and judges.
func TestADrillByHand(t *testing.T) {
	k, _, d := drilled(t, byHand)
	pod := k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "break now what you want to break")
	if s := d.Status; s.Instance != "x" || s.OrderedAt == nil || s.StruckAt == nil {
		t.Errorf("the status is %+v", s)
	}
	k.expectEvents("ByHand of x")
	d = k.drill(d)
	k.now = k.now.Add(30 * time.Second)
	k.end(pod, k.result())
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed", "none lost")
	if len(k.breaker.orders) > 0 {
		t.Errorf("the agents were ordered %q", k.breaker.orders)
	}
	out, err := k.command(t.Context(), drill.Drill(), "report", d.Name)
	if err != nil || !strings.Contains(out, "x: ByHand of x\npassed: ") {
		t.Errorf("the report says %v:\n%s", err, out)
	}
	if out, err = k.command(t.Context(), drill.Drill(), "report", d.Name, "-o", "html"); err != nil ||
		!strings.HasPrefix(out, "<!doctype html>") {
		t.Errorf("the page is %v:\n%s", err, out)
	}
	for _, args := range [][]string{{"report", "other"}, {"report", d.Name, "-o", "pdf"}, {"report"}} {
		if out, err := k.command(t.Context(), drill.Drill(), args...); err == nil {
			t.Errorf("%q shows %s", args, out)
		}
	}
}

// A query of the user ends a drill: what lasts is taken back at once, though the database is not whole yet.
func TestADrillThatAQueryEnds(t *testing.T) {
	const query = "SELECT count(*) > 0 FROM shop.failures"
	k, db, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.AbortWhen, d.Spec.Duration.Duration, d.Spec.Observe.Duration = query, time.Minute, 2*time.Minute
	})
	job := &batchv1.Job{}
	k.read(naming.DrillJob(d.Name), job)
	if command := job.Spec.Template.Spec.Containers[0].Command; !slices.Contains(command, "--abort-when="+query) {
		t.Errorf("its Pod is told %q", command)
	}
	pod := k.clientsPod(d)
	d = k.drill(d)
	ready := func(status metav1.ConditionStatus) {
		k.read(db.Name, db)
		c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionReady)
		c.Status = status
		k.must(k.api.Status().Update(k.Context(), db))
	}
	ready(metav1.ConditionFalse)
	result := k.result()
	result.Aborted, result.ByQuery = true, true
	k.end(pod, result)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "not Ready and Durable again")
	if last := k.breaker.orders[len(k.breaker.orders)-1]; last != "undo at 10.1.0.1" {
		t.Errorf("what lasts is not taken back: %q", k.breaker.orders)
	}
	ready(metav1.ConditionTrue)
	d = k.drill(k.drill(d))
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed", "the query of spec.abortWhen said so")
	if c := meta.FindStatusCondition(d.Status.Conditions, v1.ConditionPassed); c.Reason != v1.ReasonAbortedByQuery {
		t.Errorf("the verdict is %+v", c)
	}
}

// The names of FaultDrills complete the command that shows one.
func TestNamesOfDrillsCompleteACommand(t *testing.T) {
	k, _, d := drilled(t)
	root := &cobra.Command{Use: "toban"}
	root.AddCommand(drill.Drill())
	complete.Verbs(root.Commands()...)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs([]string{cobra.ShellCompNoDescRequestCmd, "drill", "report", "--kubeconfig=" + k.kubeconfig(), ""})
	if err := root.ExecuteContext(t.Context()); err != nil || !slices.Contains(strings.Fields(out.String()), d.Name) {
		t.Errorf("it is completed with %v: %s", err, &out)
	}
}

// Without a new backup nothing is broken, and other drills of the namespace count where somebody has said so.
func TestADrillWaitsForABackupAndForOtherDrills(t *testing.T) {
	within := func(d *v1.FaultDrill) { d.Spec.BackupWithin = &metav1.Duration{Duration: 24 * time.Hour} }
	k, db, d := drilled(t, within)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "has no complete backup")
	at := metav1.NewTime(k.now.Add(-25 * time.Hour).UTC())
	backedUp := func() {
		k.read(db.Name, db)
		db.Status.Backup = &v1.BackupStatus{LastBackupAt: &at}
		k.must(k.api.Status().Update(k.Context(), db))
	}
	backedUp()
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "longer ago than spec.backupWithin")
	at = metav1.NewTime(k.now.Add(-time.Hour).UTC())
	backedUp()
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "started")

	other := k.started("y", instances(3), withoutArchive)
	k.edit(other, func(db *v1.SampleDB) {
		db.Annotations = map[string]string{naming.AnnotationFaultDrills: naming.FaultDrillsAllowed}
	})
	alone := k.ask("alone", func(d *v1.FaultDrill) { d.Spec.SampleDB, d.Spec.AtOnce = "y", 1 })
	k.expectDrill(alone, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "1 other FaultDrills")
	d.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), d))
	k.drill(d)
	alone = k.drill(alone)
	k.expectDrill(alone, metav1.ConditionFalse, v1.ReasonRunning, "Running", "started")
}

// What guards a drill is refused with a sentence where it makes no sense; nobody breaks anything by hand by a schedule.
func TestGuardsOfADrillAreRefusedWithASentence(t *testing.T) {
	k, db, d := drilled(t)
	for name, c := range map[string]struct {
		change func(*v1.FaultDrillSpec)
		words  string
	}{
		"a backup of the future": {func(s *v1.FaultDrillSpec) { s.BackupWithin = &metav1.Duration{} },
			"backupWithin must be from 1m to 8760h"},
		"none at once": {func(s *v1.FaultDrillSpec) { s.AtOnce = -1 }, "should be greater than or equal to 1"},
		"a volume, and what somebody else breaks": {func(s *v1.FaultDrillSpec) {
			s.Fault = v1.FaultByHand
			s.Meanwhile = []v1.FaultDrillPart{{Fault: v1.FaultVolumeLost, Instance: v1.DrillStandby}}
		}, "VolumeLost goes with APIAway"},
		"all by hand": {func(s *v1.FaultDrillSpec) { s.Fault, s.Instance = v1.FaultByHand, v1.DrillAll },
			"choose one of these, or instance: Primary or Standby"},
	} {
		other := &v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "e"}}
		d.Spec.DeepCopyInto(&other.Spec)
		c.change(&other.Spec)
		err := k.api.Create(k.Context(), other)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	db.Spec.Drills = &v1.DrillsSpec{Schedule: "0 * * * *", Keep: 1, Faults: []v1.FaultDrillFault{v1.FaultByHand}}
	err := k.api.Update(k.Context(), db)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "Unsupported") {
		t.Errorf("by a schedule: %v", err)
	}
}
