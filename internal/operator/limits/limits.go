// Package limits decides which backup, which verification or which copy of an archive may have its Job next, where as
// many run as the operator allows at once. It must not know what the Jobs do.
package limits

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/operator/jobs"
	"toban.dev/internal/operator/shards"
)

const (
	// headStart is by how much what somebody has asked for goes before what a schedule has. What has waited for this
	// long goes before anything that is asked for later, so nothing waits for ever.
	headStart = time.Hour
	// young is for how long a Job counts before its Pod runs. A Pod that fits on no node, or has no image, must not
	// keep all others from running.
	young = 5 * time.Minute
)

// Waiter is a DatabaseBackup that waits for its turn.
type Waiter struct {
	Key types.NamespacedName
	// Since is when it was due or asked for; Asked says that somebody has asked, and no schedule.
	Since time.Time
	Asked bool
}

// before says that one comes before another.
func (w Waiter) before(other Waiter) bool {
	return cmp.Or(w.rank().Compare(other.rank()), strings.Compare(w.Key.String(), other.Key.String())) < 0
}

func (w Waiter) rank() time.Time {
	if w.Asked {
		return w.Since.Add(-headStart)
	}
	return w.Since
}

// ahead is how many of those that wait come before one.
func ahead(of Waiter, waiting []Waiter) (count int) {
	for _, w := range waiting {
		if w.Key != of.Key && w.before(of) {
			count++
		}
	}
	return count
}

// Turns bounds how many Jobs of a kind run at once in all namespaces. The zero value has no bound.
type Turns struct {
	// Client reads from the cache, by its indexes.
	Client client.Reader
	// Limit is how many Jobs may run at once, 0 for any number; Flag is the operator's option that says so. A shard may
	// run its share of them, at least one, and counts only what is of its own databases.
	Limit int
	Flag  string
	Shard shards.Shard
	// Component is the label of the Jobs and of their Pods.
	Component string
	// Condition is that of a DatabaseBackup which says that it waits: with the reason Queued.
	Condition string
	// Waits is what a DatabaseBackup waits as.
	Waits func(b *v1.DatabaseBackup) Waiter

	mutex sync.Mutex
	// begun are Jobs that the cache may not have yet, with when they were created.
	begun map[types.NamespacedName]time.Time
}

// Take creates a Job named like job for a DatabaseBackup, if it is its turn. Otherwise it says how many wait before it,
// and that it has not.
func (t *Turns) Take(
	ctx context.Context, b *v1.DatabaseBackup, job string, now time.Time, create func() error,
) (before int, taken bool, err error) {
	if t == nil || t.Limit == 0 {
		return 0, true, create()
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	running, err := ran{t.Client, t.Shard, t.Component, ownerOfBackups}.count(ctx, t.begun, now)
	if err != nil {
		return 0, false, err
	}
	waiting, err := t.waiting(ctx)
	if err != nil {
		return 0, false, err
	}
	me := t.Waits(b)
	if before = ahead(me, waiting); running+before >= t.share() {
		return before, false, nil
	}
	if err := create(); err != nil {
		return 0, false, err
	}
	if t.begun == nil {
		t.begun = map[types.NamespacedName]time.Time{}
	}
	t.begun[types.NamespacedName{Namespace: b.Namespace, Name: job}] = now
	return 0, true, nil
}

// Message is what a DatabaseBackup that has to wait says. It does not change as the others go on.
func (t *Turns) Message() string {
	return fmt.Sprintf("waits for its turn: as many run in all namespaces as the operator allows at once (%s=%d)",
		t.Flag, t.Limit)
}

// Pause is how long until it is worth to try again, with so many before: each of a pause's length that they take.
func (t *Turns) Pause(before int, shortest, longest time.Duration) time.Duration {
	if t == nil || t.Limit == 0 {
		return shortest
	}
	return min(shortest*time.Duration(1+before/t.share()), longest)
}

// share is how many of the limit this operator may run.
func (t *Turns) share() int { return max(t.Shard.Share(t.Limit), 1) }

// ownerOfBackups is the kind that Jobs belong to which take or verify backups.
const ownerOfBackups = "DatabaseBackup"

// ran are the Jobs that belong to a kind and have the label of a component.
type ran struct {
	client           client.Reader
	shard            shards.Shard
	component, owner string
}

// count is how many of them run. begun are some that the cache may not have yet, with when they were created.
func (r ran) count(ctx context.Context, begun map[types.NamespacedName]time.Time, now time.Time) (int, error) {
	var list batchv1.JobList
	if err := index.OfComponent(ctx, r.client, &list, r.component); err != nil {
		return 0, err
	}
	var all corev1.PodList
	if err := index.OfComponent(ctx, r.client, &all, r.component); err != nil {
		return 0, err
	}
	pods := map[types.UID][]corev1.Pod{}
	for i := range all.Items {
		if owner := metav1.GetControllerOf(&all.Items[i]); owner != nil {
			pods[owner.UID] = append(pods[owner.UID], all.Items[i])
		}
	}
	count := 0
	for i := range list.Items {
		job := &list.Items[i]
		if !r.shard.Has(job.Namespace, job.Labels[naming.LabelSampleDB]) {
			continue
		}
		delete(begun, client.ObjectKeyFromObject(job))
		if r.counts(job, pods[job.UID], now) {
			count++
		}
	}
	for key, at := range begun {
		if now.Sub(at) >= young {
			delete(begun, key)
		}
	}
	return count + len(begun), nil
}

// counts says that a Job runs, or is about to: those that make room in an archive are none of the backups'.
func (r ran) counts(job *batchv1.Job, pods []corev1.Pod, now time.Time) bool {
	owner := metav1.GetControllerOf(job)
	if owner == nil || owner.Kind != r.owner || jobs.Of(job, pods).State() != jobs.Running {
		return false
	}
	for i := range pods {
		if works(&pods[i]) {
			return true
		}
	}
	return now.Sub(job.CreationTimestamp.Time) < young
}

// works says that a container of a Pod runs.
func works(pod *corev1.Pod) bool {
	for _, c := range pod.Status.InitContainerStatuses {
		if c.State.Running != nil {
			return true
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

// waiting are the DatabaseBackups that wait for their turn.
func (t *Turns) waiting(ctx context.Context) ([]Waiter, error) {
	queued, err := index.QueuedBackups(ctx, t.Client, t.Condition)
	if err != nil {
		return nil, err
	}
	var out []Waiter
	for i := range queued {
		b := &queued[i]
		c := meta.FindStatusCondition(b.Status.Conditions, t.Condition)
		if c != nil && c.Reason == v1.ReasonQueued && b.DeletionTimestamp == nil &&
			t.Shard.Has(b.Namespace, b.Spec.SampleDB) {
			out = append(out, t.Waits(b))
		}
	}
	return out, nil
}

// forgotten is after how long whoever has not asked again does not wait any more: all look at what they do more often.
const forgotten = 2 * time.Minute

// Places bounds how many Jobs run at once in all namespaces of which each belongs to an object, and nothing says who
// waits: whoever has asked first and asks still is first. The zero value, and nil, have no bound.
type Places struct {
	// Client reads from the cache.
	Client client.Reader
	// Limit is how many Jobs may run at once, 0 for any number. A shard may run its share of them, at least one.
	Limit int
	Shard shards.Shard
	// Component is the label of the Jobs and of their Pods, Owner the kind that they belong to.
	Component, Owner string

	mutex sync.Mutex
	begun map[types.NamespacedName]time.Time
	asked map[types.NamespacedName]asked
}

// asked is since when somebody waits, and when that was last seen.
type asked struct{ since, last time.Time }

// Take creates a Job for an object, if there is a place and nobody has waited for longer. Otherwise it says that it has
// not, and the object has to ask again.
func (p *Places) Take(
	ctx context.Context, object types.NamespacedName, job string, now time.Time, create func() error,
) (taken bool, err error) {
	if p == nil || p.Limit == 0 {
		return true, create()
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.begun == nil {
		p.begun, p.asked = map[types.NamespacedName]time.Time{}, map[types.NamespacedName]asked{}
	}
	all := ran{p.Client, p.Shard, p.Component, p.Owner}
	running, err := all.count(ctx, p.begun, now)
	if err != nil {
		return false, err
	}
	if running+p.before(object, now) >= max(p.Shard.Share(p.Limit), 1) {
		return false, nil
	}
	if err := create(); err != nil {
		return false, err
	}
	delete(p.asked, object)
	p.begun[types.NamespacedName{Namespace: object.Namespace, Name: job}] = now
	return true, nil
}

// before notes that an object waits, and says how many have waited for longer.
func (p *Places) before(object types.NamespacedName, now time.Time) (count int) {
	me := asked{since: now, last: now}
	if was, ok := p.asked[object]; ok && now.Sub(was.last) < forgotten {
		me.since = was.since
	}
	p.asked[object] = me
	for key, other := range p.asked {
		switch {
		case now.Sub(other.last) >= forgotten:
			delete(p.asked, key)
		case key != object &&
			cmp.Or(other.since.Compare(me.since), strings.Compare(key.String(), object.String())) < 0:
			count++
		}
	}
	return count
}
