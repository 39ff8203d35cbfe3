// Command installyaml writes config/install.yaml, all that a cluster needs, from
// the files under config. It only puts them together, in an order in which
// kubectl apply can create them.
package main

import (
	"bytes"
	"fmt"
	"os"
)

// sources are in the order of creation.
var sources = []string{
	"config/manager/namespace.yaml",
	"config/crd/toban.dev_sampledbs.yaml",
	"config/crd/toban.dev_databasebackups.yaml",
	"config/crd/exp.wheel.jp_postgresqls.yaml",
	"config/crd/example.com_myapps.yaml",
	"config/rbac/operator.yaml",
	"config/rbac/users.yaml",
	"config/manager/deployment.yaml",
}

const target = "config/install.yaml"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "installyaml:", err)
		os.Exit(1)
	}
}

func run() error {
	out := bytes.NewBufferString("# The Toban operator: kubectl apply --server-side -f install.yaml\n# Made of the files in config by make generate. Edit those.\n")
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a part (run from the repository's root): %w", err)
		}
		out.WriteString("---\n")
		out.Write(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("---\n")))
		out.WriteByte('\n')
	}
	if err := os.WriteFile(target, out.Bytes(), 0o644); err != nil { //nolint:gosec // everyone may read it
		return fmt.Errorf("write %s: %w", target, err)
	}
	return nil
}
