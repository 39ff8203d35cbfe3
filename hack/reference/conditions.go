package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
)

// constant is one of the constants of conditions.go.
type constant struct{ name, value, says string }

// conditionsPage is the reference of conditions and reasons, from the comments
// of their constants. A reason belongs to the conditions of the last comment
// "Of X and Y." above it.
func conditionsPage(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	var conditions []constant
	reasons := map[string][]constant{}
	var groups []string
	for _, spec := range constants(file) {
		c := constant{name: spec.Names[0].Name, value: value(spec)}
		switch {
		case strings.HasPrefix(c.name, "Condition"):
			c.says = text(spec.Doc)
			conditions = append(conditions, c)
		case strings.HasPrefix(c.name, "Reason"):
			if heading := text(spec.Doc); strings.HasPrefix(heading, "Of ") {
				groups = append(groups, strings.TrimSuffix(strings.TrimPrefix(heading, "Of "), "."))
			}
			if len(groups) == 0 {
				return "", fmt.Errorf("%s: %s has no comment of the form \"Of CONDITION.\" above it", path, c.name)
			}
			c.says = text(spec.Comment)
			last := groups[len(groups)-1]
			reasons[last] = append(reasons[last], c)
		}
	}
	return render(path, conditions, groups, reasons), nil
}

func render(path string, conditions []constant, groups []string, reasons map[string][]constant) string {
	var p pageWriter
	p.line("<!-- Written by make generate from %s. Don't edit it. -->\n", path)
	p.line("# Conditions of a SampleDB\n")
	p.line("`kubectl describe sampledb NAME` shows them with a message for people. To wait for one:\n")
	p.line("```\nkubectl wait sampledb/NAME --for=condition=Ready --timeout=5m\n```\n")
	p.line("| condition | meaning |\n| --- | --- |")
	for _, c := range conditions {
		// The comment begins with the constant's name, as comments in Go do.
		p.line("| `%s` | %s |", c.value, strings.TrimPrefix(c.says, c.name+" "))
	}
	for _, group := range groups {
		p.line("\n## Reasons of %s\n\n| reason | meaning |\n| --- | --- |", group)
		for _, r := range reasons[group] {
			p.line("| `%s` | %s |", r.value, r.says)
		}
	}
	return p.String()
}

// constants are the file's constants in their order.
func constants(file *ast.File) []*ast.ValueSpec {
	var all []*ast.ValueSpec
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			if spec, ok := s.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				all = append(all, spec)
			}
		}
	}
	return all
}

func value(spec *ast.ValueSpec) string {
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return spec.Names[0].Name
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return literal.Value
	}
	return text
}

func text(comment *ast.CommentGroup) string { return strings.Join(strings.Fields(comment.Text()), " ") }
