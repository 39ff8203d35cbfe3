//go:build cluster

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The bundle for OLM, without OLM: hack/bundle/olm creates what OLM would. It is installed for all namespaces,
// uninstalled, and installed for one; the database runs on.
func TestTheBundleForOLM(t *testing.T) {
	s := begin(t)
	bundle := filepath.Join(s.work, "bundle")
	s.must("go", "run", "./hack/bundle", "-out", bundle, "-version", "v0.0.0", "-image", "toban:"+s.tag,
		"-url", "https://unpublished.invalid/toban")

	s.say("install for all namespaces, and a database")
	s.must("kubectl", "apply", "-f", "config/manager/namespace.yaml")
	kinds, err := filepath.Glob(filepath.Join(root, "config/crd/*.yaml"))
	if err != nil || len(kinds) == 0 {
		t.Fatalf("the kinds are %q, %v", kinds, err)
	}
	for _, kind := range kinds {
		s.must("kubectl", "apply", "--server-side", "-f", filepath.Join(bundle, "manifests", filepath.Base(kind)))
	}
	objects := s.installBundle(bundle)
	before := s.makeDatabase()

	s.say("uninstall")
	s.must("kubectl", "delete", "--wait", "-f", objects)
	s.must("kubectl", "-n", namespace, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=operator",
		"--timeout=1m")
	s.uninstalled(before, "Uninstalling the operator")

	s.say("install for one namespace")
	s.installBundle(bundle, "-watch", "default")
	var bound []string
	for name := range strings.FieldsSeq(s.must("kubectl", "get", "clusterrolebindings", "-o", "name")) {
		if strings.Contains(name, "toban") {
			bound = append(bound, name)
		}
	}
	if len(bound) != 1 || !strings.HasSuffix(bound[0], "-cluster") {
		t.Errorf("An operator of one namespace has more than one ClusterRole: %q", bound)
	}
	s.grow()
	s.same(before, "Installing the operator for one namespace")
	s.whole()
}

// installBundle makes what OLM makes, waits for the operator, and returns the file of what was made. More arguments are
// those of hack/bundle/olm.
func (s story) installBundle(bundle string, more ...string) (objects string) {
	s.Helper()
	args := append([]string{"run", "./hack/bundle/olm", "-namespace", namespace}, append(more, bundle)...)
	objects = filepath.Join(s.work, "objects.yaml")
	if err := os.WriteFile(objects, []byte(s.must("go", args...)), 0o600); err != nil {
		s.Fatal(err)
	}
	s.must("kubectl", "apply", "--server-side", "-f", objects)
	s.must("kubectl", "-n", namespace, "rollout", "status", "deployment/toban-operator", "--timeout=3m")
	return objects
}
