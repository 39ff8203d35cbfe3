// Command guard writes config/examples/guard.yaml, an admission policy that limits which Secrets, images and
// annotations the objects of our kinds may name. It reads the fields from the CRDs, so that a new field is guarded from
// the beginning: what looks as if it named one of these is guarded, unless it is among the exceptions.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"toban.dev/hack/repeated"
)

const (
	definitions = "config/crd/*.yaml"
	target      = "config/examples/guard.yaml"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run() error {
	kinds, err := read(definitions)
	if err != nil {
		return err
	}
	text, err := policy(kinds)
	if err != nil {
		return err
	}
	if err := os.WriteFile(target, []byte(text), 0o644); err != nil { //nolint:gosec // everyone may read it
		return fmt.Errorf("write the policy: %w", err)
	}
	return nil
}

// kind is what the policy has to know of a CRD.
type kind struct {
	group, version, plural string
	fields                 []field
}

// read reads the kinds of CRDs with the fields of their specs. A status has none that a user writes.
func read(pattern string) ([]kind, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("list the CRDs: %w", err)
	}
	var kinds []kind
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CRD: %w", err)
		}
		var crd apiextensions.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("understand %s: %w", file, err)
		}
		for _, version := range crd.Spec.Versions {
			repeated.Restore(version.Schema.OpenAPIV3Schema)
			kinds = append(kinds, kind{crd.Spec.Group, version.Name, crd.Spec.Names.Plural,
				fieldsOf(version.Schema.OpenAPIV3Schema)})
		}
	}
	return kinds, nil
}
