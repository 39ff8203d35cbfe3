package api

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/order/databasebackup"
	"toban.dev/internal/operator/sampledb"
)

var errKilled = errors.New("the operator was killed")

// death is when an operator is killed: before one of its writes reaches the API server, which is the same
// as after the one before.
type death struct {
	mu sync.Mutex
	// left is how many writes it has before that, fewer than 0 for no death.
	left, writes int
	dead         bool
}

func (d *death) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if d.meets(r.Method) {
			return nil, errKilled
		}
		return next.RoundTrip(r)
	})
}

// meets says whether the operator has ended before a request.
func (d *death) meets(method string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead || method == http.MethodGet {
		return d.dead
	}
	d.dead = d.left == 0
	d.left--
	d.writes++
	return d.dead
}

// dies gives the world an operator that is killed at its n-th write, counted from 0; one that lives for n below 0.
func (k *taker) dies(n int) *death {
	k.Helper()
	d := &death{left: n}
	config := rest.CopyConfig(server)
	config.Impersonate.UserName = operatorUser
	config.Wrap(d.wrap)
	direct, err := client.New(config, client.Options{Scheme: scheme, Mapper: k.api.RESTMapper()})
	k.must(err)
	was := k.reconciler
	k.reconciler = &sampledb.Reconciler{Client: labelled{direct}, Reader: direct, Agents: was.Agents, Pods: was.Pods,
		Credentials: was.Credentials, Settings: was.Settings, Events: was.Events, Metrics: was.Metrics, Now: was.Now}
	return d
}

// survives has another operator follow one that was killed.
func (k *taker) survives(d *death, err error) {
	k.Helper()
	if !d.dead {
		k.must(err)
		return
	}
	if err != nil && !errors.Is(err, errKilled) {
		k.Logf("its last words: %v", err)
	}
	k.dies(-1)
}

// lives goes through a story undisturbed, and then with the operator killed at each of its writes. A story is given the
// world and the first operator's death, and ends when all is as it should be.
func lives(t *testing.T, story func(k *taker, d *death)) {
	k, _ := newWorld(t).ready("x")
	d := k.dies(-1)
	story(k, d)
	t.Logf("%d writes", d.writes)
	if d.writes < 3 {
		t.Fatalf("the operator writes %d times: nothing is tried", d.writes)
	}
	for n := range d.writes {
		t.Run(fmt.Sprintf("write %d", n), func(t *testing.T) {
			t.Parallel()
			k, _ := newWorld(t).ready("x")
			d := k.dies(n)
			story(k, d)
			if !d.dead {
				t.Error("the operator was not killed")
			}
		})
	}
}

// most is in how many steps a story has to come to its end.
const most = 40

func TestTheOperatorIsKilledAtEachStepOfABackup(t *testing.T) {
	lives(t, func(k *taker, d *death) {
		b := &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: "now"},
			Spec: v1.DatabaseBackupSpec{SampleDB: "x", Deadline: metav1.Duration{Duration: time.Hour}}}
		k.must(k.api.Create(k.Context(), b))
		for step := 0; b.Status.CompletedAt == nil; step++ {
			if step == most {
				k.Fatalf("the backup does not end: %+v", b.Status)
			}
			k.survives(d, k.tryTake(b))
			k.playBackup(b)
			k.read(b.Name, b)
		}
		k.expectComplete(b, metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
		if b.Status.ID != taken.ID || b.Status.Archive == nil || b.Status.Attempts != 1 {
			k.Errorf("the status is %+v", b.Status)
		}
		k.expectJobs("now", 1)
	})
}

// tryTake reconciles a backup.
func (k *taker) tryTake(b *v1.DatabaseBackup) error {
	k.now = k.now.Add(10 * time.Second)
	r := &databasebackup.Reconciler{
		Base:        k.base(),
		Pods:        k.pods,
		Credentials: k.reconciler.Credentials,
	}
	_, err := r.Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	return err
}

// playBackup does what the Job of a backup would: its Pod runs, and ends well.
func (k *taker) playBackup(b *v1.DatabaseBackup) {
	k.Helper()
	if !k.find(b.Name, &batchv1.Job{}) {
		return
	}
	pod := &corev1.Pod{}
	if !k.find(b.Name+"-a", pod) {
		k.pod(b, b.Name+"-a")
	} else if pod.Status.Phase == corev1.PodRunning {
		k.phase(pod, corev1.PodSucceeded, &taken)
	}
}

// expectJobs checks how many Jobs there are whose names begin so.
func (k *taker) expectJobs(prefix string, want int) {
	k.Helper()
	var all batchv1.JobList
	k.must(k.api.List(k.Context(), &all, client.InNamespace(k.namespace)))
	var names []string
	for _, job := range all.Items {
		if strings.HasPrefix(job.Name, prefix) {
			names = append(names, job.Name)
		}
	}
	if len(names) != want {
		k.Errorf("there are the Jobs %v", names)
	}
}

// tryReconcile reconciles a SampleDB, and returns it as it is then.
func (k *taker) tryReconcile(d *death, name string) *v1.SampleDB {
	k.Helper()
	k.now = k.now.Add(10 * time.Second)
	db := &v1.SampleDB{}
	k.read(name, db)
	_, err := k.reconciler.Reconcile(k.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(db)})
	k.survives(d, err)
	k.read(name, db)
	return db
}

// playRestore does what the Job of a restore would.
func (k *taker) playRestore(job string) {
	k.Helper()
	there, pod := &batchv1.Job{}, &corev1.Pod{}
	if !k.find(job, there) {
		return
	}
	if !k.find(job+"-a", pod) {
		k.restorePod(there, job+"-a", nil)
	} else if pod.Status.Phase == corev1.PodRunning {
		k.endRestore(pod, backRestored)
	}
}

func TestTheOperatorIsKilledAtEachStepOfARestore(t *testing.T) {
	lives(t, func(k *taker, d *death) {
		k.must(k.api.Create(k.Context(), k.sampleDB("again", from(v1.RestoreSpec{SampleDB: "x"}))))
		db := k.sample("again")
		for step := 0; !meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionReady); step++ {
			if step == most {
				k.Fatalf("it does not become ready: %+v", db.Status)
			}
			db = k.tryReconcile(d, "again")
			job := firstJob(db)
			ended := &corev1.Pod{}
			restored := k.find(job+"-a", ended) && ended.Status.Phase == corev1.PodSucceeded
			if !restored && k.find(naming.StatefulSet("again"), &appsv1.StatefulSet{}) {
				k.Fatal("there are instances before the data is there")
			}
			k.playRestore(job)
			k.playCluster(db)
		}
		k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
		if r := db.Status.Restore; r.CompletedAt == nil || r.LSN != backRestored.LSN {
			k.Errorf("the status is %+v", r)
		}
		k.expectJobs("again-restore-", 1)
	})
}

func TestTheOperatorIsKilledAtEachStepOfARestoreInPlace(t *testing.T) {
	lives(t, func(k *taker, d *death) {
		db := k.sample("x")
		inPlace("oops", "x")(db)
		k.must(k.api.Update(k.Context(), db))
		job := inPlaceJob(db)
		over := func() bool {
			r := db.Status.Restore
			return r != nil && r.ID == "oops" &&
				r.CompletedAt != nil && meta.IsStatusConditionTrue(db.Status.Conditions, v1.ConditionReady)
		}
		for step := 0; !over(); step++ {
			if step == most {
				k.Fatalf("it does not come to its end: %+v", db.Status)
			}
			db = k.tryReconcile(d, "x")
			pod, set := &corev1.Pod{}, &appsv1.StatefulSet{}
			prepared := k.find(job+"-a", pod) && pod.Status.Phase == corev1.PodSucceeded
			k.read("x", set)
			if !prepared && *set.Spec.Replicas != 2 {
				k.Fatal("the instances stop before the data is there")
			}
			k.playRestore(job)
			k.playCluster(db)
		}
		k.expectInstances(db, 2, "oops")
		k.expect(db, v1.ConditionRestored, metav1.ConditionTrue, v1.ReasonRestored)
		k.expectJobs("x-restore-", 1)
	})
}
