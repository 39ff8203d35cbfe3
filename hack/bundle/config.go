package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// config is what the repository has that goes into a bundle.
type config struct {
	namespace    unstructured.Unstructured
	deployment   appsv1.Deployment
	rights       []rbacv1.PolicyRule // in each namespace that the operator watches, and in its own
	clusterWide  []rbacv1.PolicyRule
	kinds        []apiextensionsv1.CustomResourceDefinition
	kindFiles    map[string][]byte
	others       []unstructured.Unstructured // what OLM creates as it is
	examples     []unstructured.Unstructured
	introduction string
	summary      string
	kubernetes   string // the oldest version of Kubernetes
}

// examples are the files with an example of each kind, the one that people see first at the front.
func examples() []string {
	return []string{
		"example-database.yaml", "backup.yaml", "restore.yaml", "drill.yaml", "all/database.yaml", "sample-app.yaml",
	}
}

// read reads all of it.
func read(root string) (config, error) {
	var c config
	for _, step := range []func(root string) error{
		c.readOperator, c.readRights, c.readKinds, c.readExamples, c.readTexts,
	} {
		if err := step(root); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readOperator reads the Deployment, and what OLM creates as it is: the Service of the metrics, and the roles for
// users. OLM gives the Service the namespace in which it installs.
func (c *config) readOperator(root string) error {
	for _, name := range []string{"manager/namespace.yaml", "manager/deployment.yaml", "rbac/users.yaml"} {
		all, err := objects(filepath.Join(root, "config", name))
		if err != nil {
			return err
		}
		for _, object := range all {
			switch object.GetKind() {
			case "Namespace":
				c.namespace = object
			case "Deployment":
				if err := into(object, &c.deployment); err != nil {
					return err
				}
			default:
				object.SetNamespace("")
				c.others = append(c.others, object)
			}
		}
	}
	return nil
}

// readRights reads what the operator may do. OLM has no third place beside "in the namespaces that it watches" and
// "in the whole cluster": what the operator may do in its own namespace alone is among the first.
func (c *config) readRights(root string) error {
	for _, file := range []struct {
		name  string
		rules *[]rbacv1.PolicyRule
	}{{"own.yaml", &c.rights}, {"operator.yaml", &c.rights}, {"cluster.yaml", &c.clusterWide}} {
		all, err := objects(filepath.Join(root, "config/rbac", file.name))
		if err != nil {
			return err
		}
		for _, object := range all {
			var role rbacv1.ClusterRole // a Role has its rules at the same place
			if kind := object.GetKind(); kind != "Role" && kind != "ClusterRole" {
				continue
			}
			if err := into(object, &role); err != nil {
				return err
			}
			*file.rules = append(*file.rules, role.Rules...)
		}
	}
	return nil
}

// readKinds reads the kinds. Their files go into the bundle as they are.
func (c *config) readKinds(root string) error {
	paths, err := filepath.Glob(filepath.Join(root, "config/crd/*.yaml"))
	if err != nil {
		return fmt.Errorf("list the kinds: %w", err)
	}
	c.kindFiles = map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read a kind: %w", err)
		}
		var kind apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &kind); err != nil {
			return fmt.Errorf("read the kind in %s: %w", path, err)
		}
		c.kinds = append(c.kinds, kind)
		c.kindFiles["manifests/"+filepath.Base(path)] = text
	}
	return nil
}

// readExamples reads those of the kinds; a Secret or a ConfigMap beside them is none.
func (c *config) readExamples(root string) error {
	ours := map[string]bool{}
	for _, kind := range c.kinds {
		ours[kind.Spec.Group] = true
	}
	for _, name := range examples() {
		all, err := objects(filepath.Join(root, "config/examples", name))
		if err != nil {
			return err
		}
		for _, object := range all {
			if ours[object.GroupVersionKind().Group] {
				c.examples = append(c.examples, object)
			}
		}
	}
	return nil
}

// readTexts reads the README's introduction, and what the chart says of Toban and of Kubernetes.
func (c *config) readTexts(root string) error {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return fmt.Errorf("read the introduction: %w", err)
	}
	_, text, found := strings.Cut(string(readme), "\n\nToban ")
	text, _, ends := strings.Cut(text, "\n## ")
	if !found || !ends {
		return fmt.Errorf("README.md has no introduction that begins with Toban and ends at a heading")
	}
	c.introduction = "Toban " + text
	chart, err := os.ReadFile(filepath.Join(root, "hack/chart/files/Chart.yaml"))
	if err != nil {
		return fmt.Errorf("read the chart's description: %w", err)
	}
	var about struct {
		Description string `json:"description"`
		KubeVersion string `json:"kubeVersion"`
	}
	if err := yaml.Unmarshal(chart, &about); err != nil {
		return fmt.Errorf("read the chart's description: %w", err)
	}
	c.summary = about.Description
	if c.kubernetes = regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(about.KubeVersion); c.kubernetes == "" {
		return fmt.Errorf("kubeVersion of Chart.yaml, %q, has no version in it", about.KubeVersion)
	}
	return nil
}

// objects are those of a file.
func objects(path string) ([]unstructured.Unstructured, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a part of the bundle: %w", err)
	}
	var all []unstructured.Unstructured
	for _, part := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
		raw, err := yaml.YAMLToJSON([]byte(part))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		var object unstructured.Unstructured
		if err := json.Unmarshal(raw, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if object.Object != nil {
			all = append(all, object)
		}
	}
	return all, nil
}

// into reads an object as one of its type.
func into(object unstructured.Unstructured, out any) error {
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, out, true)
	if err != nil {
		return fmt.Errorf("read %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}
