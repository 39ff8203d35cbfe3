package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/agent/publish"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// Several faults come together: what lasts first, and the others when it has begun. All that lasts is undone, once at
// each instance.
func TestADrillOfSeveralFaults(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Fault, d.Spec.Instance = v1.FaultAPIAway, v1.DrillAll
		d.Spec.Meanwhile = []v1.FaultDrillPart{
			{Fault: v1.FaultServerKilled, Instance: v1.DrillPrimary},
			{Fault: v1.FaultReplayPaused, Instance: v1.DrillStandby},
		}
	})
	pod := k.clientsPod(d)
	if !slices.Contains(pod.Spec.Containers[0].Command, "--standbys") {
		t.Errorf("nobody reads from standbys: %q", pod.Spec.Containers[0].Command)
	}
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-0, x-1, x-2 were broken")
	if orders := k.breaker.orders; len(orders) != 5 || orders[4] != "kill-server at 10.1.0.1" {
		t.Errorf("what does not last came before what does: %q", orders)
	}
	k.expectOrders("cut-api at 10.1.0.1", "cut-api at 10.1.0.2", "cut-api at 10.1.0.3", "pause-replay at 10.1.0.2",
		"kill-server at 10.1.0.1")
	if s := d.Status; s.Instance != "x-0, x-1, x-2" || !slices.Equal(s.Meanwhile, []string{"x-0", "x-1"}) {
		t.Errorf("it has taken %q and %q", s.Instance, s.Meanwhile)
	}
	k.expectEvents("APIAway of x-0, x-1, x-2, ServerKilled of x-0, ReplayPaused of x-1")
	d = k.drill(d)
	k.expectOrders()
	d.Spec.Cancel = true
	k.must(k.api.Update(k.Context(), d))
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonCancelled, "Cancelled", "")
	k.expectOrders("undo at 10.1.0.1", "undo at 10.1.0.2", "undo at 10.1.0.3")
}

// Where what lasts can't be done, the rest is not begun, and what was done is undone.
func TestADrillOfSeveralFaultsThatFails(t *testing.T) {
	k, _, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Fault, d.Spec.Instance = v1.FaultServerKilled, v1.DrillPrimary
		d.Spec.Meanwhile = []v1.FaultDrillPart{{Fault: v1.FaultAPIAway, Instance: v1.DrillStandby}}
	})
	k.clientsPod(d)
	k.breaker.fails, k.breaker.failsAt = errors.New("a fault lasts already"), "10.1.0.2"
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonFailed, "Failed", "x-1: a fault lasts already")
	k.expectOrders("cut-api at 10.1.0.2", "undo at 10.1.0.2")
}

// A Pod is killed in one of several faults, and the poolers in another.
func TestADrillOfAPodAndOfPoolers(t *testing.T) {
	k, db, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Fault, d.Spec.Instance = v1.FaultPodKilled, v1.DrillStandby
		d.Spec.Meanwhile = []v1.FaultDrillPart{{Fault: v1.FaultPoolersKilled, Instance: v1.DrillPrimary}}
	})
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending", "no Pod of spec.pooler takes clients")
	k.settlePooler(k.edit(db, pooler))
	k.readyPod("a", naming.PoolSelector("x", naming.ComponentPooler))
	d = k.drill(d)
	k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-1, x-pool were broken")
	if k.find("a", &corev1.Pod{}) || k.find("x-1", &corev1.Pod{}) || !k.find("x-0", &corev1.Pod{}) {
		t.Errorf("it has taken %q and %q", d.Status.Instance, d.Status.Meanwhile)
	}
	k.expectOrders()
}

// What does not exclude each other is accepted.
func TestWhichFaultsADrillMayCombine(t *testing.T) {
	k, _, d := drilled(t)
	part := func(fault v1.FaultDrillFault, instance v1.FaultDrillInstance) v1.FaultDrillPart {
		return v1.FaultDrillPart{Fault: fault, Instance: instance}
	}
	for name, parts := range map[string][]v1.FaultDrillPart{
		"an election without the API": {
			part(v1.FaultAPIAway, v1.DrillAll), part(v1.FaultServerKilled, v1.DrillPrimary),
		},
		"a standby that is late, and the primary is lost": {
			part(v1.FaultReplayPaused, v1.DrillStandby), part(v1.FaultPodKilled, v1.DrillPrimary),
		},
		"two of three": {part(v1.FaultServerHung, v1.DrillStandby), part(v1.FaultAgentKilled, v1.DrillPrimary)},
		"a volume, without the API": {
			part(v1.FaultVolumeLost, v1.DrillStandby), part(v1.FaultAPIAway, v1.DrillAll),
			part(v1.FaultPoolersKilled, v1.DrillPrimary),
		},
		"a failover without the archive": {
			part(v1.FaultArchiveAway, v1.DrillAll), part(v1.FaultServerKilled, v1.DrillPrimary),
			part(v1.FaultLeaderKilled, v1.DrillPrimary),
		},
		"a volume, without the archive": {
			part(v1.FaultVolumeLost, v1.DrillStandby), part(v1.FaultArchiveAway, v1.DrillAll),
		},
		"an archive that is away while the disk is full, and the API too": {
			part(v1.FaultDiskFull, v1.DrillPrimary), part(v1.FaultArchiveAway, v1.DrillPrimary),
			part(v1.FaultAPIAway, v1.DrillPrimary), part(v1.FaultReplayPaused, v1.DrillStandby),
		},
		"four": {
			part(v1.FaultServerKilled, v1.DrillPrimary), part(v1.FaultDiskFull, v1.DrillStandby),
			part(v1.FaultAPIAway, v1.DrillStandby), part(v1.FaultPoolersKilled, v1.DrillPrimary),
		},
	} {
		other := &v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, GenerateName: "e-"}, Spec: d.Spec}
		other.Spec.Fault, other.Spec.Instance, other.Spec.Meanwhile = parts[0].Fault, parts[0].Instance, parts[1:]
		if err := k.api.Create(k.Context(), other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An agent whose way to the API is cut reaches nothing there: neither the witness, nor its own Pod's label.
func TestAnAgentThatIsCutOffFromTheAPI(t *testing.T) {
	w := newWorld(t)
	k, lease := witnessing(w, "")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "x-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	w.must(w.api.Create(t.Context(), pod))
	vote := ha.WitnessOperation{Vote: &ha.VoteRequest{Term: 9, Candidate: "x-0.a", Voter: ha.Voter(lease.UID)}}
	calls := map[string]func(context.Context) error{
		"the role": func(ctx context.Context) error {
			return k.Publish(ctx, publish.Wish{Role: protocol.RolePrimary, Term: 1}, []string{"x-1"})
		},
		"the role as it is": func(ctx context.Context) error { _, err := k.Published(ctx); return err },
		"who passes on":     func(ctx context.Context) error { return k.SetRelay(ctx, "x-0", true) },
		"the room":          func(ctx context.Context) error { return k.MarkRoom(ctx, naming.RoomShort) },
		"a vote":            func(ctx context.Context) error { _, _, err := k.Operate(ctx, vote); return err },
	}
	k.Cut()
	for name, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := call(ctx); err == nil || !strings.Contains(err.Error(), "is cut, by a FaultDrill") {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	w.read("x-0", pod)
	w.read("x", lease)
	if len(pod.Labels) > 0 || len(pod.Annotations) > 0 || lease.Annotations[naming.AnnotationElection] != "" {
		t.Errorf("it has written labels %v, annotations %v, and the record %v", pod.Labels, pod.Annotations,
			lease.Annotations)
	}
	k.Restore()
	for name, call := range calls {
		if err := call(t.Context()); err != nil {
			t.Errorf("afterwards, %s: %v", name, err)
		}
	}
}
