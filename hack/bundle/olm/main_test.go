package main

import (
	"os/exec"
	"strings"
	"testing"
)

// A bundle for single namespaces must not give more rights than Roles there; one for all gives ClusterRoles.
func TestRightsAreWhereTheOperatorWorks(t *testing.T) {
	folder := t.TempDir()
	image := "registry.example.com/toban@sha256:" + strings.Repeat("0", 64)
	cmd := exec.Command("go", "run", "./hack/bundle", "-out", folder, "-version", "v0.1.0", "-image", image)
	cmd.Dir = "../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make a bundle: %v\n%s", err, out)
	}
	for watched, want := range map[string][2]int{"": {2, 0}, "a": {1, 2}, "a,b": {1, 3}} {
		var out strings.Builder
		if err := show(&out, folder, "toban-system", watched); err != nil {
			t.Fatal(err)
		}
		all := out.String()
		clusterWide := strings.Count(all, "\nkind: ClusterRoleBinding\n")
		within := strings.Count(all, "\nkind: RoleBinding\n")
		if clusterWide != want[0] || within != want[1] {
			t.Errorf("for %q there are %d ClusterRoleBindings and %d RoleBindings, want %v",
				watched, clusterWide, within, want)
		}
		for _, part := range []string{
			"olm.targetNamespaces: " + map[bool]string{true: `""`, false: watched}[watched == ""],
			"kind: ServiceAccount", "kind: Service\n", "image: " + image, "name: toban-view",
		} {
			if !strings.Contains(all, part) {
				t.Errorf("for %q there is no %q", watched, part)
			}
		}
	}
}
