package process

import (
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"toban.dev/internal/operator/shards"
)

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
