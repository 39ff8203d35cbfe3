package repeated

import (
	"os"
	"slices"
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// sampleDB is the schema of the kind as its CRD has it.
func sampleDB(t *testing.T) *schema {
	t.Helper()
	text, err := os.ReadFile("../../config/crd/toban.dev_sampledbs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		t.Fatal(err)
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// Each path is that of a field; the CRD says there where the descriptions are; and they are all there again for the
// reference.
func TestWhatIsLeftOutOfTheCRDIsInTheReference(t *testing.T) {
	kind := sampleDB(t)
	for path, like := range fields {
		s, described := at(kind, path), at(kind, like)
		if s == nil || described == nil {
			t.Fatalf("there is no %s, or no %s", path, like)
		}
		if !strings.HasSuffix(s.Description, "Its fields are as in "+like+".") {
			t.Errorf("%s does not say where its fields are described: %q", path, s.Description)
		}
	}
	without := undescribed(kind)
	Restore(kind)
	for path, like := range fields {
		s, described := undescribed(at(kind, path)), undescribed(at(kind, like))
		missing := slices.DeleteFunc(s, func(n string) bool { return slices.Contains(described, n) })
		if len(missing) > 0 {
			t.Errorf("%s has fields without a description: %q", path, missing)
		}
	}
	if left := undescribed(kind); len(left) >= len(without) {
		t.Errorf("%d fields have no description, %d before", len(left), len(without))
	}
}

// undescribed are the fields inside of a schema whose field of the same place elsewhere would describe them.
func undescribed(s *schema) (names []string) {
	for name, field := range s.Properties {
		if field.Description == "" && field.Type != "" {
			names = append(names, name)
		}
		names = append(names, undescribed(&field)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		names = append(names, undescribed(s.Items.Schema)...)
	}
	return names
}

func TestStripLeavesWhatDiffers(t *testing.T) {
	kind := func() *schema {
		field := func(says string) schema { return schema{Type: "string", Description: says} }
		target := func(more string) schema {
			return schema{Type: "object", Description: "Where.",
				Properties: map[string]schema{"time": field("A moment."), "own": field(more)}}
		}
		object := func(name string, s schema) schema {
			return schema{Type: "object", Properties: map[string]schema{name: s}}
		}
		return &schema{Properties: map[string]schema{"spec": {Properties: map[string]schema{
			"restoreFrom": object("target", target("one")), "restore": object("target", target("another")),
		}}}}
	}
	stripped := kind()
	Strip(stripped)
	s := at(stripped, "spec.restore.target")
	if s.Properties["time"].Description != "" || s.Properties["own"].Description != "another" ||
		s.Description != "Where. Its fields are as in spec.restoreFrom.target." {
		t.Errorf("it is %+v", s)
	}
	if at(stripped, "spec.restoreFrom.target").Properties["time"].Description != "A moment." {
		t.Error("the descriptions are taken out where they should stay")
	}
	Restore(stripped)
	if at(stripped, "spec.restore.target").Properties["time"].Description != "A moment." {
		t.Error("it is not put back")
	}
}
