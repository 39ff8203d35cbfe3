package api

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"golang.org/x/sync/errgroup"

	appv1 "toban.dev/api/myapp/v1"
	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
)

// The operator's cache decodes all objects of a kind at once, so a single one that can't be decoded would hide the
// others. Here every field of every kind, as the CRDs have them, gets values that do not belong there. What the API
// server takes must be decoded.
func TestWhatTheAPIServerTakesCanBeDecoded(t *testing.T) {
	w := newWorld(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "crd", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("the CRDs are %v, %v", files, err)
	}
	fed := map[fed]bool{}
	for _, file := range files {
		k := w.newKind(file)
		k.fed = fed
		t.Run(k.crd.Spec.Names.Kind, func(t *testing.T) {
			k.feed(t, "spec")
			k.feed(t, "status")
		})
	}
	for _, list := range []client.ObjectList{
		&v1.SampleDBList{}, &v1.DatabaseBackupList{}, &v1.DatabaseRestoreList{}, &v1.FaultDrillList{},
		&pgv1.PostgreSQLList{}, &appv1.MyAppList{},
	} {
		if err := w.api.List(t.Context(), list); err != nil {
			t.Errorf("list all of a kind: %v", err)
		}
	}
}

func TestAQuantityIsRefusedWithASentence(t *testing.T) {
	w := newWorld(t)
	for _, file := range []string{"toban.dev_sampledbs.yaml", "example.com_myapps.yaml"} {
		k := w.newKind(filepath.Join("..", "..", "config", "crd", file))
		top := field(k.root, "spec")
		for _, quantity := range []string{"banana", "1e1.5", "1 Gi", "1 day"} {
			_, err := k.try(t.Context(), "spec",
				place("spec", top, []string{"resources", "limits"}, map[string]any{"cpu": quantity}))
			refused(t, err, "resources.limits.cpu must be a quantity such as 500m or 2")
			_, err = k.try(t.Context(), "spec",
				place("spec", top, []string{"resources", "requests"}, map[string]any{"memory": quantity}))
			refused(t, err, "resources.requests.memory must be a quantity such as 512Mi or 2Gi")
		}
	}
}

// props is the schema of a field.
type props = apiextensions.JSONSchemaProps

// kind is a kind of ours with an object of it that is good.
type kind struct {
	crd  apiextensions.CustomResourceDefinition
	root *props
	rest rest.Interface
	// where is the path of its objects in the namespace.
	where string
	good  map[string]any
	// fed is what needs no more garbage, of all kinds.
	fed map[fed]bool
}

// fed is a field by all that its garbage is judged by: what it is decoded into, and its schema. Affinities, for
// example, are in many places.
type fed struct {
	into   reflect.Type
	schema string
}

// again says whether a field has had its garbage in another place, and notes that it has it.
func (k *kind) again(t *testing.T, steps []string, s *props) bool {
	t.Helper()
	into := decodedInto(t, k.good, steps)
	s = s.DeepCopy()
	forgetDescriptions(s)
	schema, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	this := fed{into, string(schema)}
	again := k.fed[this]
	k.fed[this] = true
	return again
}

// forgetDescriptions leaves of a schema what values are judged by.
func forgetDescriptions(s *props) {
	s.Description = ""
	for name, below := range s.Properties {
		forgetDescriptions(&below)
		s.Properties[name] = below
	}
	if s.Items != nil {
		forgetDescriptions(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		forgetDescriptions(s.AdditionalProperties.Schema)
	}
}

// decodedInto is the type that the operator has for a field of an object.
func decodedInto(t *testing.T, object map[string]any, steps []string) reflect.Type {
	t.Helper()
	version, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	whole, err := scheme.New(schema.FromAPIVersionAndKind(version, name))
	if err != nil {
		t.Fatal(err)
	}
	at := reflect.TypeOf(whole).Elem()
	for _, step := range steps {
		into := below(at, step)
		if into == nil {
			t.Fatalf("%v has no field %s, which is on the way of %v", at, step, steps)
		}
		at = into
	}
	return at
}

// below is the type of a field, or of what is in a list or map; nil where there is none.
func below(at reflect.Type, step string) reflect.Type {
	for at.Kind() == reflect.Pointer {
		at = at.Elem()
	}
	switch at.Kind() {
	case reflect.Slice, reflect.Map:
		return at.Elem()
	case reflect.Struct:
		for i := range at.NumField() {
			f := at.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == step {
				return f.Type
			}
			if name == "" && f.Anonymous {
				if found := below(f.Type, step); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

func (w *world) newKind(file string) *kind {
	w.Helper()
	text, err := os.ReadFile(file)
	w.must(err)
	k := &kind{}
	w.must(yaml.UnmarshalStrict(text, &k.crd))
	version := k.crd.Spec.Versions[0]
	k.root = version.Schema.OpenAPIV3Schema
	config := rest.CopyConfig(server)
	config.GroupVersion = &schema.GroupVersion{Group: k.crd.Spec.Group, Version: version.Name}
	config.WarningHandler = rest.NoWarnings{}
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme)
	k.rest, err = rest.UnversionedRESTClientFor(config)
	w.must(err)
	k.where = fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s",
		k.crd.Spec.Group, version.Name, w.namespace, k.crd.Spec.Names.Plural)
	k.good = map[string]any{
		"apiVersion": k.crd.Spec.Group + "/" + version.Name, "kind": k.crd.Spec.Names.Kind,
		"metadata": map[string]any{"name": "x"}, "spec": k.complete(sample("spec", field(k.root, "spec"))),
	}
	answer, err := k.post(w.Context(), k.good, false)
	w.must(err)
	w.must(json.Unmarshal(answer, &k.good))
	return k
}

func (k *kind) post(ctx context.Context, object any, dryRun bool) ([]byte, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	request := k.rest.Post().AbsPath(k.where)
	if dryRun {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	return send(ctx, request, body)
}

func (k *kind) putStatus(ctx context.Context, object any) ([]byte, error) {
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return send(ctx, k.rest.Put().AbsPath(k.where, "x", "status").Param("dryRun", metav1.DryRunAll), body)
}

func send(ctx context.Context, request *rest.Request, body []byte) ([]byte, error) {
	result := request.SetHeader("Content-Type", "application/json").SetHeader("Accept",
		"application/json").Body(body).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// complete adds to a spec what one of its kind must have besides the fields that the schema requires.
func (k *kind) complete(spec any) any {
	fields, ok := spec.(map[string]any)
	for name, value := range needed[k.crd.Spec.Names.Kind] {
		if _, there := fields[name]; ok && !there {
			fields[name] = value
		}
	}
	return spec
}

// try gives the object as the API server would store it with that spec or status.
func (k *kind) try(ctx context.Context, part string, content any) ([]byte, error) {
	object := map[string]any{
		"apiVersion": k.good["apiVersion"], "kind": k.good["kind"],
		"metadata": map[string]any{"name": "y"}, part: k.complete(content),
	}
	if part == "spec" {
		return k.post(ctx, object, true)
	}
	object["metadata"], object["spec"] = k.good["metadata"], k.good["spec"]
	return k.putStatus(ctx, object)
}

// feed puts garbage into every field of the spec or the status.
func (k *kind) feed(t *testing.T, part string) {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	var group errgroup.Group
	group.SetLimit(8)
	top := field(k.root, part)
	walk(part, top, nil, func(path string, steps []string, s *props) (further bool) {
		if k.again(t, append([]string{part}, steps...), s) {
			return false
		}
		group.Go(func() error {
			if _, err := k.try(t.Context(), part, place(part, top, steps, sample(path, s))); err != nil {
				t.Errorf("%s can't be reached, so its garbage proves nothing (examples and companions are "+
					"for that): %v", path, err)
				return nil
			}
			for _, garbage := range garbageFor(s) {
				stored, err := k.try(t.Context(), part, place(part, top, steps, json.RawMessage(garbage)))
				if err != nil {
					if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
						t.Errorf("%s: %.100s: %v", path, garbage, err)
					}
					continue
				}
				if _, _, err := decoder.Decode(stored, nil, nil); err != nil {
					t.Errorf("%s: the API server takes %.100s, and the operator can't decode it: %v",
						path, garbage, err)
				}
			}
			return nil
		})
		return true
	})
	_ = group.Wait() // what is wrong is said at once
}

// garbageFor are values that do not belong into a field, and some that only look as if they did.
func garbageFor(s *props) []string {
	huge := `"` + strings.Repeat("9", 5000) + `"`
	shapes := []string{`null`, `{}`, `[]`, `{"topologyKey":"x"}`, `["x"]`, `"x"`, `""`, `true`, `7`}
	numbers := []string{
		`-1`, `1.5`, `1.0`, `1e3`, `1e30`, `-1e30`, `1e300`, `2147483648`, `-2147483649`, `9223372036854775807`,
		`9223372036854775808`, `18446744073709551616`, `99999999999999999999999999`, `"1"`, `"0x10"`,
	}
	texts := []string{
		// Quantities.
		`"1e1.5"`, `"1e"`, `"1e100"`, `"1e9999999999"`, `"0x10"`, `"."`, `"+"`, `"-"`, `"1Ei2"`, `"1.5.5"`, `"1 Gi"`,
		`"-1"`, `"1e-3"`, `"999999999999999999999Ei"`,
		`"1"`, `"1h2"`, `"∞"`, `"9999999h"`, `"99999h99999h99999h"`, `"1 day"`, `"-1h"`, `"1.5h"`, // durations
		`"2026-02-30T00:00:00Z"`, `"2024-02-29T00:00:00Z"`, `"2023-02-29T00:00:00Z"`, `"2100-02-29T00:00:00Z"`,
		`"2026-13-01T00:00:00Z"`, `"2026-04-31T00:00:00Z"`, `"2026-11-20t03:15:00z"`, `"2026-11-20T03:15:60Z"`,
		`"2026-11-20T03:15:00+99:99"`, `"2026-11-20T03:15:00"`, `"2026-11-20"`,
		// Times.
		`"20260-01-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"2026-11-20T03:15:00,5Z"`, `"2026-11-20T24:00:00Z"`,
		huge,
	}
	switch {
	case s.XIntOrString:
		return slices.Concat(shapes, numbers, texts)
	case s.Type == "integer", s.Type == "number":
		return slices.Concat(shapes, numbers)
	case s.Type == "string" && len(s.Enum) == 0 && s.Pattern == "" && s.Format == "" && len(s.XValidations) == 0:
		// Any text will do there, so those that nothing is made of but a text.
		return append(shapes, `"∞"`, `"\u0000"`, `"\ud800"`, huge)
	case s.Type == "string" && len(s.Enum) == 0:
		return slices.Concat(shapes, texts)
	case s.Type == "" || s.XPreserveUnknownFields != nil:
		return slices.Concat(shapes, numbers, texts)
	}
	return shapes
}

// walk visits a field and all that are in it, if visit says so. The steps to a field are names, "[]" into a list and
// "{}" into a map.
func walk(path string, s *props, steps []string, visit func(string, []string, *props) bool) {
	if !visit(path, steps, s) {
		return
	}
	below := func(path, step string, s *props) { walk(path, s, append(steps[:len(steps):len(steps)], step), visit) }
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) { // in one order: of a type fed twice, the first counts
		below(path+"."+name, name, field(s, name))
	}
	if s.Items != nil {
		below(path+"[]", "[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		below(path+"{}", "{}", s.AdditionalProperties.Schema)
	}
}

func field(s *props, name string) *props {
	f := s.Properties[name]
	return &f
}

// place is a good value of a schema, but for what the steps lead to.
func place(path string, s *props, steps []string, value any) any {
	if len(steps) == 0 {
		return value
	}
	switch step := steps[0]; step {
	case "[]":
		return []any{place(path+"[]", s.Items.Schema, steps[1:], value)}
	case "{}":
		return map[string]any{"key": place(path+"{}", s.AdditionalProperties.Schema, steps[1:], value)}
	default:
		below := path + "." + step
		out := required(path, s)
		if example, ok := examples[suffix(path)].(map[string]any); ok {
			maps.Copy(out, example)
		}
		maps.Copy(out, companions[suffix(below)])
		maps.DeleteFunc(out, func(_ string, value any) bool { return value == nil })
		out[step] = place(below, field(s, step), steps[1:], value)
		return out
	}
}

// sample is a good value of a schema.
func sample(path string, s *props) any {
	example, ok := examples[suffix(path)]
	switch {
	case ok:
		return example
	case s.XIntOrString:
		return 1
	case s.Type == "object" && s.AdditionalProperties != nil:
		return map[string]any{"key": sample(path+"{}", s.AdditionalProperties.Schema)}
	case s.Type == "object":
		return required(path, s)
	case s.Type == "array":
		return []any{sample(path+"[]", s.Items.Schema)}
	case s.Type == "boolean":
		return true
	case s.Type == "integer" && s.Minimum != nil && *s.Minimum > 0:
		return int64(*s.Minimum)
	case s.Type == "integer":
		return 1
	case len(s.Enum) > 0:
		return json.RawMessage(s.Enum[0].Raw)
	}
	return text(s)
}

func required(path string, s *props) map[string]any {
	out := map[string]any{}
	for _, name := range s.Required {
		out[name] = sample(path+"."+name, field(s, name))
	}
	return out
}

// text is one of some usual texts, which the schema allows.
func text(s *props) string {
	for _, text := range []string{
		"example", "1Gi", "1h", "2026-11-20T03:15:00Z", "0/3000060", "7", "https://example.com",
		"age1" + strings.Repeat("q", 58),
	} {
		if ok, err := regexp.MatchString(s.Pattern, text); err == nil && ok &&
			(s.MaxLength == nil || int64(len(text)) <= *s.MaxLength) {
			return text
		}
	}
	return "example"
}
