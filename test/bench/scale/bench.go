package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

const (
	// patience bounds what all SampleDBs together may take for one step.
	patience = 15 * time.Minute
	// poll is how often it is looked whether a step is over.
	poll = 100 * time.Millisecond
	// writers is how many edits of many SampleDBs are sent at once.
	writers = 16
	// firstOctet is the second number of the addresses at which the agents of the first size listen.
	firstOctet = 80
)

// database is one of the SampleDBs.
type database struct {
	types.NamespacedName
	number   int
	archived bool
}

// databases are n of them, spread over some namespaces. So many of a hundred have an archive, spread over all.
func databases(n, namespaces, archived int) (out []database) {
	const hundred = 100
	for i := range n {
		key := types.NamespacedName{Namespace: fmt.Sprintf("bench-%d", i%namespaces), Name: fmt.Sprintf("db-%05d", i)}
		out = append(out, database{key, i, (i+1)*archived/hundred > i*archived/hundred})
	}
	return out
}

// size is how many instances it has: every third has three.
func (d database) size() int {
	if d.number%3 == 0 {
		return 3
	}
	return 1
}

func (d database) instances() (out []types.NamespacedName) {
	for i := range d.size() {
		out = append(out, types.NamespacedName{Namespace: d.Namespace, Name: naming.Instance(d.Name, i)})
	}
	return out
}

// object is the SampleDB. Its image is looked into at once, which otherwise happens ten minutes later.
func (d database) object() *v1.SampleDB {
	backup := &v1.BackupSpec{None: true}
	if d.archived {
		backup = nil // as by default
	}
	return &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name,
			Annotations: map[string]string{naming.AnnotationLookForUpdates: "now"}},
		Spec: v1.SampleDBSpec{Version: 17, Instances: int32(d.size()), Storage: v1.StorageSpec{Size: "1Gi"},
			Backup: backup},
	}
}

// bench is one size: a server with an operator, its SampleDBs, and what is played around them.
type bench struct {
	options
	dbs      []database
	server   *server
	operator *operator
	log      string
	kubelet  *kubelet
	client.Client
	seen  ledger
	leave func() error
	began time.Time // when the operator had begun, with all SampleDBs there
	value int       // that of the last edit
	found measured
}

// begin starts all that there is of a size, and makes its SampleDBs.
func begin(ctx context.Context, o options, n, number int, parent string) (*bench, error) {
	folder := filepath.Join(parent, fmt.Sprint(n))
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	say("%d SampleDBs: they are made", n)
	b := &bench{options: o, dbs: databases(n, o.namespaces, o.archived), log: filepath.Join(folder, "operator.log")}
	b.found.SampleDBs = n
	for _, db := range b.dbs {
		b.found.Instances += db.size()
	}
	var err error
	if b.server, err = startServer(ctx, folder); err != nil {
		return nil, err
	}
	if err := b.play(ctx, firstOctet+number); err != nil {
		return b, err
	}
	if b.operator, err = startOperator(b.server, o.program, b.log); err != nil {
		return b, err
	}
	return b, b.make(ctx)
}

// end stops all of it.
func (b *bench) end() error {
	var err error
	if b.operator != nil {
		if err = b.operator.stop(); err != nil {
			err = fmt.Errorf("stop the operator: %w", err)
		}
	}
	if b.leave != nil {
		err = errors.Join(err, b.leave())
	}
	return errors.Join(err, b.server.environment.Stop())
}

// play starts what is played.
func (b *bench) play(ctx context.Context, octet int) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	twice := true // there is a manager for each size
	m, err := ctrl.NewManager(b.server.config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Controller: config.Controller{SkipNameValidation: &twice},
	})
	if err != nil {
		return err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.Client = m.GetClient()
	b.kubelet = &kubelet{Client: m.GetClient(), life: life, seen: &b.seen, octet: octet,
		agents: map[types.NamespacedName]*agent{}}
	if err := errors.Join(b.kubelet.setup(m), b.watch(ctx, m)); err != nil {
		stop()
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- m.Start(life) }()
	b.leave = func() error { stop(); return <-ended }
	return b.furnish(ctx)
}

// watch notes what the operator writes into the ConfigMaps.
func (b *bench) watch(ctx context.Context, m ctrl.Manager) error {
	for _, object := range []client.Object{&v1.SampleDB{}, &corev1.PersistentVolumeClaim{}} {
		if _, err := m.GetCache().GetInformer(ctx, object); err != nil { // so that reads of them find all
			return err
		}
	}
	informer, err := m.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	note := func(object any) {
		if c, ok := object.(*corev1.ConfigMap); ok {
			if config, err := desired.ParseConfig(c); err == nil {
				b.seen.note(configHas(c.Namespace+"/"+config.Cluster, config.Parameters[reloads]))
				b.seen.note(configHas(c.Namespace+"/"+config.Cluster, config.Parameters[needsRestart]))
			}
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, object any) { note(object) },
	})
	return err
}

// configHas is what the ledger has of a SampleDB's ConfigMap.
func configHas(db, value string) string { return "the config of " + db + " has " + value }

// furnish makes the namespaces and the class of the volumes.
func (b *bench) furnish(ctx context.Context) error {
	grows := true
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "standard",
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}},
		Provisioner: "none.example", AllowVolumeExpansion: &grows,
	}
	if err := b.Create(ctx, class); err != nil {
		return err
	}
	for i := range b.namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("bench-%d", i)}}
		if err := b.Create(ctx, ns); err != nil {
			return err
		}
	}
	return nil
}

// make makes all SampleDBs, and waits until they are ready.
func (b *bench) make(ctx context.Context) error {
	began := time.Now()
	if err := atOnce(b.dbs, func(db database) error { return b.Create(ctx, db.object()) }); err != nil {
		return fmt.Errorf("make the SampleDBs: %w", err)
	}
	if err := b.untilReady(ctx); err != nil {
		return err
	}
	b.found.Ready = time.Since(began).Seconds()
	say("%d SampleDBs: ready after %.1f s", b.found.SampleDBs, b.found.Ready)
	return b.untilBackedUp(ctx)
}

// untilBackedUp waits until all that have an archive have their first backup.
func (b *bench) untilBackedUp(ctx context.Context) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		var all v1.SampleDBList
		if err := b.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return false, err
		}
		lack := 0
		for i := range all.Items {
			if s := all.Items[i].Status.Backup; all.Items[i].Spec.Backup == nil && (s == nil || s.LastBackup == "") {
				lack++
			}
		}
		return lack == 0, nil
	})
}

// untilReady waits until all SampleDBs are ready as they are now, and nobody waits for a look into an image.
func (b *bench) untilReady(ctx context.Context) error {
	return until(ctx, func(ctx context.Context) (bool, error) {
		var all v1.SampleDBList
		if err := b.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return false, err
		}
		ready := 0
		for i := range all.Items {
			if isReady(&all.Items[i]) {
				ready++
			}
		}
		return ready == len(b.dbs), nil
	})
}

func isReady(db *v1.SampleDB) bool {
	c := meta.FindStatusCondition(db.Status.Conditions, v1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == db.Generation &&
		db.Annotations[naming.AnnotationLookForUpdates] == ""
}

// until looks again and again until something is so.
func until(ctx context.Context, so func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if is, err := so(ctx); is || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// atOnce does something about each SampleDB, about some at once.
func atOnce(dbs []database, do func(database) error) error {
	work, ended := make(chan database), make(chan error)
	for range writers {
		go func() {
			var failed error
			for db := range work {
				failed = errors.Join(failed, do(db))
			}
			ended <- failed
		}()
	}
	for _, db := range dbs {
		work <- db
	}
	close(work)
	var failed error
	for range writers {
		failed = errors.Join(failed, <-ended)
	}
	return failed
}
