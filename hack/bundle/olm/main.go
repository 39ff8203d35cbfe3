// Command olm prints what OLM creates of a bundle in a cluster, for kubectl apply: ServiceAccount, rights,
// Deployment, and what the bundle has beside. test/install tries a bundle by it, without OLM. What it does with
// rights is what OLM does: without -watch all become ClusterRoles, with it those of permissions become a Role in each
// namespace.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/manifests"
	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	namespace := flag.String("namespace", "toban-system", "where the operator is installed")
	watched := flag.String("watch", "", "the namespaces that it is for, with commas between them; default: all")
	flag.Parse()
	if err := show(os.Stdout, flag.Arg(0), *namespace, *watched); err != nil {
		fmt.Fprintln(os.Stderr, "olm:", err)
		os.Exit(1)
	}
}

// show writes the objects of the bundle in a folder, but for the kinds, which stay when an operator goes.
func show(out io.Writer, folder, namespace, watched string) error {
	bundle, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return fmt.Errorf("read the bundle: %w", err)
	}
	all, err := created(bundle, namespace, watched)
	if err != nil {
		return err
	}
	for _, object := range all {
		text, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write an object: %w", err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
			return fmt.Errorf("print an object: %w", err)
		}
	}
	return nil
}

// created are the objects that OLM creates.
func created(bundle *manifests.Bundle, namespace, watched string) ([]any, error) {
	csv := bundle.CSV
	mode := modeOf(watched)
	if !slices.Contains(csv.Spec.InstallModes, olm.InstallMode{Type: mode, Supported: true}) {
		return nil, fmt.Errorf("the bundle can't be installed in the mode %s", mode)
	}
	strategy := csv.Spec.InstallStrategy.StrategySpec
	var all []any
	for _, object := range bundle.Objects {
		switch object.GetKind() {
		case olm.ClusterServiceVersionKind, "CustomResourceDefinition":
			continue
		case "Service":
			object.SetNamespace(namespace)
		}
		all = append(all, object.Object)
	}
	for _, p := range strategy.ClusterPermissions {
		all = append(all, clusterWide(csv.Name+"-cluster", namespace, p)...)
	}
	for _, p := range strategy.Permissions {
		all = append(all, accountOf(p.ServiceAccountName, namespace))
		if watched == "" {
			all = append(all, clusterWide(csv.Name, namespace, p)...)
			continue
		}
		for _, at := range append([]string{namespace}, strings.Split(watched, ",")...) {
			all = append(all, within(at, csv.Name, namespace, p)...)
		}
	}
	for _, d := range strategy.DeploymentSpecs {
		all = append(all, deployment(d, namespace, watched))
	}
	return all, nil
}

func modeOf(watched string) olm.InstallModeType {
	switch {
	case watched == "":
		return olm.InstallModeTypeAllNamespaces
	case strings.Contains(watched, ","):
		return olm.InstallModeTypeMultiNamespace
	}
	return olm.InstallModeTypeSingleNamespace
}

func accountOf(name, namespace string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
	}
}

// clusterWide gives an account of a namespace rights in the whole cluster.
func clusterWide(name, namespace string, p olm.StrategyDeploymentPermissions) []any {
	meta := metav1.ObjectMeta{Name: name}
	role := &rbacv1.ClusterRole{TypeMeta: rbac("ClusterRole"), ObjectMeta: meta, Rules: p.Rules}
	return []any{role, &rbacv1.ClusterRoleBinding{
		TypeMeta: rbac("ClusterRoleBinding"), ObjectMeta: meta, Subjects: subjects(p, namespace),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: name},
	}}
}

// within gives an account of a namespace rights in another one.
func within(at, name, namespace string, p olm.StrategyDeploymentPermissions) []any {
	meta := metav1.ObjectMeta{Name: name, Namespace: at}
	role := &rbacv1.Role{TypeMeta: rbac("Role"), ObjectMeta: meta, Rules: p.Rules}
	return []any{role, &rbacv1.RoleBinding{
		TypeMeta: rbac("RoleBinding"), ObjectMeta: meta, Subjects: subjects(p, namespace),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: name},
	}}
}

func rbac(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func subjects(p olm.StrategyDeploymentPermissions, namespace string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: p.ServiceAccountName, Namespace: namespace}}
}

// deployment is the operator's, which learns by an annotation for which namespaces it is.
func deployment(d olm.StrategyDeploymentSpec, namespace, watched string) *appsv1.Deployment {
	out := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: namespace, Labels: d.Label},
		Spec:       *d.Spec.DeepCopy(),
	}
	pod := &out.Spec.Template
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations["olm.targetNamespaces"] = watched
	return out
}
