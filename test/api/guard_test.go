package api

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// guard puts the example's policy into force in the namespace of the test, and waits until it is.
func (w *world) guard() *admissionv1.ValidatingAdmissionPolicy {
	w.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "examples", "guard.yaml"))
	w.must(err)
	parts := strings.Split(string(text), "\n---\n")
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	w.must(yaml.UnmarshalStrict([]byte(parts[0]), policy))
	w.must(yaml.UnmarshalStrict([]byte(parts[1]), binding))
	// Policies belong to the whole cluster, where other tests work too.
	policy.Name = "toban-guard-" + w.namespace
	binding.Name, binding.Spec.PolicyName = policy.Name, policy.Name
	binding.Spec.MatchResources = &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace},
	}}
	for _, object := range []client.Object{policy, binding} {
		w.must(w.api.Create(w.Context(), object))
		w.Cleanup(func() { _ = w.api.Delete(context.WithoutCancel(w.Context()), object) })
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		err := w.tried(w.sampleDB("not-yet", func(db *v1.SampleDB) { db.Spec.Image = "elsewhere/x" }))
		if err != nil && strings.Contains(err.Error(), policy.Name) {
			return policy
		}
	}
	w.Fatal("the policy is not in force after a minute")
	return nil
}

// tried is what the API server says to an object, which it does not keep.
func (w *world) tried(object client.Object) error {
	return w.api.Create(w.Context(), object, client.DryRunAll)
}

// Each field that the guard knows is tried in each kind that has it, with what is allowed and with what is not.
func TestTheGuardOfEachField(t *testing.T) {
	w := newWorld(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "*.yaml"))
	w.must(err)
	kinds := make([]*kind, 0, len(files))
	for _, file := range files {
		kinds = append(kinds, w.newKind(file))
	}
	untried := guarded(w.guard())
	if len(untried) < 35 {
		t.Fatalf("the guard knows only %d fields: %v", len(untried), untried)
	}
	tried := map[string]bool{}
	for _, k := range kinds {
		top := field(k.root, "spec")
		walk("spec", top, nil, func(path string, steps []string, _ *props) bool {
			of, ok := untried[path]
			if !ok {
				return true
			}
			tried[path] = true
			good, bad := guardedValues(of)
			if _, err := k.try(t.Context(), "spec", place("spec", top, steps, good)); err != nil {
				t.Errorf("%s: what is allowed is refused: %v", path, err)
			}
			_, err := k.try(t.Context(), "spec", place("spec", top, steps, bad))
			if err == nil || !strings.Contains(err.Error(), path+" must begin with ") {
				t.Errorf("%s of a %s: what is not allowed is answered by %v", path, k.good["kind"], err)
			}
			return false
		})
	}
	for path := range untried {
		if !tried[path] {
			t.Errorf("no kind has %s", path)
		}
	}
}

// guarded are the paths that a policy knows, each with the name of the list of what is allowed there.
func guarded(policy *admissionv1.ValidatingAdmissionPolicy) map[string]string {
	out := map[string]string{}
	said := regexp.MustCompile(`(spec\.\S+) must begin with '\s+\+ variables\.(\w+)\.`)
	for _, v := range policy.Spec.Validations {
		if m := said.FindStringSubmatch(v.MessageExpression); m != nil {
			out[m[1]] = m[2]
		}
	}
	return out
}

// guardedValues are a value of a field that the guard allows, and one that it does not.
func guardedValues(of string) (good, bad any) {
	switch of {
	case "secrets":
		return "databases-x", "x-databases-x"
	case "images":
		return "registry.example.com/x:17", "registry.example.com.attacker.net/x:17"
	default:
		return fields{"example.com/x": "y"}, fields{"example.com/x": "y", "sidecar.attacker.net/image": "y"}
	}
}

// leavesAlone has an object that was there before the guard go, and others change what the guard is not about. What it
// is about stays.
func (w *world) leavesAlone(before *v1.SampleDB) {
	w.Helper()
	changed := before.DeepCopy()
	changed.Finalizers, changed.Annotations = nil, map[string]string{naming.AnnotationRestart: naming.RestartAll}
	if err := w.api.Update(w.Context(), changed, client.DryRunAll); err != nil {
		w.Errorf("an object that was there can't go: %v", err)
	}
	changed.Annotations[naming.AnnotationRehearse] = "18"
	if err := w.api.Update(w.Context(), changed, client.DryRunAll); err == nil {
		w.Error("an annotation of what the guard is about is changed, and nothing is said of the rest")
	}
}

// Who edits databases names no Secrets and no images by what is beside a spec either.
func TestTheGuardOfTheExamples(t *testing.T) {
	w := newWorld(t)
	before := w.sampleDB("before", func(db *v1.SampleDB) {
		db.Spec.Image, db.Finalizers = "elsewhere/x", []string{"example.com/waits"}
	})
	w.must(w.api.Create(t.Context(), before))
	w.guard()
	w.leavesAlone(before)
	rehearsed := func(asked string) *v1.SampleDB {
		return w.sampleDB("shop", func(db *v1.SampleDB) {
			db.Annotations = map[string]string{naming.AnnotationRehearse: asked}
		})
	}
	pg := func(password pgv1.SecretName, roles ...pgv1.Role) *pgv1.PostgreSQL {
		return &pgv1.PostgreSQL{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "foodb"},
			Spec:       pgv1.PostgreSQLSpec{DB: "foo", User: "foo", Password: password, Roles: roles},
		}
	}
	foreign := w.sampleDB("shop", func(db *v1.SampleDB) { db.Spec.Image = "docker.io/x" })
	for name, object := range map[string]client.Object{
		"nothing named":               w.sampleDB("shop"),
		"the article's manifest":      pg("databases-foodb"),
		"a role with another of ours": pg("databases-foodb", pgv1.Role{Name: "r", Password: "databases-reader"}),
		"a rehearsal":                 rehearsed("18"),
		"a rehearsal with our image":  rehearsed("18 registry.example.com/postgres:18"),
	} {
		if err := w.tried(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, object := range map[string]client.Object{
		"a foreign image":                 foreign,
		"a Secret that is called like it": pg("foodb-password"),
		"the second of two roles": pg("databases-foodb",
			pgv1.Role{Name: "r", Password: "databases-reader"}, pgv1.Role{Name: "q", Password: "payment"}),
		"a name that all Secrets begin with": w.sampleDB("databases"),
		"a longer one":                       w.sampleDB("databases-shop"),
		"a rehearsal with a foreign image":   rehearsed("18 docker.io/x"),
		"a rehearsal with a number":          rehearsed("18 123"),
		"a rehearsal behind a tab":           rehearsed("18\tdocker.io/x"),
		"a rehearsal behind two spaces":      rehearsed("18  docker.io/x"),
		"a rehearsal behind one of ours":     rehearsed("18 registry.example.com/x\u00a0docker.io/x"),
		"a rehearsal behind a line":          rehearsed("18\n18 docker.io/x"),
	} {
		if err := w.tried(object); err == nil || !strings.Contains(err.Error(), "toban-guard") {
			t.Errorf("%s: %v", name, err)
		}
	}
	config := rest.CopyConfig(w.server)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:toban-system:toban-operator", Groups: []string{"system:masters"},
	}
	operator, err := client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	if err := operator.Create(t.Context(), foreign, client.DryRunAll); err != nil {
		t.Errorf("the operator can't go on with what is there: %v", err)
	}
}
