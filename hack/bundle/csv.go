package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/lib/version"
	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"toban.dev/internal/cli/process"
)

const (
	// placeholder is the operator's image in config.
	placeholder = "unpublished.invalid/toban:latest"
	// targets is the annotation in which OLM tells a Pod which namespaces it is for; it is empty for all.
	targets = "metadata.annotations['olm.targetNamespaces']"
)

// serviceVersion is the ClusterServiceVersion: how OLM installs the operator, and what it shows of it.
func (c config) serviceVersion(r release) (*olm.ClusterServiceVersion, error) {
	number, err := semver.Parse(r.version)
	if err != nil {
		return nil, fmt.Errorf("the version %q must be like 0.1.0: %w", r.version, err)
	}
	annotations, err := c.annotations(r)
	if err != nil {
		return nil, err
	}
	spec, err := c.spec(r)
	if err != nil {
		return nil, err
	}
	spec.Version = version.OperatorVersion{Version: number}
	return &olm.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{
			APIVersion: olm.ClusterServiceVersionAPIVersion, Kind: olm.ClusterServiceVersionKind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: "toban.v" + r.version, Annotations: annotations,
			Labels: map[string]string{
				"operatorframework.io/os.linux":   "supported",
				"operatorframework.io/arch.amd64": "supported",
				"operatorframework.io/arch.arm64": "supported",
			},
		},
		Spec: spec,
	}, nil
}

// annotations are what catalogs show and filter by.
func (c config) annotations(r release) (map[string]string, error) {
	examples, err := json.MarshalIndent(c.examples, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the examples: %w", err)
	}
	namespace, err := json.Marshal(c.namespace.Object)
	if err != nil {
		return nil, fmt.Errorf("write the namespace: %w", err)
	}
	return map[string]string{
		"alm-examples":   string(examples),
		"capabilities":   "Deep Insights",
		"categories":     "Database",
		"certified":      "false",
		"containerImage": r.image,
		"description":    c.summary,
		"operatorframework.io/suggested-namespace":          c.namespace.GetName(),
		"operatorframework.io/suggested-namespace-template": string(namespace),
	}, nil
}

// spec is what OLM installs and shows, but for the version.
func (c config) spec(r release) (olm.ClusterServiceVersionSpec, error) {
	var s olm.ClusterServiceVersionSpec
	icon, err := own.ReadFile("files/icon.svg")
	if err != nil {
		return s, fmt.Errorf("read the icon: %w", err)
	}
	shown := olm.Icon{Data: base64.StdEncoding.EncodeToString(icon), MediaType: "image/svg+xml"}
	strategy, err := c.strategy(r)
	if err != nil {
		return s, err
	}
	images, err := c.images(r)
	if err != nil {
		return s, err
	}
	var kinds []olm.CRDDescription
	for _, kind := range c.kinds {
		d, err := described(kind)
		if err != nil {
			return s, err
		}
		kinds = append(kinds, d)
	}
	return olm.ClusterServiceVersionSpec{
		DisplayName:               "Toban",
		Description:               c.introduction,
		Icon:                      []olm.Icon{shown},
		Keywords:                  []string{"postgresql", "postgres", "database", "high availability", "backup"},
		Maturity:                  "alpha", // the README's "Current limits" say why
		MinKubeVersion:            c.kubernetes,
		Provider:                  olm.AppLink{Name: "Toban"},
		Maintainers:               []olm.Maintainer{{Name: "Toban", Email: "toban@unpublished.invalid"}},
		Links:                     []olm.AppLink{{Name: "This release", URL: r.url}},
		InstallModes:              modes(),
		InstallStrategy:           strategy,
		CustomResourceDefinitions: olm.CustomResourceDefinitions{Owned: kinds},
		RelatedImages:             images,
	}, nil
}

// modes are the sets of namespaces for which the operator can be installed. Its own is none of them: whoever may read
// the Secrets of a database there could read the root secret too.
func modes() []olm.InstallMode {
	return []olm.InstallMode{
		{Type: olm.InstallModeTypeOwnNamespace, Supported: false},
		{Type: olm.InstallModeTypeSingleNamespace, Supported: true},
		{Type: olm.InstallModeTypeMultiNamespace, Supported: true},
		{Type: olm.InstallModeTypeAllNamespaces, Supported: true},
	}
}

// strategy is the Deployment and its rights.
func (c config) strategy(r release) (olm.NamedInstallStrategy, error) {
	spec, err := forOLM(c.deployment.Spec, r.image)
	account := spec.Template.Spec.ServiceAccountName
	with := func(rules []rbacv1.PolicyRule) []olm.StrategyDeploymentPermissions {
		return []olm.StrategyDeploymentPermissions{{ServiceAccountName: account, Rules: rules}}
	}
	return olm.NamedInstallStrategy{
		StrategyName: olm.InstallStrategyNameDeployment,
		StrategySpec: olm.StrategyDetailsDeployment{
			DeploymentSpecs: []olm.StrategyDeploymentSpec{
				{Name: c.deployment.Name, Label: c.deployment.Labels, Spec: spec},
			},
			Permissions:        with(c.rights),
			ClusterPermissions: with(c.clusterWide),
		},
	}, err
}

// forOLM is the Deployment with the release's image at both places, and with the namespaces that OLM says.
func forOLM(spec appsv1.DeploymentSpec, image string) (appsv1.DeploymentSpec, error) {
	out := *spec.DeepCopy()
	operator := &out.Template.Spec.Containers[0]
	named := 0
	for i, v := range operator.Env {
		if v.Value == placeholder {
			operator.Env[i].Value = image
			named++
		}
	}
	if operator.Image != placeholder || named != 1 {
		return out, fmt.Errorf("the Deployment names %s as image (%v) and in %d variables, and not once in each",
			placeholder, operator.Image == placeholder, named)
	}
	operator.Image = image
	operator.Env = append(operator.Env, corev1.EnvVar{
		Name:      "WATCH_NAMESPACE",
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: targets}},
	})
	return out, nil
}

// images are those that a cluster pulls: the operator's by its digest, and, by the tags that the operator takes
// unless it is told otherwise, PostgreSQL's and the poolers'.
func (c config) images(r release) ([]olm.RelatedImage, error) {
	flags := process.Operator("").Flags()
	all := []olm.RelatedImage{{Name: "operator", Image: r.image}}
	oldest, newest, err := c.majors()
	for major := oldest; err == nil && major <= newest; major++ {
		all = append(all, olm.RelatedImage{
			Name:  fmt.Sprintf("postgres-%d", major),
			Image: fmt.Sprintf("%s:%d", flags.Lookup("postgres-image").DefValue, major),
		})
	}
	return append(all, olm.RelatedImage{Name: "pgbouncer", Image: flags.Lookup("pooler-image").DefValue}), err
}

// majors are the oldest and the newest version of PostgreSQL that the schema of a SampleDB takes.
func (c config) majors() (oldest, newest int, err error) {
	for _, kind := range c.kinds {
		if kind.Spec.Names.Kind != "SampleDB" {
			continue
		}
		at, err := find(*kind.Spec.Versions[0].Schema.OpenAPIV3Schema, "spec.version")
		if err != nil {
			return 0, 0, err
		}
		for _, rule := range at.XValidations {
			if n, _ := fmt.Sscanf(rule.Rule, "self >= %d && self <= %d", &oldest, &newest); n == 2 {
				return oldest, newest, nil
			}
		}
	}
	return 0, 0, fmt.Errorf("the schema of SampleDB does not say from which version to which it goes")
}
