package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"toban.dev/internal/naming"
)

// heading is the policy but for its rules. The operator is left out, because it writes what it has read from objects
// that the policy has let in, and goes on with those that were there before. So is a change that leaves all as it is
// that the rules are about: Kubernetes itself takes a finalizer off an object that is being deleted.
const heading = `# Limits what whoever may edit SampleDBs, PostgreSQLs and MyApps can name (docs/security.md):
# Secrets, images, and annotations of Pods, Services and Ingresses. In your copy change the three lists under
# "variables": an entry is how an allowed name begins. End one for Secrets with "-", and one for images with "/", ":" or
# "@". All editors can use and read what is allowed, so they must not be able to create Secrets. Apply it as somebody
# who may write admission policies. The operator goes on with objects that are there already.
# Written by make generate, which finds the fields in config/crd.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: toban-guard
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
%s  matchConditions:
    - name: not-the-operator
      expression: request.userInfo.username != 'system:serviceaccount:toban-system:toban-operator'
    - name: not-what-changes-nothing-of-it
      expression: >-
        request.operation == 'CREATE' || object.spec != oldObject.spec
        || object.metadata.?annotations[?'` + naming.AnnotationRehearse + `'].orValue('')
        != oldObject.metadata.?annotations[?'` + naming.AnnotationRehearse + `'].orValue('')
  variables:
    - name: secrets
      expression: "['databases-']"
    - name: images
      expression: "['registry.example.com/']"
    - name: annotations
      expression: "['example.com/']"
  validations:
%s---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: toban-guard
spec:
  policyName: toban-guard
  validationActions: [Deny]
`

// policy is the text of the policy for kinds.
func policy(kinds []kind) (string, error) {
	rules := map[string]rule{}
	var guarded []kind
	for _, k := range kinds {
		found, err := rulesOf(k)
		if err != nil {
			return "", fmt.Errorf("%s: %w", k.plural, err)
		}
		if len(found) > 0 {
			guarded = append(guarded, k)
		}
		maps.Copy(rules, found)
	}
	paths := slices.Sorted(maps.Keys(rules))
	if err := sameShape(guarded, paths); err != nil {
		return "", err
	}
	var resources strings.Builder
	for _, k := range guarded {
		fmt.Fprintf(&resources, "      - {apiGroups: [%s], apiVersions: [%s], operations: [CREATE, UPDATE], "+
			"resources: [%s]}\n", k.group, k.version, k.plural)
	}
	validations := ofMetadata()
	for _, path := range paths {
		text, err := validation(path, rules[path])
		if err != nil {
			return "", err
		}
		validations += text
	}
	return fmt.Sprintf(heading, resources.String(), validations), nil
}

// rulesOf are the rules for the fields of a kind, by their paths.
func rulesOf(k kind) (map[string]rule, error) {
	out := map[string]rule{}
	for _, f := range k.fields {
		r, err := ruleOf(f)
		if err != nil {
			return nil, err
		}
		if r != "" {
			out[f.path] = r
		}
	}
	return out, nil
}

// sameShape is an error where a guarded path leads through a field that has another type in another kind. The rules
// are for all kinds, and one that fails for a wrong type refuses the object.
func sameShape(kinds []kind, guarded []string) error {
	types := map[string]string{}
	for _, k := range kinds {
		for _, f := range k.fields {
			leads := slices.ContainsFunc(guarded, func(path string) bool {
				rest, ok := strings.CutPrefix(path, f.path)
				return ok && (rest == "" || strings.ContainsAny(rest[:1], ".[{"))
			})
			if was, ok := types[f.path]; ok && leads && was != f.kind {
				return fmt.Errorf("%s is of the type %q in one kind, and %q in another", f.path, was, f.kind)
			}
			types[f.path] = f.kind
		}
	}
	return nil
}

// ofMetadata are the rules for what is beside the spec.
func ofMetadata() string {
	const asked = "object.metadata.?annotations[?'" + naming.AnnotationRehearse + "']"
	return entry(`variables.secrets.all(p, !(object.metadata.name + '-').startsWith(p)
&& !p.startsWith(object.metadata.name + '-'))`,
		`'metadata.name must be another: the operator makes Secrets whose names begin with it, '
+ 'and these would be open to all'`) +
		// The operator divides the text at any white space. Here may be one space only, so that both find one image.
		entry(asked+`.optMap(a,
a.matches('^[0-9]+$') || a.matches('^[0-9]+ [!-~]+$') && [a.split(' ')[1]]
`+all("w", images)+").orValue(true)",
			"'the annotation "+naming.AnnotationRehearse+` must be a version, and after one space an image that '
+ 'begins with ' + `+joined(images))
}

// unknown is a path for which no rule can be written yet: through a map, or a list in a list.
var unknown = regexp.MustCompile(`\{\}.|\[\]\[\]`)

// validation is the rule for a path.
func validation(path string, r rule) (string, error) {
	names, isMap := strings.CutSuffix(path, "{}")
	if unknown.MatchString(path) || isMap != (r == annotations) {
		return "", fmt.Errorf("%s must be guarded, and the generator knows no rule for such a path: write one", path)
	}
	if isMap {
		names = "the annotations in " + names
	}
	return entry(condition("object.spec", strings.TrimPrefix(path, "spec"), r),
		"'"+names+" must begin with '\n+ "+joined(r)), nil
}

// condition is true where all that a path leads to begins as the rule says. Of annotations the keys do.
func condition(from, path string, r rule) string {
	here, below, isList := strings.Cut(path, "[]")
	here, isMap := strings.CutSuffix(from+strings.ReplaceAll(here, ".", ".?"), "{}")
	switch {
	case isMap:
		return here + ".orValue({})\n" + all("s", r)
	case isList && below == "":
		return here + ".orValue([])\n" + all("s", r)
	case isList:
		return here + ".orValue([])\n.all(i, " + condition("i", below, r) + ")"
	}
	return here + "\n.optMap(s, " + begins("s", r) + ").orValue(true)"
}

func begins(s string, r rule) string {
	return fmt.Sprintf("variables.%s.exists(p, %s.startsWith(p))", r, s)
}

func all(s string, r rule) string { return ".all(" + s + ", " + begins(s, r) + ")" }

func joined(r rule) string { return fmt.Sprintf("variables.%s.join(' or ')", r) }

// entry is one of the policy's validations. The lines of its expressions are folded.
func entry(expression, message string) string {
	fold := func(text string) string { return strings.ReplaceAll(text, "\n", "\n        ") }
	return fmt.Sprintf("    - expression: >-\n        %s\n      messageExpression: >-\n        %s\n",
		fold(expression), fold(message))
}
