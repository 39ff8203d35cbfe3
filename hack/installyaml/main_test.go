package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Who uninstalls the operator by what has installed it must not uninstall the databases.
func TestTheOperatorIsRemovedWithoutWhatTheDatabasesNeed(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	kinds := map[string][]string{}
	for _, f := range files {
		text, err := os.ReadFile(f.target)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^kind: (\w+)$`).FindAllSubmatch(text, -1) {
			kinds[f.target] = append(kinds[f.target], string(m[1]))
		}
	}
	stays, goes := kinds["config/crds.yaml"], kinds["config/install.yaml"]
	for _, kind := range []string{"Namespace", "CustomResourceDefinition"} {
		if slices.Contains(goes, kind) || !slices.Contains(stays, kind) {
			t.Errorf("a %s is not in crds.yaml alone: that has %v, and install.yaml %v", kind, stays, goes)
		}
	}
	definitions, err := filepath.Glob("config/crd/*.yaml")
	if err != nil || len(definitions) < 2 {
		t.Fatalf("the CRDs are %q, %v", definitions, err)
	}
	for _, name := range definitions {
		if !slices.ContainsFunc(files[0].sources, func(s source) bool { return s.name == name }) {
			t.Errorf("%s is not installed", name)
		}
	}
	if !slices.Contains(goes, "Deployment") {
		t.Errorf("install.yaml has no operator, only %v", goes)
	}
}

// An operator of one namespace has no right beside that namespace and its own, and the same there as one of all.
func TestTheOperatorOfOneNamespaceHasOnlyRoles(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	text, err := os.ReadFile("config/install-namespaced.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Namespace", "CustomResourceDefinition"} {
		if strings.Contains(string(text), "kind: "+kind+"\n") {
			t.Errorf("it has a %s", kind)
		}
	}
	namespaces := regexp.MustCompile(`(?m)^  namespace: (.*)$`).FindAllSubmatch(text, -1)
	if len(namespaces) == 0 {
		t.Error("nothing in it is in a namespace")
	}
	for _, m := range namespaces {
		if name := string(m[1]); name != watched && name != "toban-system" {
			t.Errorf("something is in the namespace %s", name)
		}
	}
	if n := strings.Count(string(text), watched); n != 4 { // the heading, the Role, its binding, the Deployment
		t.Errorf("the namespace is named %d times", n)
	}
	everywhere, err := os.ReadFile("config/rbac/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(everywhere), "rules:\n")
	rules, _, _ := strings.Cut(after, "---\n")
	if !strings.Contains(string(text), rules) {
		t.Error("its rules are not those of an operator of all namespaces")
	}
}

func TestAPartThatCantBeNarrowedIsAnError(t *testing.T) {
	for name, narrow := range map[string]func(string) (string, error){"rights": toRole, "Deployment": toOneNamespace} {
		if text, err := narrow("kind: ConfigMap\n"); err == nil {
			t.Errorf("%s: it becomes %q", name, text)
		}
	}
}
