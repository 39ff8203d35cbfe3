package plan

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

func TestTheLastHandOverThatWasMeasured(t *testing.T) {
	before := shop()
	seen := running(t, before)
	drill := func(name, of string, fault v1.FaultDrillFault, on v1.FaultDrillInstance, outage string, hour int) {
		d := v1.FaultDrill{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.FaultDrillSpec{
			SampleDB: of, Fault: fault, Instance: on,
		}}
		d.Status.Outage = outage
		if hour > 0 {
			at := metav1.Date(2026, 11, 1, hour, 0, 0, 0, time.UTC)
			d.Status.CompletedAt = &at
		}
		seen.Drills = append(seen.Drills, d)
	}
	drill("former", "shop", v1.FaultPodDeleted, v1.DrillPrimary, "2s", 4)
	drill("last", "shop", v1.FaultPodDeleted, v1.DrillPrimary, "1.61s", 5)
	drill("first", "shop", v1.FaultPodDeleted, v1.DrillPrimary, "1s", 3)
	drill("under-way", "shop", v1.FaultPodDeleted, v1.DrillPrimary, "", 0)
	drill("other", "crm", v1.FaultPodDeleted, v1.DrillPrimary, "3s", 6)
	drill("fault", "shop", v1.FaultServerKilled, v1.DrillPrimary, "4s", 6)
	drill("standby", "shop", v1.FaultPodDeleted, v1.DrillStandby, "0.1s", 6)
	drill("more", "shop", v1.FaultPodDeleted, v1.DrillPrimary, "20s", 7)
	seen.Drills[len(seen.Drills)-1].Spec.Meanwhile = []v1.FaultDrillPart{
		{Fault: v1.FaultAPIAway, Instance: v1.DrillAll},
	}
	labelled := func(db *v1.SampleDB) { db.Spec.Pod.Labels = map[string]string{"team": "a"} }
	if got := of(t, before, seen, labelled).HandOver; got == nil || got.By != "last" || got.Seconds != 1.61 {
		t.Errorf("it takes %+v", got)
	}
	async := func(db *v1.SampleDB) { db.Spec.Durability = v1.DurabilityAsync }
	if got := of(t, before, seen, async).HandOver; got != nil {
		t.Errorf("without a hand-over: %+v", got)
	}
}
