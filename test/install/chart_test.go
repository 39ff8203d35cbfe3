//go:build cluster

package install

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The Helm chart is installed, upgraded, uninstalled and installed again; then there are two shards with several
// SampleDBs, of which one loses its operator, and one shard again. The databases run on.
func TestTheHelmChart(t *testing.T) {
	s := charted{begin(t), "", ""}
	s.helm, s.chart = s.must("hack/tool.sh", "helm"), filepath.Join(s.work, "toban")
	s.must("go", "run", "./hack/chart", "-out", s.chart, "-version", "v0.0.0", "-repository", "toban")

	s.say("install, and a database")
	s.install()
	before := s.makeDatabase()

	s.say("upgrade with other values")
	s.release("upgrade", "--reuse-values", "--set", "replicas=2,podAnnotations.story=changed")
	if n := s.must("kubectl", "-n", namespace, "get", "deployment", "toban-operator",
		"-o=jsonpath={.status.readyReplicas}"); n != "2" {
		t.Errorf("The upgrade gave no second operator, but %s in all.", n)
	}
	s.same(before, "An upgrade of the chart")

	s.say("uninstall")
	s.must(s.helm, "uninstall", "toban", "--namespace", namespace, "--wait")
	s.uninstalled(before, "Uninstalling the chart")

	s.say("install again")
	s.install()
	s.grow()
	s.same(before, "Installing the chart again")
	s.whole()

	s.shards(before)
}

// charted is a story with the chart.
type charted struct {
	story
	helm, chart string
}

func (s charted) install() {
	s.Helper()
	s.release("install", "--create-namespace", "--set", "image.repository=toban,image.digest=,image.tag="+s.tag)
}

// release installs or upgrades the release.
func (s charted) release(verb string, more ...string) {
	s.Helper()
	s.must(s.helm, append([]string{
		verb, "toban", s.chart, "--namespace", namespace, "--wait", "--timeout", "3m",
	}, more...)...)
}

// shards has two shards with two databases of each, of which one loses its operator, then one shard, and then none.
func (s charted) shards(before string) {
	s.say("two shards, and two databases of each")
	s.release("upgrade", "--reuse-values", "--set", "shards=2")
	sharded := s.ofBothShards()
	for _, name := range names(sharded) {
		s.apply(name, ", backup: {none: true}")
	}
	for _, name := range names(sharded) {
		s.isReady(name)
		s.actsOn(name, "5MB")
		s.onlyTells(name, sharded[name])
	}
	all := s.instances()
	if n := strings.Count(all, "\n") + 1; n < 6 {
		s.Fatalf("There are %d instances, which are too few:\n%s", n, all)
	}
	s.same(before, "Two shards")

	s.say("the operator of one shard is lost")
	s.must("kubectl", "-n", namespace, "delete", "pod", "-l", "toban.dev/shard=1", "--wait=false")
	for _, name := range names(sharded) {
		s.psql(name, "CREATE TABLE public.kept AS SELECT 1 AS n")
	}
	s.must("kubectl", "-n", namespace, "rollout", "status", "deployment/toban-operator-1", "--timeout=3m")
	s.haveAll(sharded, "6MB")
	s.stays(all, "The loss of an operator")

	s.say("one shard again")
	s.release("upgrade", "--reuse-values", "--set", "shards=1")
	if left := s.must("kubectl", "-n", namespace, "get", "deployments", "-o", "name"); left !=
		"deployment.apps/toban-operator" {
		s.Errorf("With one shard there are the Deployments:\n%s", left)
	}
	s.haveAll(sharded, "7MB")
	s.stays(all, "One shard again")

	s.say("uninstall")
	s.must(s.helm, "uninstall", "toban", "--namespace", namespace, "--wait")
	for _, name := range names(sharded) {
		if n := s.psql(name, "INSERT INTO public.kept VALUES (2) RETURNING n"); n != "2" {
			s.Errorf("%s takes no writes, but says %q.", name, n)
		}
	}
	s.stays(all, "Uninstalling all shards")
}

// ofBothShards are names of SampleDBs, two of each of two shards, with which they are of: rule S1 of docs/scale.md.
func (s charted) ofBothShards() map[string]int {
	s.Helper()
	sharded, have := map[string]int{}, [2]int{}
	for letter := 'a'; letter <= 'z'; letter++ {
		name := "sharded-" + string(letter)
		sum := sha256.Sum256([]byte("default/" + name))
		if shard := int(sum[7]) % 2; have[shard] < 2 {
			sharded[name] = shard
			have[shard]++
		}
	}
	if len(sharded) != 4 {
		s.Fatalf("Of these names there are for two shards: %v", sharded)
	}
	return sharded
}

// actsOn changes a parameter of a SampleDB, and waits until its server has it.
func (s charted) actsOn(name, value string) {
	s.Helper()
	s.must("kubectl", "patch", "sampledb", name, "--type=merge",
		`-p={"spec": {"postgresql": {"parameters": {"work_mem": "`+value+`"}}}}`)
	s.until(name+" has its work_mem of "+value, func() bool { return s.psql(name, "SHOW work_mem") == value })
}

func (s charted) haveAll(sharded map[string]int, value string) {
	s.Helper()
	for _, name := range names(sharded) {
		s.actsOn(name, value)
	}
}

// onlyTells says that events of a SampleDB are told by the operator of its shard alone.
func (s charted) onlyTells(name string, shard int) {
	s.Helper()
	told := strings.Fields(s.must("kubectl", "get", "events", "--field-selector",
		"involvedObject.kind=SampleDB,involvedObject.name="+name,
		`-o=jsonpath={range .items[*]}{.reportingInstance}{"\n"}{end}`))
	slices.Sort(told)
	told = slices.Compact(told)
	var operators []string
	for pod := range strings.FieldsSeq(s.must("kubectl", "-n", namespace, "get", "pods", "-l",
		"app.kubernetes.io/component=operator", `-o=jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`)) {
		if strings.HasPrefix(pod, "toban-operator-1-") == (shard == 1) {
			operators = append(operators, "toban-"+pod)
		}
	}
	if !slices.Equal(told, operators) {
		s.Errorf("Of %s, of shard %d, events are told by %q, and not by %q alone.", name, shard, told, operators)
	}
}

// instances are those of all SampleDBs, each with how often its containers have been started again.
func (s charted) instances() string {
	s.Helper()
	return s.must("kubectl", "get", "pods", "-l", "toban.dev/component=instance", "--sort-by=.metadata.name",
		eachInstance)
}

// stays fails if an instance of any SampleDB is another one than before, or was started again.
func (s charted) stays(all, what string) {
	s.Helper()
	if now := s.instances(); now != all {
		s.Fatalf("%s replaced or restarted instances. Before:\n%s\nNow:\n%s", what, all, now)
	}
}
