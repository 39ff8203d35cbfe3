// Command chart writes the Helm chart: the objects of config, as config/install.yaml has them, with values where
// people want others. hack/chart/files has what only a chart has. So chart and manifests can't differ, and
// main_test.go compares what Helm renders.
package main

import (
	"embed"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

//go:embed all:files
var own embed.FS

// release is what one chart has that others have not.
type release struct {
	version    string // without the v: Helm wants it so
	repository string
	digest     string
}

// replacement is one that must be found as often as said.
type replacement struct {
	old, new string
	times    int
}

// template is one that is made of a file of config.
type template struct {
	source  string
	around  [2]string // what stands before and after it
	changes []replacement
}

// inNamespace puts what is in the operator's namespace into that of the release.
func inNamespace(times int) replacement {
	return replacement{"toban-system", "{{ $.Release.Namespace }}", times}
}

const (
	image    = "unpublished.invalid/toban:latest"
	included = `{{ include "toban.image" . | quote }}`
	cluster  = "{{- if include \"toban.clusterRoles\" . }}\n"
	end      = "\n{{- end }}\n"
)

// templates are those of config/install.yaml; operator-namespaced.yaml is what config/install-namespaced.yaml has of
// config/rbac/operator.yaml.
func templates() map[string]template {
	return map[string]template{
		"own.yaml":     {source: "rbac/own.yaml", changes: []replacement{inNamespace(4)}},
		"cluster.yaml": {"rbac/cluster.yaml", [2]string{cluster, end}, []replacement{inNamespace(1)}},
		"users.yaml":   {"rbac/users.yaml", [2]string{cluster, end}, nil},
		"operator.yaml": {
			"rbac/operator.yaml", [2]string{"{{- if not .Values.watchNamespaces }}\n", end},
			[]replacement{inNamespace(1)},
		},
		"operator-namespaced.yaml": {
			"rbac/operator.yaml", [2]string{"{{- range .Values.watchNamespaces }}\n---\n", end}, narrowed(),
		},
		"deployment.yaml": {source: "manager/deployment.yaml", changes: deployment()},
	}
}

// narrowed are the changes that hack/installyaml makes for one namespace, here for each.
func narrowed() []replacement {
	return []replacement{
		inNamespace(1),
		{"\nkind: ClusterRole\n", "\nkind: Role\n", 1},
		{"\nkind: ClusterRoleBinding\n", "\nkind: RoleBinding\n", 1},
		{"kind: ClusterRole,", "kind: Role,", 1},
		{"metadata:\n  name: toban-operator\n", "metadata:\n  name: toban-operator-databases\n  namespace: {{ . }}\n" +
			"  labels: {app.kubernetes.io/component: operator-rights}\n", 2},
		{"name: toban-operator}\nsubjects:", "name: toban-operator-databases}\nsubjects:", 1},
	}
}

func deployment() []replacement {
	const (
		annotation = "        kubectl.kubernetes.io/default-container: operator\n"
		account    = "      serviceAccountName: toban-operator\n"
		command    = "          command: [/toban, operator]\n"
		variables  = "          env:\n"
		resources  = "          resources:\n"
		priority   = "{{- with .Values.priorityClassName }}\n      priorityClassName: {{ . }}\n{{- end }}\n"
	)
	return append(perShard(), []replacement{
		inNamespace(2),
		{"  replicas: 1\n", "  replicas: {{ .Values.replicas }}\n", 1},
		{annotation, annotation + "{{- with .Values.podAnnotations }}\n{{ toYaml . | indent 8 }}\n{{- end }}\n", 1},
		{account, account + with("imagePullSecrets", "image.pullSecrets") + with("nodeSelector", "nodeSelector") +
			with("tolerations", "tolerations") + with("affinity", "affinity") +
			priority, 1},
		{"image: " + image, "image: " + included, 1},
		{"value: " + image, "value: " + included, 1},
		{"imagePullPolicy: IfNotPresent", "imagePullPolicy: {{ .Values.image.pullPolicy }}", 1},
		{command, command + arguments, 1},
		{"value: 256MiB}", "value: {{ .Values.goMemoryLimit | quote }}}", 1},
		{variables, variables + variable("WATCH_NAMESPACE", "watchNamespaces") +
			variable("IGNORE_NAMESPACE", "ignoreNamespaces"), 1},
		{resources + "            requests: {cpu: 50m, memory: 64Mi}\n            limits: {memory: 384Mi}\n",
			resources + "{{ toYaml .Values.resources | indent 12 }}\n", 1},
	}...)
}

// arguments are the operator's options: those of the values, and which shard it is.
const arguments = `{{- if or .Values.options (gt (int .Values.shards) 1) }}
          args:
{{- with .Values.options }}
{{ toYaml . | indent 12 }}
{{- end }}
{{- if gt (int .Values.shards) 1 }}
            - --shards={{ .Values.shards }}
            - --shard={{ $shard }}
{{- end }}
{{- end }}
`

// perShard are the changes that make a Deployment for each shard. The first one is what an operator alone has.
func perShard() []replacement {
	const (
		head   = "# The operator. One replica is enough"
		name   = "metadata:\n  name: toban-operator\n"
		labels = "app.kubernetes.io/name: toban\n%[1]sapp.kubernetes.io/component: operator\n"
		shard  = "{{- if $shard }}\n%[1]stoban.dev/shard: {{ $shard | quote }}\n{{- end }}\n"
		after  = "---\n# Prometheus finds the metrics here."
	)
	selector, template := strings.Repeat(" ", 6), strings.Repeat(" ", 8)
	return []replacement{
		{head, "{{- range $shard := until (int .Values.shards) }}\n{{- with $ }}\n---\n" + head, 1},
		{name, "metadata:\n  name: toban-operator{{ if $shard }}-{{ $shard }}{{ end }}\n", 1},
		{"matchLabels:\n" + selector + fmt.Sprintf(labels, selector),
			"matchLabels:\n" + selector + fmt.Sprintf(labels+shard, selector), 1},
		{"      labels:\n" + template + fmt.Sprintf(labels, template),
			"      labels:\n" + template + fmt.Sprintf(labels+shard, template), 1},
		{after, "{{- end }}\n{{- end }}\n" + after, 1},
	}
}

// with is a field of the Pod's spec that is there if its value is not empty.
func with(field, value string) string {
	return fmt.Sprintf("{{- with .Values.%s }}\n      %s:\n{{ toYaml . | indent 8 }}\n{{- end }}\n", value, field)
}

// variable is one of the environment, a list, that is there if its value is not empty.
func variable(name, value string) string {
	return fmt.Sprintf("{{- with .Values.%s }}\n            - name: %s\n"+
		"              value: {{ join \",\" . | quote }}\n{{- end }}\n", value, name)
}

func main() {
	var r release
	out := flag.String("out", "", "the folder to write the chart to")
	flag.StringVar(&r.version, "version", "", "the release's version, such as v0.1.0")
	flag.StringVar(&r.repository, "repository", "", "where the operator's image is, without its digest")
	flag.StringVar(&r.digest, "digest", "", "the digest of the operator's image")
	flag.Parse()
	r.version = strings.TrimPrefix(r.version, "v")
	if err := write("config", *out, r); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// write makes a chart of the files in config.
func write(config, out string, r release) error {
	files, err := chart(config, r)
	if err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // everyone may read it
			return fmt.Errorf("make the chart's folder: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // everyone may read it
			return fmt.Errorf("write the chart: %w", err)
		}
	}
	return nil
}

// chart is all files of a chart by their paths in it.
func chart(config string, r release) (map[string]string, error) {
	files, err := ownFiles(r)
	if err != nil {
		return nil, err
	}
	for name, t := range templates() {
		text, err := t.render(config)
		if err != nil {
			return nil, err
		}
		files["templates/"+name] = text
	}
	copied, err := copies(config)
	if err != nil {
		return nil, err
	}
	maps.Copy(files, copied)
	return files, nil
}

// ownFiles are those that only a chart has.
func ownFiles(r release) (map[string]string, error) {
	files := map[string]string{}
	fill := strings.NewReplacer("REPOSITORY", r.repository, "DIGEST", r.digest, "VERSION", r.version)
	err := fs.WalkDir(own, "files", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := own.ReadFile(path)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, "files/")
		files[name] = string(text)
		if name == "Chart.yaml" || name == "values.yaml" {
			files[name] = fill.Replace(string(text))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the chart's own files: %w", err)
	}
	return files, nil
}

// copies are the files of config that go into the chart as they are. Helm installs what is in crds/, and never deletes
// it.
func copies(config string) (map[string]string, error) {
	files := map[string]string{}
	paths, err := filepath.Glob(filepath.Join(config, "crd", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list the kinds: %w", err)
	}
	for _, name := range []string{"monitors.yaml", "prometheusrule.yaml"} {
		paths = append(paths, filepath.Join(config, "monitoring", name))
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a part of the chart: %w", err)
		}
		folder := "files"
		if filepath.Base(filepath.Dir(path)) == "crd" {
			folder = "crds"
		}
		files[folder+"/"+filepath.Base(path)] = string(text)
	}
	return files, nil
}

// render makes the template of its source.
func (t template) render(config string) (string, error) {
	content, err := os.ReadFile(filepath.Join(config, t.source))
	if err != nil {
		return "", fmt.Errorf("read a part of the chart: %w", err)
	}
	text := string(content)
	if strings.Contains(text, "{{") {
		return "", fmt.Errorf("%s has braces that Helm would read", t.source)
	}
	for _, c := range t.changes {
		if n := strings.Count(text, c.old); n != c.times {
			return "", fmt.Errorf("%s: %q is there %d times and not %d", t.source, c.old, n, c.times)
		}
		text = strings.ReplaceAll(text, c.old, c.new)
	}
	return t.around[0] + strings.TrimRight(text, "\n") + "\n" + strings.TrimPrefix(t.around[1], "\n"), nil
}
