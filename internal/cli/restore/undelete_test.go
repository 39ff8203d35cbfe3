package restore

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// written puts a manifest into a backup.
func written(manifest string) func(*v1.DatabaseBackup) {
	return func(b *v1.DatabaseBackup) { b.Status.Manifest.Raw = []byte(manifest) }
}

// undeleted is one run that brings x of the namespace shop back, from a backup with a manifest.
func undeleted(t *testing.T, manifest string) *undelete {
	t.Helper()
	from, err := choose(findLost([]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1, written(manifest))}, nil), "x", "")
	if err != nil {
		t.Fatal(err)
	}
	o := undeleteOptions{}
	o.Namespace = "shop"
	return &undelete{undeleteOptions: &o, from: from}
}

// manifestOf is a manifest as the operator writes it.
func manifestOf(version, kind, name, more string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"shop"%s},"spec":{}}`,
		version, kind, name, more)
}

// Whoever may write a SampleDB, or an object of the store, may write a manifest. Who brings it back has other rights.
func TestNothingComesBackButWhatWasAskedFor(t *testing.T) {
	sampleX := manifestOf("toban.dev/v1", "SampleDB", "x", "")
	for name, c := range map[string]struct{ manifest, words string }{
		"a SampleDB":   {sampleX, ""},
		"a PostgreSQL": {manifestOf("exp.wheel.jp/v1", "PostgreSQL", "x", ""), ""},
		"another kind": {
			`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"x"},` +
				`"roleRef":{"kind":"ClusterRole","name":"cluster-admin"}}`, `it is a "ClusterRoleBinding"`,
		},
		"another of our kinds":      {manifestOf("example.com/v1", "MyApp", "x", ""), `it is a "MyApp"`},
		"a kind of another API":     {manifestOf("evil.dev/v1", "SampleDB", "x", ""), `of "evil.dev/v1"`},
		"a kind that hides another": {`{"kind":"SampleDB","Kind":"Secret","apiVersion":"toban.dev/v1"}`, `"Secret"`},
		"another name":              {manifestOf("toban.dev/v1", "SampleDB", "y", ""), `it is of "y"`},
		"another namespace":         {strings.Replace(sampleX, "shop", "a", 1), `"a"`},
		"an owner": {
			manifestOf("toban.dev/v1", "SampleDB", "x", `,"ownerReferences":[]`), "ownerReferences",
		},
		"a finalizer": {
			manifestOf("toban.dev/v1", "SampleDB", "x", `,"finalizers":["a/b"]`), "finalizers",
		},
		"a field of another release":  {`{"apiVersion":"toban.dev/v1","kind":"SampleDB","spec":{"news":1}}`, `"news"`},
		"what is no manifest":         {`[]`, "refused"},
		"what goes on after its end":  {sampleX + `{}`, "refused"},
		"an object without a content": {`null`, "refused"},
	} {
		u := undeleted(t, c.manifest)
		object, err := u.object()
		switch {
		case c.words == "" && (err != nil || object.GetName() != "x" || object.GetNamespace() != "shop"):
			t.Errorf("%s: %v, %v", name, object, err)
		case c.words != "" && (err == nil || !strings.Contains(err.Error(), c.words)):
			t.Errorf("%s: %v, %v, want an error with %s", name, object, err, c.words)
		}
	}
}

// An annotation asks for something, or says whose something is: those that Toban has not written are no manifest's.
func TestWhatComesBackAsksForNothing(t *testing.T) {
	manifest := manifestOf("toban.dev/v1", "SampleDB", "x", fmt.Sprintf(
		`,"annotations":{"note":"mine",%q:"1",%q:"2",%q:"3"}`,
		naming.AnnotationCredentials, naming.AnnotationSwitchover, naming.AnnotationSide))
	object, err := undeleted(t, manifest).object()
	if err != nil {
		t.Fatal(err)
	}
	if a := object.GetAnnotations(); len(a) != 2 || a["note"] != "mine" || a[naming.AnnotationCredentials] != "1" {
		t.Errorf("it has %v", a)
	}
}

// What comes back is shown before it is made, and a person confirms it.
func TestWhatComesBackIsShownAndConfirmed(t *testing.T) {
	manifest := `{"apiVersion":"toban.dev/v1","kind":"SampleDB","metadata":{"name":"x","namespace":"shop"},` +
		`"spec":{"version":18,"storage":{"size":"1Gi"},"image":"evil.dev/\u001bpostgres"}}`
	for name, c := range map[string]struct {
		asks  bool
		typed string
		words string
	}{
		"in a script":                {false, "", ""},
		"who types the name":         {true, "x\n", ""},
		"who types something else":   {true, "y\n", "nothing was done"},
		"who ends the input at once": {true, "", "nothing was done"},
	} {
		var out bytes.Buffer
		u := undeleted(t, manifest)
		u.in, u.out, u.asks = strings.NewReader(c.typed), &out, c.asks
		object, err := u.object()
		if err != nil {
			t.Fatal(err)
		}
		err = u.confirmed(t.Context(), object)
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range []string{"kind: SampleDB", "version: 18", "size: 1Gi", `evil.dev/\epostgres`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: it does not show %q:\n%s", name, want, out.String())
			}
		}
		if strings.Contains(out.String(), "type the name") != c.asks {
			t.Errorf("%s: it says\n%s", name, out.String())
		}
	}
}
