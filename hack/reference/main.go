// Command reference writes docs/reference from the code: each kind's fields from
// its CRD, and the conditions with their reasons from the comments in each package of api. What to do about them it
// writes for the web console too.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func run() error {
	crds, err := filepath.Glob("config/crd/*.yaml")
	if err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	for _, path := range crds {
		kind, page, err := kindPage(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := write(strings.ToLower(kind)+".md", page); err != nil {
			return err
		}
	}
	sources, err := filepath.Glob("api/*/v1/conditions.go")
	if err != nil {
		return fmt.Errorf("list the conditions: %w", err)
	}
	for _, path := range append([]string{"api/v1/conditions.go"}, sources...) {
		page, err := conditionsPage(path)
		if err != nil {
			return err
		}
		if err := write(conditionsName(filepath.Base(filepath.Dir(filepath.Dir(path)))), page); err != nil {
			return err
		}
	}
	return writeTodo("api/v1/conditions.go")
}

// conditionsName is the page of the conditions of a kind, or of those of a folder below api: a kind that has a package
// of its own has a page of its own.
func conditionsName(kind string) string {
	if _, err := os.Stat(filepath.Join("api", strings.ToLower(kind), "v1", "conditions.go")); err != nil {
		return "conditions.md"
	}
	return strings.ToLower(kind) + "-conditions.md"
}

func write(name, page string) error {
	const folder = "docs/reference"
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), //nolint:gosec // a document
		[]byte(fill(page)), 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
