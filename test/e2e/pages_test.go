//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toban.dev/test/docs/page"
)

// told is a page whose commands are typed, in its order, as they stand there.
type told struct {
	name string // that of its file, without the ending
	// manifests says that the page has its reader apply the manifests that it shows.
	manifests bool
	// changes is the object of these manifests that the page then changes: by the parts of a spec that it shows.
	changes string
	// before is what a reader has who comes to a block, by a text that the block has; "" is for the page.
	before map[string]func(*shell)
}

// What a reader of the first pages types does what the pages say. The pages that take longer are in
// TestLongTheDocumentationsCommands.
func TestTheDocumentationsCommands(t *testing.T) {
	t.Parallel()
	for _, p := range []told{
		{name: "install", before: map[string]func(*shell){"": (*shell).hasPushed}},
		{name: "sampledb", before: map[string]func(*shell){"psql mydb": func(sh *shell) {
			sh.apply(bare("mydb", 1))
			sh.ready("mydb")
			sh.sql("mydb", "CREATE TABLE logs (line text)")
		}}},
		{name: "postgresql", manifests: true, before: map[string]func(*shell){"env PGPASSWORD": func(sh *shell) {
			sh.waits("pg/foodb")
			sh.eventually(articlePsql+"'SELECT 1'", "1 row") // kube-proxy lets clients in
		}}},
		{name: "connections", manifests: true, changes: "sampledb/example-database"},
	} {
		t.Run(p.name, p.isTyped)
	}
}

// The same with what takes longer: an application and its updates, an encrypted archive, a database that comes back.
func TestLongTheDocumentationsCommands(t *testing.T) {
	t.Parallel()
	for _, p := range []told{
		{name: "myapp", manifests: true, before: map[string]func(*shell){"": func(sh *shell) {
			// nginx is made for root.
			sh.run("label", "namespace", string(sh.Namespace), "--overwrite",
				"pod-security.kubernetes.io/enforce=baseline")
		}}},
		{name: "backup"},
		{name: "restore", before: map[string]func(*shell){"kubectl toban undelete main": func(sh *shell) {
			sh.hasAnEncryptedArchive()
			sh.types("kubectl delete sampledb main --timeout=5m")
		}}},
		{name: "store", before: map[string]func(*shell){"archive-store": (*shell).hasAnEncryptedArchive}},
	} {
		t.Run(p.name, p.isTyped)
	}
}

// isTyped types all of a page. What is not typed says why, in the page.
func (p told) isTyped(t *testing.T) {
	sh := begin(t).shell()
	text, err := os.ReadFile("../../docs/" + p.name + ".md")
	must(t, err)
	blocks, err := page.Blocks(string(text))
	must(t, err)
	if prepare := p.before[""]; prepare != nil {
		prepare(sh)
	}
	typed, left := 0, 0
	for i, b := range blocks {
		switch {
		case b.NotRun != "":
			left++
			t.Logf("docs/%s.md:%d is not run: %s", p.name, b.Line, b.NotRun)
		case len(b.Steps()) > 0:
			p.comesTo(sh, b)
			for _, step := range b.Steps() {
				if step.Output == "" {
					step.Output = shownAfter(b, blocks[i+1:])
				}
				sh.follows(fmt.Sprintf("docs/%s.md:%d", p.name, b.Line), step)
			}
			typed++
		case p.manifests && b.Language == "yaml" && strings.HasPrefix(b.Text, "apiVersion:"):
			sh.appliesFrom(b)
		case p.changes != "" && b.Language == "yaml" && strings.HasPrefix(b.Text, "spec:"):
			sh.run("patch", p.changes, "--type=merge", "-p", b.Text)
			sh.waits(p.changes)
		}
	}
	t.Logf("%d blocks of %s were typed, %d were not", typed, p.name, left)
	if typed == 0 && !p.manifests {
		t.Errorf("nothing of %s was typed", p.name)
	}
}

// comesTo prepares what a reader has who comes to a block.
func (p told) comesTo(sh *shell, b page.Block) {
	for text, prepare := range p.before {
		if text != "" && strings.Contains(b.Text, text) {
			prepare(sh)
		}
	}
}

// shownAfter is the answer that a page shows in the block right after a command.
func shownAfter(b page.Block, more []page.Block) string {
	if len(more) == 0 || len(more[0].Steps()) > 0 || more[0].Language != "" {
		return ""
	}
	// A sentence may stand between them.
	if between := more[0].Line - b.Line - strings.Count(b.Text, "\n"); between > 5 {
		return ""
	}
	return more[0].Text
}

// follows types a step; each of its commands must succeed, and tables must have the columns that the page shows.
func (sh *shell) follows(where string, step page.Step) {
	sh.Helper()
	c := sh.bash("-e", "-o", "pipefail", "-c", step.Command)
	c.Stdin = strings.NewReader(step.Input)
	if regexp.MustCompile(`\b(make|hack/|bin/|config/|\.local/)`).MatchString(step.Command) {
		c.Dir = "../.." // the reader's copy of the repository
	}
	out, err := c.CombinedOutput()
	if err != nil {
		sh.Fatalf("%s: %s%v:\n%s", where, step.Command, err, out)
	}
	if step.Output != "" {
		sh.Logf("%s prints\n%s", where, out)
	}
	heads := page.Heads(string(out))
	for _, head := range page.Heads(step.Output) {
		if !slices.Contains(heads, head) {
			sh.Errorf("%s: %sprints no table with %s, but\n%s", where, step.Command, head, out)
		}
	}
}

// appliesFrom applies the manifests of a block, and waits for those that have something to be ready for.
func (sh *shell) appliesFrom(b page.Block) {
	sh.Helper()
	sh.apply(b.Text)
	for _, m := range regexp.MustCompile(`kind: (SampleDB|PostgreSQL|MyApp)\nmetadata:\s*\{?name: (\S+?)\}?\n`).
		FindAllStringSubmatch(b.Text, -1) {
		sh.waits(strings.ToLower(m[1]) + "/" + m[2])
	}
}

// waits waits until an object is ready.
func (sh *shell) waits(name string) {
	sh.Helper()
	sh.until(func(context.Context) error {
		_, err := sh.try("kubectl wait " + name + " --for=condition=Ready --timeout=30s")
		return err
	})
}

// hasPushed writes what make push writes: the manifest with the image that the cluster has.
func (sh *shell) hasPushed() {
	sh.Helper()
	image, err := system.Kubectl(sh.ctx, "get", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	must(sh.T, err)
	root, err := filepath.Abs("../..")
	must(sh.T, err)
	sh.types("cd " + root + " && go run ./hack/release manifest " + image + " >.local/install.yaml")
}

// hasAnEncryptedArchive makes the database that the pages of restores and stores are about.
func (sh *shell) hasAnEncryptedArchive() {
	sh.Helper()
	sh.types("age-keygen -o age.key && kubectl create secret generic archive-key --from-file=age.key")
	recipient := strings.TrimSpace(sh.types("age-keygen -y age.key"))
	sh.apply(sampleDB("main", 1, "backup: {encryption: {recipient: "+recipient+", key: {name: archive-key}}}"))
	sh.ready("main")
}
