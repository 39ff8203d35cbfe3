package plan

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// Each field of the spec, with what its change does. A new field is missing here until somebody has thought about that.
func TestEveryFieldHasItsEffects(t *testing.T) {
	got := map[string]string{}
	for path, example := range examples(t, reflect.TypeFor[v1.SampleDBSpec](), "") {
		before := shop()
		if strings.HasPrefix(path, "storage.wal.") { // it can't be added later
			before.Spec.Storage.WAL = &v1.WALSpec{Size: "1Gi"}
		}
		seen := running(t, before)
		spec, err := tree(before.Spec)
		if err != nil {
			t.Fatal(err)
		}
		d := difference{Field: Field{Path: path}, keys: strings.Split(path, "."), after: example}
		after := before.DeepCopy()
		if after.Spec, err = d.alone(before.Spec); err != nil {
			t.Fatalf("%s = %v in %v: %v", path, example, spec, err)
		}
		plan, err := Of(before, after, seen)
		if err != nil {
			t.Fatal(err)
		}
		var effects []string
		if slices.Contains(fixed, path) {
			effects = []string{"refused once there is data"}
			plan.Steps = nil
		}
		for _, s := range plan.Steps {
			effects = append(effects, string(s.Effect))
			if len(s.Fields) == 0 {
				t.Errorf("%s: nothing causes %s", path, s.Effect)
			}
		}
		got[path] = strings.Join(effects, " ")
	}
	golden(t, "../../../docs/reference/changes.md", got)
}

// fixed are the fields that the API server lets nobody change (test/api).
var fixed = []string{"init", "restoreFrom", "storage.wal.storageClassName"}

// own are examples for fields that not every value fits.
var own = map[string]string{
	"version": `18`, "instances": `5`, "storage.size": `"20Gi"`, "storage.wal.size": `"2Gi"`,
	"storage.whenScaled": `"Delete"`,
	"durability":         `"async"`, "deletionPolicy": `"Delete"`,
	"resources":             `{"limits":{"cpu":"2","memory":"1Gi"}}`,
	"pooler.resources":      `{"limits":{"cpu":"2","memory":"1Gi"}}`,
	"postgresql.parameters": `{"max_connections":"200"}`,
	"restore":               `{"id":"a","confirm":"shop"}`,
	"restoreFrom":           `{}`,
	"init":                  `{"database":"other"}`,
	"primary.avoid":         `[1]`,
	"backup.store":          `{"s3":{"bucket":"b","credentials":{"name":"keys"}}}`,
	"pod.affinity":          `{"podAffinity":{}}`,
	"pod.tolerations":       `[{"key":"a"}]`,
}

// examples are the fields of a type by their paths, each with a value that shop does not have.
func examples(t *testing.T, of reflect.Type, path string) map[string]any {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if text, is := own[path]; is {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return map[string]any{path: value}
	}
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[metav1.Duration]():
		return map[string]any{path: "1h"}
	case kind == reflect.Struct:
		out := map[string]any{}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			for below, value := range examples(t, of.Field(i).Type, strings.TrimPrefix(path+"."+name, ".")) {
				out[below] = value
			}
		}
		return out
	case kind == reflect.String:
		return map[string]any{path: "other"}
	case kind == reflect.Bool:
		return map[string]any{path: true}
	case kind == reflect.Int32:
		return map[string]any{path: 7}
	case kind == reflect.Map:
		return map[string]any{path: object{"key": "value"}}
	case kind == reflect.Slice && of.Elem().Kind() == reflect.String:
		return map[string]any{path: []any{"other"}}
	case kind == reflect.Slice:
		return map[string]any{path: []any{object{}}}
	}
	t.Fatalf("%s: no example of %s", path, of)
	return nil
}

// page is the beginning of the page.
const page = "# What a change of each field does\n\n" +
	"This page says for each field of a SampleDB which steps follow when it changes; [plan.md](../plan.md) has what\n" +
	"they are. The example has three instances. What depends on the value is that of one example: for `resources`\n" +
	"more processor, for `postgresql.parameters` another `max_connections`. A test of `internal/operator/plan`\n" +
	"writes this page.\n\n" +
	"| field | steps |\n| --- | --- |\n"

var update = flag.Bool("update", false, "write docs/reference/changes.md anew")

// golden compares the effects with the page that has them for users.
func golden(t *testing.T, path string, effects map[string]string) {
	t.Helper()
	text := page
	for _, field := range slices.Sorted(maps.Keys(effects)) {
		text += fmt.Sprintf("| `%s` | %s |\n", field, effects[field])
	}
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s is not what follows now; see what differs: go test ./internal/operator/plan -update && git diff",
			path)
	}
}
