package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/prometheus/client_golang/prometheus"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/cached"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/metrics"
	"toban.dev/internal/operator/sampledb"
	"toban.dev/internal/pki"
	"toban.dev/internal/postgres/database"
	"toban.dev/internal/protocol"
	"toban.dev/test/played"
)

const identifier = "7710296685985419287"

// world is a namespace with a reconciler and what the tests play around it.
type world struct {
	*testing.T
	// server has the namespace.
	server    *rest.Config
	namespace string
	// api is the test's own client, direct and uncounted.
	api        client.Client
	reconciler *sampledb.Reconciler
	agents     *agents
	events     *events.FakeRecorder
	writes     *writes
	now        time.Time
	// unpublished keeps the agents from labelling their Pods.
	unpublished bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOn(t, server)
}

// beside are the tests that run beside others already.
var beside sync.Map

// runBeside lets a test run beside others, once. Parts of a test run one after the other.
func runBeside(t *testing.T) {
	if _, already := beside.LoadOrStore(t, true); !already && !strings.Contains(t.Name(), "/") {
		t.Parallel()
	}
}

// runAlone lets a test run before all that run beside others: one that changes what all of them share.
func runAlone(t *testing.T) { beside.Store(t, true) }

// newWorldOn is newWorld on an API server of its own.
func newWorldOn(t *testing.T, server *rest.Config) *world {
	t.Helper()
	runBeside(t)
	w := &world{
		T: t, server: server, agents: &agents{answers: map[string]protocol.Status{}},
		events: events.NewFakeRecorder(100), writes: &writes{}, now: time.Now(),
	}
	mapper, err := mapperOf(server)
	if err != nil {
		t.Fatal(err)
	}
	if w.api, err = client.New(server, client.Options{Scheme: scheme, Mapper: mapper}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "api-"}}
	w.must(w.api.Create(t.Context(), namespace))
	w.namespace = namespace.Name
	counted := rest.CopyConfig(server)
	counted.Wrap(w.writes.wrap)
	// The reconciler may do no more than config/rbac says.
	counted.Impersonate.UserName = operatorUser
	direct, err := client.New(counted, client.Options{Scheme: scheme, Mapper: mapper})
	w.must(err)
	store, err := credentials.FromSecret(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(1e9, 0)},
		Data:       map[string][]byte{naming.KeyRoot: []byte("a root secret of thirty-two bytes")},
	}, time.Now())
	w.must(err)
	w.reconciler = &sampledb.Reconciler{
		Client:      labelled{direct},
		Reader:      direct,
		Agents:      w.agents,
		Pods:        replaying{},
		Credentials: store,
		Settings: desired.Settings{
			Image: "toban:test", PostgreSQL: "postgres", Pooler: "pgbouncer", Namespace: operatorNamespace,
		},
		Events:  w.events,
		Metrics: metrics.New(prometheus.NewRegistry()),
		Now:     func() time.Time { return w.now },
	}
	w.storageClass("standard", true, true)
	t.Cleanup(w.freeAddresses)
	return w
}

// freeAddresses removes the Services: this API server has few addresses for them.
func (w *world) freeAddresses() {
	if err := w.api.DeleteAllOf(context.Background(), &corev1.Service{}, client.InNamespace(w.namespace)); err != nil {
		w.Errorf("remove the Services: %v", err)
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// labelled sees what the operator's cache would have: our own objects only, and of them only what the cache keeps.
type labelled struct{ client.Client }

func (c labelled) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	return cached.Whole(slimmed(c), c.Client).Get(ctx, key, object, opts...)
}

// slimmed is the cache itself.
type slimmed struct{ client.Client }

func (c slimmed) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, opts...); err != nil {
		return err
	}
	switch object.(type) {
	case *v1.SampleDB, *v1.DatabaseBackup, *v1.DatabaseRestore, *v1.FaultDrill, *pgv1.PostgreSQL, *appv1.MyApp,
		*storagev1.StorageClass:
	default:
		if object.GetLabels()[naming.LabelManagedBy] != naming.ManagedBy {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "not in the cache"}, key.Name)
		}
	}
	_, err := sampledb.Transform(object)
	return err
}

// List leaves out the fields that are indexes of the cache alone. Who lists by one sees more, and has to look itself.
func (c labelled) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	if options.FieldSelector != nil {
		if _, known := options.FieldSelector.RequiresExactMatch(v1.FieldSampleDB); !known {
			options.FieldSelector = nil
		}
	}
	if err := c.Client.List(ctx, list, &options); err != nil {
		return err
	}
	return meta.EachListItem(list, func(object runtime.Object) error {
		_, err := sampledb.Transform(object)
		return err
	})
}

// writes counts the requests that write, and remembers those that read.
type writes struct {
	mu         sync.Mutex
	seen, read []string
}

func (c *writes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		c.mu.Lock()
		if r.Method == http.MethodGet {
			c.read = append(c.read, r.URL.Path)
		} else {
			c.seen = append(c.seen, r.Method+" "+r.URL.Path)
		}
		c.mu.Unlock()
		return next.RoundTrip(r)
	})
}

// take returns the writes since the last time.
func (c *writes) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.seen
	c.seen = nil
	return out
}

// reads returns the paths of all reads.
func (c *writes) reads() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// agents answers for the instances, by their addresses.
type agents struct {
	mu       sync.Mutex
	answers  map[string]protocol.Status
	configs  []protocol.Config
	restarts []string
	// switchovers are the instances that primaries were asked to hand over to. Where
	// refuse is set they refuse with it; they hand over only by the tests' hand.
	switchovers []string
	// published are the instances that were asked to publish their role.
	published []string
	refuse    string
	// voters are what the primary has recorded; where it is nil, all members that are ready.
	voters []string
	// passwords are the roles whose password the agents were asked to change, with the verifiers. Where passwordError
	// is set they can't, and where passwordRefusal is they refuse.
	passwords       []protocol.PasswordRequest
	passwordError   error
	passwordRefusal *database.Refusal
	// holds is the id of the authority that the instances hold, as Pods get it with NAME-ca; "" is the oldest that they
	// are told to trust. silent are those that do not say what they trust.
	holds  string
	silent map[string]bool
	// reject makes every agent refuse the configs it is given, with these words.
	reject string
}

func (a *agents) Sync(_ context.Context, _ types.UID, host string, config protocol.Config) (protocol.Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.answers[host]
	if !ok {
		return protocol.Status{}, errors.New("no agent listens at " + host)
	}
	a.configs = append(a.configs, config)
	if answer.Identity = nil; !a.silent[answer.Name] && answer.Protocol > 0 {
		trusted := pki.KeyIDs(config.Authority)
		answer.Identity = &protocol.Identity{Issuer: cmp.Or(a.holds, trusted[0]), Trusted: trusted}
	}
	if a.reject == "" {
		answer.ConfigRevision = config.Revision
	} else if answer.ConfigRevision != config.Revision {
		answer.ConfigError, answer.RejectedRevision = a.reject, config.Revision
	}
	if answer.Role == protocol.RolePrimary {
		answer.Voters = a.countedBy(answer.Name, config)
		answer.Acknowledgements = len(answer.Voters)/2 + 1
	}
	a.answers[host] = answer
	return answer, nil
}

// countedBy are the voters that a primary has recorded.
func (a *agents) countedBy(primary string, config protocol.Config) []string {
	if a.voters != nil {
		return a.voters
	}
	out := []string{primary}
	for _, answer := range a.answers {
		if answer.Ready && answer.Name != primary &&
			slices.ContainsFunc(config.Members, func(m protocol.Member) bool { return m.Name == answer.Name }) {
			out = append(out, answer.Name)
		}
	}
	slices.Sort(out)
	return out
}

func (a *agents) Switchover(
	_ context.Context, _ types.UID, host string, _ protocol.Config, request protocol.Switchover,
) (protocol.Status, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := a.answers[host]
	answer.SwitchoverError = a.refuse
	a.answers[host] = answer
	a.switchovers = append(a.switchovers, answer.Name+" to "+request.To)
	return answer, nil
}

func (a *agents) Publish(_ context.Context, _ types.UID, host string, _ protocol.Config) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.published = append(a.published, a.answers[host].Name)
	return nil
}

func (a *agents) Restart(_ context.Context, _ types.UID, host string, _ protocol.Config, _ string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := a.answers[host]
	answer.PendingRestart, answer.Started = nil, answer.Started+"1"
	a.answers[host] = answer
	a.restarts = append(a.restarts, answer.Name)
	return nil
}

func (a *agents) Password(
	_ context.Context, _ types.UID, host string, _ protocol.Config, request protocol.PasswordRequest,
) (protocol.PasswordResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answers[host].Role != protocol.RolePrimary {
		return protocol.PasswordResult{}, errors.New("this instance is not the primary")
	}
	if a.passwordError != nil || a.passwordRefusal != nil {
		return protocol.PasswordResult{Refusal: a.passwordRefusal}, a.passwordError
	}
	if request.Verifier != "" {
		a.passwords = append(a.passwords, request)
	}
	return protocol.PasswordResult{}, nil
}

func (a *agents) Forget(types.UID) {}

func (a *agents) Changed() <-chan event.GenericEvent { return nil }

// change changes the answer of an agent.
func (a *agents) change(host string, f func(*protocol.Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := a.answers[host]
	f(&answer)
	a.answers[host] = answer
}

// lead makes an instance the primary of a term, and all others standbys.
func (w *world) lead(name string, term uint64) {
	for host, was := range w.agents.answers {
		w.agents.change(host, func(s *protocol.Status) {
			s.Role, s.Streaming, s.Term, s.Voters, s.Acknowledgements = protocol.RoleStandby, true, term, nil, 0
			if was.Name == name {
				s.Role, s.Streaming = protocol.RolePrimary, false
			}
		})
	}
}

// maker makes a SampleDB, changed by modifiers.
func (w *world) sampleDB(name string, modify ...func(*v1.SampleDB)) *v1.SampleDB {
	db := &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec:       v1.SampleDBSpec{Version: 17, Instances: 1, Storage: v1.StorageSpec{Size: "1Gi"}},
	}
	for _, m := range modify {
		m(db)
	}
	return db
}

func instances(n int32) func(*v1.SampleDB) { return func(db *v1.SampleDB) { db.Spec.Instances = n } }

// create creates a SampleDB and reconciles it once.
func (w *world) create(name string, modify ...func(*v1.SampleDB)) *v1.SampleDB {
	w.Helper()
	db := w.sampleDB(name, modify...)
	w.must(w.api.Create(w.Context(), db))
	for w.ownMinuteIsNear(db) {
		w.must(w.api.Delete(w.Context(), db))
		db = w.sampleDB(name, modify...)
		w.must(w.api.Create(w.Context(), db))
	}
	return w.reconcile(db)
}

// ownMinuteIsNear says that the minute of the day at which a SampleDB that says nothing about it takes its backups, or
// has one verified an hour later, would come in the middle of a test. It follows from the UID, which the API server
// draws.
func (w *world) ownMinuteIsNear(db *v1.SampleDB) bool {
	w.Helper()
	backup := desired.Backup(db)
	if backup == nil || db.Spec.Backup != nil && db.Spec.Backup.Schedule != "" {
		return false
	}
	var minute, hour int
	if _, err := fmt.Sscanf(backup.Schedule, "%d %d * * *", &minute, &hour); err != nil {
		w.Fatalf("the schedule %q: %v", backup.Schedule, err)
	}
	const day = 24 * time.Hour
	own := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	ahead := (own - w.now.UTC().Sub(w.now.UTC().Truncate(day)) + day) % day
	return ahead < 4*time.Hour || ahead > day-70*time.Minute
}

// reconcile reconciles a SampleDB once and returns it as it is then, nil when it is gone.
func (w *world) reconcile(db *v1.SampleDB) *v1.SampleDB {
	w.Helper()
	w.now = w.now.Add(10 * time.Second)
	w.publishRoles(db) // what a test has changed since
	_, err := w.reconciler.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(db)})
	w.must(err)
	now := &v1.SampleDB{}
	err = w.api.Get(w.Context(), client.ObjectKeyFromObject(db), now)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return now
}

// publishRoles labels the Pods of a SampleDB as their agents do.
func (w *world) publishRoles(db *v1.SampleDB) {
	w.Helper()
	pods := &corev1.PodList{}
	w.must(w.api.List(w.Context(), pods, client.InNamespace(w.namespace),
		client.MatchingLabels(naming.InstanceSelector(db.Name))))
	for _, pod := range pods.Items {
		answer, known := w.agents.answers[pod.Status.PodIP]
		role := string(answer.Role)
		if w.unpublished || !known || !answer.Ready || pod.Labels[naming.LabelRole] == role {
			continue
		}
		pod.Labels[naming.LabelRole] = role
		w.must(w.api.Update(w.Context(), &pod))
	}
}

// edit changes the spec and reconciles.
func (w *world) edit(db *v1.SampleDB, f func(*v1.SampleDB)) *v1.SampleDB {
	w.Helper()
	now := &v1.SampleDB{}
	w.must(w.api.Get(w.Context(), client.ObjectKeyFromObject(db), now))
	f(now)
	w.must(w.api.Update(w.Context(), now))
	return w.reconcile(now)
}

// started creates a SampleDB and plays the cluster until it is ready.
func (w *world) started(name string, modify ...func(*v1.SampleDB)) *v1.SampleDB {
	w.Helper()
	db := w.create(name, modify...)
	for range 4 {
		w.playCluster(db)
		db = w.reconcile(db)
	}
	w.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	w.drainEvents()
	return db
}

// playCluster does what Kubernetes' controllers and kubelets would.
func (w *world) playCluster(db *v1.SampleDB) {
	w.Helper()
	set := &appsv1.StatefulSet{}
	if !w.find(naming.StatefulSet(db.Name), set) {
		return
	}
	replicas := int(*set.Spec.Replicas)
	for i := range replicas {
		for _, template := range set.Spec.VolumeClaimTemplates {
			w.bindClaim(template.Name + "-" + naming.Instance(db.Name, i))
		}
		w.runPod(set, i)
	}
	for i := replicas; ; i++ {
		pod := &corev1.Pod{}
		if !w.find(naming.Instance(db.Name, i), pod) {
			break
		}
		w.must(w.api.Delete(w.Context(), pod))
	}
	played.Observe(set)
	w.must(w.api.Status().Update(w.Context(), set))
	w.finishJobs(db)
	w.publishRoles(db)
}

func address(set *appsv1.StatefulSet, ordinal int) string {
	return fmt.Sprintf("10.%d.0.%d", len(set.Name), ordinal+1)
}

// runPod makes the Pod of an instance with an agent in it: instance 0 leads.
func (w *world) runPod(set *appsv1.StatefulSet, ordinal int) {
	w.Helper()
	name := naming.Instance(set.Name, ordinal)
	if w.find(name, &corev1.Pod{}) {
		return
	}
	host := address(set, ordinal)
	w.makePod(set, ordinal, host)
	answer := protocol.Status{
		Name: name, Protocol: protocol.Version, Role: protocol.RoleStandby, Ready: true, Streaming: true,
		Reason: "Follower",
		Data:   protocol.DataPresent, SystemIdentifier: identifier, ServerVersion: "17.6", Term: 1, Started: "1",
	}
	if ordinal == 0 {
		answer.Role, answer.Streaming, answer.Reason = protocol.RolePrimary, false, "Leader"
	}
	w.agents.change(host, func(s *protocol.Status) { *s = answer })
}

// makePod makes the Pod of an instance, which is ready at an address.
func (w *world) makePod(set *appsv1.StatefulSet, ordinal int, host string) {
	w.Helper()
	pod := played.Pod(set, ordinal)
	w.must(w.api.Create(w.Context(), pod))
	played.Run(pod, host)
	w.must(w.api.Status().Update(w.Context(), pod))
}

func (w *world) bindClaim(name string) {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if !w.find(name, claim) {
		w.Fatalf("there is no claim %s for the Pod", name)
	}
	played.Bind(claim)
	w.must(w.api.Status().Update(w.Context(), claim))
}

// finishJobs lets every Job end well, but for those of restores, which leave a result.
func (w *world) finishJobs(db *v1.SampleDB) {
	w.Helper()
	for _, job := range w.jobs(db) {
		if job.Status.CompletionTime != nil || job.Labels[naming.LabelComponent] == naming.ComponentRestore {
			continue
		}
		played.Complete(&job, metav1.Now())
		w.must(w.api.Status().Update(w.Context(), &job))
	}
}

func (w *world) jobs(db *v1.SampleDB) []batchv1.Job {
	w.Helper()
	var jobs batchv1.JobList
	w.must(w.api.List(w.Context(), &jobs, client.InNamespace(w.namespace),
		client.MatchingLabels{naming.LabelSampleDB: db.Name}))
	return jobs.Items
}

// find reads an object of the namespace and returns whether it is there.
func (w *world) find(name string, into client.Object) bool {
	w.Helper()
	err := w.api.Get(w.Context(), types.NamespacedName{Namespace: w.namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false
	}
	w.must(err)
	return true
}

// read is find for what must be there.
func (w *world) read(name string, into client.Object) {
	w.Helper()
	if !w.find(name, into) {
		w.Fatalf("there is no %T %s", into, name)
	}
}

// expect checks a condition, and returns its message.
func (w *world) expect(db *v1.SampleDB, kind string, status metav1.ConditionStatus, reason string) string {
	w.Helper()
	c := meta.FindStatusCondition(db.Status.Conditions, kind)
	if c == nil {
		w.Fatalf("there is no condition %s; status: %+v", kind, db.Status)
	}
	if c.Status != status || c.Reason != reason {
		w.Fatalf("%s is %s for %s (%s), want %s for %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
	if c.ObservedGeneration != db.Generation {
		w.Errorf("%s is about generation %d, want %d", kind, c.ObservedGeneration, db.Generation)
	}
	return c.Message
}

func (w *world) storageClass(name string, isDefault, grows bool) {
	w.Helper()
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			"storageclass.kubernetes.io/is-default-class": fmt.Sprint(isDefault),
		}},
		Provisioner:          "none.example",
		AllowVolumeExpansion: &grows,
	}
	if err := w.api.Create(w.Context(), class); err != nil && !apierrors.IsAlreadyExists(err) {
		w.Fatal(err)
	}
}

// drainEvents returns the events since the last time.
func (w *world) drainEvents() string {
	var out []string
	for {
		select {
		case e := <-w.events.Events:
			out = append(out, e)
		default:
			return strings.Join(out, "\n")
		}
	}
}

// observe lets the StatefulSet controller see the newest template.
func (w *world) observe(name string) {
	w.Helper()
	set := &appsv1.StatefulSet{}
	w.read(name, set)
	played.Observe(set)
	w.must(w.api.Status().Update(w.Context(), set))
}

// observePods fails unless there are exactly this many Pods of instances.
func (w *world) observePods(db *v1.SampleDB, want int) error {
	var pods corev1.PodList
	if err := w.api.List(w.Context(), &pods, client.InNamespace(w.namespace),
		client.MatchingLabels(naming.InstanceSelector(db.Name))); err != nil {
		return err
	}
	if len(pods.Items) != want {
		return fmt.Errorf("there are %d Pods, want %d", len(pods.Items), want)
	}
	return nil
}

// deleting says that a claim is being deleted.
func (w *world) deleting(claim string) bool {
	w.Helper()
	c := &corev1.PersistentVolumeClaim{}
	return w.find(claim, c) && c.DeletionTimestamp != nil
}

// protectionOff takes off a claim what keeps it while a Pod uses it, as
// Kubernetes' own controller does.
func (w *world) protectionOff(name string) {
	w.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	w.read(name, claim)
	if claim.DeletionTimestamp == nil {
		w.Fatalf("claim %s is not being deleted", name)
	}
	claim.Finalizers = nil
	w.must(w.api.Update(w.Context(), claim))
}

// collectGarbage deletes what the SampleDB, which is gone, owned.
func (w *world) collectGarbage(db *v1.SampleDB) {
	w.Helper()
	for _, list := range []client.ObjectList{
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{},
		&batchv1.JobList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{},
		&coordinationv1.LeaseList{}, &policyv1.PodDisruptionBudgetList{}, &appsv1.DeploymentList{},
		&appsv1.ControllerRevisionList{},
	} {
		w.must(w.api.List(w.Context(), list, client.InNamespace(w.namespace),
			client.MatchingLabels{naming.LabelSampleDB: db.Name}))
		w.must(meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok || !metav1.IsControlledBy(object, db) {
				return nil
			}
			object.SetFinalizers(nil)
			if err := w.api.Update(w.Context(), object); err != nil {
				return err
			}
			return client.IgnoreNotFound(w.api.Delete(w.Context(), object,
				client.PropagationPolicy(metav1.DeletePropagationBackground)))
		}))
	}
	w.collectSecrets()
}

// collectSecrets deletes the Secrets whose revision is gone.
func (w *world) collectSecrets() {
	w.Helper()
	var secrets corev1.SecretList
	w.must(w.api.List(w.Context(), &secrets, client.InNamespace(w.namespace)))
	for i := range secrets.Items {
		owner := metav1.GetControllerOf(&secrets.Items[i])
		if owner == nil || owner.Kind != "ControllerRevision" {
			continue
		}
		revision := &appsv1.ControllerRevision{}
		if !w.find(owner.Name, revision) || revision.UID != owner.UID {
			w.must(client.IgnoreNotFound(w.api.Delete(w.Context(), &secrets.Items[i])))
		}
	}
}
