package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// paths are where the API has the kinds that are read again and again: what waits for something would otherwise start
// kubectl for each look, which takes a tenth of a second of a processor. Four of them that wait need all of two.
var paths = map[string]string{
	"sampledb": "/apis/toban.dev/v1/namespaces/%s/sampledbs",
	"pod":      "/api/v1/namespaces/%s/pods",
	"pvc":      "/api/v1/namespaces/%s/persistentvolumeclaims",
	"secret":   "/api/v1/namespaces/%s/secrets",
	"service":  "/api/v1/namespaces/%s/services",
	"pdb":      "/apis/policy/v1/namespaces/%s/poddisruptionbudgets",
	"lease":    "/apis/coordination.k8s.io/v1/namespaces/%s/leases",
	"hpa":      "/apis/autoscaling/v2/namespaces/%s/horizontalpodautoscalers",

	"faultdrill":  "/apis/toban.dev/v1/namespaces/%s/faultdrills",
	"statefulset": "/apis/apps/v1/namespaces/%s/statefulsets",
	"deployment":  "/apis/apps/v1/namespaces/%s/deployments",
}

// connection is to the API server that kubectl would ask, as the user that kubectl would be.
type connection struct {
	web  *http.Client
	host string
}

var connect = sync.OnceValues(func() (connection, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return connection{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	web, err := rest.HTTPClientFor(config)
	if err != nil {
		return connection{}, fmt.Errorf("use the kubeconfig: %w", err)
	}
	return connection{web, strings.TrimSuffix(config.Host, "/")}, nil
})

// read reads an object, or with labels all objects that have them, into a value. There may be none.
func (n Namespace) read(ctx context.Context, kind, name, labels string, into any) (there bool, err error) {
	path, known := paths[kind]
	if !known {
		return false, fmt.Errorf("read %s/%s: the path of the kind is missing in test/outside", kind, name)
	}
	c, err := connect()
	if err != nil {
		return false, err
	}
	at := c.host + fmt.Sprintf(path, n)
	if name != "" {
		at += "/" + name
	}
	if labels != "" {
		at += "?labelSelector=" + url.QueryEscape(labels)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return false, err
	}
	answer, err := c.web.Do(request)
	if err != nil {
		return false, fmt.Errorf("read %s/%s: %w", kind, name, err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return false, fmt.Errorf("read %s/%s: %w", kind, name, err)
	case answer.StatusCode == http.StatusNotFound:
		return false, nil
	case answer.StatusCode != http.StatusOK:
		return false, fmt.Errorf("read %s/%s: %s: %s", kind, name, answer.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return false, fmt.Errorf("understand %s/%s: %w", kind, name, err)
	}
	return true, nil
}
