// Command startup measures how long a SampleDB takes from its creation to the
// first write through its Service, and to all of its instances being ready, and
// where the seconds go. It needs the cluster of make up, and an otherwise idle machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/test/outside"
)

const patience = 3 * time.Minute

// poll is finer than what is measured, and seldom enough to leave the processors
// to what is measured.
const poll = 50 * time.Millisecond

func main() {
	rounds := flag.Int("n", 10, "how often to measure each")
	sizes := flag.String("instances", "1,3", "numbers of instances to measure")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *rounds, strings.Split(*sizes, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "startup:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rounds int, sizes []string) error {
	w, err := newWorld()
	if err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := w.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace: %w", err)
	}
	defer w.Delete(context.WithoutCancel(ctx), ns) //nolint:errcheck // the next run finds it and uses it
	for _, size := range sizes {
		instances, err := strconv.ParseInt(size, 10, 32)
		if err != nil {
			return fmt.Errorf("instances: %w", err)
		}
		all := map[string][]time.Duration{}
		for i := range rounds {
			stages, err := w.once(ctx, int32(instances))
			if err != nil {
				return fmt.Errorf("round %d with %s instances: %w", i+1, size, err)
			}
			for name, took := range stages {
				all[name] = append(all[name], took)
			}
		}
		report(size, rounds, all)
	}
	return nil
}

// marks are the stages in the order in which they are reached.
var marks = []string{"Pods made", "Pods running", "primary ready", "first write", "init done", "all ready"}

// once makes a SampleDB, notes when it reaches each stage, and deletes it.
func (w world) once(ctx context.Context, instances int32) (map[string]time.Duration, error) {
	db := &v1.SampleDB{ObjectMeta: object(name)}
	db.Spec = v1.SampleDBSpec{Version: 17, Instances: instances, Storage: v1.StorageSpec{Size: "1Gi"}}
	reached := map[string]time.Duration{}
	began := time.Now()
	if err := w.Create(ctx, db); err != nil {
		return nil, fmt.Errorf("make the SampleDB: %w", err)
	}
	wrote := make(chan error, 1)
	var first time.Duration
	go func() {
		err := w.firstWrite(ctx)
		first = time.Since(began)
		wrote <- err
	}()
	err := until(ctx, func(ctx context.Context) error { return w.look(ctx, began, reached) })
	if problem := <-wrote; err == nil {
		err = problem
	}
	if err != nil {
		return nil, err
	}
	reached["first write"] = first
	if err := w.Delete(ctx, db); err != nil {
		return nil, fmt.Errorf("delete the SampleDB: %w", err)
	}
	return reached, until(ctx, w.gone)
}

func (w world) firstWrite(ctx context.Context) error {
	var access outside.Access
	return until(ctx, func(ctx context.Context) (err error) {
		if access.Host == "" {
			if access, err = w.access(ctx); err != nil {
				return err
			}
		}
		return access.Do(ctx, "CREATE TABLE first_write (); INSERT INTO first_write DEFAULT VALUES")
	})
}

// look notes the stages that are reached, and complains until the last one is.
func (w world) look(ctx context.Context, began time.Time, reached map[string]time.Duration) error {
	note := func(mark string, yes bool) {
		if _, done := reached[mark]; yes && !done {
			reached[mark] = time.Since(began)
		}
	}
	pods, err := w.pods(ctx)
	if err != nil {
		return err
	}
	var db v1.SampleDB
	if err := w.Get(ctx, key(name), &db); err != nil {
		return err
	}
	running := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	note("Pods made", len(pods) == int(db.Spec.Instances))
	note("Pods running", running == int(db.Spec.Instances))
	note("primary ready", outside.Condition(db, v1.ConditionAvailable, "True", "") == nil)
	note("init done", outside.Condition(db, v1.ConditionInitialized, "True", "") == nil)
	err = outside.Condition(db, v1.ConditionReady, "True", "")
	note("all ready", err == nil)
	return err
}

// until is outside.Until with a finer poll, for it is time that is measured here.
func until(ctx context.Context, look func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", patience, err)
		case <-time.After(poll):
		}
	}
}

func report(instances string, rounds int, all map[string][]time.Duration) {
	fmt.Printf("\n%s instances, n=%d%20s%8s%8s%8s\n", instances, rounds, "median", "p95", "least", "most")
	for _, mark := range marks {
		took := all[mark]
		slices.Sort(took)
		if len(took) == 0 {
			continue
		}
		at := func(q float64) string { return fmt.Sprintf("%.2f s", took[int(q*float64(len(took)-1)+0.5)].Seconds()) }
		fmt.Printf("  %-28s%8s%8s%8s%8s\n", mark, at(0.5), at(0.95), at(0), at(1))
	}
}
