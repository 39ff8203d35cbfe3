package metrics

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// People's dashboards and alerts are made of these: a name or label that goes or
// changes breaks them.
func TestNamesAndLabels(t *testing.T) {
	want := map[string][]string{
		"toban_sampledb_instances_wanted": {"namespace", "sampledb"},
		"toban_sampledb_instances_ready":  {"namespace", "sampledb"},
		"toban_sampledb_primary_known":    {"namespace", "sampledb"},
		"toban_sampledb_condition":        {"namespace", "sampledb", "type"},
		"toban_restart_decisions_total":   {"action", "reason"},

		"toban_sampledb_archive_lag_bytes":                  {"namespace", "sampledb"},
		"toban_sampledb_archive_lag_seconds":                {"namespace", "sampledb"},
		"toban_sampledb_restorable_since_timestamp_seconds": {"namespace", "sampledb"},
		"toban_sampledb_last_backup_timestamp_seconds":      {"namespace", "sampledb"},
		"toban_sampledb_last_verified_timestamp_seconds":    {"namespace", "sampledb"},
	}
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Observe(sampleDB("shop", "x"), status())
	m.Decided("restart", "Pending")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		t.Run(f.GetName(), func(t *testing.T) {
			var labels []string
			for _, l := range f.GetMetric()[0].GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			if wanted, known := want[f.GetName()]; !known || !slices.Equal(labels, wanted) {
				t.Errorf("its labels are %v, want %v", labels, wanted)
			}
			if help := f.GetHelp(); !strings.HasSuffix(help, ".") || len(strings.Fields(help)) < 4 {
				t.Errorf("what it says of itself is no sentence: %q", help)
			}
		})
		delete(want, f.GetName())
	}
	if len(want) > 0 {
		t.Errorf("there is no %v", slices.Collect(maps.Keys(want)))
	}
}

func TestObserve(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Observe(sampleDB("shop", "x"), status())
	for series, want := range map[string]float64{
		"toban_sampledb_instances_wanted shop x":               3,
		"toban_sampledb_instances_ready shop x":                2,
		"toban_sampledb_primary_known shop x":                  1,
		"toban_sampledb_condition shop x Available":            1,
		"toban_sampledb_condition shop x Ready":                0,
		"toban_sampledb_condition shop x ConfigurationApplied": -1,

		"toban_sampledb_archive_lag_bytes shop x":                  512,
		"toban_sampledb_archive_lag_seconds shop x":                7,
		"toban_sampledb_restorable_since_timestamp_seconds shop x": 1795230000,
		"toban_sampledb_last_backup_timestamp_seconds shop x":      1795230000,
		"toban_sampledb_last_verified_timestamp_seconds shop x":    1795230000,
	} {
		t.Run(series, func(t *testing.T) {
			if got, known := gather(t, registry)[series]; !known || got != want {
				t.Errorf("it is %v (there: %t), want %v", got, known, want)
			}
		})
	}
	lost := status()
	lost.Conditions[0].Status = metav1.ConditionUnknown
	m.Observe(sampleDB("shop", "x"), lost)
	if got := gather(t, registry)["toban_sampledb_primary_known shop x"]; got != 0 {
		t.Errorf("a primary that is not known is shown as %v", got)
	}
}

// What is shown of a SampleDB goes with it, and nothing of any other.
func TestForget(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	for _, of := range [][2]string{{"shop", "x"}, {"shop", "y"}, {"office", "x"}} {
		m.Observe(sampleDB(of[0], of[1]), status())
	}
	m.Decided("restart", "Pending")
	before := gather(t, registry)
	m.Forget("shop", "x")
	after := gather(t, registry)
	for series := range before {
		_, there := after[series]
		if gone := strings.Contains(series+" ", " shop x "); there == gone {
			t.Errorf("%s is still there: %t", series, there)
		}
	}
}

func TestDecisionsAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Decided("restart", "Pending")
	m.Decided("restart", "Pending")
	m.Decided("none", "Current")
	got := gather(t, registry)
	if got["toban_restart_decisions_total restart Pending"] != 2 ||
		got["toban_restart_decisions_total none Current"] != 1 {
		t.Errorf("the counts are %v", got)
	}
}

// gather is every series, as its name and the values of its labels, with its value.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			series := f.GetName()
			for _, l := range metric.GetLabel() { // sorted by name
				series += " " + l.GetValue()
			}
			all[series] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return all
}

func sampleDB(namespace, name string) *v1.SampleDB {
	return &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: v1.SampleDBSpec{Instances: 3},
	}
}

func status() v1.SampleDBStatus {
	at := metav1.Unix(1795230000, 0)
	return v1.SampleDBStatus{
		ReadyInstances: 2,
		Conditions: []metav1.Condition{
			{Type: v1.ConditionAvailable, Status: metav1.ConditionTrue},
			{Type: v1.ConditionReady, Status: metav1.ConditionFalse},
			{Type: v1.ConditionConfigurationApplied, Status: metav1.ConditionUnknown},
		},
		Backup: &v1.BackupStatus{LagBytes: 512, LagSeconds: 7, Earliest: &at, LastBackupAt: &at, LastVerifiedAt: &at},
	}
}
