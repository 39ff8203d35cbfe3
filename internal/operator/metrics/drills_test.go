package metrics

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// drills are those of a cluster; none can be read where it fails.
type drills struct {
	client.Reader
	all   []v1.FaultDrill
	fails error
}

func (d *drills) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*v1.FaultDrillList); ok {
		list.Items = d.all
	}
	return d.fails
}

// drillOf is one that ended at a second, with or without a result.
func drillOf(db string, fault v1.FaultDrillFault, second int64, passed metav1.ConditionStatus) v1.FaultDrill {
	ended := metav1.NewTime(time.Unix(second, 0))
	d := v1.FaultDrill{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop"},
		Spec:       v1.FaultDrillSpec{SampleDB: db, Fault: fault, Instance: v1.DrillPrimary},
		Status: v1.FaultDrillStatus{CompletedAt: &ended, Clients: []v1.FaultDrillClient{
			{Outage: metav1.Duration{Duration: time.Second}},
			{Outage: metav1.Duration{Duration: time.Duration(second) * time.Second}},
		}},
	}
	if passed != "" {
		d.Status.Conditions = []metav1.Condition{{Type: v1.ConditionPassed, Status: passed}}
	}
	return d
}

// A drill of several faults is not the last one of its first.
func TestADrillOfSeveralFaultsIsShownApart(t *testing.T) {
	one, several := drillOf("x", v1.FaultAPIAway, 5, metav1.ConditionTrue), drillOf("x", v1.FaultAPIAway, 7,
		metav1.ConditionTrue)
	several.Spec.Meanwhile = []v1.FaultDrillPart{{Fault: v1.FaultServerKilled, Instance: v1.DrillStandby}}
	leader := drillOf("x", v1.FaultLeaderKilled, 9, metav1.ConditionTrue)
	last := lastDrills([]v1.FaultDrill{one, several, leader})
	for key, second := range map[[4]string]int64{
		{"shop", "x", "APIAway", "Primary"}:                      5,
		{"shop", "x", "APIAway+ServerKilled", "Primary+Standby"}: 7,
		{"shop", "x", "LeaderKilled", "Leader"}:                  9,
	} {
		if d := last[key]; d == nil || d.Status.CompletedAt.Unix() != second {
			t.Errorf("%v has %+v", key, d)
		}
	}
}

func TestTheLastDrillWithAResultIsShown(t *testing.T) {
	running := drillOf("x", v1.FaultServerKilled, 9, metav1.ConditionTrue)
	running.Status.CompletedAt = nil
	cluster := &drills{all: []v1.FaultDrill{
		drillOf("x", v1.FaultServerKilled, 5, metav1.ConditionFalse),
		drillOf("x", v1.FaultServerKilled, 3, metav1.ConditionTrue),
		drillOf("x", v1.FaultServerKilled, 7, ""),
		drillOf("x", v1.FaultPodKilled, 4, metav1.ConditionTrue),
		running,
		drillOf("of another shard", v1.FaultPodKilled, 4, metav1.ConditionTrue),
	}}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Drills{Reader: cluster, Has: func(namespace, name string) bool {
		return namespace == "shop" && name == "x"
	}})
	shown := func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				labels := ""
				for _, l := range one.GetLabel() {
					labels += " " + l.GetValue()
				}
				out[strings.TrimPrefix(f.GetName(), "toban_faultdrill_")+labels] = one.GetGauge().GetValue()
			}
		}
		return out
	}
	const killed, pod = " ServerKilled shop Primary x", " PodKilled shop Primary x"
	want := map[string]float64{
		"passed" + killed: 0, "outage_seconds" + killed: 5, "completed_timestamp_seconds" + killed: 5,
		"passed" + pod: 1, "outage_seconds" + pod: 4, "completed_timestamp_seconds" + pod: 4,
	}
	if got := shown(); !maps.Equal(got, want) {
		t.Errorf("it shows %v", got)
	}
	cluster.fails = errors.New("the cache is not there yet")
	if got := shown(); len(got) > 0 {
		t.Errorf("it shows %v", got)
	}
}
