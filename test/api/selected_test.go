package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/postgresql"
)

// indexed is a cache of a namespace as the operator has it, with its indexes.
func indexed(tb testing.TB, namespace string) cache.Cache {
	tb.Helper()
	c, err := cache.New(server, cache.Options{
		Scheme: scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}},
	})
	if err == nil {
		err = errors.Join(index.Add(tb.Context(), c),
			postgresql.Index(tb.Context(), c))
	}
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	tb.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			tb.Errorf("the cache has ended with %v", err)
		}
	})
	if !c.WaitForCacheSync(tb.Context()) {
		tb.Fatal("the cache is not filled")
	}
	return c
}

// The DatabaseBackups and FaultDrills of a SampleDB are found by the cache's index and by the API server, no others.
func TestWhatNamesASampleDBIsFound(t *testing.T) {
	w := newWorld(t)
	for name, db := range map[string]string{"a": "x", "b": "x", "c": "xy", "d": "y"} {
		w.must(w.api.Create(t.Context(), backupOf(w.namespace, name, db)))
		drill := in(w.namespace, drillOf(db))
		drill.Name = name
		w.must(w.api.Create(t.Context(), drill))
	}
	for way, reader := range map[string]client.Reader{"cache": indexed(t, w.namespace), "API server": w.api} {
		for db, want := range map[string]string{"x": "a b", "xy": "c", "none": ""} {
			found, err := index.Backups(t.Context(), reader, w.namespace, db)
			w.must(err)
			broken, err := index.Drills(t.Context(), reader, w.namespace, db)
			w.must(err)
			var names, drillNames []string
			for _, b := range found {
				names = append(names, b.Name)
			}
			for _, d := range broken {
				drillNames = append(drillNames, d.Name)
			}
			slices.Sort(names)
			slices.Sort(drillNames)
			if got := strings.Join(names, " "); got != want || !slices.Equal(names, drillNames) {
				t.Errorf("the %s finds %q and %q for %s, want %q", way, names, drillNames, db, want)
			}
		}
	}
}

func backupOf(namespace, name, db string) *v1.DatabaseBackup {
	return &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1.DatabaseBackupSpec{SampleDB: db, Deadline: metav1.Duration{Duration: time.Hour}},
	}
}

// BenchmarkBackupsOfOneOfMany is what it costs to find the eight DatabaseBackups of one SampleDB, among those of 100
// and of 1,000 in a namespace: by the index, and by a list of all of them.
func BenchmarkBackupsOfOneOfMany(b *testing.B) {
	for _, databases := range []int{100, 1000} {
		namespace := fmt.Sprintf("bench-%d-%d", databases, time.Now().UnixNano())
		fillBackups(b, namespaceToFill(b, namespace), namespace, databases)
		reader := indexed(b, namespace)
		b.Run(fmt.Sprintf("%d SampleDBs/index", databases), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				found, err := index.Backups(b.Context(), reader, namespace, "db-50")
				if err != nil || len(found) != 8 {
					b.Fatalf("%d, %v", len(found), err)
				}
			}
		})
		b.Run(fmt.Sprintf("%d SampleDBs/list", databases), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var all v1.DatabaseBackupList
				if err := reader.List(b.Context(), &all, client.InNamespace(namespace)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// namespaceToFill makes a namespace, and is the client that fills it.
func namespaceToFill(b *testing.B, name string) client.Client {
	b.Helper()
	api, err := client.New(server, client.Options{Scheme: scheme})
	if err == nil {
		err = api.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	if err != nil {
		b.Fatal(err)
	}
	return api
}

// fillBackups makes eight DatabaseBackups of each SampleDB, with a manifest as large as usual.
func fillBackups(b *testing.B, api client.Client, namespace string, databases int) {
	b.Helper()
	manifest, err := json.Marshal(&v1.SampleDB{Spec: v1.SampleDBSpec{Version: 17, Instances: 3}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range databases * 8 {
		backup := backupOf(namespace, fmt.Sprintf("db-%d-%d", i/8, i%8), fmt.Sprintf("db-%d", i/8))
		if err := api.Create(b.Context(), backup); err != nil {
			b.Fatal(err)
		}
		backup.Status = v1.DatabaseBackupStatus{Phase: "Completed", Size: "1Gi",
			Manifest: &runtime.RawExtension{Raw: manifest}}
		if err := api.Status().Update(b.Context(), backup); err != nil {
			b.Fatal(err)
		}
	}
}
