// Command reference writes docs/reference from the code: each kind's fields from
// its CRD, and the conditions with their reasons from the comments in api/v1.
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
	page, err := conditionsPage("api/v1/conditions.go")
	if err != nil {
		return err
	}
	return write("conditions.md", page)
}

func write(name, page string) error {
	const folder = "docs/reference"
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(page), 0o644); err != nil { //nolint:gosec // a document
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
