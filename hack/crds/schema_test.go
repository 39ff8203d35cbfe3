package main

import (
	"strings"
	"testing"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A manifest that leaves a field of an item out is what the API server stores.
func TestNoDefaultsInsideOfLists(t *testing.T) {
	for value, c := range map[string]struct{ kept, refused bool }{
		`""`: {true, false}, "false": {false, false}, `"ReadOnly"`: {true, true}, "true": {true, true},
	} {
		schema := nested(value)
		err := withoutListDefaults(schema)
		item := schema.Properties["spec"].Properties["roles"].Items.Schema.Properties["access"]
		if (item.Default != nil) != c.kept || (err != nil) != c.refused {
			t.Errorf("%s: %v, kept: %t", value, err, item.Default != nil)
		}
		if err != nil && !strings.Contains(err.Error(), "spec.roles.access") {
			t.Errorf("it does not say where: %v", err)
		}
		if schema.Properties["spec"].Default == nil {
			t.Error("a default outside of lists is gone")
		}
	}
}

// nested has a default in the items of the list spec.roles, and one for spec.
func nested(value string) *apiextensions.JSONSchemaProps {
	type properties = map[string]apiextensions.JSONSchemaProps
	item := &apiextensions.JSONSchemaProps{Properties: properties{
		"access": {Default: &apiextensions.JSON{Raw: []byte(value)}},
	}}
	return &apiextensions.JSONSchemaProps{Properties: properties{"spec": {
		Default: &apiextensions.JSON{Raw: []byte("{}")},
		Properties: properties{
			"roles": {Items: &apiextensions.JSONSchemaPropsOrArray{Schema: item}},
		},
	}}}
}
