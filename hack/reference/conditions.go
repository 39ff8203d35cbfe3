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
type constant struct{ name, value, says, todo string }

// group are the constants of one declaration, with the heading of their reasons
// and what is said of all of them.
type group struct {
	heading, says string
	constants     []constant
}

// conditionsPage is the reference of conditions and reasons, from the comments
// of their constants: "Reasons of X." over a declaration, and over each reason
// what it means and, after "To do:", what the user does.
func conditionsPage(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	var conditions []constant
	var reasons []group
	for _, d := range file.Decls {
		g, err := readGroup(d)
		switch {
		case err != nil:
			return "", fmt.Errorf("%s: %w", path, err)
		case g.heading == "":
			conditions = append(conditions, g.constants...)
		default:
			reasons = append(reasons, g)
		}
	}
	return render(path, conditions, reasons), nil
}

func readGroup(d ast.Decl) (group, error) {
	declaration, ok := d.(*ast.GenDecl)
	if !ok || declaration.Tok != token.CONST {
		return group{}, nil
	}
	var g group
	if doc := text(declaration.Doc); strings.HasPrefix(doc, "Reasons of ") {
		g.heading, g.says, _ = strings.Cut(doc, ".")
	}
	for _, s := range declaration.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			continue
		}
		c, err := readConstant(spec, g.heading != "")
		if err != nil {
			return group{}, err
		}
		g.constants = append(g.constants, c)
	}
	return g, nil
}

// readConstant reads a condition, or a reason, which has to say what to do.
func readConstant(spec *ast.ValueSpec, reason bool) (constant, error) {
	c := constant{name: spec.Names[0].Name, value: value(spec)}
	doc := text(spec.Doc)
	if !reason {
		c.says = strings.TrimPrefix(doc, c.name+" ")
		return c, nil
	}
	says, named := strings.CutPrefix(doc, c.name+": ")
	says, todo, found := strings.Cut(says, " To do: ")
	if !named || !found {
		return c, fmt.Errorf("the comment of %s is not of the form \"%s: what it means. To do: what the user does.\"", c.name, c.name)
	}
	c.says, c.todo = says, todo
	return c, nil
}

func render(path string, conditions []constant, reasons []group) string {
	var p pageWriter
	p.line("<!-- Written by make generate from %s. Don't edit it. -->\n", path)
	p.line("# Conditions of a SampleDB and a DatabaseBackup\n")
	p.line("`kubectl describe sampledb NAME` and `kubectl describe databasebackup NAME` show them with a message for people. To wait for one:\n")
	p.line("```\nkubectl wait sampledb/NAME --for=condition=Ready --timeout=5m\n```\n")
	p.line("| condition | meaning |\n| --- | --- |")
	for _, c := range conditions {
		p.line("| `%s` | %s |", c.value, c.says)
	}
	for _, g := range reasons {
		p.line("\n## %s\n", g.heading)
		if says := strings.TrimSpace(g.says); says != "" {
			p.line("%s\n", says)
		}
		p.line("| reason | meaning | what to do |\n| --- | --- | --- |")
		for _, r := range g.constants {
			p.line("| `%s` | %s | %s |", r.value, sentence(r.says), sentence(r.todo))
		}
	}
	return p.String()
}

// sentence is a text as a table's cell.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
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
