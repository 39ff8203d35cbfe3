package cluster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/show"
	"toban.dev/internal/operator/scheme"
)

// Cluster is the Kubernetes API as a person reaches it: by kubectl's own rules.
type Cluster struct {
	Kubeconfig, Context, Namespace string
	Output                         show.Output
	// Subject is the object that a verb reads, creates or changes.
	Subject client.Object
	// clock is nil before there is a client.
	clock *clock
}

// Flags adds those that say which cluster and namespace, and how the answer is shown.
func (c *Cluster) Flags(f *pflag.FlagSet) {
	c.Reach(f)
	c.Output.Flags(f)
}

// Reach adds the flags that say which cluster and namespace.
func (c *Cluster) Reach(f *pflag.FlagSet) {
	f.StringVarP(&c.Namespace, "namespace", "n", "",
		"namespace of the SampleDB (default: that of the kubeconfig's context)")
	f.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file (env KUBECONFIG, then ~/.kube/config)")
	f.StringVar(&c.Context, "context", "", "context of the kubeconfig (default: the current one)")
}

// Rest says how to reach the API, and which namespace the kubeconfig names.
func (c *Cluster) Rest() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.Context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("find the Kubernetes API: %w", err)
	}
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", fmt.Errorf("read the namespace of the kubeconfig: %w", err)
	}
	return config, namespace, nil
}

// Connect makes a client, and fills in the namespace.
func (c *Cluster) Connect() (client.Client, error) { return connect(c, client.New) }

// ConnectWatching makes a client that can watch.
func (c *Cluster) ConnectWatching() (client.WithWatch, error) { return connect(c, client.NewWithWatch) }

func connect[C client.Client](
	c *Cluster, open func(*rest.Config, client.Options) (C, error),
) (api C, err error) {
	config, namespace, err := c.Rest()
	if err != nil {
		return api, err
	}
	c.Namespace = cmp.Or(c.Namespace, namespace)
	c.clock = &clock{}
	config.Wrap(c.clock.through)
	known, err := scheme.New()
	if err != nil {
		return api, err
	}
	// Without a logger of its own the client complains about that, with a stack.
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if api, err = open(config, client.Options{Scheme: known, Log: log}); err != nil {
		return api, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return api, nil
}

// Find makes a client, and reads the SampleDB that a verb is about.
func (c *Cluster) Find(ctx context.Context, name string) (client.Client, *v1.SampleDB, error) {
	api, err := c.Connect()
	if err != nil {
		return nil, nil, err
	}
	db, err := c.Read(ctx, api, name)
	c.Subject = db
	return api, db, err
}

// Read reads a SampleDB.
func (c *Cluster) Read(ctx context.Context, api client.Reader, name string) (*v1.SampleDB, error) {
	db := &v1.SampleDB{}
	if err := api.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, db); err != nil {
		return nil, fmt.Errorf("read the SampleDB %s in namespace %s: %w", name, c.Namespace, err)
	}
	return db, nil
}

// SameCluster are the flags by which another command reaches the same cluster.
func (c *Cluster) SameCluster() (out []string) {
	if c.Kubeconfig != "" {
		out = append(out, "--kubeconfig", c.Kubeconfig)
	}
	if c.Context != "" {
		out = append(out, "--context", c.Context)
	}
	return out
}

// In is the same cluster in another namespace.
func (c Cluster) In(namespace string) Cluster {
	return Cluster{Kubeconfig: c.Kubeconfig, Context: c.Context, Namespace: namespace}
}

// Patch changes an object by a merge patch.
func Patch(ctx context.Context, api client.Client, object client.Object, patch []byte) error {
	copied := object.DeepCopyObject().(client.Object) //nolint:errcheck,forcetypeassert // a copy has the type
	return api.Patch(ctx, copied, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("toban-cli"))
}

// Request asks for something by an annotation of an object.
func Request(ctx context.Context, api client.Client, object client.Object, annotation, value string) error {
	return Patch(ctx, api, object, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotation, value))
}
