package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

const (
	namespace = "toban-bench-startup"
	name      = "bench"
)

// world is the API without kubectl, whose own start would be measured, and would
// take the processor from what is.
type world struct{ client.Client }

func newWorld() (world, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return world{}, fmt.Errorf("find the Kubernetes API: %w", err)
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return world{}, fmt.Errorf("learn the kinds: %w", err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return world{}, fmt.Errorf("make a client: %w", err)
	}
	return world{c}, nil
}

func key(name string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: name} }

func (w world) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := w.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels(naming.InstanceSelector(name)))
	return list.Items, err
}

// access is the way through the read-write Service.
func (w world) access(ctx context.Context) (outside.Access, error) {
	var secret corev1.Secret
	if err := w.Get(ctx, key(naming.AppSecret(name)), &secret); err != nil {
		return outside.Access{}, err
	}
	var service corev1.Service
	if err := w.Get(ctx, key(naming.ReadWriteService(name)), &service); err != nil {
		return outside.Access{}, err
	}
	return outside.NewAccess(secret, service)
}

// gone complains while anything of the round before is there: the next one would
// connect to its Service, with its password.
func (w world) gone(ctx context.Context) error {
	var databases v1.SampleDBList
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	var services corev1.ServiceList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&databases, &pods, &claims, &services, &secrets} {
		if err := w.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	if n := len(databases.Items) + len(pods.Items) + len(claims.Items) + len(services.Items) +
		len(secrets.Items); n > 0 {
		return fmt.Errorf("%d objects are still there", n)
	}
	return nil
}

func object(meta string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: meta, Namespace: namespace}
}
