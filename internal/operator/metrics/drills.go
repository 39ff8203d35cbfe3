package metrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// Drills shows how the last FaultDrills have ended: of each SampleDB, fault and role the last one that has a result. It
// reads them when it is asked, so that nothing is shown of what was deleted. It may be asked only of an operator that
// acts, or each replica would show the same.
type Drills struct {
	// Reader reads from the operator's cache.
	Reader client.Reader
	// Has says that a SampleDB is this operator's.
	Has func(namespace, name string) bool
}

var (
	drillLabels = []string{"namespace", "sampledb", "fault", "role"}
	drillPassed = prometheus.NewDesc("toban_faultdrill_passed",
		"1 if the last FaultDrill that has a result has passed, else 0.", drillLabels, nil)
	drillOutage = prometheus.NewDesc("toban_faultdrill_outage_seconds",
		"The longest time without an acknowledged write in it.", drillLabels, nil)
	drillCompleted = prometheus.NewDesc("toban_faultdrill_completed_timestamp_seconds",
		"When it ended.", drillLabels, nil)
)

// Describe tells which metrics there are.
func (d *Drills) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{drillPassed, drillOutage, drillCompleted} {
		out <- desc
	}
}

// Collect tells what is known now; nothing where FaultDrills can't be read.
func (d *Drills) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all v1.FaultDrillList
	if d.Reader.List(ctx, &all) != nil {
		return
	}
	for labels, drill := range lastDrills(all.Items) {
		if !d.Has(drill.Namespace, drill.Spec.SampleDB) {
			continue
		}
		show := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels[:]...)
		}
		passed, outage := 0.0, time.Duration(0)
		if meta.IsStatusConditionTrue(drill.Status.Conditions, v1.ConditionPassed) {
			passed = 1
		}
		for _, c := range drill.Status.Clients {
			outage = max(outage, c.Outage.Duration)
		}
		show(drillPassed, passed)
		show(drillOutage, outage.Seconds())
		show(drillCompleted, float64(drill.Status.CompletedAt.Unix()))
	}
}

// lastDrills are those with a result that ended last, by their labels.
func lastDrills(all []v1.FaultDrill) map[[4]string]*v1.FaultDrill {
	last := map[[4]string]*v1.FaultDrill{}
	for i := range all {
		d := &all[i]
		if d.Status.CompletedAt == nil || meta.FindStatusCondition(d.Status.Conditions, v1.ConditionPassed) == nil {
			continue
		}
		faults, roles := faultsAndRoles(&d.Spec)
		key := [4]string{d.Namespace, d.Spec.SampleDB, faults, roles}
		if before := last[key]; before == nil || before.Status.CompletedAt.Before(d.Status.CompletedAt) {
			last[key] = d
		}
	}
	return last
}

// faultsAndRoles are the labels of a drill: its fault and role, or all of them.
func faultsAndRoles(spec *v1.FaultDrillSpec) (faults, roles string) {
	const with = "+"
	for i, part := range spec.Parts() {
		if i > 0 {
			faults, roles = faults+with, roles+with
		}
		faults, roles = faults+string(part.Fault), roles+roleOf(part)
	}
	return faults, roles
}

// roleOf is the role of what a fault is done to.
func roleOf(part v1.FaultDrillPart) string {
	if part.Fault == v1.FaultLeaderKilled { // of an application, whatever spec.instance says
		return "Leader"
	}
	return string(part.Instance)
}
