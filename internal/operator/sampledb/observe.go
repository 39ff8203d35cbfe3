package sampledb

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/index"
	"toban.dev/internal/protocol"
)

// observed is what there is. All comes from the cache but the Lease, which is read past it now and then (to watch
// Leases is a right to see all of the cluster's), and the agents' answers. The Lease is read first: what agents say is
// then no older than its being there, or gone.
type observed struct {
	config   *corev1.ConfigMap
	set      *appsv1.StatefulSet
	pods     map[int]*corev1.Pod // of instances, by ordinal
	claims   map[int]*corev1.PersistentVolumeClaim
	wals     map[int]*corev1.PersistentVolumeClaim // those of WAL volumes
	users    map[string]string                     // of claims, the name of a Pod that uses it
	readers  readers
	poolers  map[string]*appsv1.Deployment
	jobs     []batchv1.Job
	initPods []corev1.Pod
	// restorePods are those of the Jobs that bring the first data back, backupPods those that take backups and make
	// room.
	restorePods   []corev1.Pod
	backupPods    []corev1.Pod
	copyPods      []corev1.Pod        // of the Jobs that copy the archive into the second store
	imagePods     []corev1.Pod        // of the Jobs that look into the image
	upgradePods   []corev1.Pod        // of the Jobs of an upgrade to another major version
	rehearsalPods []corev1.Pod        // of the Jobs that rehearse one
	sidesPods     []corev1.Pod        // of the Jobs of a blue/green one
	finishPods    []corev1.Pod        // of the Job after a change of the image
	otherPods     int                 // of the server of an archive on a volume
	poolerPods    []corev1.Pod        // of poolers
	backups       []v1.DatabaseBackup // those that name this SampleDB; read only where it has an archive
	snapshots     []v1.DatabaseBackup // the same of those that are snapshots of a volume
	restores      []v1.RestoreStatus  // of the namespace's SampleDBs; as above
	drills        []v1.FaultDrill     // those that name this SampleDB, the newest last
	lease         *coordinationv1.Lease
	// podsRefused is why the last Pod of an instance could not be made, "" where that is not so.
	podsRefused string
	// answers are those of the agents that answered, by the name of the instance. One that is
	// missing is not known, which is not the same as down.
	answers map[string]protocol.Status
	// doubted says that it will be known in a moment whether another agent answers.
	doubted bool
}

// observe reads what there is and, in the same round, tells the agents what the
// spec wants of them.
func (s *scope) observe(ctx context.Context) error {
	if err := s.observeObjects(ctx); err != nil {
		return err
	}
	s.takeSizeInForce()
	s.takeWALSizeInForce()
	known, err := s.known()
	if err != nil {
		return err
	}
	if begun, err := s.recordUpgrade(ctx); err != nil || begun {
		s.seen.doubted = true
		return err
	}
	s.config = desired.Config(s.db, known)
	s.initializedAt = s.db.Status.InitializedAt
	s.image, s.update = s.db.Status.Image.DeepCopy(), s.db.Status.Update.DeepCopy()
	s.restart = s.db.Status.Restart.DeepCopy()
	s.upgrade, s.rehearsal = s.db.Status.Upgrade.DeepCopy(), s.db.Status.Rehearsal.DeepCopy()
	s.stop = s.db.Status.Stop.DeepCopy()
	s.finish, s.sortedBy = s.db.Status.Finish.DeepCopy(), s.db.Status.SortedBy
	s.observePassword()
	s.seen.answers, s.seen.doubted = s.syncAgents(ctx, s.seen.pods)
	s.seen.readers.answers, _ = s.syncAgents(ctx, s.seen.readers.pods)
	if known.SystemIdentifier == "" {
		known.SystemIdentifier = agreedIdentifier(s.seen.answers)
	}
	known.Given = givenAuthorities(known.Given, s.config.Members, s.seen.answers)
	s.config = desired.Config(s.db, known)
	s.trust, s.appHosts = s.db.Status.ClientAuthorities, s.db.Status.AppHosts
	s.loss = decideLoss(s.lossView())
	return nil
}

// known is what was learned before and must be kept. The ConfigMap counts
// besides the status, because a cache may not have the latest status yet. Of the authorities in it those are kept
// that are the SampleDB's own and count: somebody else may have written there.
func (s *scope) known() (desired.Known, error) {
	known := desired.Known{
		SystemIdentifier: s.db.Status.SystemIdentifier,
		Least:            s.least(),
		Readers:          s.seen.readers.present(),
		Left:             s.deletionPolicy.reason == deletionOrphaned || s.deletionPolicy.spares(),
	}
	var old protocol.Config
	if s.seen.config != nil && ours(s.seen.config, s.db) {
		var err error
		if old, err = desired.ParseConfig(s.seen.config); err != nil {
			old = protocol.Config{} // somebody has broken it; it is written anew
		}
	}
	known.Operator = s.Credentials.Operator(s.db, old.Operator)
	if err := s.observeAuthority(old.Authority); err != nil {
		return known, err
	}
	bundle, none, err := s.Credentials.Bundle(s.db, s.authorities(), old.Authority)
	if err != nil {
		return known, err
	}
	if !none {
		known.Authority = bundle
	}
	known.Preferred = s.preferredOrder(max(desired.Instances(s.db), known.Least))
	known.Witness, known.Restored, known.Given = old.Witness, old.Restored, old.Given
	known.RestoredBefore, known.Survivor = old.RestoredBefore, old.Survivor
	known.Upgraded = old.Upgraded
	s.written = old
	known.Major, known.FirstMajor = old.Major, s.firstMajor(old)
	if known.SystemIdentifier == "" || old.Upgraded != "" {
		known.SystemIdentifier = old.SystemIdentifier
	}
	return known, nil
}

// agreedIdentifier is the system identifier that the answers have in common, and
// "" when none has one or they differ.
func agreedIdentifier(answers map[string]protocol.Status) string {
	agreed := ""
	for _, a := range answers {
		switch {
		case a.SystemIdentifier == "" || a.Data != protocol.DataPresent:
		case agreed == "":
			agreed = a.SystemIdentifier
		case agreed != a.SystemIdentifier:
			return ""
		}
	}
	return agreed
}

func (s *scope) observeObjects(ctx context.Context) error {
	var err error
	if s.seen.config, err = find(ctx, s.Client, s.db, naming.ConfigMap(s.db.Name), &corev1.ConfigMap{}); err != nil {
		return err
	}
	if err := s.observeLease(ctx); err != nil {
		return err
	}
	if s.seen.set, err = find(ctx, s.Client, s.db, naming.StatefulSet(s.db.Name), &appsv1.StatefulSet{}); err != nil {
		return err
	}
	if err := s.observeReaders(ctx); err != nil {
		return err
	}
	if err := s.observePooler(ctx); err != nil {
		return err
	}
	if err := s.observePods(ctx); err != nil {
		return err
	}
	if err := s.observeRefusedPods(ctx); err != nil {
		return err
	}
	if s.seen.jobs, err = index.Jobs(ctx, s.Client, s.db.Namespace, partOf(s.db)); err != nil {
		return err
	}
	if err := s.observeClaims(ctx); err != nil {
		return err
	}
	s.observeDeletionPolicy(ctx)
	if s.deletionPolicy.spares() {
		return nil // the kinds DatabaseBackup and FaultDrill may be gone too
	}
	if err := s.observeDrills(ctx); err != nil {
		return err
	}
	return s.observeBackups(ctx)
}

func (s *scope) observePods(ctx context.Context) error {
	pods, err := index.Pods(ctx, s.Client, s.db.Namespace, partOf(s.db))
	if err != nil {
		return err
	}
	s.seen.pods, s.seen.users = map[int]*corev1.Pod{}, map[string]string{}
	lists := s.seen.podsOfComponents()
	for i := range pods {
		pod := &pods[i]
		usedBy(pod, s.seen.users)
		component := pod.Labels[naming.LabelComponent]
		if list := lists[component]; list != nil {
			*list = append(*list, *pod)
			continue
		}
		switch component {
		case naming.ComponentArchive:
			s.seen.otherPods++
		case naming.ComponentReader:
			s.seen.readers.note(s.db, pod)
		case naming.ComponentInstance:
			if n, ok := naming.Ordinal(pod.Name); ok && pod.Name == naming.Instance(s.db.Name, n) {
				s.seen.pods[n] = pod
			}
		}
	}
	return nil
}

// podsOfComponents is where the Pods of each component are collected, but for those of which more is noted.
func (s *observed) podsOfComponents() map[string]*[]corev1.Pod {
	return map[string]*[]corev1.Pod{
		naming.ComponentInit:     &s.initPods,
		naming.ComponentRestore:  &s.restorePods,
		naming.ComponentBackup:   &s.backupPods,
		naming.ComponentSecond:   &s.copyPods,
		naming.ComponentImage:    &s.imagePods,
		naming.ComponentUpgrade:  &s.upgradePods,
		naming.ComponentRehearse: &s.rehearsalPods,
		naming.ComponentSides:    &s.sidesPods,
		naming.ComponentPooler:   &s.poolerPods,
		naming.ComponentReadPool: &s.poolerPods,
		naming.ComponentFinish:   &s.finishPods,
	}
}

func (s *scope) observeClaims(ctx context.Context) error {
	claims, err := index.Claims(ctx, s.Client, s.db.Namespace, partOf(s.db))
	if err != nil {
		return err
	}
	s.seen.claims, s.seen.wals = map[int]*corev1.PersistentVolumeClaim{}, map[int]*corev1.PersistentVolumeClaim{}
	for i := range claims {
		claim := &claims[i]
		s.seen.readers.note(s.db, claim)
		if n, ok := naming.Ordinal(claim.Name); ok && claim.Name == naming.Claim(s.db.Name, n) {
			s.seen.claims[n] = claim
		} else if ok && claim.Name == naming.WALClaim(s.db.Name, n) {
			s.seen.wals[n] = claim
		}
	}
	return nil
}

// partOf is the label of what belongs to the SampleDB.
func partOf(db *v1.SampleDB) map[string]string {
	return map[string]string{naming.LabelSampleDB: db.Name}
}

// belongs are the list options for what has that label, past the cache.
func belongs(db *v1.SampleDB) []client.ListOption {
	return []client.ListOption{client.InNamespace(db.Namespace), client.MatchingLabels(partOf(db))}
}

// find reads an object of the SampleDB's namespace, nil where there is none.
func find[T client.Object](ctx context.Context, c client.Reader, db *v1.SampleDB, name string, into T) (T, error) {
	var none T
	err := c.Get(ctx, types.NamespacedName{Namespace: db.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("read %T %s: %w", into, name, err)
	}
	return into, nil
}
