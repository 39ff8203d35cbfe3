package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range definitions {
		if !slices.Contains(files[0].sources, name) {
			t.Errorf("%s is not installed", name)
		}
	}
	if !slices.Contains(goes, "Deployment") {
		t.Errorf("install.yaml has no operator, only %v", goes)
	}
}
