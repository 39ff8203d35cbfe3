package metrics

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	myappv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
)

// cache is what an operator has read; nothing can be read where it fails.
type cache struct {
	client.Reader
	databases []pgv1.PostgreSQL
	apps      []myappv1.MyApp
	backups   []v1.DatabaseBackup
	fails     error
}

func (c *cache) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *pgv1.PostgreSQLList:
		list.Items = c.databases
	case *myappv1.MyAppList:
		list.Items = c.apps
	case *v1.DatabaseBackupList:
		list.Items = c.backups
	}
	return c.fails
}

// shownOf is all that is shown of a cache, whose operator has what is called mine.
func shownOf(t *testing.T, c *cache) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(&Kinds{Reader: c, Has: func(namespace, name string) bool {
		return namespace == "shop" && name == "mine"
	}})
	return gather(t, registry)
}

func expectShown(t *testing.T, c *cache, want map[string]float64) {
	t.Helper()
	if got := shownOf(t, c); !maps.Equal(got, want) {
		t.Errorf("it shows %v\nwant %v", got, want)
	}
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason}
}

// A PostgreSQL goes by its server, which has its own name where the spec names none, and may be elsewhere.
func TestPostgreSQLsAreShownByTheOperatorOfTheirServer(t *testing.T) {
	database := func(namespace, name string, server *pgv1.ServerReference) pgv1.PostgreSQL {
		pg := pgv1.PostgreSQL{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		pg.Spec.Server = server
		pg.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, pgv1.ReasonRoleTaken)}
		return pg
	}
	c := &cache{databases: []pgv1.PostgreSQL{
		database("shop", "mine", nil),
		database("shop", "other", nil),
		database("office", "mine", nil),
		database("office", "books", &pgv1.ServerReference{Namespace: "shop", Name: "mine"}),
	}}
	expectShown(t, c, map[string]float64{
		"toban_postgresql_condition shop mine Ready":                     0,
		"toban_postgresql_condition_reason shop mine RoleTaken Ready":    1,
		"toban_postgresql_condition office books Ready":                  0,
		"toban_postgresql_condition_reason office books RoleTaken Ready": 1,
	})
	c.databases = c.databases[1:3]
	expectShown(t, c, map[string]float64{})
}

func TestMyAppsAreShown(t *testing.T) {
	app := func(name, ready string, leads bool, leader string) myappv1.MyApp {
		a := myappv1.MyApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		a.Spec.Leader = leads
		a.Status = myappv1.MyAppStatus{Ready: ready, Replicas: 4, ReadyReplicas: 2, Leader: leader,
			Conditions: []metav1.Condition{
				condition(myappv1.ConditionReady, metav1.ConditionUnknown, myappv1.ReasonRetrying),
				condition(myappv1.ConditionMigrated, metav1.ConditionTrue, myappv1.ReasonMigrated),
			}}
		return a
	}
	always := map[string]float64{
		"toban_myapp_condition mine shop Ready":                    -1,
		"toban_myapp_condition_reason mine shop Retrying Ready":    1,
		"toban_myapp_condition mine shop Migrated":                 1,
		"toban_myapp_condition_reason mine shop Migrated Migrated": 1,
	}
	replicas := map[string]float64{
		"toban_myapp_replicas_wanted mine shop": 3, "toban_myapp_replicas_ready mine shop": 2,
	}
	for name, c := range map[string]struct {
		app  myappv1.MyApp
		more map[string]float64
	}{
		"one without a leader":          {app("mine", "2/3", false, ""), replicas},
		"one that is led":               {app("mine", "2/3", true, "mine-7d9f"), leads(replicas, 1)},
		"one that has no leader now":    {app("mine", "2/3", true, ""), leads(replicas, 0)},
		"one of which nothing is known": {app("mine", "", false, ""), nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := maps.Clone(always)
			maps.Copy(want, c.more)
			expectShown(t, &cache{apps: []myappv1.MyApp{c.app, app("other", "2/3", true, "x")}}, want)
		})
	}
}

// leads adds whether a leader is known.
func leads(series map[string]float64, known float64) map[string]float64 {
	out := maps.Clone(series)
	out["toban_myapp_leader_known mine shop"] = known
	return out
}

// backup is one that began at 1000 s and ended at a second, not yet where that is 0.
func backup(phase, reason string, second int64, change ...func(*v1.DatabaseBackup)) v1.DatabaseBackup {
	status := metav1.ConditionFalse
	if reason == v1.ReasonCompleted {
		status = metav1.ConditionTrue
	}
	began := metav1.Unix(1000, 0)
	b := v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
	b.Spec.SampleDB = "mine"
	b.Status = v1.DatabaseBackupStatus{Phase: phase, StartedAt: &began, Type: v1.BackupFull, StoredSize: "2Mi",
		Progress:   &v1.BackupProgress{Bytes: 5 << 20},
		Conditions: []metav1.Condition{condition(v1.ConditionComplete, status, reason)}}
	if second > 0 {
		at := metav1.Unix(second, 0)
		b.Status.CompletedAt = &at
	}
	for _, c := range change {
		c(&b)
	}
	return b
}

func incremental(b *v1.DatabaseBackup) {
	b.Status.Type, b.Status.StoredSize = v1.BackupIncremental, "100"
}

// verified is what was found at a second, after so long.
func verified(second int64, took time.Duration, status metav1.ConditionStatus, reason string) func(*v1.DatabaseBackup) {
	return func(b *v1.DatabaseBackup) {
		at := metav1.Unix(second, 0)
		b.Status.Verification = &v1.VerificationStatus{CompletedAt: &at, RecoveryTime: &metav1.Duration{Duration: took}}
		b.Status.Conditions = append(b.Status.Conditions, condition(v1.ConditionVerified, status, reason))
	}
}

// Of many backups there is only what became of the last ones; and what has ended is told from what was cancelled or is
// under way.
func TestOfBackupsTheLastAreShown(t *testing.T) {
	elsewhere := backup("Failed", v1.ReasonFailed, 9000)
	elsewhere.Spec.SampleDB = "other"
	c := &cache{backups: []v1.DatabaseBackup{
		backup("Completed", v1.ReasonCompleted, 1010, verified(5000, time.Second, metav1.ConditionTrue,
			v1.ReasonVerified)),
		backup("Failed", v1.ReasonFailed, 1800),
		backup("Completed", v1.ReasonCompleted, 1030, verified(6000, 0, metav1.ConditionFalse,
			v1.ReasonVerificationFailed)),
		backup("Completed", v1.ReasonCompleted, 1020, incremental),
		backup("Cancelled", v1.ReasonCancelled, 1900),
		backup("Running", v1.ReasonRunning, 0),
		backup("Completed", v1.ReasonRemoved, 1005, verified(7000, time.Second, metav1.ConditionTrue,
			v1.ReasonVerified)),
		backup("", v1.ReasonQueued, 0),
		elsewhere,
	}}
	const of = " shop mine"
	want := map[string]float64{
		"toban_databasebackup_phase shop Completed mine":                              4,
		"toban_databasebackup_phase shop Failed mine":                                 1,
		"toban_databasebackup_phase shop Cancelled mine":                              1,
		"toban_databasebackup_phase shop Running mine":                                1,
		"toban_databasebackup_condition shop mine Complete":                           0,
		"toban_databasebackup_condition_reason shop Failed mine Complete":             1,
		"toban_databasebackup_condition shop mine Verified":                           0,
		"toban_databasebackup_condition_reason shop VerificationFailed mine Verified": 1,
		"toban_databasebackup_ended_timestamp_seconds" + of:                           1800,
		"toban_databasebackup_duration_seconds shop mine Full":                        30,
		"toban_databasebackup_size_bytes shop mine Full":                              5 << 20,
		"toban_databasebackup_stored_bytes shop mine Full":                            2 << 20,
		"toban_databasebackup_duration_seconds shop mine Incremental":                 20,
		"toban_databasebackup_size_bytes shop mine Incremental":                       5 << 20,
		"toban_databasebackup_stored_bytes shop mine Incremental":                     100,
	}
	expectShown(t, c, want)
	c.backups = append(c.backups, backup("Completed", v1.ReasonCompleted, 2000,
		verified(8000, 3*time.Second, metav1.ConditionTrue, v1.ReasonVerified)))
	got := shownOf(t, c)
	for series, value := range map[string]float64{
		"toban_databasebackup_condition shop mine Complete":                  1,
		"toban_databasebackup_condition_reason shop Completed mine Complete": 1,
		"toban_databasebackup_condition shop mine Verified":                  1,
		"toban_databasebackup_recovery_seconds" + of:                         3,
		"toban_databasebackup_duration_seconds shop mine Full":               1000,
	} {
		if got[series] != value {
			t.Errorf("%s is %v, want %v", series, got[series], value)
		}
	}
}

// However many backups there are, there are no more series.
func TestMoreBackupsAreNotMoreSeries(t *testing.T) {
	c := &cache{}
	count := 0
	for i := range int64(50) {
		c.backups = append(c.backups, backup("Completed", v1.ReasonCompleted, 1001+i,
			verified(2000+i, time.Second, metav1.ConditionTrue, v1.ReasonVerified)))
		got := len(shownOf(t, c))
		if count == 0 {
			count = got
		}
		if got != count || got < 8 {
			t.Fatalf("of %d backups there are %d series, and of one %d", i+1, got, count)
		}
	}
}

// What can't be read, because the cache is not there yet, is not shown.
func TestWithoutACacheNothingIsShown(t *testing.T) {
	expectShown(t, &cache{fails: errors.New("the cache is not there yet"),
		backups: []v1.DatabaseBackup{backup("Failed", v1.ReasonFailed, 1800)}}, map[string]float64{})
}
