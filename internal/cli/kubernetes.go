package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
)

// cluster is the Kubernetes API as a person reaches it: by kubectl's own rules.
type cluster struct {
	kubeconfig, context, namespace string
}

func (c *cluster) flags(f *pflag.FlagSet) {
	f.StringVarP(&c.namespace, "namespace", "n", "",
		"namespace of the SampleDB (default: that of the kubeconfig's context)")
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig file (env KUBECONFIG, then ~/.kube/config)")
	f.StringVar(&c.context, "context", "", "context of the kubeconfig (default: the current one)")
}

// connect makes a client, and fills in the namespace.
func (c *cluster) connect() (client.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the Kubernetes API: %w", err)
	}
	if c.namespace == "" {
		if c.namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("read the namespace of the kubeconfig: %w", err)
		}
	}
	scheme, err := operatorScheme()
	if err != nil {
		return nil, err
	}
	// Without a logger of its own the client complains about that, with a stack.
	log := logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	api, err := client.New(config, client.Options{Scheme: scheme, Log: log})
	if err != nil {
		return nil, fmt.Errorf("make a client of the Kubernetes API: %w", err)
	}
	return api, nil
}

// find makes a client, and reads a SampleDB.
func (c *cluster) find(ctx context.Context, name string) (client.Client, *v1.SampleDB, error) {
	api, err := c.connect()
	if err != nil {
		return nil, nil, err
	}
	db, err := c.read(ctx, api, name)
	return api, db, err
}

func (c *cluster) read(ctx context.Context, api client.Reader, name string) (*v1.SampleDB, error) {
	db := &v1.SampleDB{}
	if err := api.Get(ctx, types.NamespacedName{Namespace: c.namespace, Name: name}, db); err != nil {
		return nil, fmt.Errorf("read the SampleDB %s in namespace %s: %w", name, c.namespace, err)
	}
	return db, nil
}
