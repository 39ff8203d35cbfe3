package api

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// The store of an archive is away for agents, and the primary's server is killed meanwhile. The drill is over when the
// archive has the WAL that there was when the store was back.
func TestADrillOfTheArchive(t *testing.T) {
	k, db, d := drilled(t, func(d *v1.FaultDrill) {
		d.Spec.Fault, d.Spec.Instance = v1.FaultArchiveAway, v1.DrillAll
		d.Spec.Meanwhile = []v1.FaultDrillPart{{Fault: v1.FaultServerKilled, Instance: v1.DrillPrimary}}
	})
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonNotReadyForDrill, "Pending",
		"takes a SampleDB with an archive, and this one has none (spec.backup.none)")
	db = k.archive(k.edit(db, archived), &works)
	k.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
	d = k.drill(d)
	pod := k.clientsPod(d)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionFalse, v1.ReasonRunning, "Running", "x-0, x-1, x-2 were broken")
	if orders := k.breaker.orders; len(orders) != 4 || orders[3] != "kill-server at 10.1.0.1" {
		t.Errorf("the server was killed before the archive was away: %q", orders)
	}
	k.expectOrders("cut-archive at 10.1.0.1", "cut-archive at 10.1.0.2", "cut-archive at 10.1.0.3",
		"kill-server at 10.1.0.1")
	if k.breaker.last.For != d.Spec.Duration.Duration {
		t.Errorf("it is to last for %s", k.breaker.last.For)
	}
	at := func(written, archived string) {
		k.breaker.status = &protocol.Status{
			Role: protocol.RolePrimary, LSN: written, Archive: &protocol.ArchiveStatus{LSN: archived},
		}
	}
	at("0/6000000", "0/6000000") // as before the fault is felt
	if d = k.drill(d); d.Status.WholeAt != nil || d.Status.WALAtEnd != "" {
		t.Errorf("while it lasts the status is %+v", d.Status)
	}
	k.now = k.now.Add(30 * time.Second)
	k.end(pod, k.result())
	k.breaker.status = nil
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonRunning, "Running", "its archive has not caught up yet")
	at("0/7000000", "0/5000000")
	if d = k.drill(d); d.Status.WALAtEnd != "0/7000000" || d.Status.WholeAt != nil {
		t.Errorf("when it is over the status is %+v", d.Status)
	}
	at("0/8000000", "0/6FFFFFF")
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonRunning, "Running", "its archive has not caught up yet")
	at("0/9000000", "0/7000000")
	k.archive(db, &protocol.ArchiveStatus{LSN: "0/7000000", Gap: "from 0/5000000 to 0/6000000"})
	k.expectDrill(k.drill(d), metav1.ConditionFalse, v1.ReasonRunning, "Running", "its archive has not caught up yet")
	k.archive(db, &works)
	d = k.drill(k.drill(d))
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed",
		"Ready and Durable again, with an archive that has caught up, after")
	k.expectOrders()
}

// An archive that does not catch up in time has not passed.
func TestADrillOfAnArchiveThatStaysBehind(t *testing.T) {
	k, db, d := drilled(t, func(d *v1.FaultDrill) { d.Spec.Fault = v1.FaultArchiveAway })
	k.archive(k.edit(db, archived), &works)
	d = k.drill(d)
	pod := k.clientsPod(d)
	d = k.drill(d)
	k.expectOrders("cut-archive at 10.1.0.1")
	k.breaker.status = &protocol.Status{
		Role: protocol.RolePrimary, LSN: "0/7000000", Archive: &protocol.ArchiveStatus{LSN: "0/5000000"},
	}
	k.now = k.now.Add(30 * time.Second)
	k.end(pod, k.result())
	d = k.drill(d)
	k.now = k.now.Add(d.Spec.Objectives.WholeWithin.Duration)
	d = k.drill(d)
	k.expectDrill(d, metav1.ConditionTrue, v1.ReasonCompleted, "Completed",
		"not Ready and Durable again, with an archive that has caught up, after 5m0s")
	if c := d.Status.Conditions; len(c) != 2 || c[1].Reason != v1.ReasonNotWholeInTime {
		t.Errorf("the verdict is %+v", c)
	}
}
