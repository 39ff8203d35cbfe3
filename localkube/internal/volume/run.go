package volume

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// The library's own waits are made for distant storage (15 s and more); here a
// failure is over quickly or stays.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 10 * time.Second
	apiPoll    = 200 * time.Millisecond
	workers    = 4
)

// Config is what a provisioner needs.
type Config struct {
	// Kubeconfig is the path of an admin's kubeconfig.
	Kubeconfig string
	// Root is the directory that holds the volumes.
	Root string
	// Log takes what developers read. Nil is standard error.
	Log *slog.Logger
}

// Run mounts the volumes that exist, and then makes, grows and deletes volumes
// until ctx ends. Volumes stay mounted after that; see Cleanup.
func Run(ctx context.Context, cfg Config) error {
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	ctx = klog.NewContext(ctx, logr.FromSlogHandler(log.Handler()))
	store, err := newStore(cfg.Root, log)
	if err != nil {
		return err
	}
	if err := store.restore(); err != nil {
		log.Error("some volumes could not be mounted; their Pods wait", "error", err)
	}
	client, err := connect(cfg.Kubeconfig)
	if err != nil {
		return err
	}
	if err := ensureClass(ctx, client, log); err != nil {
		return err
	}
	return serve(ctx, client, store)
}

func connect(kubeconfig string) (kubernetes.Interface, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", kubeconfig, err)
	}
	rest.QPS = -1 // no limit: one cluster, one client, few writes
	return kubernetes.NewForConfig(rest)
}

// ensureClass makes the StorageClass if it is missing; a changed one is the
// user's. It waits for the API: the provisioner may start first.
func ensureClass(ctx context.Context, client kubernetes.Interface, log *slog.Logger) error {
	said := false
	for {
		err := createClass(ctx, client)
		if err == nil {
			return nil
		}
		if !said {
			log.Info("waiting for the API", "error", err)
			said = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("make StorageClass %s: %w", ClassName, errors.Join(ctx.Err(), err))
		case <-time.After(apiPoll):
		}
	}
}

func createClass(ctx context.Context, client kubernetes.Interface) error {
	classes := client.StorageV1().StorageClasses()
	_, err := classes.Get(ctx, ClassName, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	_, err = classes.Create(ctx, desiredClass(), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// serve runs the library's controller and the expander over one set of watches.
func serve(ctx context.Context, client kubernetes.Interface, store *store) error {
	factory := informers.NewSharedInformerFactory(client, 0) // no resync: a watch misses nothing
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	classes := factory.Storage().V1().StorageClasses().Informer()

	events, stopEvents := recorder(ctx, client)
	defer stopEvents()
	e := &expander{
		store: store, client: client, claims: claims.GetStore(), volumes: volumes.GetStore(), events: events,
		queue: workqueue.NewTypedRateLimitingQueue(retries()),
	}
	if err := e.watch(claims); err != nil {
		return fmt.Errorf("watch claims: %w", err)
	}
	provision := controller.NewProvisionController(ctx, client, Provisioner, provisioner{store},
		controller.LeaderElection(false), // one process on one machine
		controller.ResyncPeriod(0),
		controller.Threadiness(workers),
		controller.RateLimiter(retries()),
		controller.FailedProvisionThreshold(0), controller.FailedDeleteThreshold(0), // never give up
		controller.CreateProvisionedPVLimiter(retries()),
		controller.ClaimsInformer(claims), controller.VolumesInformer(volumes), controller.ClassesInformer(classes),
	)
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())

	var wg sync.WaitGroup
	wg.Go(func() { e.run(ctx) })
	provision.Run(ctx) // until ctx ends
	e.queue.ShutDown()
	wg.Wait()
	factory.Shutdown()
	return nil
}

func retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, lastRetry)
}

func recorder(ctx context.Context, client kubernetes.Interface) (events record.EventRecorder, stop func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, core.EventSource{Component: Provisioner}), broadcaster.Shutdown
}
