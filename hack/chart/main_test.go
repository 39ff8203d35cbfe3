package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	repository = "registry.example.com/team/toban"
	digest     = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	root       = "../.."
)

// made writes a chart as a release has it.
func made(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "toban")
	if err := write(root+"/config", out, release{"0.1.0", repository, digest}); err != nil {
		t.Fatal(err)
	}
	return out
}

// tool is the path of a program of tools.
func tool(t *testing.T, name string) string {
	t.Helper()
	cmd := exec.Command(root+"/hack/tool.sh", name)
	cmd.Stderr = os.Stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(path))
}

// rendered is what Helm makes of a chart in the namespace toban-system.
func rendered(t *testing.T, chart string, arguments ...string) ([]byte, error) {
	t.Helper()
	cmd := exec.Command(tool(t, "helm"), append([]string{
		"template", "toban", chart, "--namespace", "toban-system", "--kube-version", "1.32.0",
	}, arguments...)...)
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Log(said.String())
	}
	return out, err
}

// objects are those of a manifest, by kind, namespace and name.
func objects(t *testing.T, text []byte) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, part := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(part), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, part)
		}
		if o == nil {
			continue
		}
		meta, ok := o["metadata"].(map[string]any)
		if !ok {
			t.Fatalf("an object has no metadata:\n%s", part)
		}
		namespace, _ := meta["namespace"].(string)
		name, _ := meta["name"].(string)
		kind, _ := o["kind"].(string)
		all[strings.Join([]string{kind, namespace, name}, " ")] = o
	}
	return all
}

// manifest is a file of config with the image of the release.
func manifest(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", name))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.ReplaceAll(string(text), image, repository+"@"+digest))
}

func compare(t *testing.T, got, want map[string]any) {
	t.Helper()
	for name, object := range want {
		if !reflect.DeepEqual(got[name], object) {
			t.Errorf("%s is\n%v, want\n%v", name, got[name], object)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is too much", name)
		}
	}
}

func TestTheChartInstallsWhatTheManifestsInstall(t *testing.T) {
	chart := made(t)
	for name, arguments := range map[string][]string{
		"install.yaml":            nil,
		"install-namespaced.yaml": {"--set", "watchNamespaces={toban-databases}"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rendered(t, chart, arguments...)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, objects(t, out), objects(t, manifest(t, name)))
		})
	}
}

func TestTheBaseOfKustomizeHasWhatTheManifestHas(t *testing.T) {
	out, err := exec.Command(tool(t, "kustomize"), "build", root+"/config").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(root + "/config/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, objects(t, out), objects(t, text))
}

// The Deployment of the first shard is that of an operator alone, but for its options: going from one to several
// changes nothing of it that Kubernetes refuses to change. Each shard has one Deployment, and all else is there once.
func TestEachShardHasADeployment(t *testing.T) {
	chart := made(t)
	out, err := rendered(t, chart, "--set", "shards=3")
	if err != nil {
		t.Fatal(err)
	}
	got, want := objects(t, out), objects(t, manifest(t, "install.yaml"))
	const first = "Deployment toban-system toban-operator"
	selectors := map[string]bool{}
	for shard, name := range []string{first, first + "-1", first + "-2"} {
		text, err := yaml.Marshal(got[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, option := range []string{"--shards=3", fmt.Sprintf("--shard=%d", shard)} {
			if !strings.Contains(string(text), option) {
				t.Errorf("%s has no option %s:\n%s", name, option, text)
			}
		}
		var d struct {
			Spec struct{ Selector map[string]any }
		}
		if err := yaml.Unmarshal(text, &d); err != nil {
			t.Fatal(err)
		}
		if was := fmt.Sprint(d.Spec.Selector); selectors[was] {
			t.Errorf("%s selects what another one selects: %s", name, was)
		} else {
			selectors[was] = true
		}
		delete(got, name)
	}
	delete(want, first)
	compare(t, got, want)
}

// Helm deletes no object of crds/, and with a kind its databases would go.
func TestTheKindsAreNoObjectsOfTheRelease(t *testing.T) {
	chart := made(t)
	out, err := rendered(t, chart, "--include-crds")
	if err != nil {
		t.Fatal(err)
	}
	without, err := rendered(t, chart)
	if err != nil {
		t.Fatal(err)
	}
	all, few := objects(t, out), objects(t, without)
	for name := range objects(t, manifest(t, "crds.yaml")) {
		switch kind, _, _ := strings.Cut(name, " "); {
		case few[name] != nil:
			t.Errorf("helm uninstall would delete %s", name)
		case kind == "CustomResourceDefinition" && all[name] == nil:
			t.Errorf("the chart lacks %s", name)
		}
	}
}

func TestValuesGoWhereTheyBelong(t *testing.T) {
	chart := made(t)
	for name, c := range map[string]struct {
		set  string
		want []string
	}{
		"replicas": {"replicas=2", []string{"replicas: 2"}},
		"a tag": {"image.digest=,image.tag=v9",
			[]string{"image: \"" + repository + ":v9\"", "value: \"" + repository + ":v9\""}},
		"Pods":     {"nodeSelector.disk=fast,podAnnotations.a=b", []string{"disk: fast", "        a: b"}},
		"taints":   {"tolerations[0].operator=Exists", []string{"operator: Exists"}},
		"priority": {"priorityClassName=high", []string{"priorityClassName: high"}},
		"secrets":  {"image.pullSecrets[0].name=mine", []string{"imagePullSecrets:\n        - name: mine"}},
		"memory":   {"goMemoryLimit=1GiB", []string{"name: GOMEMLIMIT, value: \"1GiB\""}},
		"options":  {"options={--debug}", []string{"args:\n            - --debug"}},
		"shards": {"shards=2,options={--debug}", []string{
			"args:\n            - --debug\n            - --shards=2\n            - --shard=0\n",
			"- --shards=2\n            - --shard=1\n", "name: toban-operator-1\n",
			"      toban.dev/shard: \"1\"\n  template:", "        toban.dev/shard: \"1\"\n      annotations:",
		}},
		"ignored": {"ignoreNamespaces={a,b}", []string{"IGNORE_NAMESPACE\n              value: \"a,b\""}},
		"watched": {"watchNamespaces={a,b}",
			[]string{"WATCH_NAMESPACE\n              value: \"a,b\"", "namespace: a\n", "namespace: b\n"}},
		"both scopes": {"watchNamespaces={a},clusterRoles=true",
			[]string{"name: toban-operator-cluster", "kind: Role\n"}},
		"monitors": {"monitoring.monitors=true,monitoring.labels.release=mine",
			[]string{"kind: PodMonitor", "release: mine", "kind: ServiceMonitor"}},
		"alerts": {"monitoring.alerts=true", []string{"kind: PrometheusRule", "$labels.sampledb"}},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := rendered(t, chart, "--set", c.set)
			if err != nil {
				t.Fatal(err)
			}
			objects(t, out) // each of them is YAML
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("there is no %q in it", want)
				}
			}
		})
	}
}

func TestTheSchemaRefusesBadValues(t *testing.T) {
	chart := made(t)
	for name, set := range map[string]string{
		"a value that there is not":    "replica=2",
		"a negative number":            "replicas=-1",
		"no operator at all":           "shards=0",
		"more shards than leases":      "shards=17",
		"a digest that is none":        "image.digest=latest",
		"a policy that there is not":   "image.pullPolicy=Sometimes",
		"a namespace with a capital":   "watchNamespaces={Team}",
		"resources of no container":    "resources.wishes.cpu=1",
		"an option without its lines":  "options={debug}",
		"a size that Go does not read": "goMemoryLimit=1Gi",
		"an image without any name":    "image.digest=,image.tag=",
	} {
		if _, err := rendered(t, chart, "--set", set); err == nil {
			t.Errorf("%s (%s) is taken", name, set)
		}
	}
}

func TestHelmFindsNoFaultInTheChart(t *testing.T) {
	out, err := exec.Command(tool(t, "helm"), "lint", "--strict", "--kube-version", "1.32.0", made(t)).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Each value has a comment above it, and is in the schema.
func TestEachValueIsDocumented(t *testing.T) {
	text, err := own.ReadFile("files/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		documented := strings.HasPrefix(strings.TrimSpace(before), "#")
		within := regexp.MustCompile(`^ +(cpu|memory|requests|limits):`).MatchString(line)
		if regexp.MustCompile(`^ *\w+:`).MatchString(line) && !documented && !within {
			t.Errorf("no comment says what %q is for", line)
		}
		before = line
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	raw, err := own.ReadFile("files/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	for name := range values {
		if schema.Properties[name] == nil {
			t.Errorf("the schema lacks %s", name)
		}
	}
}
