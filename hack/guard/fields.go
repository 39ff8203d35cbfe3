package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensions.JSONSchemaProps

// field is a field of a spec, with all that is between it and the spec: those are fields too.
type field struct {
	// path has [] after the name of a list, and {} after that of a map with keys of the user's own.
	path string
	// kind is the type in the schema.
	kind string
	// text is what describes it, and around what describes the object that it is in.
	text, around string
	// fixed says that it has one of a few values, open that it has whatever a user writes.
	fixed, open bool
}

// fieldsOf are the fields of the spec in a kind's schema, in the order of their paths.
func fieldsOf(root *schema) []field {
	var out []field
	spec := root.Properties["spec"]
	visit("spec", "", "", &spec, func(f field) { out = append(out, f) })
	return out
}

func visit(path, text, around string, s *schema, found func(field)) {
	text += " " + s.Description
	found(field{
		path: path, kind: s.Type, text: text, around: around, fixed: len(s.Enum) > 0,
		open: s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields,
	})
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		inner := s.Properties[name]
		visit(path+"."+name, "", text, &inner, found)
	}
	if s.Items != nil && s.Items.Schema != nil {
		visit(path+"[]", text, around, s.Items.Schema, found)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		visit(path+"{}", text, around, s.AdditionalProperties.Schema, found)
	}
}

// rule says what a field names. It is the variable in the policy with the beginnings of the names that are allowed.
type rule string

const (
	secrets     rule = "secrets"
	images      rule = "images"
	annotations rule = "annotations"
)

var (
	secretPath     = regexp.MustCompile(`(?i)secret|credential|password`)
	secretText     = regexp.MustCompile(`\bSecrets?\b`)
	imagePath      = regexp.MustCompile(`(?i)image`)
	imageText      = regexp.MustCompile(`(?i)\bimages?\b`)
	annotationPath = regexp.MustCompile(`(?i)annotations\{\}$`)
	// otherPath is of fields that lead to something else of the namespace or of a node. They have no rule: one is
	// guarded or an exception when somebody has thought of it.
	otherPath = regexp.MustCompile(
		`(?i)serviceAccount|configMap|hostPath|claim(Name)?$|priorityClass|runtimeClass|nodeName`)
)

// exception is what fields are not guarded for.
type exception struct {
	path *regexp.Regexp
	why  string
}

var exceptions = []exception{
	{regexp.MustCompile(`\.secret(KeyRef)?\.key$`), "a key in a Secret whose name is guarded"},
	{regexp.MustCompile(`^spec\.init\.database$`), "the name of a database; the operator makes its Secret"},
	{regexp.MustCompile(`\.encryption\.recipient$`), "a public key"},
	{regexp.MustCompile(`ecurityContext\.windowsOptions\.gmsaCredentialSpec(Name)?$`),
		"names no Secret; Windows asks whether the Pod's ServiceAccount may use it"},
	{regexp.MustCompile(`^spec\.(migration\.)?(args|command)\[\]$`), "what runs in an image that is guarded"},
	{regexp.MustCompile(`(?i)\.configMaps?\[\]$|\.configMap(KeyRef)?\.(key|name)$`), "ConfigMaps hold nothing secret"},
	{regexp.MustCompile(`^spec\.pod\.priorityClassName$`), "a ResourceQuota limits who may use a class"},
	{regexp.MustCompile(`^spec\.restoreFrom\.archive\.claim$`),
		"an archive in the namespace, and restoreFrom.sampleDB leads to all of them"},
}

// ruleOf is the rule for a field, "" where it needs none. What looks dangerous and has no rule is an error.
func ruleOf(f field) (rule, error) {
	if slices.ContainsFunc(exceptions, func(e exception) bool { return e.path.MatchString(f.path) }) {
		return "", nil
	}
	return looksLike(f)
}

// looksLike is the rule for a field by what it is called, and what is said of it.
func looksLike(f field) (rule, error) {
	switch {
	case f.open:
		return "", fmt.Errorf("%s can hold anything, also the name of a Secret: give it a schema", f.path)
	case f.kind != "string" || f.fixed:
		return "", nil
	case annotationPath.MatchString(f.path):
		return annotations, nil
	case secretPath.MatchString(f.path), secretText.MatchString(f.text), secretText.MatchString(f.around):
		return secrets, nil
	case imagePath.MatchString(f.path), imageText.MatchString(f.text):
		return images, nil
	case otherPath.MatchString(f.path):
		return "", fmt.Errorf("%s leads to another object: add a rule for it, or an exception with its reason", f.path)
	}
	return "", nil
}
