package main

import (
	"fmt"
	"math"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"toban.dev/hack/kubernetes"
)

// What Go decodes is less than what the API server accepts for the formats of OpenAPI, and for controller-gen's
// own pattern of a quantity.
const (
	// patternQuantity leaves exponents at two digits: to compare 1e99999999 with another quantity takes minutes.
	patternQuantity = `^[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$`
	lengthQuantity  = 32
	// looksLikeQuantity is a rough patternQuantity: Kubernetes 1.32 estimates the cost of a rule by the length of
	// the expression and by the longest text that a request can have, whatever maxLength says, and would refuse
	// the CRD with the exact one.
	looksLikeQuantity = `^[-+.\d]+\pL?i?[-+\d]{0,3}$`
	// patternDuration is what time.ParseDuration takes, with so few digits that the sum of all parts
	// is no more than int64 has.
	patternDuration = `^-?([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|` +
		`[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns)){1,6}$`
	// exactInteger is the greatest number up to which a JSON number that was read as a float is the
	// integer that was written.
	exactInteger = 1<<53 - 1
)

// narrow lets a schema accept only what the Go type of its field can be decoded from.
func narrow(_ string, s *apiextensions.JSONSchemaProps) {
	switch {
	case isQuantity(s):
		length := int64(lengthQuantity)
		s.Pattern, s.MaxLength = patternQuantity, &length
	case s.XIntOrString, s.Type == "integer" && s.Format == "int32":
		within(s, math.MinInt32, math.MaxInt32)
	case s.Type == "integer":
		within(s, -exactInteger, exactInteger)
	case s.Format == "duration":
		s.Format, s.Pattern = "", patternDuration
	case s.Format == "date-time":
		s.Format, s.Pattern = "", kubernetes.Time
	}
	sayQuantities(s)
}

// isQuantity says that a schema is that of a resource.Quantity: of all that is an integer or a
// string it alone has a pattern.
func isQuantity(s *apiextensions.JSONSchemaProps) bool { return s.XIntOrString && s.Pattern != "" }

// within sets the bounds that a schema does not have yet.
func within(s *apiextensions.JSONSchemaProps, lowest, highest float64) {
	if s.Minimum == nil {
		s.Minimum = &lowest
	}
	if s.Maximum == nil {
		s.Maximum = &highest
	}
}

// sayQuantities adds a sentence for people to the limits and requests of a container: a pattern alone is refused
// without one. There is a rule for each of the two that everybody sets, because one rule for all would cost more
// than the API server allows.
func sayQuantities(s *apiextensions.JSONSchemaProps) {
	for _, field := range []string{"limits", "requests"} {
		list, ok := s.Properties[field]
		if !ok || list.AdditionalProperties == nil || !isQuantity(list.AdditionalProperties.Schema) {
			continue
		}
		for _, named := range [][2]string{{"cpu", "500m or 2"}, {"memory", "512Mi or 2Gi"}} {
			name, example := named[0], named[1]
			list.XValidations = append(list.XValidations, apiextensions.ValidationRule{
				Rule: fmt.Sprintf("!('%[1]s' in self) || type(self['%[1]s']) == int || "+
					"self['%[1]s'].matches(r'%[2]s')", name, looksLikeQuantity),
				Message: fmt.Sprintf("resources.%s.%s must be a quantity such as %s", field, name, example),
			})
		}
		s.Properties[field] = list
	}
}

// everyObject is what is said of the fields that each object of Kubernetes has.
var everyObject = map[string]string{
	"apiVersion": "The group and the version of this kind.",
	"kind":       "The kind of this object.",
}

// shorten takes out what is explained elsewhere, and from a status what only a spec needs.
func shorten(path string, s *apiextensions.JSONSchemaProps) {
	for field := range kubernetes.Fields {
		if strings.HasPrefix(path, strings.ReplaceAll(field, "[]", "")+".") { // items have the path of their list
			s.Description = ""
		}
	}
	if about, is := everyObject[path]; is {
		s.Description = about
	}
	if strings.HasPrefix(path, "status.") {
		s.Default, s.XValidations = nil, nil
	}
}

// withoutListDefaults takes Kubernetes' own default false out of the items of lists, where nothing means the same. An
// empty text stays: a name that identifies an item has it. Any other default there is an error: code must add it.
func withoutListDefaults(schema *apiextensions.JSONSchemaProps) error {
	var failed error
	visit("", schema, func(list string, s *apiextensions.JSONSchemaProps) {
		if s.Items == nil || s.Items.Schema == nil {
			return
		}
		visit(list, s.Items.Schema, func(path string, s *apiextensions.JSONSchemaProps) {
			switch {
			case s.Default == nil || string(s.Default.Raw) == `""`:
			case string(s.Default.Raw) == "false":
				s.Default = nil
			default:
				failed = fmt.Errorf("%s has the default %s inside of a list: add it in the code", path, s.Default.Raw)
			}
		})
	})
	return failed
}
