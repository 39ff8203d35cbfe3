package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"toban.dev/hack/kubernetes"
	"toban.dev/hack/repeated"
)

type schema = apiextensions.JSONSchemaProps

// kindPage is the reference of a CRD's kind.
func kindPage(path string) (kind, page string, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	var crd apiextensions.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return "", "", fmt.Errorf("understand the CRD: %w", err)
	}
	version := crd.Spec.Versions[len(crd.Spec.Versions)-1]
	root := version.Schema.OpenAPIV3Schema
	repeated.Restore(root)
	p := pageWriter{conditions: conditionsName(crd.Spec.Names.Kind)}
	p.line("<!-- Written by make generate from %s. Don't edit it. -->\n", path)
	p.line("# %s\n", crd.Spec.Names.Kind)
	p.line("`apiVersion: %s/%s`, `kind: %s`; for kubectl also %s.\n", crd.Spec.Group, version.Name, crd.Spec.Names.Kind,
		strings.Join(quoted(append([]string{crd.Spec.Names.Plural}, crd.Spec.Names.ShortNames...)), ", "))
	p.line("%s\n", oneLine(root.Description))
	p.rules(root)
	p.columns(version.AdditionalPrinterColumns)
	for _, part := range []string{"spec", "status"} {
		inner := root.Properties[part]
		p.line("## %s\n\n%s\n", part, oneLine(inner.Description))
		p.rules(&inner)
		p.fields(part, &inner)
	}
	return crd.Spec.Names.Kind, p.String(), nil
}

// pageWriter writes a page of Markdown.
type pageWriter struct {
	strings.Builder
	// conditions is the page of the kind's conditions.
	conditions string
}

func (p *pageWriter) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// rules are the sentences with which the API server refuses a bad object.
func (p *pageWriter) rules(s *schema) {
	for _, rule := range s.XValidations {
		p.line("- Rule: *%s*.", rule.Message)
	}
	if len(s.XValidations) > 0 {
		p.line("")
	}
}

func (p *pageWriter) columns(columns []apiextensions.CustomResourceColumnDefinition) {
	if len(columns) == 0 {
		return
	}
	p.line("What `kubectl get` shows:\n\n| column | what it says |\n| --- | --- |")
	for _, c := range columns {
		what := c.Description
		if what == "" {
			what = "`" + c.JSONPath + "`"
		}
		p.line("| %s | %s |", strings.ToUpper(c.Name), what)
	}
	p.line("")
}

// fields are a schema's fields with all that is below them.
func (p *pageWriter) fields(path string, s *schema) {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	// What has to be given comes first.
	slices.SortFunc(names, func(a, b string) int {
		if x, y := slices.Contains(s.Required, a), slices.Contains(s.Required, b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		field := s.Properties[name]
		p.field(path+"."+name, &field, slices.Contains(s.Required, name))
	}
}

func (p *pageWriter) field(path string, s *schema, required bool) {
	facts := []string{typeOf(s)}
	if required && strings.HasPrefix(path, "spec") {
		facts = append(facts, "**required**")
	}
	if s.Default != nil {
		facts = append(facts, "default `"+string(s.Default.Raw)+"`")
	}
	if len(s.Enum) > 0 {
		facts = append(facts, "one of "+strings.Join(enum(s.Enum), ", "))
	}
	p.line("### `%s`\n\n%s\n", path, strings.Join(facts, ", "))
	if s.Description != "" {
		p.line("%s\n", oneLine(s.Description))
	}
	p.rules(s)
	link, ok := kubernetes.Fields[path]
	if path == "status.conditions" {
		link, ok = p.conditions, true
	}
	if ok {
		p.line("See %s.\n", linkTo(link))
		return
	}
	p.fields(path, s)
	if s.Items != nil && s.Items.Schema != nil {
		p.rules(s.Items.Schema)
		p.fields(path+"[]", s.Items.Schema)
	}
}

// linkTo is a link that shows where it leads.
func linkTo(address string) string {
	if strings.Contains(address, "://") {
		return "<" + address + ">"
	}
	return "[" + address + "](" + address + ")"
}

func typeOf(s *schema) string {
	switch {
	case s.Type == "array" && s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeOf(s.Items.Schema)
	case s.Type == "object" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(s.AdditionalProperties.Schema)
	case s.Pattern == kubernetes.Time:
		return "time"
	case s.XIntOrString:
		return "integer or string"
	}
	return s.Type
}

func enum(values []apiextensions.JSON) []string {
	var out []string
	for _, v := range values {
		var text string
		if json.Unmarshal(v.Raw, &text) != nil {
			text = string(v.Raw)
		}
		out = append(out, "`"+text+"`")
	}
	return out
}

func quoted(words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, "`"+w+"`")
	}
	return out
}

// oneLine joins the lines of a paragraph, and keeps paragraphs apart.
func oneLine(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		paragraphs[i] = strings.Join(strings.Fields(p), " ")
	}
	return strings.Join(paragraphs, "\n\n")
}
