package metrics

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

// filling is a volume of so many bytes, of which so many are used, and that so many fill a day; fewer than none where
// that is not known.
func filling(size, used, perDay int64) protocol.Room {
	r := protocol.Room{Size: size, Used: used}
	if perDay >= 0 {
		r.PerDay = &perDay
	}
	return r
}

// What is not known, or of an instance that is silent or gone, is not shown; nor what was before.
func TestOfVolumesOnlyWhatIsKnownIsShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	shown := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				out[strings.TrimPrefix(f.GetName(), "toban_sampledb_volume_")] += one.GetGauge().GetValue()
			}
		}
		return out
	}
	db := sampleDB("shop", "x")
	for _, c := range []struct {
		rooms map[string]protocol.Room
		want  map[string]float64
	}{
		{map[string]protocol.Room{"x-0": filling(10, 5, 1), "x-1": filling(10, 5, -1)},
			map[string]float64{"size_bytes": 20, "used_bytes": 10, "fills_bytes_per_day": 1, "full_in_days": 5}},
		{map[string]protocol.Room{"x-0": filling(10, 6, 0)},
			map[string]float64{"size_bytes": 10, "used_bytes": 6, "fills_bytes_per_day": 0}},
		{map[string]protocol.Room{"x-0": filling(10, 6, -1)}, map[string]float64{"size_bytes": 10, "used_bytes": 6}},
		{nil, map[string]float64{}},
	} {
		m.ObserveVolumes(db, c.rooms)
		if got := shown(); !maps.Equal(got, c.want) {
			t.Errorf("it shows %v, want %v", got, c.want)
		}
	}
	m.ObserveVolumes(db, map[string]protocol.Room{"x-0": filling(10, 5, 1)})
	m.Forget("shop", "x")
	if got := shown(); len(got) > 0 {
		t.Errorf("of one that is gone it shows %v", got)
	}
}

// Of slots only those are shown that keep much now.
func TestForWhomWALIsKeptIsShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	shown := func() map[string]float64 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, f := range families {
			for _, one := range f.GetMetric() {
				out[one.GetLabel()[1].GetValue()+"/"+one.GetLabel()[2].GetValue()] = one.GetGauge().GetValue()
			}
		}
		return out
	}
	keeps := func(bytes map[string]int64) *protocol.KeptWAL {
		out := &protocol.KeptWAL{Limit: 100}
		for slot, n := range bytes {
			out.Slots = append(out.Slots, protocol.Slot{Name: slot, Bytes: n})
		}
		return out
	}
	m.ObserveKeptWAL(sampleDB("shop", "y"), keeps(map[string]int64{"other": 7}))
	for when, c := range []struct {
		kept *protocol.KeptWAL
		want map[string]float64
	}{
		{keeps(map[string]int64{"mine": 5, "its": 6}), map[string]float64{"x/mine": 5, "x/its": 6, "y/other": 7}},
		{keeps(map[string]int64{"mine": 4}), map[string]float64{"x/mine": 4, "y/other": 7}},
		{nil, map[string]float64{"y/other": 7}},
	} {
		m.ObserveKeptWAL(sampleDB("shop", "x"), c.kept)
		if got := shown(); !maps.Equal(got, c.want) {
			t.Errorf("%d: it shows %v, want %v", when, got, c.want)
		}
	}
	m.Forget("shop", "y")
	if got := shown(); len(got) > 0 {
		t.Errorf("of one that is gone it shows %v", got)
	}
}

// People's dashboards and alerts are made of these: a name or label that goes or
// changes breaks them.
func TestNamesAndLabels(t *testing.T) {
	want := map[string][]string{
		"toban_sampledb_stopped":          {"namespace", "sampledb"},
		"toban_sampledb_instances_wanted": {"namespace", "sampledb"},
		"toban_sampledb_instances_ready":  {"namespace", "sampledb"},
		"toban_sampledb_primary_known":    {"namespace", "sampledb"},
		"toban_sampledb_condition":        {"namespace", "sampledb", "type"},
		"toban_sampledb_condition_reason": {"namespace", "reason", "sampledb", "type"},
		"toban_restart_decisions_total":   {"action", "reason"},
		"toban_operator_acts":             {"shard"},

		"toban_sampledb_archive_lag_bytes":                  {"namespace", "sampledb"},
		"toban_sampledb_archive_lag_seconds":                {"namespace", "sampledb"},
		"toban_sampledb_restorable_since_timestamp_seconds": {"namespace", "sampledb"},
		"toban_sampledb_last_backup_timestamp_seconds":      {"namespace", "sampledb"},
		"toban_sampledb_last_verified_timestamp_seconds":    {"namespace", "sampledb"},

		"toban_sampledb_volume_size_bytes":          {"instance", "namespace", "sampledb"},
		"toban_sampledb_volume_used_bytes":          {"instance", "namespace", "sampledb"},
		"toban_sampledb_volume_fills_bytes_per_day": {"instance", "namespace", "sampledb"},
		"toban_sampledb_volume_full_in_days":        {"instance", "namespace", "sampledb"},
		"toban_sampledb_kept_wal_bytes":             {"namespace", "sampledb", "slot"},
	}
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Observe(sampleDB("shop", "x"), status())
	m.ObserveVolumes(sampleDB("shop", "x"), map[string]protocol.Room{"x-0": filling(10, 5, 1)})
	m.ObserveKeptWAL(sampleDB("shop", "x"), &protocol.KeptWAL{Slots: []protocol.Slot{{Name: "mine", Bytes: 5}}})
	m.Decided("restart", "Pending")
	m.Waits(1)
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
		"toban_sampledb_stopped shop x":                        0,
		"toban_sampledb_instances_wanted shop x":               3,
		"toban_sampledb_instances_ready shop x":                2,
		"toban_sampledb_primary_known shop x":                  1,
		"toban_sampledb_condition shop x Available":            1,
		"toban_sampledb_condition shop x Ready":                0,
		"toban_sampledb_condition shop x ConfigurationApplied": -1,

		"toban_sampledb_condition_reason shop Scaling x Ready":          1,
		"toban_sampledb_condition_reason shop PrimaryReady x Available": 1,

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

// What a status does not say any more is not shown with its last value: an alert would never end.
func TestWhatIsGoneFromTheStatusIsNotShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Observe(sampleDB("shop", "x"), status())
	m.Observe(sampleDB("shop", "y"), status())
	before := gather(t, registry)
	later := status()
	later.Conditions = later.Conditions[:1]
	later.Backup = &v1.BackupStatus{LagBytes: 512, LagSeconds: 7}
	m.Observe(sampleDB("shop", "x"), later)
	gone := []string{
		"toban_sampledb_condition shop x Ready",
		"toban_sampledb_condition shop x ConfigurationApplied",
		"toban_sampledb_condition_reason shop Scaling x Ready",
		"toban_sampledb_condition_reason shop Unknown x ConfigurationApplied",
		"toban_sampledb_restorable_since_timestamp_seconds shop x",
		"toban_sampledb_last_backup_timestamp_seconds shop x",
		"toban_sampledb_last_verified_timestamp_seconds shop x",
	}
	expectOnlyGone(t, before, gather(t, registry), gone)
	later.Backup = nil
	m.Observe(sampleDB("shop", "x"), later)
	gone = append(gone, "toban_sampledb_archive_lag_bytes shop x", "toban_sampledb_archive_lag_seconds shop x")
	expectOnlyGone(t, before, gather(t, registry), gone)
}

// A condition has one reason: that of before is not shown with the present one.
func TestAReasonReplacesTheOneBefore(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Observe(sampleDB("shop", "x"), status())
	later := status()
	later.Conditions[1].Reason = v1.ReasonUpdating
	m.Observe(sampleDB("shop", "x"), later)
	got := gather(t, registry)
	if got["toban_sampledb_condition_reason shop Updating x Ready"] != 1 {
		t.Error("the present reason is not shown")
	}
	if _, there := got["toban_sampledb_condition_reason shop Scaling x Ready"]; there {
		t.Error("the former reason is still shown")
	}
}

func expectOnlyGone(t *testing.T, before, after map[string]float64, gone []string) {
	t.Helper()
	for series := range before {
		if _, there := after[series]; there == slices.Contains(gone, series) {
			t.Errorf("%s is there: %t", series, there)
		}
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
		words := strings.Fields(series)
		if gone := slices.Contains(words, "shop") && slices.Contains(words, "x"); there == gone {
			t.Errorf("%s is still there: %t", series, there)
		}
	}
}

// A database that is stopped is not alarmed about: nothing is shown of it that an alert could be made of.
func TestOfAStoppedDatabaseNothingIsShownButThat(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	for _, step := range []string{v1.StopClosing, v1.StopProving, v1.StopStopping, v1.StopStopped} {
		m.Observe(sampleDB("shop", "x"), status())
		stopped := status()
		stopped.Stop, stopped.ReadyInstances = &v1.StopStatus{Step: step}, 0
		m.Observe(sampleDB("shop", "x"), stopped)
		want := map[string]float64{"toban_sampledb_stopped shop x": 1, "toban_sampledb_instances_ready shop x": 0}
		if got := gather(t, registry); !maps.Equal(got, want) {
			t.Errorf("in the step %s there is %v", step, got)
		}
	}
	for _, step := range []string{v1.StopWaiting, v1.StopStarting} {
		again := status()
		again.Stop = &v1.StopStatus{Step: step}
		m.Observe(sampleDB("shop", "x"), again)
		got := gather(t, registry)
		if got["toban_sampledb_stopped shop x"] != 0 || got["toban_sampledb_instances_wanted shop x"] != 3 {
			t.Errorf("in the step %s there is %v", step, got)
		}
	}
}

// Each shard that there is has a series, so that the one for which nobody acts is known.
func TestForWhichShardAnOperatorActsIsShown(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	m.Waits(3)
	waits := map[string]float64{"toban_operator_acts 0": 0, "toban_operator_acts 1": 0, "toban_operator_acts 2": 0}
	if got := gather(t, registry); !maps.Equal(got, waits) {
		t.Errorf("while it waits there is %v", got)
	}
	m.Acts(1)
	acts := maps.Clone(waits)
	acts["toban_operator_acts 1"] = 1
	if got := gather(t, registry); !maps.Equal(got, acts) {
		t.Errorf("when it acts there is %v", got)
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
			{Type: v1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: v1.ReasonPrimaryReady},
			{Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1.ReasonScaling},
			{Type: v1.ConditionConfigurationApplied, Status: metav1.ConditionUnknown, Reason: v1.ReasonUnknown},
		},
		Backup: &v1.BackupStatus{LagBytes: 512, LagSeconds: 7, Earliest: &at, LastBackupAt: &at, LastVerifiedAt: &at},
	}
}
