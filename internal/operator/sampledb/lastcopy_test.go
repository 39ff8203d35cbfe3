package sampledb

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/metrics"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

var (
	stories    = flag.Int("stories", 400, "how many stories TestTheLastCopyStays goes through")
	firstStory = flag.Uint64("first", 1, "the seed of the first of them")
	oneStory   = flag.Uint64("seed", 0, "the seed of the only one, with all that happens (-v)")
)

// keptStories have found something: data that was set aside, and goes with the volume that is to be smaller. The first
// two did before there were edits of the storage, which make other stories of them: a former database beside one that
// was begun anew on an older volume, and commits between two changes of the DeletionPolicy.
var keptStories = []uint64{1338, 1757, 2360, 5336}

// storyLength is how many things happen in a story before all is left to come to rest.
const storyLength = 50

// The data that a database has acknowledged stays, as docs/backup.md promises ("The last copy"): a volume that has the
// last copy goes only if Delete was said. The whole reconciler is driven through what may happen to it, in a model of
// everything else: of the API server, of its other clients, of the agents and their data, of backups.
func TestTheLastCopyStays(t *testing.T) {
	shared := newShared(t)
	for _, seed := range seeds() {
		newStory(t, shared, seed).run()
		if t.Failed() {
			t.Fatalf("again, with all that happens: go test ./internal/operator/sampledb "+
				"-run TestTheLastCopyStays -v -seed %d", seed)
		}
	}
}

// seeds are those of the stories to go through.
func seeds() []uint64 {
	if *oneStory != 0 {
		return []uint64{*oneStory}
	}
	count := *stories
	if testing.Short() {
		count = min(count, 50)
	}
	out := slices.Clone(keptStories)
	for i := range count {
		out = append(out, *firstStory+uint64(i))
	}
	return out
}

// shared is what is made once for all stories.
type shared struct {
	credentials *credentials.Store
	metrics     *metrics.Metrics
}

func newShared(t *testing.T) shared {
	t.Helper()
	store, err := credentials.FromSecret(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(1e9, 0)},
		Data:       map[string][]byte{naming.KeyRoot: []byte("a root secret of thirty-two bytes")},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return shared{store, metrics.New(prometheus.NewRegistry())}
}

// story is one sequence of edits, deletions and failures.
type story struct {
	*testing.T
	*cluster
	shared     shared
	reconciler *Reconciler
	cache      *operatorClient
	direct     *operatorClient
	// trouble is how many of a thousand calls go wrong; busy how many are followed by something else that happens.
	trouble, busy int
	restores      int
	// once are the SampleDBs that have said Delete at any time.
	once map[types.UID]bool
}

func newStory(t *testing.T, shared shared, seed uint64) *story {
	t.Helper()
	server := &apiServer{
		Rand: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(1.8e9, 0),
		objects: map[modelKey]client.Object{}, late: map[string]map[modelKey]client.Object{},
	}
	c := &cluster{
		apiServer: server, disks: map[types.UID]*disk{}, configs: map[types.UID]protocol.Config{},
		silent: map[string]bool{}, keeps: map[types.UID]bool{},
	}
	s := &story{T: t, cluster: c, shared: shared, once: map[types.UID]bool{}}
	server.claimGoes = s.claimGoes
	s.cache = &operatorClient{apiServer: server, between: s.meanwhile, trouble: &s.trouble, read: s.reads}
	direct := *s.cache
	direct.past = true
	s.direct = &direct
	grows := true
	s.put(kindClass, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard",
		Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		AllowVolumeExpansion: &grows})
	s.put(kindClass, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, AllowVolumeExpansion: &grows})
	s.define()
	s.boot()
	return s
}

// define makes the kind SampleDB.
func (s *story) define() {
	_ = s.create(&metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{Kind: kindDefinition}, ObjectMeta: metav1.ObjectMeta{Name: naming.DefinitionSampleDB},
	})
}

// boot starts the operator: it remembers nothing, and its cache is as the API server.
func (s *story) boot() {
	clear(s.late)
	s.reconciler = &Reconciler{
		Client: s.cache, Reader: s.direct, Agents: s.cluster, Pods: s.cluster, Credentials: s.shared.credentials,
		Settings: desired.Settings{Image: "toban", PostgreSQL: "postgres", Namespace: "toban"},
		Events:   &events.FakeRecorder{}, Metrics: s.shared.metrics, Now: func() time.Time { return s.now },
	}
}

func (s *story) note(format string, args ...any) {
	if *oneStory != 0 {
		s.Logf(format, args...)
	}
}

func (s *story) run() {
	s.make()
	for range 6 {
		s.calm()
	}
	s.trouble, s.busy = 20, 10
	for range storyLength {
		s.happen()
	}
	s.trouble, s.busy = 0, 0
	clear(s.late)
	clear(s.silent)
	for range 8 {
		s.make()
		s.calm()
	}
}

// calm has everybody do once what there is to do.
func (s *story) calm() {
	s.reconcile()
	for _, do := range []func(){
		s.controlSet, s.runPods, s.elect, s.replicate, s.write, s.endBackup, s.endRestore, s.collect, s.endDefinition,
	} {
		do()
	}
}

// deed is something that may happen, and how often in comparison with the others.
type deed struct {
	name string
	odds int
	do   func()
}

// others are all who do something besides the operator.
func (s *story) others() []deed {
	return []deed{
		{"StatefulSet controller", 10, s.controlSet}, {"kubelet", 14, s.runPods}, {"collector", 6, s.collect},
		{"election", 8, s.elect}, {"replication", 10, s.replicate}, {"commit", 12, s.write},
		{"a backup ends", 5, s.endBackup}, {"a restore ends", 4, s.endRestore},
		{"the definition goes", 2, s.endDefinition},
		{"an agent falls silent", 2, s.fallSilent}, {"agents answer", 2, func() { clear(s.silent) }},
		{"the cache is late", 4, s.fallsBehind}, {"the cache catches up", 4, func() { clear(s.late) }},
		{"edit", 8, s.edit}, {"edit of the deletionPolicy", 4, s.editPolicy}, {"edit of the storage", 4, s.editStorage},
		{"restore in place", 2, s.restore}, {"rebuild", 2, s.rebuild},
		{"SampleDB deleted", 5, s.deleteDB}, {"SampleDB made", 12, s.make}, {"set deleted", 1, s.deleteSet},
		{"Pod deleted", 4, s.deletePod}, {"DatabaseBackup deleted", 1, s.deleteBackup},
		{"DatabaseBackup made", 2, s.makeBackup}, {"definition deleted", 1, s.deleteDefinition},
	}
}

func (s *story) pick(deeds []deed) {
	total := 0
	for _, d := range deeds {
		total += d.odds
	}
	n := s.IntN(total)
	for _, d := range deeds {
		if n -= d.odds; n < 0 {
			s.note("  %s", d.name)
			d.do()
			return
		}
	}
}

// happen is one step of a story.
func (s *story) happen() {
	s.now = s.now.Add(time.Second)
	s.pick(append(s.others(), deed{"the operator", 40, s.reconcile}, deed{"the operator starts anew", 2, s.boot},
		deed{"claim deleted", 1, s.deleteClaim}))
}

// meanwhile is what happens between two calls of the operator.
func (s *story) meanwhile() {
	if s.IntN(1000) < s.busy {
		s.pick(s.others())
	}
}

// reconcile is one of the operator's, in which it may end.
func (s *story) reconcile() {
	ctx := log.IntoContext(context.Background(), logr.Discard())
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			s.note("the operator is killed")
			s.boot()
		}
	}()
	_, err := s.reconciler.Reconcile(ctx, reconcile.Request{
		NamespacedName: types.NamespacedName{Namespace: modelNamespace, Name: modelDB}})
	s.note("the operator: %v; %s", err, s.state())
}

// reads notes which SampleDB the operator acts on.
func (s *story) reads(db *v1.SampleDB) {
	s.read = db
}

func (s *story) state() string {
	text := fmt.Sprintf("leader %q late %d", s.leader, len(s.late))
	if db := s.db(); db != nil {
		text += fmt.Sprintf("; %s instances %d policy %q none %v deleted %v %v", db.UID, db.Spec.Instances,
			desired.DeletionPolicy(db), desired.Backup(db) == nil, db.DeletionTimestamp != nil, db.Finalizers)
	}
	for _, claim := range all[*corev1.PersistentVolumeClaim](s.apiServer, kindClaim) {
		text += "; " + claim.Name
		if d := s.disks[claim.UID]; d != nil && d.of != nil {
			text += fmt.Sprintf(" %s:%d of %d, archived %d, voters %v",
				d.of.identifier, d.has, d.of.acknowledged, d.of.archived, d.of.voters)
		}
		if claim.DeletionTimestamp != nil {
			text += " goes"
		}
		if len(claim.OwnerReferences) > 0 {
			text += " owned"
		}
	}
	return text
}

// claimGoes holds the invariant.
func (s *story) claimGoes(claim *corev1.PersistentVolumeClaim, by string) {
	s.note("claim %s is deleted by %s", claim.Name, by)
	if _, instance := naming.Ordinal(claim.Name); !instance {
		s.Errorf("%s deletes the archive's volume %s", by, claim.Name)
		return
	}
	d := s.disks[claim.UID]
	if d == nil || d.of == nil {
		return
	}
	meant := s.saidDelete(by)
	if len(d.aside) > 0 && !meant && s.keepsAside(by) {
		s.Errorf("%s deletes %s, which has what the restore %v has replaced", by, claim.Name, d.aside)
	}
	h := d.of
	if h.acknowledged == 0 || d.has < h.acknowledged || h.replaced || h.givenUp || s.elsewhere(h, claim.UID) {
		return
	}
	if meant || by == byUser || by == byRebuild {
		h.givenUp = true
		return
	}
	s.Errorf("%s deletes %s, which has the last copy of the %d commits that %s has acknowledged, and nobody has said "+
		"Delete\n%s", by, claim.Name, h.acknowledged, h.identifier, s.state())
}

// keepsAside says that what a restore in place has set aside is to stay, as far as who deletes has the SampleDB.
func (s *story) keepsAside(by string) bool {
	db := s.read
	switch by {
	case byOperator:
	case byRebuild:
		db = s.db()
	default:
		return false
	}
	return db.DeletionTimestamp == nil && (db.Spec.Restore == nil || db.Spec.Restore.Before != v1.BeforeDelete)
}

// elsewhere says that all that was acknowledged is in the last backup, or on another volume that stays.
func (s *story) elsewhere(h *history, but types.UID) bool {
	if h.archived >= h.acknowledged {
		return true
	}
	return slices.ContainsFunc(all[*corev1.PersistentVolumeClaim](s.apiServer, kindClaim),
		func(claim *corev1.PersistentVolumeClaim) bool {
			d := s.disks[claim.UID]
			stays := claim.UID != but && claim.DeletionTimestamp == nil
			return stays && d != nil && d.of == h && d.has >= h.acknowledged
		})
}

// saidDelete says that the SampleDB, as the operator has it, is deleted with DeletionPolicy Delete, by somebody who
// means its data.
func (s *story) saidDelete(by string) bool {
	db := s.db()
	if by == byCollector && db != nil && slices.Contains(db.Finalizers, metav1.FinalizerDeleteDependents) {
		return s.once[db.UID] // Kubernetes does not wait for an operator that has not seen it taken back
	}
	db = s.read
	return db != nil && db.Spec.DeletionPolicy == v1.DeletionDelete && db.DeletionTimestamp != nil && !s.keeps[db.UID]
}

// A claim that somebody has deleted goes when its Pod ends: until then its instance may be the primary.
func TestAVolumeStaysBesideAPrimaryWhoseOwnGoes(t *testing.T) {
	s := newStory(t, newShared(t), 1)
	s.make()
	s.change(func(db *v1.SampleDB) {
		db.Spec.Instances, db.Spec.Storage.WhenScaled, db.Spec.DeletionPolicy = 2, v1.ScaleDelete, v1.DeletionRetain
	})
	for range 6 {
		s.calm()
	}
	s.remove(kindClaim, naming.Claim(modelDB, 0), byUser, metav1.DeletePropagationBackground)
	s.fallBehind(kindClaim)
	s.change(func(db *v1.SampleDB) { db.Spec.Instances = 1 })
	for range 6 {
		s.calm()
	}
	if s.leader != "x-0" || s.claim(1) == nil {
		t.Errorf("%q leads: %s", s.leader, s.state())
	}
}

// The data that a restore in place has replaced is on one volume, and nowhere else.
func TestWhatWasSetAsideStays(t *testing.T) {
	smaller := func(db *v1.SampleDB) { db.Spec.Storage.Size = "1Gi" }
	for name, c := range map[string]struct {
		edit   func(*v1.SampleDB)
		reason string
	}{
		"a smaller size": {smaller, v1.ReasonDataSetAside},
		"another class": {
			func(db *v1.SampleDB) { db.Spec.Storage.StorageClassName = ptr.To("fast") }, v1.ReasonDataSetAside,
		},
		"spec.restore is removed, too": {
			func(db *v1.SampleDB) { smaller(db); db.Spec.Restore = nil }, v1.ReasonDataSetAside,
		},
		"nobody needs it": {
			func(db *v1.SampleDB) { smaller(db); db.Spec.Restore.Before = v1.BeforeDelete }, v1.ReasonBound,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, newShared(t), 1)
			s.make()
			s.change(func(db *v1.SampleDB) {
				db.Spec.Instances, db.Spec.Storage.Size, db.Spec.Backup = 3, "2Gi", &v1.BackupSpec{}
			})
			s.calmly(8)
			s.restore()
			s.change(func(db *v1.SampleDB) { db.Spec.Restore.Before = v1.BeforeKeep })
			s.calmly(12)
			s.change(c.edit)
			s.calmly(40)
			is := world.Condition(s.db().Status, v1.ConditionStorageReady)
			if is == nil || is.Reason != c.reason {
				t.Errorf("StorageReady is %+v: %s", is, s.state())
			}
			smallest := int64(1 << 30)
			if c.reason == v1.ReasonDataSetAside {
				smallest *= 2
			}
			for ordinal := range 3 {
				if size := s.claim(ordinal).Spec.Resources.Requests.Storage().Value(); size != smallest {
					t.Errorf("the volume of x-%d has %d", ordinal, size)
				}
			}
		})
	}
}

// calmly lets some time go by in which nothing happens.
func (s *story) calmly(times int) {
	for range times {
		s.now = s.now.Add(time.Minute)
		s.calm()
	}
}
