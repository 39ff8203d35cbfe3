package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write the pages anew")

const people = `# The command kubectl toban

This page has every command for people, with its options, as ` + "`kubectl toban COMMAND --help`" + ` shows them. The
commands read the status of objects and write what the operator should do; they do nothing that kubectl can't do too.

` + "`make build`" + ` makes the program ` + "`bin/toban`" + `. Under the name ` + "`kubectl-toban`" + ` on the ` +
	"`PATH`" + ` it is a plugin of kubectl.
` + "`make up`" + ` puts it there for the local cluster.
`

const operator = `# The operator's options

This page has the options of ` + "`toban operator`" + `, the process in the operator's Deployment. In short: the
defaults are right for ` + "`config/install.yaml`" + `. To change one, add it to ` + "`command`" + ` of the Deployment
` + "`toban-operator`" + `, for instance with a patch of Kustomize.
`

// The pages of the commands have what the program says of itself.
func TestTheReferenceOfTheCommands(t *testing.T) {
	for _, name := range []string{"POD_NAMESPACE", "OPERATOR_IMAGE", "POD_IP", "KUBECONFIG"} {
		t.Setenv(name, "") // they are defaults of options
	}
	plugin := command("kubectl-toban")
	var page strings.Builder
	page.WriteString(people)
	for _, c := range plugin.Commands() {
		says := help(t, command("kubectl-toban"), c.Name())
		fmt.Fprintf(&page, "\n## kubectl toban %s\n\n```\n%s```\n", c.Name(), says)
		for _, below := range c.Commands() {
			says := help(t, command("kubectl-toban"), c.Name(), below.Name())
			fmt.Fprintf(&page, "\n## kubectl toban %s %s\n\n```\n%s```\n", c.Name(), below.Name(), says)
		}
	}
	same(t, "kubectl-toban.md", page.String())
	same(t, "operator.md", operator+"\n```\n"+help(t, command("toban"), "operator")+"```\n")
}

// help is what a command answers to --help.
func help(t *testing.T, root *cobra.Command, words ...string) string {
	t.Helper()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(words, "--help"))
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func same(t *testing.T, name, page string) {
	t.Helper()
	path := "../../docs/reference/" + name
	page = "<!-- Written by make generate from internal/cli. Don't edit it. -->\n\n" + page
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(path); err != nil || string(have) != page {
		t.Errorf("docs/reference/%s is not what the program says of itself; make generate writes it (%v)", name, err)
	}
}
