package world

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/protocol"
)

// Observed is what there is. All comes from the cache but the Lease, which is read past it now and then (to watch
// Leases is a right to see all of the cluster's), and the agents' answers. The Lease is read first: what agents say is
// then no older than its being there, or gone.
type Observed struct {
	Config  *corev1.ConfigMap
	Set     *appsv1.StatefulSet
	Pods    map[int]*corev1.Pod // of instances, by ordinal
	Claims  map[int]*corev1.PersistentVolumeClaim
	WALs    map[int]*corev1.PersistentVolumeClaim // those of WAL volumes
	Users   map[string]string                     // of claims, the name of a Pod that uses it
	Readers readers
	Poolers map[string]*appsv1.Deployment
	Jobs    []batchv1.Job
	JobPods
	ArchivePods []corev1.Pod        // of the server of an archive on a volume
	PoolerPods  []corev1.Pod        // of poolers
	Backups     []v1.DatabaseBackup // those that name this SampleDB; read only where it has an archive
	Snapshots   []v1.DatabaseBackup // the same of those that are snapshots of a volume
	Restores    []v1.RestoreStatus  // of the namespace's SampleDBs; as above
	Drills      []v1.FaultDrill     // those that name this SampleDB, the newest last
	Lease       *coordinationv1.Lease
	// PodsRefused is why the last Pod of an instance could not be made, "" where that is not so.
	PodsRefused string
	// Answers are those of the agents that answered, by the name of the instance. One that is
	// missing is not known, which is not the same as down.
	Answers map[string]protocol.Status
	// Doubted says that it will be known in a moment whether another agent answers.
	Doubted bool
}

// JobPods are the Pods of Jobs, by what these do.
type JobPods struct {
	InitPods []corev1.Pod
	// RestorePods are those of the Jobs that bring the first data back, BackupPods those that take backups and make
	// room.
	RestorePods   []corev1.Pod
	BackupPods    []corev1.Pod
	CopyPods      []corev1.Pod // of the Jobs that copy the archive into the second store
	ImagePods     []corev1.Pod // of the Jobs that look into the image
	UpgradePods   []corev1.Pod // of the Jobs of an upgrade to another major version
	RehearsalPods []corev1.Pod // of the Jobs that rehearse one
	SidesPods     []corev1.Pod // of the Jobs of a blue/green one
	FinishPods    []corev1.Pod // of the Job after a change of the image
}

// PodsOfComponents is where the Pods of each component are collected, but for those of which more is noted.
func (s *Observed) PodsOfComponents() map[string]*[]corev1.Pod {
	return map[string]*[]corev1.Pod{
		naming.ComponentInit:     &s.InitPods,
		naming.ComponentRestore:  &s.RestorePods,
		naming.ComponentBackup:   &s.BackupPods,
		naming.ComponentSecond:   &s.CopyPods,
		naming.ComponentImage:    &s.ImagePods,
		naming.ComponentUpgrade:  &s.UpgradePods,
		naming.ComponentRehearse: &s.RehearsalPods,
		naming.ComponentSides:    &s.SidesPods,
		naming.ComponentArchive:  &s.ArchivePods,
		naming.ComponentPooler:   &s.PoolerPods,
		naming.ComponentReadPool: &s.PoolerPods,
		naming.ComponentFinish:   &s.FinishPods,
	}
}

// PartOf is the label of what belongs to the SampleDB.
func PartOf(db *v1.SampleDB) map[string]string {
	return map[string]string{naming.LabelSampleDB: db.Name}
}

// Belongs are the list options for what has that label, past the cache.
func Belongs(db *v1.SampleDB) []client.ListOption {
	return []client.ListOption{client.InNamespace(db.Namespace), client.MatchingLabels(PartOf(db))}
}

// Find reads an object of the SampleDB's namespace, nil where there is none.
func Find[T client.Object](ctx context.Context, c client.Reader, db *v1.SampleDB, name string, into T) (T, error) {
	return index.Find(ctx, c, db.Namespace, name, into)
}

// leaseBelieved is for how long a Lease that the agents know is taken to be there. It is read past the cache, so that
// each read costs the API server something, and only somebody who deletes it changes what is read of it.
const leaseBelieved = PauseResting

// leases remembers the Leases that agents know as their witness, by the UID of the SampleDB. The zero value is ready
// for use; it is safe for concurrent use.
type leases struct {
	mu  sync.Mutex
	all map[types.UID]leaseRead
}

type leaseRead struct {
	lease *coordinationv1.Lease
	at    time.Time
}

// Recent is the Lease of a SampleDB as it was read, nil where that was too long ago.
func (l *leases) Recent(uid types.UID, now time.Time) *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.all[uid]; ok && now.Before(last.at.Add(leaseBelieved)) {
		return last.lease
	}
	return nil
}

// Read remembers what says whose a Lease is, unless that was remembered lately: what was not read now is not newer now.
func (l *leases) Read(uid types.UID, lease *coordinationv1.Lease, now time.Time) {
	if l.Recent(uid, now) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[types.UID]leaseRead{}
	}
	l.all[uid] = leaseRead{at: now, lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: lease.Namespace, Name: lease.Name, UID: lease.UID,
		Labels: lease.Labels, OwnerReferences: lease.OwnerReferences,
	}}}
}

func (l *leases) Forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, uid)
}
