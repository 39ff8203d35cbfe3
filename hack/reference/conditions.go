package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// constant is one of the constants of conditions.go, or of a file beside it such as conditionsbackup.go.
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
	kinds, err := kindsOf(path, file)
	if err != nil {
		return "", err
	}
	var conditions []constant
	var reasons []group
	decls, err := declarations(path)
	if err != nil {
		return "", err
	}
	for _, d := range decls {
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
	return render(path, kinds, conditions, reasons), nil
}

// declarations are those of a conditions.go and of the files beside it whose names begin with conditions.
func declarations(path string) ([]ast.Decl, error) {
	files, err := filepath.Glob(strings.TrimSuffix(path, ".go") + "*.go")
	if err != nil {
		return nil, fmt.Errorf("list the files beside %s: %w", path, err)
	}
	var out []ast.Decl
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		out = append(out, file.Decls...)
	}
	return out, nil
}

// kindsOf are the kinds of the package of a conditions.go: those first that its own comments name.
func kindsOf(path string, conditions *ast.File) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the files beside %s: %w", path, err)
	}
	var kinds []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE &&
				strings.Contains(g.Doc.Text(), "+kubebuilder:subresource:status") {
				if t, ok := g.Specs[0].(*ast.TypeSpec); ok {
					kinds = append(kinds, t.Name.Name)
				}
			}
		}
	}
	named := func(kind string) bool {
		g, ok := conditions.Decls[0].(*ast.GenDecl)
		return ok && strings.Contains(text(g.Doc), kind)
	}
	slices.SortStableFunc(kinds, func(a, b string) int {
		switch {
		case named(a) == named(b):
			return 0
		case named(a):
			return -1
		}
		return 1
	})
	return kinds, nil
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
		return c, fmt.Errorf("the comment of %s is not of the form \"%s: what it means. To do: what the user does.\"",
			c.name, c.name)
	}
	c.says, c.todo = says, todo
	return c, nil
}

func render(path string, kinds []string, conditions []constant, reasons []group) string {
	var of, shown []string
	for _, kind := range kinds {
		of = append(of, "a "+kind)
		shown = append(shown, "`kubectl describe "+strings.ToLower(kind)+" NAME`")
	}
	show := "show"
	if len(kinds) == 1 {
		show = "shows"
	}
	var p pageWriter
	p.line("<!-- Written by make generate from %s. Don't edit it. -->\n", path)
	p.line("# Conditions of %s\n", strings.Join(of, " and "))
	p.line("%s %s them with a message for people. To wait for one:\n", strings.Join(shown, " and "), show)
	p.line("```\nkubectl wait %s/NAME --for=condition=Ready --timeout=5m\n```\n", strings.ToLower(kinds[0]))
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
