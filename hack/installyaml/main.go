// Command installyaml writes config/crds.yaml, config/install.yaml and config/install-namespaced.yaml, all that a
// cluster needs, from the files under config. It only puts them together, in an order in which kubectl apply can create
// them; and for an operator of one namespace it makes Roles of the ClusterRoles.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// watched is the namespace in install-namespaced.yaml that whoever installs it replaces.
const watched = "toban-databases"

// file is one that is written. Its sources are in the order of creation.
type file struct {
	target, heading string
	sources         []source
}

// source is a part of a file, changed by narrow where that is given.
type source struct {
	name   string
	narrow func(text string) (string, error)
}

func as(names ...string) []source {
	var out []source
	for _, name := range names {
		out = append(out, source{name: name})
	}
	return out
}

// files are several, because kubectl delete -f removes all that is in one, and with a
// CustomResourceDefinition or the namespace of the root secret it would remove more than the operator.
var files = []file{
	{
		"config/crds.yaml",
		`# What has to stay while there are databases: the kinds, and the namespace with the operator's root secret.
# Before install.yaml: kubectl apply --server-side -f crds.yaml
# kubectl delete -f crds.yaml deletes every SampleDB, PostgreSQL, MyApp, DatabaseBackup, DatabaseRestore and FaultDrill
# that there is: docs/install.md
`, as(
			"config/manager/namespace.yaml",
			"config/crd/toban.dev_sampledbs.yaml",
			"config/crd/toban.dev_databasebackups.yaml",
			"config/crd/toban.dev_databaserestores.yaml",
			"config/crd/toban.dev_faultdrills.yaml",
			"config/crd/exp.wheel.jp_postgresqls.yaml",
			"config/crd/example.com_myapps.yaml",
		),
	},
	{"config/install.yaml", `# The Toban operator, after crds.yaml: kubectl apply --server-side -f install.yaml
# kubectl delete -f install.yaml removes it; the databases run on: docs/install.md
`, as(
		"config/rbac/own.yaml",
		"config/rbac/operator.yaml",
		"config/rbac/cluster.yaml",
		"config/rbac/users.yaml",
		"config/manager/deployment.yaml",
	)},
	{"config/install-namespaced.yaml", `# The Toban operator for the databases of one namespace, after crds.yaml,
# without a ClusterRole:
# sed s/` + watched + `/MY-NAMESPACE/ install-namespaced.yaml | kubectl apply --server-side -f -
# docs/install.md says what is different, and how it works in several namespaces.
`, []source{
		{name: "config/rbac/own.yaml"},
		{"config/rbac/operator.yaml", toRole},
		{"config/manager/deployment.yaml", toOneNamespace},
	}},
}

// rights labels what has to be in each namespace that the operator watches.
const rights = "  labels: {app.kubernetes.io/component: operator-rights}\n"

// toRole makes of ClusterRoles and their bindings what gives the same in one namespace.
func toRole(text string) (string, error) {
	return replaced(text, []replacement{
		{"\nkind: ClusterRole\n", "\nkind: Role\n", 1},
		{"\nkind: ClusterRoleBinding\n", "\nkind: RoleBinding\n", 1},
		{"kind: ClusterRole,", "kind: Role,", 1},
		{"metadata:\n  name: toban-operator\n", "metadata:\n  name: toban-operator-databases\n  namespace: " + watched +
			"\n" + rights, 2},
		{"name: toban-operator}\nsubjects:", "name: toban-operator-databases}\nsubjects:", 1},
	})
}

// toOneNamespace has the operator watch one namespace.
func toOneNamespace(text string) (string, error) {
	const variables = "          env:\n"
	return replaced(text, []replacement{
		{variables, variables + "            - name: WATCH_NAMESPACE\n              value: " + watched + "\n", 1},
	})
}

// replacement is one that must be found as often as said.
type replacement struct {
	old, new string
	times    int
}

func replaced(text string, all []replacement) (string, error) {
	for _, r := range all {
		if n := strings.Count(text, r.old); n != r.times {
			return "", fmt.Errorf("%q is there %d times and not %d", r.old, n, r.times)
		}
		text = strings.ReplaceAll(text, r.old, r.new)
	}
	return text, nil
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
	for _, s := range f.sources {
		text, err := s.read()
		if err != nil {
			return err
		}
		out.WriteString("---\n" + text + "\n")
	}
	if err := os.WriteFile(f.target, out.Bytes(), 0o644); err != nil { //nolint:gosec // everyone may read it
		return fmt.Errorf("write %s: %w", f.target, err)
	}
	return nil
}

func (s source) read() (string, error) {
	content, err := os.ReadFile(s.name)
	if err != nil {
		return "", fmt.Errorf("read a part (run from the repository's root): %w", err)
	}
	text := strings.TrimPrefix(strings.TrimSpace(string(content)), "---\n")
	if s.narrow == nil {
		return text, nil
	}
	if text, err = s.narrow(text); err != nil {
		return "", fmt.Errorf("change %s for one namespace: %w", s.name, err)
	}
	return text, nil
}
