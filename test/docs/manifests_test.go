package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"toban.dev/internal/operator/scheme"
)

// least is the least that a spec of each kind needs. A page shows parts of a spec, which are put into it.
func least() map[string]string {
	return map[string]string{
		"SampleDB":   "{version: 17, instances: 3, storage: {size: 10Gi}}",
		"PostgreSQL": "{db: shop, user: shop, password: shop-password}",
		"MyApp":      "{image: 'shop:1'}",
	}
}

// places are where a part that a page shows may stand.
func places() []string {
	return []string{"%s", "spec: {%s}", "spec: {backup: {%s}}", "status: {%s}"}
}

// Each block of YAML is one that a cluster takes: no field is misspelled, and no rule of its kind refuses it. What is
// the part of a spec must be that of one of the kinds.
func TestEveryManifestOfThePagesIsTaken(t *testing.T) {
	whole, parts := 0, 0
	for _, b := range allBlocks(t) {
		if b.Language != "yaml" {
			continue
		}
		for _, text := range regexp.MustCompile(`(?m)^---$`).Split(withoutGaps(b.Text), -1) {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				t.Errorf("%v is no YAML: %v", b, err)
				continue
			}
			if object["apiVersion"] != nil {
				whole++
				if err := taken(object); err != nil {
					t.Errorf("%v: %v", b, err)
				}
				continue
			}
			parts++
			if err := partOfSomething(object); err != nil {
				t.Errorf("%v: %v", b, err)
			}
		}
	}
	t.Logf("%d manifests and %d parts of one", whole, parts)
	if whole < 10 || parts < 35 {
		t.Errorf("only %d manifests and %d parts of one were found", whole, parts)
	}
}

// withoutGaps is a text in which nothing is left out: no fields, and no part of a key.
func withoutGaps(text string) string {
	return strings.NewReplacer(", …,", ",", "age1…", "age1"+strings.Repeat("q", 58)).Replace(text)
}

// partOfSomething looks for a kind and a place that takes a part of a manifest.
func partOfSomething(part map[string]any) error {
	if isKustomization(part) || isPod(part) {
		return nil
	}
	var all []error
	for kind, base := range least() {
		for _, place := range places() {
			object, err := within(kind, base, place, part)
			if err == nil {
				err = taken(object)
			}
			if err == nil {
				return nil
			}
			all = append(all, fmt.Errorf("as "+place+" of a %s: %w", "…", kind, err))
		}
	}
	return fmt.Errorf("no kind takes it: %w", errors.Join(all...))
}

// isKustomization says whether it is what kustomize builds.
func isKustomization(part map[string]any) bool {
	text, err := yaml.Marshal(part)
	return err == nil && yaml.UnmarshalStrict(text, &kustomize.Kustomization{}) == nil
}

// isPod says whether it is part of the manifest of a Pod.
func isPod(part map[string]any) bool {
	return strictly(merged(part, map[string]any{"apiVersion": "v1", "kind": "Pod"})) == nil
}

// within is an object of a kind with a part at its place.
func within(kind, base, place string, part map[string]any) (map[string]any, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return nil, err
	}
	var object, put map[string]any
	about := definition(kind)
	head := fmt.Sprintf("{apiVersion: %s/%s, kind: %s, metadata: {name: main}, spec: %s}",
		about.Spec.Group, about.Spec.Versions[0].Name, kind, base)
	inner := strings.TrimSuffix(strings.TrimPrefix(string(text), "{"), "}")
	err = errors.Join(yaml.Unmarshal([]byte(head), &object),
		yaml.Unmarshal([]byte("{"+fmt.Sprintf(place, inner)+"}"), &put))
	return merged(object, put), err
}

// merged is an object with what another one has, as a merge patch puts it there.
func merged(object, more map[string]any) map[string]any {
	out := maps.Clone(object)
	for name, value := range more {
		inner, both := out[name].(map[string]any)
		if put, is := value.(map[string]any); is && both {
			value = merged(inner, put)
		}
		out[name] = value
	}
	return out
}

// taken says why a cluster would refuse an object.
func taken(object map[string]any) error {
	kind, _ := object["kind"].(string)
	version, _ := object["apiVersion"].(string)
	if strings.HasPrefix(version, "cert-manager.io/") || strings.HasPrefix(version, "postgresql.cnpg.io/") {
		return nil // somebody else's
	}
	if err := strictly(object); err != nil {
		return err
	}
	about := definition(kind)
	if about == nil || !strings.HasPrefix(version, about.Spec.Group+"/") {
		return nil
	}
	return byItsRules(about, object)
}

// strictly reads an object as one of its type, with no field that the type does not have.
func strictly(object map[string]any) error {
	known, err := scheme.New()
	if err != nil {
		return err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	reader := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, known, known,
		jsonserializer.SerializerOptions{Strict: true})
	_, _, err = reader.Decode(text, nil, nil)
	return err
}

// definition is that of one of our kinds, or nil.
func definition(kind string) *apiextensionsv1.CustomResourceDefinition {
	for _, one := range ourKinds() {
		if one.Spec.Names.Kind == kind {
			return &one
		}
	}
	return nil
}

// rules are what the API server looks at an object of a kind by.
type rules struct {
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	more       *cel.Validator
}

// rulesOf are those of a kind. To compile them takes a second.
func rulesOf(about *apiextensionsv1.CustomResourceDefinition) (r rules, err error) {
	if known, found := compiled.Load(about.Name); found {
		r, _ = known.(rules)
		return r, nil
	}
	var props apiextensions.JSONSchemaProps
	err = apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		about.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil)
	if err != nil {
		return r, err
	}
	if r.structural, err = structuralschema.NewStructural(&props); err != nil {
		return r, err
	}
	if r.schema, _, err = validation.NewSchemaValidator(&props); err != nil {
		return r, err
	}
	r.more = cel.NewValidator(r.structural, true, celconfig.PerCallLimit)
	compiled.Store(about.Name, r)
	return r, nil
}

var compiled sync.Map

// byItsRules looks at an object as the API server does: defaults, schema, and rules.
func byItsRules(about *apiextensionsv1.CustomResourceDefinition, object map[string]any) error {
	r, err := rulesOf(about)
	if err != nil {
		return err
	}
	text, err := json.Marshal(object) // a copy, with numbers as the API server has them
	if err != nil {
		return err
	}
	var copied map[string]any
	if err := utiljson.Unmarshal(text, &copied); err != nil {
		return err
	}
	defaulting.Default(copied, r.structural)
	bad := validation.ValidateCustomResource(nil, copied, r.schema)
	broken, _ := r.more.Validate(context.Background(), field.NewPath(""), r.structural, copied, nil,
		celconfig.RuntimeCELCostBudget)
	return append(bad, broken...).ToAggregate()
}

// Rules are found broken: a test that takes everything would show nothing.
func TestBadManifestsAreRefused(t *testing.T) {
	for what, text := range map[string]string{
		"a field that there is not": "{apiVersion: toban.dev/v1, kind: SampleDB, metadata: {name: a}, " +
			"spec: {version: 17, storage: {size: 1Gi}, instance: 3}}",
		"a size that is none": "{apiVersion: toban.dev/v1, kind: SampleDB, metadata: {name: a}, " +
			"spec: {version: 17, storage: {size: much}}}",
		"a version that a rule refuses": "{apiVersion: toban.dev/v1, kind: SampleDB, metadata: {name: a}, " +
			"spec: {version: 9, storage: {size: 1Gi}}}",
		"a Pod with a field that there is not": "{apiVersion: v1, kind: Pod, metadata: {name: a}, " +
			"spec: {container: []}}",
	} {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatal(err)
		}
		if err := taken(object); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	part := map[string]any{"spec": map[string]any{"pooler": map[string]any{"instance": 2}}}
	if err := partOfSomething(part); err == nil {
		t.Error("a part that no kind has is taken")
	}
}
