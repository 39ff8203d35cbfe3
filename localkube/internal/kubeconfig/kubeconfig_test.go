package kubeconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"toban.dev/localkube/internal/pki"
)

const server = "https://198.18.0.1:6443"

// ours is a kubeconfig as the cluster makes it.
func ours(t *testing.T) string {
	t.Helper()
	store := pki.Store{Dir: t.TempDir()}
	if err := store.Authority("ca"); err != nil {
		t.Fatal(err)
	}
	if err := store.Issue("ca", "admin", pki.Subject{Name: "localkube-admin"}); err != nil {
		t.Fatal(err)
	}
	text, err := store.Kubeconfig("ca", "admin", server)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// touch changes a kubeconfig as kubectl config does.
func touch(t *testing.T, path string, change func(*api.Config)) {
	t.Helper()
	options := clientcmd.NewDefaultPathOptions()
	options.LoadingRules.ExplicitPath = path
	config, err := options.GetStartingConfig()
	if err != nil {
		t.Fatal(err)
	}
	change(config)
	if err := clientcmd.ModifyConfig(options, *config, true); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestOnlyAKubeconfigOfThisClusterAloneIsReplacedAndRemoved(t *testing.T) {
	cases := map[string]struct {
		change func(*api.Config)
		ours   bool
	}{
		"kubectl config set-context --current --namespace=x": {func(c *api.Config) {
			c.Contexts[c.CurrentContext].Namespace = "x"
		}, true},
		"kubectl config set-context more, of the same cluster": {func(c *api.Config) {
			c.Contexts["more"] = &api.Context{Cluster: "localkube", AuthInfo: "admin", Namespace: "x"}
		}, true},
		"kubectl config set-cluster with a server elsewhere": {func(c *api.Config) {
			c.Clusters["production"] = &api.Cluster{Server: "https://kubernetes.example.com:6443"}
		}, false},
		"the server is another": {func(c *api.Config) {
			c.Clusters["localkube"].Server = "https://kubernetes.example.com:6443"
		}, false},
		"the cluster is deleted": {func(c *api.Config) { delete(c.Clusters, "localkube") }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path, text := filepath.Join(t.TempDir(), "new", "kubeconfig"), ours(t)
			if err := Write(path, server, text); err != nil {
				t.Fatal(err)
			}
			touch(t, path, c.change)
			touched := read(t, path)
			if touched == text || strings.HasPrefix(touched, "#") {
				t.Fatalf("kubectl would write another form:\n%s", touched)
			}
			// Another file with the same change, for what down makes of it.
			other := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(other, []byte(touched), 0o600); err != nil {
				t.Fatal(err)
			}

			err := Write(path, server, text)
			if c.ours && (err != nil || read(t, path) != text) {
				t.Errorf("it is not written anew: %v\n%s", err, read(t, path))
			}
			if !c.ours && (err == nil || !strings.Contains(err.Error(), "--kubeconfig") || read(t, path) != touched) {
				t.Errorf("it is not left alone: %v\n%s", err, read(t, path))
			}
			err = Remove(other, server)
			if _, gone := os.Stat(other); err != nil || (gone != nil) != c.ours {
				t.Errorf("removed: %v, %v", gone != nil, err)
			}
		})
	}
}

func TestAFileThatIsNoKubeconfigIsLeftAlone(t *testing.T) {
	for name, text := range map[string]string{
		"an empty one": "", "one without clusters": "apiVersion: v1\nkind: Config\n", "no YAML": "{",
		"a shopping list": "- milk\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := Write(path, server, ours(t)); err == nil || read(t, path) != text {
				t.Errorf("it is replaced (%v)", err)
			}
			if err := Remove(path, server); err != nil || read(t, path) != text {
				t.Errorf("it is removed (%v)", err)
			}
		})
	}
}

func TestAKubeconfigIsPrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "kubeconfig")
	for range 2 {
		if err := Write(path, server, ours(t)); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("its mode is %v, %v", info, err)
		}
	}
}
