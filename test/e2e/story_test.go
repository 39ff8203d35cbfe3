//go:build e2e

// Package e2e has the stories of a user on a real cluster, one file each, judged
// from outside: with kubectl and with SQL through the Services. hack/e2e.sh runs
// them on the cluster of make up.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// patience is how long a change may take: far longer than it should, because the
// stories share a small machine.
const patience = 6 * time.Minute

// story is a test in a namespace of its own, which takes only Pods of the
// strictest Pod Security Standard.
type story struct {
	*testing.T
	outside.Namespace
	ctx context.Context
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := leavings.wait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// leavings are the namespaces of stories that are over. They go while other stories run, and all have to.
var leavings goings

type goings struct {
	group  sync.WaitGroup
	mu     sync.Mutex
	errors []error
}

// leave deletes a namespace, and waits until it is gone.
func leave(name outside.Namespace) error {
	if _, err := name.Kubectl(context.Background(), "delete", "namespace", string(name), "--timeout=3m"); err != nil {
		return fmt.Errorf("the namespace %s does not go: %w", name, err)
	}
	return nil
}

// add lets a namespace go, and does not wait.
func (g *goings) add(name outside.Namespace) {
	g.group.Go(func() {
		err := leave(name)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.errors = append(g.errors, err)
	})
}

// wait waits until all have gone.
func (g *goings) wait() error {
	g.group.Wait()
	return errors.Join(g.errors...)
}

// begin begins a story that others may run beside. With TOBAN_E2E_NAMESPACED, its namespace has an operator of its own,
// with no right elsewhere; then one story runs at a time.
func begin(t *testing.T) *story {
	t.Helper()
	t.Parallel()
	s := inNamespace(t, nameOf(t), leavings.add)
	if ofOneNamespace() {
		s.leavesItTo(outside.Namespace(string(s.Namespace) + "-operator"))
	}
	return s
}

// ofOneNamespace says that each story has an operator of its own namespace.
func ofOneNamespace() bool { return os.Getenv("TOBAN_E2E_NAMESPACED") != "" }

// beginAlone begins a story that others must not run beside, because it takes the operator away, or looks at what is
// only so on a machine that is at rest: go test resumes the parallel ones when all others are over. It makes the
// namespace. When the story is over, the namespace goes with all that is in it; where the story failed, what could tell
// why is printed before.
func beginAlone(t *testing.T) *story {
	t.Helper()
	return inNamespace(t, nameOf(t), func(name outside.Namespace) {
		if err := leave(name); err != nil {
			t.Error(err)
		}
	})
}

// nameOf is a namespace for a story.
func nameOf(t *testing.T) string {
	name := strings.ToLower(strings.Trim(strings.NewReplacer("Test", "", "/", "-", "_", "-").Replace(t.Name()), "-"))
	return fmt.Sprintf("e2e-%.40s-%x", name, time.Now().UnixMilli()&0xffffff)
}

// inNamespace is a story in a namespace that it makes. When it is over, over lets that go.
func inNamespace(t *testing.T, name string, over func(outside.Namespace)) *story {
	t.Helper()
	s := &story{T: t, Namespace: outside.Namespace(name), ctx: context.WithoutCancel(t.Context())}
	s.makeNamespace()
	t.Cleanup(func() {
		if t.Failed() {
			s.tell()
		}
		over(s.Namespace)
	})
	return s
}

// makeNamespace makes the namespace of the story.
func (s *story) makeNamespace() {
	s.Helper()
	s.apply(fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels: {pod-security.kubernetes.io/enforce: restricted}
`, s.Namespace))
}

// tell prints what is in the namespace.
func (s *story) tell() {
	for _, args := range [][]string{
		{"get", "sampledb,postgresql,myapp,statefulset,deployment,pods,jobs,pvc,services", "-o", "wide"},
		{"get", "sampledb,postgresql,myapp,faultdrill", "-o", "yaml"},
		{"describe", "pods"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "--selector=" + naming.LabelSampleDB, "--all-containers", "--prefix", "--tail=400"},
		{"logs", "--selector=" + naming.LabelMyApp, "--prefix", "--tail=30"},
	} {
		out, err := s.Kubectl(s.ctx, args...)
		s.Logf("what is left: kubectl %s (%v)\n%s", strings.Join(args, " "), err, out)
	}
	out, _ := system.Kubectl(s.ctx, "logs", operator, "--tail=60")
	s.Logf("what is left: the operator's log\n%s", out)
}

// must ends the story where there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run is kubectl that must succeed.
func (s *story) run(args ...string) string {
	s.Helper()
	out, err := s.Kubectl(s.ctx, args...)
	must(s.T, err)
	return out
}

// toban is kubectl toban that must succeed.
func (s *story) toban(args ...string) string {
	s.Helper()
	out, err := s.Toban(s.ctx, args...)
	must(s.T, err)
	return out
}

// apply is kubectl apply that must succeed.
func (s *story) apply(manifests string) {
	s.Helper()
	must(s.T, s.Apply(s.ctx, manifests))
}

// patch changes a SampleDB, with a JSON merge patch of its spec.
func (s *story) patch(name, spec string) {
	s.Helper()
	s.run("patch", "sampledb", name, "--type=merge", "-p", `{"spec":`+spec+`}`)
}

// until waits for something.
func (s *story) until(look func(context.Context) error) {
	s.Helper()
	must(s.T, outside.Until(s.ctx, patience, look))
}

// condition waits for a condition of a SampleDB and returns its message.
func (s *story) condition(name, kind, status, reason string) string {
	s.Helper()
	message := ""
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		for _, c := range db.Status.Conditions {
			if c.Type == kind {
				message = c.Message
			}
		}
		return outside.Condition(db, kind, status, reason)
	})
	return message
}

// ready waits until a SampleDB is ready with the spec as it is, and its Service lets clients in: kube-proxy writes its
// rules about once a second (KubeProxyConfiguration, iptables.minSyncPeriod), after the endpoint was made.
func (s *story) ready(name string) v1.SampleDB {
	s.Helper()
	s.condition(name, v1.ConditionReady, "True", "")
	access := s.access(name, naming.ReadWriteService(name))
	s.until(func(ctx context.Context) error {
		_, err := access.Ask(ctx, "SELECT 1")
		return err
	})
	var db v1.SampleDB
	s.until(func(ctx context.Context) (err error) { // on a busy machine the primary may be slow to answer for a moment
		if db, err = s.SampleDB(ctx, name); err == nil && db.Status.Primary == "" {
			err = fmt.Errorf("the status of %s names no primary", name)
		}
		return err
	})
	return db
}

// access is the way through a Service. While NAME-app is made anew, there is none for a moment.
func (s *story) access(name, service string) (a outside.Access) {
	s.Helper()
	s.until(func(ctx context.Context) (err error) {
		a, err = s.Access(ctx, name, service)
		return err
	})
	return a
}

// sql runs statements through the read-write Service.
func (s *story) sql(name, statements string) {
	s.Helper()
	must(s.T, s.access(name, naming.ReadWriteService(name)).Patient().Do(s.ctx, statements))
}

// ask asks a query through the read-write Service for its one value.
func (s *story) ask(name, query string) string {
	s.Helper()
	answer, err := s.access(name, naming.ReadWriteService(name)).Patient().Ask(s.ctx, query)
	must(s.T, err)
	return answer
}

// inside asks PostgreSQL in a Pod, as superuser, as a person with kubectl can.
func (s *story) inside(pod, query string) (string, error) {
	out, err := s.Kubectl(s.ctx, "exec", pod, "--", "psql", "-U", "postgres", "-XAtc", query)
	return strings.TrimSpace(out), err
}

// sampleDB is a manifest with the least that has to be said, and more lines of spec.
func sampleDB(name string, instances int, more ...string) string {
	spec := append([]string{"version: 17", fmt.Sprintf("instances: %d", instances), "storage: {size: 512Mi}"}, more...)
	return "apiVersion: toban.dev/v1\nkind: SampleDB\nmetadata: {name: " + name +
		"}\nspec:\n" + indent(strings.Join(spec, "\n"))
}

// bare is one without backups, for stories that are about something else: without it a SampleDB has an archive on a
// volume of its own, and Pods that take a first backup and look at the archive.
func bare(name string, instances int, more ...string) string {
	return sampleDB(name, instances, append([]string{"backup: {none: true}"}, more...)...)
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n" }
