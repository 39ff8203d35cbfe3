// Command crds finishes the CRDs that controller-gen has written to config/crd. It narrows their schemas, so that the
// operator can decode whatever the API server accepts: one object that can't be decoded would hide all of its kind from
// the operator. It takes out the descriptions of Kubernetes' own types, and of types that another field describes, so
// that the CRDs stay small. And it refuses defaults inside of lists: tools that compare an object with its manifest,
// such as Argo CD, take lists as a whole, and would see a difference for ever.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"toban.dev/hack/repeated"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func run() error {
	files, err := filepath.Glob("config/crd/*.yaml")
	if err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	for _, file := range files {
		if err := finish(file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// finish rewrites one CRD.
func finish(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return fmt.Errorf("understand the CRD: %w", err)
	}
	for _, version := range crd.Spec.Versions {
		visit("", version.Schema.OpenAPIV3Schema, narrow)
		visit("", version.Schema.OpenAPIV3Schema, shorten)
		repeated.Strip(version.Schema.OpenAPIV3Schema)
		if err := withoutListDefaults(version.Schema.OpenAPIV3Schema); err != nil {
			return err
		}
	}
	out, err := marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, out, 0o644) //nolint:gosec // everyone may read it
}

// marshal writes a CRD without its status, as controller-gen does.
func marshal(crd apiextensions.CustomResourceDefinition) ([]byte, error) {
	text, err := yaml.Marshal(crd)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if text, err = yaml.Marshal(fields); err != nil {
		return nil, err
	}
	return append([]byte("---\n"), bytes.TrimSpace(text)...), nil
}

// visit calls change for a schema and for all schemas in it, with their paths. Items and values of maps have the
// path of their list or map.
func visit(path string, s *apiextensions.JSONSchemaProps, change func(string, *apiextensions.JSONSchemaProps)) {
	change(path, s)
	for name, field := range s.Properties {
		below := name
		if path != "" {
			below = path + "." + name
		}
		visit(below, &field, change)
		s.Properties[name] = field
	}
	if s.Items != nil && s.Items.Schema != nil {
		visit(path, s.Items.Schema, change)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		visit(path, s.AdditionalProperties.Schema, change)
	}
}
