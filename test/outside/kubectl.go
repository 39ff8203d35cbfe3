// Package outside is what a user of a cluster can do: kubectl, what kubectl get would read, and SQL through a
// Service. The demo, the stories and the benchmarks judge Toban with it, and with
// nothing that is inside of Toban but the types and names that a user sees.
package outside

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Namespace is one in which a user works, by kubectl.
type Namespace string

// Kubectl runs kubectl and returns what it printed.
func (n Namespace) Kubectl(ctx context.Context, args ...string) (string, error) {
	return n.KubectlWith(ctx, "", args...)
}

// Toban runs kubectl toban, which takes the namespace after its verb, and returns what it printed.
func (n Namespace) Toban(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "kubectl",
		append(append([]string{"toban"}, args...), "--namespace", string(n))...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl toban %s: %w: %s",
			strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// KubectlWith is Kubectl with something on its standard input.
func (n Namespace) KubectlWith(ctx context.Context, input string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "kubectl", append([]string{"--namespace", string(n)}, args...)...)
	command.Stdin = strings.NewReader(input)
	var out, problem bytes.Buffer
	command.Stdout, command.Stderr = &out, &problem
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("kubectl %s: %w: %s",
			strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return out.String(), nil
}

// Apply applies manifests.
func (n Namespace) Apply(ctx context.Context, manifests string) error {
	_, err := n.KubectlWith(ctx, manifests, "apply", "-f", "-")
	return err
}

// Get reads an object, as "pod/x", into a value.
func (n Namespace) Get(ctx context.Context, what string, into any) error {
	kind, name, _ := strings.Cut(what, "/")
	there, err := n.read(ctx, kind, name, "", into)
	if err == nil && !there {
		err = fmt.Errorf("there is no %s", what)
	}
	return err
}

// SampleDB reads a SampleDB.
func (n Namespace) SampleDB(ctx context.Context, name string) (v1.SampleDB, error) {
	var db v1.SampleDB
	err := n.Get(ctx, "sampledb/"+name, &db)
	return db, err
}

// Exists says whether an object is there. What can't be asked is an error.
func (n Namespace) Exists(ctx context.Context, what string) (bool, error) {
	kind, name, _ := strings.Cut(what, "/")
	return n.read(ctx, kind, name, "", &struct{}{})
}

// Pods are those of a SampleDB's instances.
func (n Namespace) Pods(ctx context.Context, db string) ([]corev1.Pod, error) {
	var list corev1.PodList
	_, err := n.read(ctx, "pod", "", selector(naming.InstanceSelector(db)), &list)
	return list.Items, err
}

func selector(labels map[string]string) string {
	var parts []string
	for k, v := range labels {
		parts = append(parts, k+"="+v)
	}
	return strings.Join(parts, ",")
}
