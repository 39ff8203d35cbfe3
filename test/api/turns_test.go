package api

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/order/databasebackup"
	"toban.dev/internal/operator/order/verification"
	"toban.dev/internal/operator/shards"
	"toban.dev/internal/protocol"
)

// one lets one backup run at once, of those of this test's namespace.
func (k *taker) one() *limits.Turns {
	return &limits.Turns{
		Client: client.NewNamespacedClient(labelled{k.api}, k.namespace), Limit: 1, Flag: "--backups-at-once",
		Component: naming.ComponentBackup, Condition: v1.ConditionComplete, Waits: databasebackup.Waits,
	}
}

// archiving is a SampleDB whose archive works.
func (w *world) archiving(name string) *v1.SampleDB {
	w.Helper()
	db := w.started(name, archived)
	state := works
	return w.archive(db, &state)
}

func TestNoMoreBackupsRunThanTheOperatorAllows(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	k.turns = k.one()
	first := w.archiving("x")
	second := w.archiving("y")
	w.archiving("z")
	w.reconcile(first)
	x := k.take(w.backup(w.backups()[0]))
	k.expectComplete(x, metav1.ConditionFalse, v1.ReasonRunning, "Running")
	w.reconcile(second)
	y := k.take(w.backup(w.backups()[1]))
	words := k.expectComplete(y, metav1.ConditionFalse, v1.ReasonQueued, "Pending")
	if !strings.Contains(words, "--backups-at-once=1") || y.Status.StartedAt != nil {
		t.Errorf("it says %q, begun at %v", words, y.Status.StartedAt)
	}
	// What somebody has asked for later goes before what the schedule has.
	asked := k.ask("asked", "z")
	k.expectComplete(asked, metav1.ConditionFalse, v1.ReasonQueued, "Pending")
	w.writes.take()
	past := w.countReads()
	k.take(y)
	if writes, reads := w.writes.take(), past.reads(); len(writes) > 0 || len(reads) > 0 {
		t.Errorf("while it waits it writes %v, and reads past the cache %v", writes, reads)
	}
	k.phase(k.pod(x, "x-a"), corev1.PodSucceeded, &taken)
	k.expectComplete(k.take(x), metav1.ConditionTrue, v1.ReasonCompleted, "Completed")
	k.expectComplete(k.take(y), metav1.ConditionFalse, v1.ReasonQueued, "Pending")
	k.expectComplete(k.take(asked), metav1.ConditionFalse, v1.ReasonRunning, "Running")
	k.expectComplete(k.take(y), metav1.ConditionFalse, v1.ReasonQueued, "Pending")
	// Its Pod does not start, which keeps nobody waiting for long.
	k.now = k.now.Add(6 * time.Minute)
	k.expectComplete(k.take(y), metav1.ConditionFalse, v1.ReasonRunning, "Running")
}

// Of what all shards may run together each runs its share, and counts what is of its own SampleDBs only.
func TestAShardRunsItsShareOfBackups(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	of := func(number int) *limits.Turns {
		all := k.one()
		all.Limit, all.Shard = 2, shards.Shard{Number: number, Count: 2}
		return all
	}
	first, second, other := w.ofShard("", 0, 2, 0), w.ofShard("", 0, 2, 1), w.ofShard("", 1, 2, 0)
	for _, name := range []string{first, second, other} {
		w.archiving(name)
	}
	k.turns = of(0)
	k.expectComplete(k.ask("a", first), metav1.ConditionFalse, v1.ReasonRunning, "Running")
	k.expectComplete(k.ask("b", second), metav1.ConditionFalse, v1.ReasonQueued, "Pending")
	k.turns = of(1)
	k.expectComplete(k.ask("c", other), metav1.ConditionFalse, v1.ReasonRunning, "Running")
}

// Jobs that the cache does not have yet count: a hundred that are due at once must not all begin.
func TestBackupsThatBeginAtOnceAreCounted(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	k.turns = k.one()
	k.turns.Client = nothing{k.turns.Client}
	for _, name := range []string{"x", "y"} {
		w.archiving(name)
	}
	k.expectComplete(k.ask("first", "x"), metav1.ConditionFalse, v1.ReasonRunning, "Running")
	k.expectComplete(k.ask("second", "y"), metav1.ConditionFalse, v1.ReasonQueued, "Pending")
}

// nothing is a cache that has not seen anything yet.
type nothing struct{ client.Reader }

func (nothing) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestNoMoreVerificationsRunThanTheOperatorAllows(t *testing.T) {
	w := newWorld(t)
	k := w.taker()
	verify := func(b *v1.DatabaseBackup) { b.Spec.Verify = true }
	w.archiving("x")
	x := k.complete(k.ask("bx", "x", verify))
	w.archiving("y")
	y := k.complete(k.ask("by", "y", verify))
	k.turns = k.one()
	k.turns.Component, k.turns.Condition = naming.ComponentVerify, v1.ConditionVerified
	k.turns.Waits = verification.Waits
	k.expectVerified(k.verify(x), metav1.ConditionFalse, v1.ReasonVerifying)
	k.expectVerified(k.verify(y), metav1.ConditionFalse, v1.ReasonQueued)
	past := w.countReads()
	k.expectVerified(k.verify(y), metav1.ConditionFalse, v1.ReasonQueued)
	if reads := past.reads(); len(reads) > 0 {
		t.Errorf("while it waits it reads past the cache %v", reads)
	}
	k.verifies(x, "spec.verify", protocol.VerifyResult{LSN: "0/5000000"})
	k.expectVerified(k.verify(y), metav1.ConditionFalse, v1.ReasonVerifying)
}
