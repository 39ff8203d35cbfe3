package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

var root = filepath.Join("..", "..")

func definedKinds(t *testing.T) []kind {
	t.Helper()
	kinds, err := read(filepath.Join(root, definitions))
	if err != nil || len(kinds) < 6 {
		t.Fatalf("%d kinds were read: %v", len(kinds), err)
	}
	return kinds
}

// What is in the repository guards each field of the kinds as they are now.
func TestThePolicyIsThatOfTheKinds(t *testing.T) {
	want, err := policy(definedKinds(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, target))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is stale: make generate writes it anew", target)
	}
	parts := strings.Split(want, "\n---\n")
	if len(parts) != 2 {
		t.Fatalf("it has %d objects", len(parts))
	}
	for i, into := range []any{
		&admission.ValidatingAdmissionPolicy{}, &admission.ValidatingAdmissionPolicyBinding{},
	} {
		if err := yaml.UnmarshalStrict([]byte(parts[i]), into); err != nil {
			t.Error(err)
		}
	}
}

// A field whose Go type or Go name says that it names a Secret or an image is guarded, whatever the CRD calls it.
func TestWhatGoCallsASecretOrAnImageIsGuarded(t *testing.T) {
	rules := map[string]rule{}
	for _, k := range definedKinds(t) {
		found, err := rulesOf(k)
		if err != nil {
			t.Fatal(err)
		}
		for path, r := range found {
			rules[path] = r
		}
	}
	named := map[string]rule{}
	for _, spec := range []any{
		v1.SampleDBSpec{}, v1.DatabaseBackupSpec{}, v1.DatabaseRestoreSpec{}, v1.FaultDrillSpec{},
		pgv1.PostgreSQLSpec{}, appv1.MyAppSpec{},
	} {
		typed("spec", "", reflect.TypeOf(spec), named)
	}
	if len(named) < 30 {
		t.Fatalf("only %d fields were found: %v", len(named), named)
	}
	for path, want := range named {
		if rules[path] != want {
			t.Errorf("%s is guarded by the rule %q and not by %q", path, rules[path], want)
		}
	}
}

// typed collects what the type of a field, or its name, says.
func typed(path, name string, of reflect.Type, out map[string]rule) {
	switch of.Kind() {
	case reflect.Pointer:
		typed(path, name, of.Elem(), out)
	case reflect.Slice:
		typed(path+"[]", name, of.Elem(), out)
	case reflect.String:
		switch {
		case of == reflect.TypeFor[pgv1.SecretName](), strings.Contains(name, "Secret"):
			out[path] = secrets
		case strings.HasSuffix(name, "Image"):
			out[path] = images
		}
	case reflect.Struct:
		if slices.Contains([]reflect.Type{
			reflect.TypeFor[v1.SecretReference](), reflect.TypeFor[corev1.SecretKeySelector](),
			reflect.TypeFor[corev1.LocalObjectReference](),
		}, of) || of == reflect.TypeFor[v1.KeySelector]() && name == "Secret" {
			out[path+".name"] = secrets
			return
		}
		for _, f := range reflect.VisibleFields(of) {
			if called, _, _ := strings.Cut(f.Tag.Get("json"), ","); called != "" && !f.Anonymous {
				typed(path+"."+called, f.Name, f.Type, out)
			}
		}
	default:
	}
}

// A field that comes later is guarded, or stops the generator until somebody has thought of it.
func TestAFieldThatComesLater(t *testing.T) {
	text := func(path string) field { return field{path: path, kind: "string"} }
	for name, c := range map[string]struct {
		field   field
		rule    rule
		refused bool
	}{
		"by its name":             {text("spec.proxy.authSecretRef.name"), secrets, false},
		"credentials":             {text("spec.store.credentials"), secrets, false},
		"by what is said of it":   {field{path: "spec.a", kind: "string", text: "A Secret."}, secrets, false},
		"by what it is in":        {field{path: "spec.a.name", kind: "string", around: "The Secret."}, secrets, false},
		"an image":                {text("spec.exporter.image"), images, false},
		"an image of another way": {field{path: "spec.run", kind: "string", text: "The image."}, images, false},
		"annotations":             {text("spec.backup.podAnnotations{}"), annotations, false},
		"pull secrets are none":   {text("spec.imagePullSecrets[].name"), secrets, false},
		"a ServiceAccount":        {text("spec.pod.serviceAccountName"), "", true},
		"a folder of the node":    {text("spec.pod.volumes[].hostPath.path"), "", true},
		"a ConfigMap's field":     {text("spec.scriptConfigMap"), "", true},
		"anything":                {field{path: "spec.patch", kind: "object", open: true}, "", true},
		"a size":                  {text("spec.storage.size"), "", false},
		"a number":                {field{path: "spec.secrets", kind: "integer"}, "", false},
		"one of a few values": {
			field{path: "spec.rotate", kind: "string", text: "of the Secret", fixed: true}, "", false,
		},
	} {
		if got, err := ruleOf(c.field); got != c.rule || (err != nil) != c.refused {
			t.Errorf("%s: the rule is %q, %v", name, got, err)
		}
	}
}

// An exception without which nothing would be different may hide a later field.
func TestEveryExceptionIsOfAField(t *testing.T) {
	for _, e := range exceptions {
		needed := false
		for _, k := range definedKinds(t) {
			for _, f := range k.fields {
				r, err := looksLike(f)
				needed = needed || e.path.MatchString(f.path) && (r != "" || err != nil)
			}
		}
		if !needed || e.why == "" {
			t.Errorf("%s: it is needed: %t, because %q", e.path, needed, e.why)
		}
	}
}

// A path for which the generator can't write a rule is no path without a rule.
func TestAPathWithoutARule(t *testing.T) {
	for path, r := range map[string]rule{
		"spec.a{}.secret": secrets, "spec.secrets{}": secrets, "spec.secrets[][]": secrets,
		"spec.annotations": annotations,
	} {
		if text, err := validation(path, r); err == nil {
			t.Errorf("%s: %s", path, text)
		}
	}
	of := func(plural, kindOfA string) kind {
		return kind{plural: plural, fields: []field{
			{path: "spec.a", kind: kindOfA}, {path: "spec.image", kind: "string"},
			{path: "spec." + plural + ".secret", kind: "string"}, {path: "spec.a.secret", kind: "string"},
		}}
	}
	if _, err := policy([]kind{of("x", "object"), of("y", "object")}); err != nil {
		t.Error(err)
	}
	_, err := policy([]kind{of("x", "object"), of("y", "array")})
	if err == nil || !strings.Contains(err.Error(), "spec.a ") {
		t.Errorf("a field that is a list in one kind and an object in the other: %v", err)
	}
}

// The annotations that users set name no image and no Secret, but for those that the policy knows.
func TestAnnotationsThatNameAnImage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/reference/annotations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## Annotations that you set")
	table, _, _ := strings.Cut(after, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]* \\| ([^|]*) \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 10 {
		t.Fatalf("only %d annotations were found", len(rows))
	}
	for _, row := range rows {
		names := regexp.MustCompile(`(?i)image|secret`).MatchString(row[2])
		if known := strings.Contains(ofMetadata(), "'"+row[1]+"'"); names != known {
			t.Errorf("%s names an image or a Secret: %t, and the policy knows it: %t", row[1], names, known)
		}
	}
	if !strings.Contains(ofMetadata(), naming.AnnotationRehearse) {
		t.Error("a rehearsal may have any image")
	}
}
