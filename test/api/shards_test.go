package api

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/shards"
)

// asShard are the options and variables of one of several operators that share a namespace.
func (w *world) asShard(number, count int) []string {
	return []string{
		"WATCH_NAMESPACE=" + w.namespace, "--lease-duration=20s",
		fmt.Sprintf("--shards=%d", count), fmt.Sprintf("--shard=%d", number),
	}
}

// ofShard is a name that the hash gives to a shard: the prefix with a letter, the nth one of them.
func (w *world) ofShard(prefix string, number, count, nth int) string {
	w.Helper()
	for letter := 'a'; letter <= 'z'; letter++ {
		name := fmt.Sprintf("%s%c", prefix, letter)
		if (shards.Shard{Number: number, Count: count}).Has(w.namespace, name) {
			if nth == 0 {
				return name
			}
			nth--
		}
	}
	w.Fatalf("no name %s… is of shard %d of %d", prefix, number, count)
	return ""
}

// acted are the requests by which an operator has written to something of a name, or of one that begins with it.
func (o *running) acted(name string) []string {
	of := regexp.MustCompile(`/` + name + `(/|-|$)`)
	return o.requests(func(request string) bool { return isWrite(request) && of.MatchString(request) })
}

// aboutDatabases are the requests by which an operator has written in the namespace of the databases.
func (o *running) aboutDatabases() []string {
	return o.requests(func(request string) bool {
		return isWrite(request) && strings.Contains(request, "/namespaces/"+o.namespace+"/")
	})
}

// hasRead says that an operator has read a shard's lease.
func (o *running) hasRead(home string, shard int) bool {
	path := "GET /apis/coordination.k8s.io/v1/namespaces/" + home + "/leases/" + naming.OperatorLease(shard)
	return len(o.requests(func(request string) bool { return request == path })) > 0
}

// onlyBy checks that one operator has acted on what has a name, and the others have not.
func onlyBy(name string, one *running, others ...*running) {
	one.Helper()
	if len(one.acted(name)) == 0 {
		one.Errorf("the operator whose shard %s is has not written to it", name)
	}
	for _, other := range others {
		if wrote := other.acted(name); len(wrote) > 0 {
			one.Errorf("an operator of another shard has written to %s: %q", name, wrote)
		}
	}
}

// Of two shards each acts on its own SampleDBs and MyApps, and on all that is asked for about its SampleDBs, whatever
// the name of that is. What an operator says of an object is in its conditions.
func TestEachOfTwoShardsActsOnItsOwn(t *testing.T) {
	w := newWorld(t)
	home := w.anotherNamespace()
	both := []*running{w.installed(home, w.namespace, w.asShard(0, 2)...)}
	both = append(both, w.runOperator(home, w.asShard(1, 2)...))
	made := map[string]client.Object{}
	expected := map[string]int{}
	for number := range both {
		other := 1 - number
		of := func(name string, object client.Object) {
			object.SetNamespace(w.namespace)
			object.SetName(name)
			made[name], expected[name] = object, number
		}
		for nth := range 3 {
			name := w.ofShard("db-", number, 2, nth)
			of(name, w.sampleDB(name))
		}
		db := w.ofShard("db-", number, 2, 0)
		of(w.ofShard("app-", number, 2, 0), &appv1.MyApp{Spec: appv1.MyAppSpec{Image: "nginx"}})
		backup := w.ofShard("backup-", other, 2, 0)
		of(backup, backupOf(w.namespace, backup, db))
		of(w.ofShard("restore-", other, 2, 0), restoreOf(db))
		of(w.ofShard("drill-", other, 2, 0), drillOf(db))
		of(w.ofShard("pg-", other, 2, 0), &pgv1.PostgreSQL{Spec: pgv1.PostgreSQLSpec{
			DB: "foo", User: "foo", Password: "none", Server: &pgv1.ServerReference{Name: db},
		}})
	}
	for name, object := range made {
		if err := w.api.Create(t.Context(), object); err != nil {
			t.Fatalf("create %s: %v", name, err)
		}
	}
	for name, object := range made {
		w.until("no operator says anything of "+name, func() bool {
			w.must(w.api.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			return len(conditionsOf(object)) > 0
		})
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		onlyBy(name, both[expected[name]], both[1-expected[name]])
	}
}

func restoreOf(db string) *v1.DatabaseRestore {
	return &v1.DatabaseRestore{Spec: v1.DatabaseRestoreSpec{
		SampleDB: db, Tables: []string{"public.orders"}, Target: &v1.RestoreTarget{LSN: "0/3000060"},
		Deadline: metav1.Duration{Duration: time.Hour},
	}}
}

func drillOf(db string) *v1.FaultDrill {
	return &v1.FaultDrill{Spec: v1.FaultDrillSpec{
		SampleDB: db, Fault: v1.FaultServerHung, Duration: metav1.Duration{Duration: 10 * time.Second},
		Observe: metav1.Duration{Duration: 30 * time.Second}, AbortAfter: metav1.Duration{Duration: time.Minute},
		Deadline: metav1.Duration{Duration: time.Hour},
		Objectives: v1.FaultDrillObjectives{
			MaxOutage:   metav1.Duration{Duration: 5 * time.Second},
			WholeWithin: metav1.Duration{Duration: 5 * time.Minute},
		},
	}}
}

func conditionsOf(object client.Object) []metav1.Condition {
	switch o := object.(type) {
	case *v1.SampleDB:
		return o.Status.Conditions
	case *v1.DatabaseBackup:
		return o.Status.Conditions
	case *v1.DatabaseRestore:
		return o.Status.Conditions
	case *v1.FaultDrill:
		return o.Status.Conditions
	case *pgv1.PostgreSQL:
		return o.Status.Conditions
	case *appv1.MyApp:
		return o.Status.Conditions
	}
	return nil
}

// While the number of shards is changed, no operator acts as long as one may act that counts the shards differently:
// it holds its lease, and waits. What the former ones have made is taken over as it is.
func TestTheNumberOfShardsIsChanged(t *testing.T) {
	w := newWorld(t)
	home := w.anotherNamespace()
	create := func(prefix string, number int) *v1.SampleDB {
		w.Helper()
		db := w.sampleDB(w.ofShard(prefix, number, 2, 0))
		w.must(w.api.Create(t.Context(), db))
		return db
	}
	waits := func(o *running, shard int, lease string, other int) {
		w.Helper()
		w.until("no operator waits with the lease of shard "+lease, func() bool {
			return strings.Contains(w.leadsShard(home, shard), lease) && o.hasRead(home, other)
		})
	}

	alone := w.installed(home, w.namespace, w.asShard(0, 1)...)
	x := w.made(create("x-", 0))
	second := w.runOperator(home, w.asShard(1, 2)...)
	waits(second, 1, "shard-1-of-2", 0)
	y := w.made(create("y-", 1))
	onlyBy(y.Name, alone, second)
	before := w.versions(x)
	first := w.runOperator(home, w.asShard(0, 2)...)
	w.until("the first of two does not ask who holds its lease", func() bool { return first.hasRead(home, 0) })
	if wrote := slices.Concat(first.aboutDatabases(), second.aboutDatabases()); len(wrote) > 0 {
		t.Errorf("shards have written while an operator alone worked: %q", wrote)
	}

	alone.kill()
	w.runOut(home, 0)
	onlyBy(w.made(create("more-", 0)).Name, first, second)
	onlyBy(w.made(create("more-", 1)).Name, second, first)
	if after := w.versions(x); !maps.Equal(before, after) {
		t.Errorf("what the operator alone has made was written again:\n%v\nis now\n%v", before, after)
	}
	w.toldOnce(x)

	again := w.runOperator(home, w.asShard(0, 1)...)
	w.until("the one that will be alone does not ask who leads", func() bool { return again.hasRead(home, 0) })
	first.kill()
	w.runOut(home, 0)
	waits(again, 0, "shard-0-of-1", 1)
	onlyBy(w.made(create("late-", 1)).Name, second, again)
	if wrote := again.aboutDatabases(); len(wrote) > 0 {
		t.Errorf("the operator alone has written while one of two shards worked: %q", wrote)
	}
	second.kill()
	w.runOut(home, 1)
	onlyBy(w.made(create("last-", 0)).Name, again)
	onlyBy(w.made(create("last-", 1)).Name, again)
}
