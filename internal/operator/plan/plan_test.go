package plan

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// shop is a SampleDB of three instances, of which the second one leads.
func shop() *v1.SampleDB {
	return &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop", UID: "1"},
		Spec: v1.SampleDBSpec{
			Version: 17, Instances: 3, Durability: v1.DurabilityQuorum,
			Storage: v1.StorageSpec{Size: "10Gi", WhenScaled: v1.ScaleRetain},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			}},
			DeletionPolicy: v1.DeletionSnapshot,
		},
		Status: v1.SampleDBStatus{Primary: "shop-1", Major: 17},
	}
}

// running is what is seen of a SampleDB whose Pods are as it wants them.
func running(t *testing.T, db *v1.SampleDB) Seen {
	t.Helper()
	set, err := desired.StatefulSet(db, desired.Settings{}, desired.Config(db, desired.Known{}), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	seen := Seen{Contexts: map[string]string{
		"max_connections": "postmaster", "shared_buffers": "postmaster", "max_wal_senders": "postmaster",
		"max_replication_slots": "postmaster", "work_mem": "user", "summarize_wal": "sighup", "max_wal_size": "sighup",
		"min_wal_size": "sighup", "wal_keep_size": "sighup", "max_slot_wal_keep_size": "sighup",
		"effective_cache_size": "user", "maintenance_work_mem": "user",
	}}
	all := append(instances(db), names(0, desired.MostReaders(db), func(n int) string {
		return naming.Reader(db.Name, n)
	})...)
	for _, name := range all {
		pod := corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
		pod.Name = name
		for i := range pod.Spec.Containers { // as the API server stores them
			r := &pod.Spec.Containers[i].Resources
			if r.Requests == nil {
				r.Requests = r.Limits
			}
		}
		seen.Pods = append(seen.Pods, pod)
	}
	return seen
}

// of is the plan of a change of a SampleDB.
func of(t *testing.T, before *v1.SampleDB, seen Seen, edit func(*v1.SampleDB)) Plan {
	t.Helper()
	after := before.DeepCopy()
	edit(after)
	got, err := Of(before, after, seen)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// short is a plan in a few words: each step with its instances, writes and fields.
func (p Plan) short() string {
	var lines []string
	for _, s := range p.Steps {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", s.Effect, strings.Join(s.Instances, ","), s.Writes,
			strings.Join(s.Fields, ",")))
	}
	return strings.Join(lines, "\n")
}

func TestWhatAChangeDoes(t *testing.T) {
	limit := func(name corev1.ResourceName, value string) func(*v1.SampleDB) {
		return func(db *v1.SampleDB) { db.Spec.Resources.Limits[name] = resource.MustParse(value) }
	}
	set := func(name, value string) func(*v1.SampleDB) {
		return func(db *v1.SampleDB) {
			db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{name: v1.ParameterValue(value)}
		}
	}
	for name, test := range map[string]struct {
		is, edit func(*v1.SampleDB)
		want     string
	}{
		"nothing": {edit: func(*v1.SampleDB) {}},
		"a parameter that is reloaded": {
			edit: set("Work_Mem", "16MB"),
			want: "Reload shop-0,shop-1,shop-2 GoOn: postgresql.parameters.Work_Mem",
		},
		"the value that the parameter has already": {
			edit: set("max_connections", "100"),
			want: "AtOnce  GoOn: postgresql.parameters.max_connections",
		},
		"a parameter that is taken at the start": {
			edit: set("max_connections", "200"),
			want: "RestartServers shop-2,shop-0,shop-1 HandOver: postgresql.parameters.max_connections",
		},
		"the same of a lone instance": {
			is:   func(db *v1.SampleDB) { db.Spec.Instances = 1 },
			edit: set("max_connections", "200"),
			want: "RestartServers shop-0 Down: postgresql.parameters.max_connections",
		},
		"the same while the database is stopped": {
			is:   func(db *v1.SampleDB) { db.Spec.Stopped = true },
			edit: set("max_connections", "200"),
			want: "WhenStarted  Down: postgresql.parameters.max_connections",
		},
		"the same with its start": {
			is:   func(db *v1.SampleDB) { db.Spec.Stopped = true },
			edit: func(db *v1.SampleDB) { db.Spec.Stopped = false; set("max_connections", "200")(db) },
			want: "Start shop-0,shop-1,shop-2 Down: stopped\nWhenStarted  Down: postgresql.parameters.max_connections",
		},
		"the same while a window has it stopped": {
			is:   func(db *v1.SampleDB) { db.Status.Stop = &v1.StopStatus{Step: v1.StopStopped} },
			edit: set("max_connections", "200"),
			want: "WhenStarted  Down: postgresql.parameters.max_connections",
		},
		"it is not to sleep any more, and sleeps": {
			is: func(db *v1.SampleDB) {
				db.Spec.Pooler, db.Spec.SleepAfter = &v1.PoolerSpec{}, "1h"
				db.Status.Stop = &v1.StopStatus{Step: v1.StopStopped, Asleep: "2026-11-24T12:00:00Z"}
			},
			edit: func(db *v1.SampleDB) { db.Spec.SleepAfter = "" },
			want: "Start shop-0,shop-1,shop-2 Down: sleepAfter",
		},
		"more processor": {
			edit: limit(corev1.ResourceCPU, "2"),
			want: "ResizePods shop-2,shop-0,shop-1 GoOn: resources.limits.cpu",
		},
		"more memory, of which the servers have a quarter": {
			edit: limit(corev1.ResourceMemory, "2Gi"),
			want: "Reload shop-0,shop-1,shop-2 GoOn: resources.limits.memory\n" +
				"ResizePods shop-2,shop-0,shop-1 GoOn: resources.limits.memory\n" +
				"RestartServers shop-2,shop-0,shop-1 HandOver: resources.limits.memory",
		},
		"less memory": {
			edit: limit(corev1.ResourceMemory, "512Mi"),
			want: "Reload shop-0,shop-1,shop-2 GoOn: resources.limits.memory\n" +
				"ReplacePods shop-2,shop-0,shop-1 HandOver: resources.limits.memory",
		},
		"a label, and a parameter that new servers have anyway": {
			edit: func(db *v1.SampleDB) {
				set("max_connections", "200")(db)
				db.Spec.Pod.Labels = map[string]string{"team": "a"}
			},
			want: "ReplacePods shop-2,shop-0,shop-1 HandOver: pod.labels,postgresql.parameters.max_connections",
		},
		"two more instances": {
			edit: func(db *v1.SampleDB) { db.Spec.Instances = 5 },
			want: "AddInstances shop-3,shop-4 GoOn: instances",
		},
		"one more, which starts with what the others restart for": {
			edit: func(db *v1.SampleDB) { db.Spec.Instances = 4; set("max_connections", "200")(db) },
			want: "AddInstances shop-3 GoOn: instances\n" +
				"RestartServers shop-2,shop-0,shop-1 HandOver: postgresql.parameters.max_connections",
		},
		"one instance less": {
			edit: func(db *v1.SampleDB) { db.Spec.Instances = 2 },
			want: "RemoveInstances shop-2 GoOn: instances",
		},
		"less instances, the primary among them": {
			edit: func(db *v1.SampleDB) { db.Spec.Instances = 1 },
			want: "RemoveInstances shop-2,shop-1 HandOver: instances",
		},
		"a label, and an instance less, which is not replaced before": {
			edit: func(db *v1.SampleDB) { db.Spec.Instances, db.Spec.Pod.Labels = 2, map[string]string{"team": "a"} },
			want: "RemoveInstances shop-2 GoOn: instances\nReplacePods shop-0,shop-1 HandOver: pod.labels",
		},
		"larger volumes, with more WAL": {
			edit: func(db *v1.SampleDB) { db.Spec.Storage.Size = "20Gi" },
			want: "Reload shop-0,shop-1,shop-2 GoOn: storage.size\nGrowVolumes shop-0,shop-1,shop-2 GoOn: storage.size",
		},
		"smaller volumes, with less WAL": {
			edit: func(db *v1.SampleDB) { db.Spec.Storage.Size = "5Gi" },
			want: "Reload shop-0,shop-1,shop-2 GoOn: storage.size\n" +
				"ReplaceVolumes shop-2,shop-0,shop-1 HandOver: storage.size",
		},
		"another class": {
			edit: func(db *v1.SampleDB) { fast := "fast"; db.Spec.Storage.StorageClassName = &fast },
			want: "ReplaceVolumes shop-2,shop-0,shop-1 HandOver: storage.storageClassName",
		},
		"a smaller size than the one that the volumes have grown to": {
			is:   func(db *v1.SampleDB) { db.Status.Storage = &v1.StorageStatus{Size: "20Gi"} },
			edit: func(db *v1.SampleDB) { db.Spec.Storage.Size = "9Gi" },
			want: "ReplaceVolumes shop-2,shop-0,shop-1 HandOver: storage.size",
		},
		"a smaller volume of a lone instance": {
			is:   func(db *v1.SampleDB) { db.Spec.Instances = 1 },
			edit: func(db *v1.SampleDB) { db.Spec.Storage.Size = "9Gi" },
			want: "Reload shop-0 GoOn: storage.size\nReplaceVolumes shop-0 GoOn: storage.size",
		},
		"the size that the volumes have grown to": {
			is:   func(db *v1.SampleDB) { db.Status.Storage = &v1.StorageStatus{Size: "20Gi"} },
			edit: func(db *v1.SampleDB) { db.Spec.Storage.Size = "20Gi" },
			want: "AtOnce  GoOn: storage.size",
		},
		"readers, and those that are replaced": {
			is: func(db *v1.SampleDB) { db.Spec.Readers = &v1.ReadersSpec{Count: 1} },
			edit: func(db *v1.SampleDB) {
				db.Spec.Readers.Count, db.Spec.Pod.Labels = 2, map[string]string{"team": "a"}
			},
			want: "AddReaders shop-readers-1 GoOn: readers.count\n" +
				"ReplacePods shop-readers-0,shop-2,shop-0,shop-1 HandOver: pod.labels",
		},
		"more readers than there are connections for": {
			edit: func(db *v1.SampleDB) { db.Spec.Readers = &v1.ReadersSpec{Count: 6} },
			want: "AddReaders shop-readers-0,shop-readers-1,shop-readers-2,shop-readers-3,shop-readers-4," +
				"shop-readers-5 GoOn: readers\nRestartServers shop-2,shop-0,shop-1 HandOver: readers",
		},
		"a pooler": {
			edit: pooler(2, ""),
			want: "AddPooler  GoOn: pooler",
		},
		"a pooler with more Pods": {
			is: pooler(2, ""), edit: pooler(3, ""),
			want: "AtOnce  GoOn: pooler.instances",
		},
		"a pooler with another image, and labels of all Pods": {
			is: pooler(2, ""),
			edit: func(db *v1.SampleDB) {
				pooler(2, "other")(db)
				db.Spec.Pod.Labels = map[string]string{"team": "a"}
			},
			want: "ReplacePooler  GoOn: pod.labels,pooler.image\n" +
				"ReplacePods shop-2,shop-0,shop-1 HandOver: pod.labels",
		},
		"a pooler for reading": {
			is:   pooler(2, ""),
			edit: func(db *v1.SampleDB) { db.Spec.Pooler.ReadOnly = &v1.ReadPoolSpec{Instances: 2} },
			want: "AddPooler  GoOn: pooler.readOnly",
		},
		"no pooler any more": {
			is: pooler(2, ""), edit: func(db *v1.SampleDB) { db.Spec.Pooler = nil },
			want: "RemovePooler  GoOn: pooler",
		},
		"another major version": {
			edit: func(db *v1.SampleDB) { db.Spec.Version = 18 },
			want: "Upgrade shop-0,shop-1,shop-2 Down: version",
		},
		"another major version, by a second side": {
			edit: func(db *v1.SampleDB) {
				db.Spec.Version, db.Spec.Upgrade = 18, &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen}
			},
			want: "AtOnce  GoOn: upgrade\n" +
				"Upgrade shop-green-0,shop-green-1,shop-green-2,shop-0,shop-1,shop-2 Pause: version",
		},
		"another major version, by a second side that there can't be": {
			is: pooler(2, ""),
			edit: func(db *v1.SampleDB) {
				db.Spec.Version, db.Spec.Upgrade = 18, &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen}
			},
			want: "AtOnce  GoOn: upgrade\nUpgrade  GoOn: version",
		},
		"an earlier state": {
			edit: func(db *v1.SampleDB) { db.Spec.Restore = &v1.InPlaceRestore{ID: "a", Confirm: "shop"} },
			want: "Restore shop-0,shop-1,shop-2 Down: restore",
		},
		"an earlier state after another one": {
			is: func(db *v1.SampleDB) { db.Spec.Restore = &v1.InPlaceRestore{ID: "a", Confirm: "shop"} },
			edit: func(db *v1.SampleDB) {
				db.Spec.Restore = &v1.InPlaceRestore{ID: "b", Confirm: "shop", Before: v1.BeforeDelete}
			},
			want: "Restore shop-0,shop-1,shop-2 Down: restore",
		},
		"a stop": {
			edit: func(db *v1.SampleDB) { db.Spec.Stopped = true },
			want: "Stop shop-2,shop-0,shop-1 Down: stopped",
		},
		"a preferred zone": {
			edit: func(db *v1.SampleDB) { db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"a"}} },
			want: "HandOver shop-1 HandOver: primary",
		},
		"a preferred zone, for when the primary hands over anyway": {
			edit: func(db *v1.SampleDB) {
				db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"a"}, HandOver: v1.HandOverOnRequest}
			},
			want: "AtOnce  GoOn: primary",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := shop()
			if test.is != nil {
				test.is(before)
			}
			if got := of(t, before, running(t, before), test.edit).short(); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// What is not known is not told as if it were.
func TestAPrimaryThatWasNotAsked(t *testing.T) {
	before := shop()
	seen := running(t, before)
	seen.Contexts = nil
	got := of(t, before, seen, func(db *v1.SampleDB) {
		db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{"max_connections": "200"}
	})
	if len(got.Steps) != 1 || got.Steps[0].Effect != Reload || !strings.Contains(got.Steps[0].Message, "not known") {
		t.Errorf("it says %+v", got.Steps)
	}
}

// Which way back there is after an upgrade is said before it, also that there is none.
func TestTheWayBackAfterAnUpgrade(t *testing.T) {
	for words, edit := range map[string]func(*v1.SampleDB){
		"the way back is a restore from the archive": func(*v1.SampleDB) {},
		"there is no way back: there is no archive": func(db *v1.SampleDB) {
			db.Spec.Backup = &v1.BackupSpec{None: true}
		},
		"there is no way back: no backup is taken before": func(db *v1.SampleDB) {
			db.Spec.Upgrade = &v1.UpgradeSpec{Backup: v1.UpgradeBackupNone}
		},
		"the former data, which stays whole": func(db *v1.SampleDB) {
			db.Spec.Upgrade = &v1.UpgradeSpec{Method: v1.UpgradeCopy}
		},
	} {
		before := shop()
		edit(before)
		got := of(t, before, running(t, before), func(db *v1.SampleDB) { db.Spec.Version = 18 })
		if len(got.Steps) != 1 || !strings.Contains(got.Steps[0].Message, words) {
			t.Errorf("it says %+v, want %q", got.Steps, words)
		}
	}
}

// What a second side needs is told, and why there can't be one.
func TestAnUpgradeByASecondSide(t *testing.T) {
	to18 := func(db *v1.SampleDB) { db.Spec.Version = 18 }
	for words, pooled := range map[string]bool{
		"from PostgreSQL 17 to 18; the instances of shop-green are made and upgraded beside these, and need as " +
			"much memory and a volume of 10Gi each, until the upgrade is accepted; no client is let in for 3s at " +
			"most when clients move there, and again when the data comes home": false,
		"from PostgreSQL 17 to 18: it does not begin. A pooler does not know a second side yet. Remove spec.pooler " +
			"until the upgrade has ended, or set spec.upgrade.strategy to InPlace": true,
	} {
		before := shop()
		before.Spec.Upgrade = &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen}
		if pooled {
			pooler(2, "")(before)
		}
		steps := of(t, before, running(t, before), to18).Steps
		if len(steps) != 1 || steps[0].Message != words {
			t.Errorf("it says %+v", steps)
		}
	}
}

// What is being done already is not caused by the change.
func TestAPodThatIsOutdatedBefore(t *testing.T) {
	before := shop()
	seen := running(t, before)
	before.Spec.Pod.Labels = map[string]string{"team": "a"}
	got := of(t, before, seen, func(db *v1.SampleDB) { db.Spec.Durability = v1.DurabilityAsync })
	if got.short() != "AtOnce  GoOn: durability" {
		t.Errorf("it says\n%s", got.short())
	}
}

// pooler gives a SampleDB one.
func pooler(instances int32, image string) func(*v1.SampleDB) {
	return func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{Instances: instances, Image: image} }
}

func TestASampleDBThatIsMade(t *testing.T) {
	db := shop()
	db.Spec.Durability = v1.DurabilityAsync
	got, err := Of(nil, db, Seen{})
	if err != nil || got.short() != "Create shop-0,shop-1,shop-2 Down: " || len(got.Warnings) != 1 {
		t.Errorf("it says\n%s\n%q %v", got.short(), got.Warnings, err)
	}
}

// What a stop does is told by the headings of its own steps, in their order.
func TestAStopIsToldByItsSteps(t *testing.T) {
	before := shop()
	after := before.DeepCopy()
	after.Spec.Stopped = true
	p, err := Of(before, after, Seen{})
	const want = "clients are sent away, the archive gets the last WAL, and the Pods end; the volumes stay"
	if err != nil || len(p.Steps) != 1 || p.Steps[0].Message != want {
		t.Errorf("it says %+v (%v), want %q", p.Steps, err, want)
	}
}
