// Command installyaml writes config/crds.yaml and config/install.yaml, all that a cluster
// needs, from the files under config. It only puts them together, in an order in which
// kubectl apply can create them.
package main

import (
	"bytes"
	"fmt"
	"os"
)

// file is one that is written. Its sources are in the order of creation.
type file struct {
	target, heading string
	sources         []string
}

// files are two, because kubectl delete -f removes all that is in one, and with a
// CustomResourceDefinition or the namespace of the root secret it would remove more than the operator.
var files = []file{
	{
		"config/crds.yaml",
		`# What has to stay while there are databases: the kinds, and the namespace with the operator's root secret.
# Before install.yaml: kubectl apply --server-side -f crds.yaml
# kubectl delete -f crds.yaml deletes every SampleDB, PostgreSQL, MyApp and DatabaseBackup there is: docs/install.md
`, []string{
			"config/manager/namespace.yaml",
			"config/crd/toban.dev_sampledbs.yaml",
			"config/crd/toban.dev_databasebackups.yaml",
			"config/crd/exp.wheel.jp_postgresqls.yaml",
			"config/crd/example.com_myapps.yaml",
		},
	},
	{"config/install.yaml", `# The Toban operator, after crds.yaml: kubectl apply --server-side -f install.yaml
# kubectl delete -f install.yaml removes it; the databases run on: docs/install.md
`, []string{
		"config/rbac/operator.yaml",
		"config/rbac/users.yaml",
		"config/manager/deployment.yaml",
	}},
}

func main() {
	for _, f := range files {
		if err := f.write(); err != nil {
			fmt.Fprintln(os.Stderr, "installyaml:", err)
			os.Exit(1)
		}
	}
}

func (f file) write() error {
	out := bytes.NewBufferString(f.heading + "# Made of the files in config by make generate. Edit those.\n")
	for _, name := range f.sources {
		text, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a part (run from the repository's root): %w", err)
		}
		out.WriteString("---\n")
		out.Write(bytes.TrimPrefix(bytes.TrimSpace(text), []byte("---\n")))
		out.WriteByte('\n')
	}
	if err := os.WriteFile(f.target, out.Bytes(), 0o644); err != nil { //nolint:gosec // everyone may read it
		return fmt.Errorf("write %s: %w", f.target, err)
	}
	return nil
}
