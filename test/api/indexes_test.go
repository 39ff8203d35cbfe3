package api

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/postgresql"
)

// finds waits until what is found by an index of a cache is as it should be: the cache is told of a change after who
// has made it.
func (w *world) finds(what, want string, found func() ([]string, error)) {
	w.Helper()
	w.until(what+": it does not find "+strconv.Quote(want), func() bool {
		names, err := found()
		w.must(err)
		slices.Sort(names)
		return strings.Join(names, " ") == want
	})
}

// Which DatabaseBackups wait for their turn is found by the cache's index, as their conditions come and go.
func TestTheBackupsThatWaitAreFound(t *testing.T) {
	w := newWorld(t)
	says := func(name, condition, reason string) {
		b := &v1.DatabaseBackup{}
		w.read(name, b)
		b.Status.Conditions = []metav1.Condition{{
			Type: condition, Status: metav1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Now(),
		}}
		w.must(w.api.Status().Update(t.Context(), b))
	}
	for name, is := range map[string][2]string{
		"waits": {v1.ConditionComplete, v1.ReasonQueued}, "runs": {v1.ConditionComplete, v1.ReasonRunning},
		"waits-for-verification": {v1.ConditionVerified, v1.ReasonQueued},
	} {
		w.must(w.api.Create(t.Context(), backupOf(w.namespace, name, "x")))
		says(name, is[0], is[1])
	}
	reader := indexed(t, w.namespace)
	waiting := func(condition string) func() ([]string, error) {
		return func() (names []string, err error) {
			found, err := index.QueuedBackups(t.Context(), reader, condition)
			for i := range found {
				names = append(names, found[i].Name)
			}
			return names, err
		}
	}
	w.finds("those that wait for their backup", "waits", waiting(v1.ConditionComplete))
	w.finds("those that wait for their verification", "waits-for-verification", waiting(v1.ConditionVerified))
	says("waits", v1.ConditionComplete, v1.ReasonRunning)
	says("runs", v1.ConditionComplete, v1.ReasonQueued)
	w.finds("after one has begun, and the other waits again", "runs", waiting(v1.ConditionComplete))
}

// The Jobs and Pods of a component are found in all namespaces that are watched, and no others.
func TestWhatIsOfAComponentIsFound(t *testing.T) {
	w := newWorld(t)
	for name, component := range map[string]string{
		"a": naming.ComponentBackup, "b": naming.ComponentBackup, "c": naming.ComponentVerify, "d": "",
	} {
		labels := map[string]string{naming.LabelSampleDB: "x"}
		if component != "" {
			labels[naming.LabelComponent] = component
		}
		for _, object := range partsOf(w.namespace, name, labels) {
			w.must(w.api.Create(t.Context(), object))
		}
	}
	reader := indexed(t, w.namespace)
	for component, want := range map[string]string{
		naming.ComponentBackup: "Job a Job b Pod a Pod b", naming.ComponentVerify: "Job c Pod c", "none": "",
	} {
		w.finds("of the component "+component, want, func() (names []string, err error) {
			var jobs batchv1.JobList
			var pods corev1.PodList
			w.must(index.OfComponent(t.Context(), reader, &jobs, component))
			w.must(index.OfComponent(t.Context(), reader, &pods, component))
			for i := range jobs.Items {
				names = append(names, "Job "+jobs.Items[i].Name)
			}
			for i := range pods.Items {
				names = append(names, "Pod "+pods.Items[i].Name)
			}
			return names, nil
		})
	}
}

// Which restores of a namespace have not ended is found by the cache's index.
func TestTheRestoresUnderWayAreFound(t *testing.T) {
	w := newWorld(t)
	restores := func(name, backup string, ended bool) {
		db := &v1.SampleDB{}
		w.read(name, db)
		db.Status.Restore = &v1.RestoreStatus{Backup: backup}
		if now := metav1.Now(); ended {
			db.Status.Restore.CompletedAt = &now
		}
		w.must(w.api.Status().Update(t.Context(), db))
	}
	for _, name := range []string{"first", "second", "never"} {
		w.must(w.api.Create(t.Context(), w.sampleDB(name)))
	}
	restores("first", "b1", false)
	restores("second", "b2", true)
	reader := indexed(t, w.namespace)
	found := func() (names []string, err error) {
		all, err := index.Restores(t.Context(), reader, w.namespace)
		for i := range all {
			names = append(names, all[i].Backup)
		}
		return names, err
	}
	w.finds("while one restores", "b1", found)
	restores("first", "b1", true)
	restores("second", "b3", false)
	w.finds("after that has ended, and another one has begun", "b3", found)
}

// The PostgreSQLs on a SampleDB are found by the cache's index, with a server of their own or on one that they name.
func TestThePostgreSQLsOnASampleDBAreFound(t *testing.T) {
	w := newWorld(t)
	for name, server := range map[string]*pgv1.ServerReference{
		"x": nil, "on-x": {Name: "x"}, "on-xy": {Name: "xy"}, "elsewhere": {Name: "x", Namespace: "other"},
	} {
		w.must(w.api.Create(t.Context(), &pgv1.PostgreSQL{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
			Spec:       pgv1.PostgreSQLSpec{DB: "foo", User: "foo", Password: "none", Server: server},
		}))
	}
	reader := indexed(t, w.namespace)
	for server, want := range map[types.NamespacedName]string{
		{Namespace: w.namespace, Name: "x"}: "on-x x", {Namespace: w.namespace, Name: "xy"}: "on-xy",
		{Namespace: "other", Name: "x"}: "elsewhere", {Namespace: w.namespace, Name: "none"}: "",
	} {
		w.finds("the PostgreSQLs on "+server.String(), want, func() (names []string, err error) {
			found, err := postgresql.OnServer(t.Context(), reader, server)
			for _, key := range found {
				names = append(names, key.Name)
			}
			return names, err
		})
	}
}

// BenchmarkATurnOfMany is what it costs to see whether a backup may begin, and which restores its archive must keep
// backups for, among those of 100 and of 1,000 SampleDBs of a namespace: by the indexes, and by lists of all.
func BenchmarkATurnOfMany(b *testing.B) {
	for _, databases := range []int{100, 1000} {
		namespace := fmt.Sprintf("turns-%d-%d", databases, time.Now().UnixNano())
		api := namespaceToFill(b, namespace)
		fillParts(b, api, namespace, databases)
		fillBackups(b, api, namespace, databases)
		fillDatabases(b, api, namespace, databases)
		reader := indexed(b, namespace)
		for way, look := range map[string]func(context.Context, client.Reader, string) error{
			"index": lookByIndexes, "lists": lookByLists,
		} {
			b.Run(fmt.Sprintf("%d SampleDBs/%s", databases, way), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := look(b.Context(), reader, namespace); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func lookByIndexes(ctx context.Context, reader client.Reader, namespace string) error {
	if err := index.OfComponent(ctx, reader, &batchv1.JobList{}, naming.ComponentBackup); err != nil {
		return err
	}
	if err := index.OfComponent(ctx, reader, &corev1.PodList{}, naming.ComponentBackup); err != nil {
		return err
	}
	if _, err := index.QueuedBackups(ctx, reader, v1.ConditionComplete); err != nil {
		return err
	}
	_, err := index.Restores(ctx, reader, namespace)
	return err
}

func lookByLists(ctx context.Context, reader client.Reader, namespace string) error {
	ours := client.MatchingLabels{naming.LabelComponent: naming.ComponentBackup}
	for _, list := range []client.ObjectList{&batchv1.JobList{}, &corev1.PodList{}} {
		if err := reader.List(ctx, list, ours, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
	}
	if err := reader.List(ctx, &v1.DatabaseBackupList{}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	return reader.List(ctx, &v1.SampleDBList{}, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
}

// fillDatabases makes so many SampleDBs in a namespace.
func fillDatabases(b *testing.B, api client.Client, namespace string, databases int) {
	b.Helper()
	for i := range databases {
		err := api.Create(b.Context(), &v1.SampleDB{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("db-%d", i)},
			Spec:       v1.SampleDBSpec{Version: 17, Instances: 1, Storage: v1.StorageSpec{Size: "1Gi"}},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
