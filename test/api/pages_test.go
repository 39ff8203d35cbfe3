package api

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// shown are the bases that a page's parts of a spec belong to: the least that a kind needs.
var shown = map[string]string{
	"": `apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: main}
spec: {version: 17, instances: 1, storage: {size: 10Gi}}`,
	"myapp.md": `apiVersion: example.com/v1
kind: MyApp
metadata: {name: shop}
spec: {image: "shop:1"}`,
	"postgresql.md": `apiVersion: exp.wheel.jp/v1
kind: PostgreSQL
metadata: {name: shop-db}
spec: {db: shop, user: shop, password: shop-password}`,
}

// others are words of blocks that are no spec of Toban's: a status, a part that is left out, somebody else's objects.
var others = []string{"windows:", "…", "# of the Pod", "cert-manager.io", "postgresql.cnpg.io"}

// The API server takes every manifest that a page shows, and every part of a spec, with no field that it does not know.
func TestThePagesManifestsAreTaken(t *testing.T) {
	w := newWorld(t)
	pages, err := filepath.Glob("../../docs/*.md")
	w.must(err)
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	count := 0
	for _, page := range append(pages, "../../README.md", "../../README.ja.md") {
		text, err := os.ReadFile(page)
		w.must(err)
		for _, found := range block.FindAllStringSubmatch(string(text), -1) {
			if slices.ContainsFunc(others, func(word string) bool { return strings.Contains(found[1], word) }) {
				continue
			}
			for part := range strings.SplitSeq(found[1], "\n---\n") {
				count++
				if err := w.takes(filepath.Base(page), part); err != nil {
					t.Errorf("%s shows\n%s\n%v", filepath.Base(page), part, err)
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d manifests were found", count)
	}
}

// takes asks the API server whether it would take what a page shows.
func (w *world) takes(page, text string) error {
	object, err := whole(page, text)
	if err != nil {
		return err
	}
	object.SetNamespace(w.namespace)
	return client.WithFieldValidation(w.api, metav1.FieldValidationStrict).Create(w.Context(), object, client.DryRunAll)
}

// whole is a manifest, or a part of one on its page's base: what is not under spec is a field of it.
func whole(page, text string) (*unstructured.Unstructured, error) {
	var part, base map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &part); err != nil {
		return nil, fmt.Errorf("understand it: %w", err)
	}
	if part["kind"] != nil {
		return &unstructured.Unstructured{Object: part}, nil
	}
	if shown[page] == "" {
		page = ""
	}
	if err := yaml.UnmarshalStrict([]byte(shown[page]), &base); err != nil {
		return nil, fmt.Errorf("understand the base: %w", err)
	}
	spec, _ := base["spec"].(map[string]any)
	if inner, ok := part["spec"].(map[string]any); ok {
		part = inner
	}
	if part["verification"] != nil {
		part = map[string]any{"backup": part}
	}
	maps.Copy(spec, part)
	return &unstructured.Unstructured{Object: base}, nil
}
