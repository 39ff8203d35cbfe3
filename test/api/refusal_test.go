package api

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// Each bad spec is refused by the API server, with a sentence that a person can act on.
func TestBadSpecsAreRefusedWithTheirSentence(t *testing.T) {
	w := newWorld(t)
	parameter := func(name, value string) func(*v1.SampleDB) {
		return func(db *v1.SampleDB) {
			db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{name: v1.ParameterValue(value)}
		}
	}
	for name, c := range map[string]struct {
		change func(*v1.SampleDB)
		want   string
	}{
		"unknown major": {
			func(db *v1.SampleDB) { db.Spec.Version = 14 },
			"version must be a PostgreSQL major version that is supported: 15, 16, 17, 18 or 19",
		},
		"no instances":       {instances(0), "instances must be from 1 to 9: one primary and up to eight standbys"},
		"negative instances": {instances(-1), "instances must be from 1 to 9: one primary and up to eight standbys"},
		"a primary without a preference": {
			func(db *v1.SampleDB) { db.Spec.Primary = &v1.PrimarySpec{} },
			"spec.primary must say what is preferred: give primary.zones or primary.avoid, or leave primary out",
		},
		"no pooler in a pooler": {
			func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{Instances: -1} },
			"pooler.instances must be from 1 to 20",
		},
		"too many poolers": {
			func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{Instances: 21} },
			"pooler.instances must be from 1 to 20",
		},
		"PgBouncer's third mode": {
			func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{Mode: "Statement"} },
			`supported values: "Transaction", "Session"`,
		},
		"a pool without connections": {
			func(db *v1.SampleDB) { db.Spec.Pooler = &v1.PoolerSpec{Connections: -1} },
			"pooler.connections must be from 1 to 10000",
		},
		"too many poolers for reading": {
			func(db *v1.SampleDB) {
				db.Spec.Pooler = &v1.PoolerSpec{ReadOnly: &v1.ReadPoolSpec{Instances: 21}}
			},
			"pooler.readOnly.instances must be from 1 to 20",
		},
		"an autoscaler that takes poolers away": {
			func(db *v1.SampleDB) {
				db.Spec.Pooler = &v1.PoolerSpec{Instances: 3, Autoscale: &v1.PoolerAutoscale{Max: 2}}
			},
			"pooler.autoscale.max must be at least pooler.instances, which is the least number of Pods",
		},
		"a lag that nobody keeps": {
			func(db *v1.SampleDB) {
				db.Spec.Service.ReadMaxLag = &metav1.Duration{Duration: time.Millisecond}
			},
			"service.readMaxLag must be from 1s to 1h",
		},
		"a zone that is none": {
			func(db *v1.SampleDB) { db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"a b"}} },
			"primary.zones must have names of zones, such as eu-central-1a",
		},
		"a zone twice": {
			func(db *v1.SampleDB) { db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"a", "b", "a"}} },
			"primary.zones names a zone twice",
		},
		"an instance that there can't be": {
			func(db *v1.SampleDB) { db.Spec.Primary = &v1.PrimarySpec{Avoid: []int32{9}} },
			"primary.avoid must have numbers of instances, from 0 to 8: 2 is NAME-2",
		},
		"a hand-over in a window that is not given": {
			func(db *v1.SampleDB) {
				db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"a"}, HandOver: v1.HandOverInWindow}
			},
			"primary.handOver: InWindow needs update.window",
		},
		"a hand-over at another time": {
			func(db *v1.SampleDB) {
				db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"a"}, HandOver: "Sometimes"}
			},
			`supported values: "Automatic", "InWindow", "OnRequest"`,
		},
		"another spread": {
			func(db *v1.SampleDB) { db.Spec.ZoneSpread = "Always" }, `supported values: "Preferred", "Required"`,
		},
		"unparsable quantity": {
			func(db *v1.SampleDB) { db.Spec.Storage.Size = "banana" }, "storage.size must be a quantity such as 10Gi",
		},
		"tiny volume": {
			func(db *v1.SampleDB) { db.Spec.Storage.Size = "1Mi" }, "storage.size must be at least 256Mi",
		},
		"an archive that is hours behind": {
			func(db *v1.SampleDB) {
				db.Spec.Backup = &v1.BackupSpec{MaxLag: &metav1.Duration{Duration: 2 * time.Hour}}
			},
			"backup.maxLag must be from 0s to 1h",
		},
		"an archive that is ahead of time": {
			func(db *v1.SampleDB) {
				db.Spec.Backup = &v1.BackupSpec{MaxLag: &metav1.Duration{Duration: -time.Second}}
			},
			"backup.maxLag must be from 0s to 1h",
		},
		"newline in a name":  {parameter("work_mem\nfsync", "1"), "a parameter name must be one of PostgreSQL's"},
		"newline in a value": {parameter("work_mem", "1\nfsync=off"), "a parameter value must be one line"},
		"an owned parameter": {
			parameter("Listen_Addresses", "*"),
			"belongs to the operator, which sets it itself (docs/parameters.md lists them)",
		},
		"an owned prefix": {parameter("ssl_ciphers", "x"), "belongs to the operator"},
		"a name over the limit": {
			func(db *v1.SampleDB) { db.Name = strings.Repeat("n", naming.MaxName+1) },
			"metadata.name must be at most 40 characters",
		},
		"a name with a digit": {func(db *v1.SampleDB) { db.Name = "1db" }, "metadata.name must start with a letter"},
		"a name with a dot":   {func(db *v1.SampleDB) { db.Name = "a.b" }, "metadata.name must start with a letter"},
		"a reserved owner": {
			func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{Owner: "postgres"} },
			"init.owner must be a name of its own",
		},
		"a reserved database": {
			func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{Database: "template1"} },
			"init.database must be a name of its own",
		},
		"SQL from nowhere": {
			func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{SQL: []v1.SQLSource{{}}} },
			"each item of init.sql must have either configMap or secret",
		},
		"a broken hba line": {
			func(db *v1.SampleDB) { db.Spec.PostgreSQL.HBA = []string{"let me in"} },
			"each line of postgresql.hba must start with",
		},
		"another durability": {
			func(db *v1.SampleDB) { db.Spec.Durability = "maybe" },
			`Unsupported value: "maybe": supported values: "quorum", "async"`,
		},
		"increments of an old PostgreSQL": {func(db *v1.SampleDB) {
			db.Spec.Version, db.Spec.Backup = 16, &v1.BackupSpec{Incremental: &v1.IncrementalSpec{FullEvery: 7}}
		}, "backup.incremental needs PostgreSQL 17 or newer: leave it out"},
		"increments of nothing": {
			func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{Incremental: &v1.IncrementalSpec{FullEvery: 1}} },
			"backup.incremental.fullEvery must be from 2 to 100",
		},
		"another eviction": {
			func(db *v1.SampleDB) { db.Spec.Eviction = "Never" },
			`Unsupported value: "Never": supported values: "Protect", "Allow"`,
		},
		"our own Pod label": {
			func(db *v1.SampleDB) { db.Spec.Pod.Labels = map[string]string{"toban.dev/role": "primary"} },
			"pod.labels must not begin with toban.dev/",
		},
	} {
		t.Run(name, func(t *testing.T) { refused(t, w.api.Create(t.Context(), w.sampleDB("bad", c.change)), c.want) })
	}
}

func refused(t *testing.T, err error, sentence string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was taken, want it refused: %s", sentence)
	}
	if !strings.Contains(err.Error(), sentence) {
		t.Errorf("refused with\n%v\nwant\n%s", err, sentence)
	}
}

func TestWhatCantChangeIsRefusedWithItsSentence(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		before, after func(*v1.SampleDB)
		want          string
	}{
		"version": {
			instances(1), func(db *v1.SampleDB) { db.Spec.Version = 16 },
			"spec.version can't go below the major version of the data",
		},
		"a size beyond the limit of growth": {
			growing("2Gi"), func(db *v1.SampleDB) { db.Spec.Storage.Size = "3Gi" },
			"storage.grow.limit can't be less than storage.size",
		},
		"a limit of growth below the size": {
			instances(1), func(db *v1.SampleDB) { db.Spec.Storage.Grow = &v1.GrowSpec{Limit: "512Mi"} },
			"storage.grow.limit can't be less than storage.size",
		},
		"a limit of growth that is none": {
			instances(1), func(db *v1.SampleDB) { db.Spec.Storage.Grow = &v1.GrowSpec{Limit: "much"} },
			"storage.grow.limit must be a quantity such as 100Gi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			db := w.sampleDB("fixed-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"), c.before)
			if err := w.api.Create(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			c.after(db)
			refused(t, w.api.Update(t.Context(), db), c.want)
		})
	}
}

func TestInitCanBeMendedUntilItHasRun(t *testing.T) {
	w := newWorld(t)
	db := w.create("x", func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{Database: "a"} })
	db = w.edit(db, func(db *v1.SampleDB) { db.Spec.Init.Database = "b" })
	now := metav1.Now()
	db.Status.InitializedAt = &now
	w.must(w.api.Status().Update(t.Context(), db))
	const want = "spec.init has run and runs only once: change the database with SQL instead"
	changed := db.DeepCopy()
	changed.Spec.Init.Database = "c"
	refused(t, w.api.Update(t.Context(), changed), want)
	changed = db.DeepCopy()
	changed.Spec.Init = nil
	refused(t, w.api.Update(t.Context(), changed), want)
	changed = db.DeepCopy()
	changed.Spec.Instances = 2
	w.must(w.api.Update(t.Context(), changed))
}

func TestTheLongestNameAndAMinimalSpecAreTaken(t *testing.T) {
	w := newWorld(t)
	db := w.sampleDB(strings.Repeat("n", naming.MaxName))
	w.must(w.api.Create(t.Context(), db))
	if db.Spec.Durability != v1.DurabilityQuorum || db.Spec.Eviction != v1.EvictionProtect {
		t.Errorf("defaults are %q and %q", db.Spec.Durability, db.Spec.Eviction)
	}
	if policy := desired.DeletionPolicy(db); policy != v1.DeletionSnapshot ||
		db.Spec.Storage.WhenScaled != v1.ScaleRetain {
		t.Errorf("defaults are %q and %q", policy, db.Spec.Storage.WhenScaled)
	}
	db = w.reconcile(db)
	w.expect(db, v1.ConditionReady, metav1.ConditionFalse, v1.ReasonCreating)
}
