package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/agents"
	"toban.dev/internal/operator/cached"
	"toban.dev/internal/operator/credentials"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/limits"
	"toban.dev/internal/operator/metrics"
	"toban.dev/internal/operator/namespaces"
	"toban.dev/internal/operator/order"
	"toban.dev/internal/operator/order/databasebackup"
	"toban.dev/internal/operator/order/verification"
	"toban.dev/internal/operator/sampledb"
	"toban.dev/internal/operator/scheme"
	"toban.dev/internal/operator/secrets"
	"toban.dev/internal/operator/shards"
)

// drain is how long the operator may take to finish what it is doing when it is stopped.
const drain = 10 * time.Second

type operatorOptions struct {
	namespace      string
	image          string
	postgres       string
	pooler         string
	metricsAddress string
	probeAddress   string
	election       bool
	lease          time.Duration
	debug          bool
	backups        int
	verifications  int
	copies         int
	namespaces     namespaces.Choice
	shard          shards.Shard
}

// The operator's lease is its only write while all SampleDBs rest: four in its duration. It can be slow, because
// databases fail over without the operator; one that is stopped in order hands the lease over at once.
const (
	leaseDuration = time.Minute
	leaseShortest = 4 * time.Second
)

// The options that are numbers.
const (
	flagBackups       = "backups-at-once"
	flagVerifications = "verifications-at-once"
	flagCopies        = "copies-at-once"
	flagLease         = "lease-duration"
	flagShards        = "shards"
)

// Operator is `toban operator`: the process in the operator's Deployment.
func Operator(version string) *cobra.Command {
	var o operatorOptions
	c := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator (in its Deployment)",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return o.run(c.Context(), version) },
	}
	f := c.Flags()
	f.StringVar(&o.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"the operator's own namespace (env POD_NAMESPACE)")
	f.StringVar(&o.image, "image", os.Getenv("OPERATOR_IMAGE"),
		"the operator's own image, which instances take the agent from (env OPERATOR_IMAGE)")
	f.StringVar(&o.postgres, "postgres-image", "docker.io/library/postgres",
		"repository of the PostgreSQL images, with the major versions as tags")
	f.StringVar(&o.pooler, "pooler-image", "ghcr.io/cloudnative-pg/pgbouncer:1.24.1",
		"image with PgBouncer for spec.pooler")
	f.StringVar(&o.metricsAddress, "metrics-address", ":8443",
		"where to serve metrics over HTTPS, to readers with the right to; 0 turns them off")
	f.StringVar(&o.probeAddress, "probe-address", ":8081", "where to serve /healthz and /readyz")
	f.BoolVar(&o.election, "leader-election", true,
		"act only while holding the lease, so that several replicas may run")
	f.DurationVar(&o.lease, flagLease, leaseDuration,
		"how long after its last renewal of the lease an operator counts as lost, and another one takes over")
	f.BoolVar(&o.debug, "debug", false, "log more")
	f.IntVar(&o.backups, flagBackups, 20,
		"how many backups of all SampleDBs may run at once; 0 for any number")
	f.IntVar(&o.verifications, flagVerifications, 10,
		"how many verifications of backups may run at once; 0 for any number")
	f.IntVar(&o.copies, flagCopies, 10,
		"how many archives may be copied into second stores at once; 0 for any number")
	f.StringSliceVar(&o.namespaces.Watched, "watch-namespace", listed("WATCH_NAMESPACE"),
		"work only in these namespaces, with the rights of Roles there (env WATCH_NAMESPACE; default: all)")
	f.StringSliceVar(&o.namespaces.Ignored, "ignore-namespace", listed("IGNORE_NAMESPACE"),
		"leave these namespaces to another operator (env IGNORE_NAMESPACE)")
	f.IntVar(&o.shard.Count, flagShards, 1, "how many operators share the databases; each needs the same number")
	f.IntVar(&o.shard.Number, "shard", 0, "which of them this one is, counted from 0")
	return c
}

// listed are the names in a variable of the environment, with commas between them.
func listed(variable string) []string {
	if value := os.Getenv(variable); value != "" {
		return strings.Split(value, ",")
	}
	return nil
}

// check says what is wrong with the options.
func (o operatorOptions) check() error {
	if o.namespace == "" || o.image == "" {
		return errors.New("--namespace and --image must be given (or POD_NAMESPACE and " +
			"OPERATOR_IMAGE in the environment)")
	}
	if o.backups < 0 || o.verifications < 0 || o.copies < 0 {
		return fmt.Errorf("--%s, --%s and --%s must be 0 (any number) or more",
			flagBackups, flagVerifications, flagCopies)
	}
	if o.lease < leaseShortest {
		return fmt.Errorf("--%s must be %s or more", flagLease, leaseShortest)
	}
	if o.shard.Count > 1 && !o.election {
		return fmt.Errorf("--%s needs --leader-election: shards are kept apart by their leases", flagShards)
	}
	for flag, limit := range map[string]int{
		flagBackups: o.backups, flagVerifications: o.verifications, flagCopies: o.copies,
	} {
		if limit > 0 && limit < o.shard.Count {
			return fmt.Errorf("--%s must be 0 (any number), or %d at least: one for each shard", flag, o.shard.Count)
		}
	}
	return errors.Join(o.shard.Check(), o.namespaces.Check())
}

func (o operatorOptions) run(ctx context.Context, version string) error {
	if err := o.check(); err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.debug {
		level = slog.LevelDebug
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the Kubernetes API: %w", err)
	}
	config.UserAgent = "toban-operator/" + version
	// The API server's own priority and fairness keeps order among clients.
	config.QPS = -1
	rights, err := o.findClusterRights(ctx, config)
	if err != nil {
		return err
	}
	m, err := o.manager(config, rights)
	if err != nil {
		return err
	}
	if err := o.controllers(ctx, m, rights); err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", version, "namespace", o.namespace, "image", o.image,
		"watches", o.namespaces.String(), "shard", o.shard.String())
	return m.Start(ctx)
}

func (o operatorOptions) manager(config *rest.Config, rights clusterRights) (manager.Manager, error) {
	known, err := scheme.New()
	if err != nil {
		return nil, err
	}
	kept := sampledb.CacheOptions(watchedByAnnexes()...)
	kept.DefaultNamespaces = o.namespaces.ForCache()
	address := o.metricsAddress
	if !rights.readers {
		address = "0"
	}
	// The one that holds the lease ends itself long before another one takes over.
	wait, deadline, retry := drain, o.lease*2/3, o.lease/4
	lock, err := o.lock(config, known, deadline, retry)
	if err != nil {
		return nil, err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:    known,
		Cache:     kept,
		NewClient: cached.NewClient,
		Metrics: metricsserver.Options{
			BindAddress:    address,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
		HealthProbeBindAddress:              o.probeAddress,
		LeaderElection:                      o.election,
		LeaderElectionResourceLockInterface: lock,
		LeaderElectionID:                    o.shard.Lease(), // the name that its metrics have
		LeaderElectionReleaseOnCancel:       true,
		LeaseDuration:                       &o.lease,
		RenewDeadline:                       &deadline,
		RetryPeriod:                         &retry,
		GracefulShutdownTimeout:             &wait,
	})
	if err != nil {
		return nil, fmt.Errorf("make the controllers' manager: %w", err)
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add the health check: %w", err)
	}
	if err := m.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("add the readiness check: %w", err)
	}
	return m, nil
}

func (o operatorOptions) controllers(ctx context.Context, m manager.Manager, rights clusterRights) error {
	direct, err := client.New(m.GetConfig(), client.Options{Scheme: m.GetScheme()})
	if err != nil {
		return fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	store, err := credentials.Load(ctx, direct, o.namespace, func(ctx context.Context) ([]v1.SampleDB, error) {
		return o.namespaces.SampleDBs(ctx, direct)
	})
	if err != nil {
		return err
	}
	shown := metrics.New(ctrlmetrics.Registry)
	if err := o.showActing(m, shown); err != nil {
		return err
	}
	asks := &agents.HTTPS{Certificate: store.Certificate}
	r := &sampledb.Reconciler{
		Client:   m.GetClient(),
		Reader:   m.GetAPIReader(),
		Agents:   asks,
		Programs: asks,
		Copies: &limits.Places{
			Client: m.GetClient(), Limit: o.copies, Shard: o.shard,
			Component: naming.ComponentSecond, Owner: "SampleDB",
		},
		Pods:        asks,
		Poolers:     asks,
		Credentials: store,
		Settings:    desired.Settings{Image: o.image, PostgreSQL: o.postgres, Pooler: o.pooler, Namespace: o.namespace},
		Events:      m.GetEventRecorder("toban"),
		Metrics:     shown,
		Shard:       o.shard,
		Now:         time.Now,
		NoClasses:   !rights.classes,
	}
	if err := r.Setup(m); err != nil {
		return fmt.Errorf("set up the controller of SampleDBs: %w", err)
	}
	base := order.Base{
		Client: r.Client, Reader: r.Reader, Settings: r.Settings, Events: r.Events, Shard: o.shard, Now: time.Now,
	}
	if err := o.backupControllers(m, base, asks, store); err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(m.GetConfig())
	if err != nil {
		return fmt.Errorf("make a client for the watches of Secrets: %w", err)
	}
	return setUpAnnexes(m, parts{
		Base: base, asks: asks, credentials: store, namespaces: o.namespaces,
		follow: func() *secrets.Follower {
			return secrets.New(clientset, func(content []byte) string { return store.Digest("secrets", content) })
		},
	})
}

// showActing has the metrics say that the operator acts as soon as it holds its lease, and from then on show what its
// cache has. A replica that waits could read the same, and all would be there twice.
func (o operatorOptions) showActing(m manager.Manager, shown *metrics.Metrics) error {
	shown.Waits(o.shard.Count)
	err := m.Add(manager.RunnableFunc(func(context.Context) error { // the manager runs it once it leads
		shown.Acts(o.shard.Number)
		ctrlmetrics.Registry.MustRegister(&metrics.Drills{Reader: m.GetClient(), Has: o.shard.Has},
			&metrics.Kinds{Reader: m.GetClient(), Has: o.shard.Has})
		return nil
	}))
	if err != nil {
		return fmt.Errorf("show in the metrics that it acts: %w", err)
	}
	return nil
}

// backupControllers are those of backups and of their verifications.
func (o operatorOptions) backupControllers(
	m manager.Manager, base order.Base, asks *agents.HTTPS, store *credentials.Store,
) error {
	b := &databasebackup.Reconciler{
		Base: base, Pods: asks, Cutter: asks, Credentials: store,
		Turns: &limits.Turns{
			Client: m.GetClient(), Limit: o.backups, Flag: "--" + flagBackups, Component: naming.ComponentBackup,
			Condition: v1.ConditionComplete, Waits: databasebackup.Waits, Shard: o.shard,
		},
	}
	if err := b.Setup(m); err != nil {
		return fmt.Errorf("set up the controller of DatabaseBackups: %w", err)
	}
	v := &verification.Reconciler{
		Base: base, Pods: asks,
		Turns: &limits.Turns{
			Client: m.GetClient(), Limit: o.verifications, Flag: "--" + flagVerifications,
			Component: naming.ComponentVerify, Condition: v1.ConditionVerified, Waits: verification.Waits,
			Shard: o.shard,
		},
	}
	if err := v.Setup(m); err != nil {
		return fmt.Errorf("set up the controller of verifications: %w", err)
	}
	return nil
}

// lock is the lease without which the operator does not act, nil where it needs none. One request may take half of the
// time in which the lease must be renewed, and a look at the leases of other shards as long as it is to the next try.
func (o operatorOptions) lock(
	config *rest.Config, scheme *runtime.Scheme, deadline, retry time.Duration,
) (resourcelock.Interface, error) {
	if !o.election {
		return nil, nil //nolint:nilnil // it needs none
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("name the holder of the lease: %w", err)
	}
	config = rest.AddUserAgent(config, "leader-election")
	config.Timeout = deadline / 2
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the lease: %w", err)
	}
	identity := o.shard.Identity(host, string(uuid.NewUUID()))
	told := record.NewBroadcaster()
	told.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: clientset.CoreV1().Events(o.namespace)})
	lease, err := resourcelock.New(resourcelock.LeasesResourceLock, o.namespace, o.shard.Lease(),
		clientset.CoreV1(), clientset.CoordinationV1(), resourcelock.ResourceLockConfig{
			Identity: identity, EventRecorder: told.NewRecorder(scheme, corev1.EventSource{Component: identity}),
		})
	if err != nil {
		return nil, fmt.Errorf("make the lock of the lease: %w", err)
	}
	return &shards.Lock{Interface: lease, Shard: o.shard, Leases: clientset.CoordinationV1().Leases(o.namespace),
		Patience: retry, Now: time.Now}, nil
}
