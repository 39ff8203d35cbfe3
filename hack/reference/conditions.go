package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"toban.dev/hack/conditions"
)

// conditionsPage is the reference of conditions and reasons, from the comments
// of their constants.
func conditionsPage(path string) (string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	kinds, err := kindsOf(path, file)
	if err != nil {
		return "", err
	}
	all, reasons, err := conditions.Read(path)
	if err != nil {
		return "", err //nolint:wrapcheck // it says of which file
	}
	return render(path, kinds, all, reasons), nil
}

// kindsOf are the kinds of the package of a conditions.go: those first that its own comments name.
func kindsOf(path string, file *ast.File) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.go"))
	if err != nil {
		return nil, fmt.Errorf("list the files beside %s: %w", path, err)
	}
	var kinds []string
	for _, name := range files {
		one, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, d := range one.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE &&
				strings.Contains(g.Doc.Text(), "+kubebuilder:subresource:status") {
				if t, ok := g.Specs[0].(*ast.TypeSpec); ok {
					kinds = append(kinds, t.Name.Name)
				}
			}
		}
	}
	named := func(kind string) bool {
		g, ok := file.Decls[0].(*ast.GenDecl)
		return ok && strings.Contains(conditions.Text(g.Doc), kind)
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

func render(path string, kinds []string, all []conditions.Constant, reasons []conditions.Group) string {
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
	for _, c := range all {
		p.line("| `%s` | %s |", c.Value, c.Says)
	}
	for _, g := range reasons {
		p.line("\n## %s\n", g.Heading)
		if says := strings.TrimSpace(g.Says); says != "" {
			p.line("%s\n", says)
		}
		p.line("| reason | meaning | what to do |\n| --- | --- | --- |")
		for _, r := range g.Constants {
			p.line("| `%s` | %s | %s |", r.Value, sentence(r.Says), sentence(r.Todo))
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
