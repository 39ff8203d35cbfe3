//go:build e2e

package e2e

import (
	"os/exec"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// namespaced is what an operator of one namespace is installed by.
const namespaced = "config/install-namespaced.yaml"

// A team has an operator of its own, which has no right outside of the team's namespace and its own. The operator of
// all namespaces leaves that namespace to it. See docs/install.md.
func TestNamespacedInstall(t *testing.T) {
	s := beginAlone(t)
	home := outside.Namespace(string(s.Namespace) + "-operator")
	s.leavesItTo(home)
	s.apply(bare("shop", 2, "deletionPolicy: Delete"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT generate_series(1, 100) AS id")
	if policies := s.run("get", "networkpolicies", "-o", "yaml"); !strings.Contains(policies, string(home)) {
		t.Errorf("no NetworkPolicy lets the operator in %s reach the agents:\n%s", home, policies)
	}
	s.patch("shop", `{"postgresql":{"parameters":{"work_mem":"5MB"}}}`)
	s.ready("shop")
	if got := s.ask("shop", "SHOW work_mem"); got != "5MB" {
		t.Errorf("work_mem is %s, want 5MB", got)
	}

	// It can't tell whether the kind goes too, and so keeps the data. Another SampleDB of the name takes it over.
	s.run("delete", "sampledb", "shop", "--timeout="+patience.String())
	owner := s.run("get", "pvc", naming.Claim("shop", 0), "-o", "jsonpath={.metadata.ownerReferences}")
	if owner != "" {
		t.Errorf("the volume still belongs to %s", owner)
	}
	s.apply(bare("shop", 2, "deletionPolicy: Retain"))
	s.condition("shop", v1.ConditionReady, "True", "")
	if n := s.ask("shop", "SELECT count(*) FROM kept"); n != "100" {
		t.Errorf("kept has %s rows, want 100", n)
	}
}

// leavesItTo gives the story's namespace to an operator that works in no other one, and takes it back when the story is
// over.
func (s *story) leavesItTo(home outside.Namespace) {
	s.Helper()
	image := s.operator("get", operator, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	s.Cleanup(func() {
		s.operator("set", "env", operator, "IGNORE_NAMESPACE-")
		s.operatorRuns()
	})
	s.operator("set", "env", operator, "IGNORE_NAMESPACE="+string(s.Namespace))
	s.operatorRuns()

	s.operator("create", "namespace", string(home))
	s.Cleanup(func() { s.operator("delete", "namespace", string(home), "--timeout=3m") })
	s.operator("label", "namespace", string(home), "pod-security.kubernetes.io/enforce=restricted")
	manifest, err := s.manifest(image, namespaced)
	must(s.T, err)
	text := strings.NewReplacer("toban-system", string(home), "toban-databases", string(s.Namespace)).
		Replace(manifest)
	apply := exec.CommandContext(s.ctx, "kubectl", "apply", "--server-side", "-f", "-") // to both namespaces
	apply.Stdin = strings.NewReader(text)
	out, err := apply.CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	s.Cleanup(func() { // while there is an operator for it
		s.run("delete", "myapps,postgresqls,sampledbs", "--all", "--timeout="+patience.String())
		s.hadItsRights(home)
	})
	_, err = home.Kubectl(s.ctx, "rollout", "status", operator, "--timeout="+patience.String())
	must(s.T, err)
}

// hadItsRights fails where the operator of a namespace was refused something.
func (s *story) hadItsRights(home outside.Namespace) {
	s.Helper()
	log, err := home.Kubectl(s.ctx, "logs", operator)
	if err != nil {
		s.Errorf("read the log of the operator in %s: %v", home, err)
	}
	for line := range strings.Lines(log) {
		if strings.Contains(strings.ToLower(line), "forbidden") {
			s.Errorf("a request of the operator in %s was refused: %s", home, line)
		}
	}
	if s.Failed() {
		s.Logf("the log of the operator in %s\n%s", home, log)
	}
}
