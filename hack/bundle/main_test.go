package main

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

var tried = release{
	version: "0.1.0", url: "https://example.com/toban/v0.1.0",
	image: "registry.example.com/toban@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
}

// written writes a bundle as a release has it, and loads it as a catalog does.
func written(t *testing.T) (string, *manifests.Bundle) {
	t.Helper()
	out := t.TempDir()
	if err := write(root, out, tried); err != nil {
		t.Fatal(err)
	}
	b, err := manifests.GetBundleFromDir(out)
	if err != nil {
		t.Fatal(err)
	}
	return out, b
}

// Warnings count too: each is something that a catalog or a console would lack.
func TestNoValidatorFindsAFault(t *testing.T) {
	_, b := written(t)
	all := []any{b, b.CSV}
	for _, kind := range b.V1CRDs {
		all = append(all, kind)
	}
	for _, object := range b.Objects {
		all = append(all, object)
	}
	checked := 0
	for _, v := range []interfaces.Validator{
		validation.BundleValidator, validation.ClusterServiceVersionValidator,
		validation.CustomResourceDefinitionValidator, validation.OperatorHubV2Validator,
		validation.StandardCategoriesValidator, validation.StandardCapabilitiesValidator,
		validation.GoodPracticesValidator, validation.ObjectValidator,
	} {
		for _, result := range v.Validate(all...) {
			checked++
			for _, e := range slices.Concat(result.Errors, result.Warnings) {
				if !aboutRules(e.Detail) {
					t.Errorf("%s: %v", result.Name, e)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d objects were looked at", checked)
	}
}

// aboutRules says whether a warning takes rights for objects: by the name of a resource the validator suspects that a
// version of it is used which Kubernetes has no more. A right names no version.
func aboutRules(warning string) bool {
	_, objects, found := strings.Cut(warning, "Migrate the API(s) for ")
	named := strings.Count(objects, `("`) + strings.Count(objects, `(["`) + strings.Count(objects, `","`)
	return found && named > 0 && named == strings.Count(objects, "StrategySpec.Permissions[0].Rules[")
}

// What the operator may do, and how it runs, is what the manifests say: nothing is lost on the way, and nothing
// added.
func TestTheBundleInstallsWhatTheManifestsInstall(t *testing.T) {
	_, b := written(t)
	all, err := objects(filepath.Join(root, "config/install.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	strategy := b.CSV.Spec.InstallStrategy.StrategySpec
	rights := slices.Concat(strategy.Permissions[0].Rules, strategy.ClusterPermissions[0].Rules)
	var want []rbacv1.PolicyRule
	others := map[string]bool{}
	for _, object := range all {
		name := object.GetKind() + " " + object.GetName()
		switch {
		case strings.HasPrefix(name, "ClusterRole toban-operator"), name == "Role toban-operator":
			var role rbacv1.ClusterRole
			if err := into(object, &role); err != nil {
				t.Fatal(err)
			}
			want = append(want, role.Rules...)
		case object.GetKind() == "ClusterRole", object.GetKind() == "Service":
			others[name] = true
		}
	}
	if !reflect.DeepEqual(set(t, rights), set(t, want)) {
		t.Errorf("the bundle's rights are\n%v, want\n%v", rights, want)
	}
	for _, object := range b.Objects {
		delete(others, object.GetKind()+" "+object.GetName())
	}
	if len(others) > 0 || len(want) == 0 {
		t.Errorf("the bundle lacks %v", others)
	}
}

// set are rules without their order.
func set(t *testing.T, rules []rbacv1.PolicyRule) map[string]int {
	t.Helper()
	all := map[string]int{}
	for _, rule := range rules {
		text, err := yaml.Marshal(rule)
		if err != nil {
			t.Fatal(err)
		}
		all[string(text)]++
	}
	return all
}

func TestTheOperatorHasTheReleasesImageAndTheNamespacesOfOLM(t *testing.T) {
	_, b := written(t)
	spec := b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
	env := map[string]corev1.EnvVar{}
	for _, v := range spec.Containers[0].Env {
		env[v.Name] = v
	}
	watched := env["WATCH_NAMESPACE"].ValueFrom
	if spec.Containers[0].Image != tried.image || env["OPERATOR_IMAGE"].Value != tried.image ||
		watched == nil || watched.FieldRef.FieldPath != targets {
		t.Errorf("the container is %+v", spec.Containers[0])
	}
	var images []string
	for _, image := range b.CSV.Spec.RelatedImages {
		images = append(images, image.Image)
	}
	for _, want := range []string{
		tried.image, "docker.io/library/postgres:17", "ghcr.io/cloudnative-pg/pgbouncer:1.24.1",
	} {
		if !slices.Contains(images, want) {
			t.Errorf("the images are %v, without %s", images, want)
		}
	}
}

// A kind without a form would have no descriptors; one that is added to the API fails here.
func TestEachKindCanBeEnteredAndSeen(t *testing.T) {
	_, b := written(t)
	for _, kind := range b.CSV.Spec.CustomResourceDefinitions.Owned {
		if len(kind.SpecDescriptors) < 4 || len(kind.StatusDescriptors) < 2 || len(kind.Resources) == 0 {
			t.Errorf("%s has %d fields, %d of its status and %d resources", kind.Kind, len(kind.SpecDescriptors),
				len(kind.StatusDescriptors), len(kind.Resources))
		}
		for _, d := range kind.SpecDescriptors {
			if d.Description == "" || len(d.XDescriptors) == 0 {
				t.Errorf("%s of %s has no description or no control", d.Path, kind.Kind)
			}
		}
	}
	if n := len(b.CSV.Spec.CustomResourceDefinitions.Owned); n != len(forms()) {
		t.Errorf("there are %d kinds and %d forms", n, len(forms()))
	}
}

// The same sources give the same bytes.
func TestABundleIsTheSameAgain(t *testing.T) {
	one, err := bundle(root, tried)
	if err != nil {
		t.Fatal(err)
	}
	two, err := bundle(root, tried)
	if err != nil || !reflect.DeepEqual(one, two) {
		t.Errorf("another bundle was made the second time, %v", err)
	}
}

func TestBadVersionsAreRefused(t *testing.T) {
	if _, err := bundle(root, release{version: "one", image: tried.image}); err == nil {
		t.Error("the version one was taken")
	}
}
