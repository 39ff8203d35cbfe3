package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

const (
	namespace = "toban-drill"
	name      = "drill"
	// apiTimeout bounds a request to the API.
	apiTimeout = 10 * time.Second
	// poll is how often something is looked at while it is waited for.
	poll = 200 * time.Millisecond
)

// world is the API without kubectl, whose own start would be measured.
type world struct {
	client.WithWatch
	user  outside.Namespace
	shape shape
}

func newWorld(s shape) (world, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return world{}, fmt.Errorf("find the Kubernetes API: %w", err)
	}
	config.QPS, config.Timeout = -1, 0 // a watch has no end; requests have their contexts
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return world{}, fmt.Errorf("learn the kinds: %w", err)
		}
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return world{}, fmt.Errorf("make a client: %w", err)
	}
	return world{c, outside.Namespace(namespace), s}, nil
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// create makes the namespace, for Pods of the strictest standard, and the SampleDB.
func (w world) create(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if err := w.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the namespace: %w", err)
	}
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	db.Spec = v1.SampleDBSpec{
		Version: 17, Instances: w.shape.instances, Durability: w.shape.durability,
		Storage: v1.StorageSpec{Size: "1Gi"},
	}
	switch w.shape.third {
	case PathPooler:
		db.Spec.Pooler = &v1.PoolerSpec{Instances: 2}
	case PathLabel:
		db.Spec.Service.Route = v1.RouteRelay
	}
	if err := w.Create(ctx, db); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the SampleDB: %w", err)
	}
	if w.shape.third == PathLabel {
		return w.createByLabel(ctx)
	}
	return nil
}

// byLabel is a Service that leads to the primary by its label, as NAME does where no clients are passed on.
const byLabel = name + "-by-label"

// createByLabel makes that Service.
func (w world) createByLabel(ctx context.Context) error {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: byLabel}}
	service.Spec = corev1.ServiceSpec{
		Selector:                 naming.RoleSelector(name, string(protocol.RolePrimary)),
		Ports:                    []corev1.ServicePort{{Port: naming.PortPostgreSQL}},
		PublishNotReadyAddresses: true,
	}
	if err := w.Create(ctx, service); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the Service %s: %w", byLabel, err)
	}
	return nil
}

// accessByThird is the way through the Service of the shape's third way.
func (w world) accessByThird(ctx context.Context) (outside.Access, error) {
	if w.shape.third == PathPooler {
		return w.accessTo(ctx, naming.Pool(name))
	}
	var service corev1.Service
	if err := w.Get(ctx, key(naming.ReadWriteService(name)), &service); err != nil {
		return outside.Access{}, err
	}
	if service.Spec.Selector[naming.LabelRelay] == "" {
		return outside.Access{}, errors.New("the Service does not lead to all instances yet")
	}
	whole, err := w.access(ctx)
	if err != nil {
		return whole, err
	}
	only, err := w.accessTo(ctx, byLabel)
	return whole.At(only.Host, naming.ServiceHost(naming.ReadWriteService(name), namespace)), err
}

// remove deletes the namespace with all that is in it, and waits for its end.
func (w world) remove(ctx context.Context) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	return until(ctx, 3*time.Minute, func(ctx context.Context) error {
		err := w.Delete(ctx, ns.DeepCopy())
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil || apierrors.IsConflict(err) {
			err = errors.New("the namespace is still there")
		}
		return err
	})
}

// until is outside.Until, with an end for each look.
func until(ctx context.Context, patience time.Duration, look func(context.Context) error) error {
	return outside.Until(ctx, patience, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, apiTimeout)
		defer cancel()
		return look(ctx)
	})
}

// access is the way through the read-write Service.
func (w world) access(ctx context.Context) (outside.Access, error) {
	return w.accessTo(ctx, naming.ReadWriteService(name))
}

// accessTo is the same for another of its Services.
func (w world) accessTo(ctx context.Context, to string) (outside.Access, error) {
	var secret corev1.Secret
	if err := w.Get(ctx, key(naming.AppSecret(name)), &secret); err != nil {
		return outside.Access{}, err
	}
	var service corev1.Service
	if err := w.Get(ctx, key(to), &service); err != nil {
		return outside.Access{}, err
	}
	return outside.NewAccess(secret, service)
}

// instance is one of the SampleDB's, as its Pod says.
type instance struct {
	name, uid, node, ip string
}

func (w world) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(naming.InstanceSelector(name)))
	return list.Items, err
}

// book has the instances as they were last seen: what it says stays while the API is away.
type book struct {
	mutex sync.Mutex
	all   map[string]instance
}

func (b *book) where(name string) (instance, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	i, known := b.all[name]
	return i, known
}

// keep keeps the book until ctx ends.
func (b *book) keep(ctx context.Context, w world) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, apiTimeout)
		_ = b.read(once, w) // what can't be read stays as it was
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

func (b *book) read(ctx context.Context, w world) error {
	pods, err := w.pods(ctx)
	if err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.all == nil {
		b.all = map[string]instance{}
	}
	for _, p := range pods {
		b.all[p.Name] = instance{name: p.Name, uid: string(p.UID), node: p.Spec.NodeName, ip: p.Status.PodIP}
	}
	return nil
}

// watchRoutes notes what the read-write Service leads to, whenever that changes.
func (w world) watchRoutes(ctx context.Context, h *history) {
	for ctx.Err() == nil {
		watch, err := w.Watch(ctx, &discoveryv1.EndpointSliceList{}, client.InNamespace(namespace),
			client.MatchingLabels{discoveryv1.LabelServiceName: naming.ReadWriteService(name)})
		if err == nil {
			for event := range watch.ResultChan() {
				if slice, ok := event.Object.(*discoveryv1.EndpointSlice); ok && event.Type != apiwatch.Deleted {
					h.noteRoute(route{at: h.now(), instances: targets(slice)})
				}
			}
			watch.Stop()
		}
		select {
		case <-ctx.Done():
		case <-time.After(poll):
		}
	}
}

func targets(slice *discoveryv1.EndpointSlice) []string {
	var names []string
	for _, e := range slice.Endpoints {
		if e.TargetRef != nil && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
			names = append(names, e.TargetRef.Name)
		}
	}
	return names
}

// whole complains while not all is as it should be: the SampleDB is Ready, every
// instance answers the probe, one of them is the primary, and the others stream from it.
func (w world) whole(ctx context.Context, h *history) error {
	var db v1.SampleDB
	if err := w.Get(ctx, key(name), &db); err != nil {
		return err
	}
	if err := outside.Condition(db, v1.ConditionReady, "True", ""); err != nil {
		return err
	}
	pods, err := w.pods(ctx)
	if err != nil {
		return err
	}
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			return fmt.Errorf("%s is being deleted", p.Name)
		}
	}
	if len(pods) != int(w.shape.instances) {
		return fmt.Errorf("%d Pods are there", len(pods))
	}
	primary, err := soleprimary(h.latest(steadyGap), int(w.shape.instances))
	if err != nil {
		return err
	}
	return w.streaming(ctx, primary)
}

// soleprimary is the one instance that says it is not in recovery, where all answer.
func soleprimary(last map[string]sight, instances int) (string, error) {
	var primaries []string
	for _, s := range last {
		if s.primary {
			primaries = append(primaries, s.instance)
		}
	}
	switch {
	case len(last) < instances:
		return "", fmt.Errorf("%d of %d instances answer", len(last), instances)
	case len(primaries) != 1:
		return "", fmt.Errorf("%d instances say that they are not in recovery", len(primaries))
	}
	return primaries[0], nil
}

// operatorLeads complains while no operator is at work: one whose Pod has ended may still hold the lease.
func (w world) operatorLeads(ctx context.Context) error {
	var lease coordinationv1.Lease
	if err := w.Get(ctx,
		client.ObjectKey{Namespace: operator.Namespace, Name: naming.OperatorLease(0)}, &lease); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := w.List(ctx, &pods, client.InNamespace(operator.Namespace)); err != nil {
		return err
	}
	for _, p := range pods.Items {
		holds := lease.Spec.HolderIdentity != nil && strings.HasPrefix(*lease.Spec.HolderIdentity, p.Name+"_")
		if holds && lease.Spec.AcquireTime != nil && lease.Spec.AcquireTime.After(started(p)) {
			return nil
		}
	}
	return errors.New("no operator is at work")
}

// started is when the containers of a Pod that runs began, far away if they have not.
func started(p corev1.Pod) time.Time {
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil {
			return c.State.Running.StartedAt.Time
		}
	}
	return time.Now().Add(time.Hour)
}

// streaming complains while not every other instance streams from the primary.
func (w world) streaming(ctx context.Context, primary string) error {
	out, err := w.user.Kubectl(ctx, "exec", primary, "--request-timeout=5s", "--", "psql", "-U", "postgres", "-XAtc",
		"SELECT DISTINCT split_part(application_name, '.', 1) FROM pg_stat_replication WHERE state = 'streaming'")
	if err != nil {
		return err
	}
	standbys := strings.Fields(out)
	for _, n := range w.shape.members() {
		if n != primary && !slices.Contains(standbys, n) {
			return fmt.Errorf("%s does not stream", n)
		}
	}
	return nil
}
