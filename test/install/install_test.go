//go:build cluster

// Package install tries the ways to install the operator, each in a local Kubernetes of its own: the Helm chart, and
// the bundle for OLM. A database's Pods must stay the same from beginning to end. That needs root, and a machine on
// which no cluster is up: hack/owncluster.sh looks for that.
package install

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	root      = "../.."
	namespace = "toban-system"
	database  = "story"
	patience  = 5 * time.Minute
)

// story is one way to install, in a cluster of its own.
type story struct {
	*testing.T
	// work is a folder for what is installed.
	work string
	// tag is that of the operator's image.
	tag string
}

// begin starts a local Kubernetes, with the operator's image and PostgreSQL's in it. It goes with the test.
func begin(t *testing.T) story {
	s := story{T: t, work: t.TempDir()}
	program, err := os.ReadFile(filepath.Join(root, "bin/toban"))
	if err != nil {
		t.Fatal(err)
	}
	s.tag = fmt.Sprintf("%x", sha256.Sum256(program))[:12]
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.try("kubectl", "get", "pods", "--all-namespaces", "-o", "wide"))
		}
		s.must("bin/localkube", "down")
	})
	s.must("bin/localkube", "up")
	s.must("bin/localkube", append([]string{"load"}, strings.Fields(s.must("hack/images.sh"))...)...)
	return s
}

// must runs a program in the root of the repository, and returns what it says.
func (s story) must(name string, args ...string) string {
	s.Helper()
	return s.mustWith("", name, args...)
}

// mustWith is must with an input.
func (s story) mustWith(input, name string, args ...string) string {
	s.Helper()
	said, err := s.run(input, name, args...)
	if err != nil {
		s.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, said)
	}
	return said
}

// try is must for what may fail: it then says why.
func (s story) try(name string, args ...string) string {
	said, err := s.run("", name, args...)
	if err != nil {
		return fmt.Sprintf("%s (%v)", said, err)
	}
	return said
}

func (s story) run(input, name string, args ...string) (string, error) {
	c := exec.CommandContext(s.Context(), name, args...)
	if s.Context().Err() != nil { // what a test cleans up with
		c = exec.Command(name, args...) //nolint:noctx // it is bounded by what it runs
	}
	c.Dir = root
	c.Stdin = strings.NewReader(input)
	var said, complaints bytes.Buffer
	c.Stdout, c.Stderr = &said, &complaints
	if err := c.Run(); err != nil {
		return said.String() + complaints.String(), fmt.Errorf("it ends: %w", err)
	}
	return strings.TrimSpace(said.String()), nil
}

// say tells how far it is.
func (s story) say(what string) { fmt.Println("== " + what) } //nolint:forbidigo // progress, for who waits

// psql runs a command of SQL in the primary of a SampleDB.
func (s story) psql(name, command string) string {
	s.Helper()
	return s.must("bin/toban", "psql", name, "--", "-Atqc", command)
}

// apply makes a SampleDB of one instance. More of its spec may follow.
func (s story) apply(name, more string) {
	s.Helper()
	s.mustWith(fmt.Sprintf(`apiVersion: toban.dev/v1
kind: SampleDB
metadata: {name: %s}
spec: {version: 17, instances: 1, storage: {size: 1Gi}%s}
`, name, more), "kubectl", "apply", "-f", "-")
}

// makeDatabase makes the database with a row, and returns its Pods.
func (s story) makeDatabase() (before string) {
	s.Helper()
	s.apply(database, "")
	s.ready(1)
	s.psql(database, "CREATE TABLE public.kept AS SELECT 1 AS n")
	if before = s.pods(); before == "" {
		s.Fatal("No instance was found of which the Pods could stay the same.")
	}
	return before
}

// ready waits until the database is as its spec wants it, with a number of instances.
func (s story) ready(instances int) {
	s.Helper()
	s.must("kubectl", "wait", "sampledb/"+database, "--timeout=5m",
		fmt.Sprintf("--for=jsonpath={.status.readyInstances}=%d", instances))
	s.isReady(database)
}

func (s story) isReady(name string) {
	s.Helper()
	s.must("kubectl", "wait", "sampledb/"+name, "--for=condition=Ready", "--timeout=5m")
}

// grow wants two instances of the database.
func (s story) grow() {
	s.Helper()
	s.must("kubectl", "patch", "sampledb", database, "--type=merge", `-p={"spec": {"instances": 2}}`)
	s.ready(2)
}

const eachInstance = `-o=jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} ` +
	`{.status.containerStatuses[*].restartCount}{"\n"}{end}`

// pods are the database's instances, each with how often its containers have been started again.
func (s story) pods() string {
	s.Helper()
	return s.must("kubectl", "get", "pods", "-l", "toban.dev/component=instance,toban.dev/sampledb="+database,
		"--sort-by=.metadata.name", eachInstance)
}

// same fails if one of the Pods that were there is another one, or was started again.
func (s story) same(before, what string) {
	s.Helper()
	if now := s.pods(); !strings.HasPrefix(now+"\n", before+"\n") {
		s.Fatalf("%s replaced or restarted instances. Before:\n%s\nNow:\n%s", what, before, now)
	}
}

// uninstalled says that the root secret stays when the operator goes, and that the database takes writes.
func (s story) uninstalled(before, what string) {
	s.Helper()
	s.must("kubectl", "-n", namespace, "get", "secret", "toban-operator")
	s.psql(database, "INSERT INTO public.kept VALUES (2)")
	s.same(before, what)
}

// whole says that no row is missing.
func (s story) whole() {
	s.Helper()
	if rows := s.psql(database, "SELECT count(*) FROM public.kept"); rows != "2" {
		s.Fatalf("Rows are missing: of 2 there are %s.", rows)
	}
}

// until waits for a condition.
func (s story) until(what string, is func() bool) {
	s.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(time.Second) {
		if time.Now().After(end) {
			s.Fatalf("It is not so after %s: %s", patience, what)
		}
	}
}

// names are the keys of a map in their order.
func names[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
