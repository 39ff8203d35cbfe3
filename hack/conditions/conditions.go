// Package conditions reads the conditions and reasons of a kind, with what users do about them, from the comments in
// api: for the reference and for the alerts.
package conditions

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// Constant is one of the constants of conditions.go, or of a file beside it such as conditionsbackup.go: a condition,
// or a reason with what the user does.
type Constant struct{ Name, Value, Says, Todo string }

// Group are the constants of one declaration, with the heading of their reasons and what is said of all of them.
type Group struct {
	Heading, Says string
	Constants     []Constant
}

// Read reads the conditions and the groups of reasons of a conditions.go and the files beside it, from the comments of
// their constants: "Reasons of X." over a declaration, and over each reason what it means and, after "To do:", what the
// user does.
func Read(path string) (conditions []Constant, reasons []Group, err error) {
	decls, err := declarations(path)
	if err != nil {
		return nil, nil, err
	}
	for _, d := range decls {
		g, err := readGroup(d)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", path, err)
		case g.Heading == "":
			conditions = append(conditions, g.Constants...)
		default:
			reasons = append(reasons, g)
		}
	}
	return conditions, reasons, nil
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

func readGroup(d ast.Decl) (Group, error) {
	declaration, ok := d.(*ast.GenDecl)
	if !ok || declaration.Tok != token.CONST {
		return Group{}, nil
	}
	var g Group
	if doc := Text(declaration.Doc); strings.HasPrefix(doc, "Reasons of ") {
		g.Heading, g.Says, _ = strings.Cut(doc, ".")
	}
	for _, s := range declaration.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			continue
		}
		c, err := readConstant(spec, commentOf(declaration, spec), g.Heading != "")
		if err != nil {
			return Group{}, err
		}
		g.Constants = append(g.Constants, c)
	}
	return g, nil
}

// commentOf is the comment of a constant. Go keeps that of a declaration without parentheses with the declaration.
func commentOf(declaration *ast.GenDecl, spec *ast.ValueSpec) string {
	if declaration.Lparen.IsValid() {
		return Text(spec.Doc)
	}
	return Text(declaration.Doc)
}

// readConstant reads a condition, or a reason, which has to say what to do.
func readConstant(spec *ast.ValueSpec, doc string, reason bool) (Constant, error) {
	c := Constant{Name: spec.Names[0].Name, Value: value(spec)}
	if !reason {
		if c.Says = strings.TrimSpace(strings.TrimPrefix(doc, c.Name)); c.Says == "" {
			return c, fmt.Errorf("%s has no meaning: its comment is to say when it is true", c.Name)
		}
		return c, nil
	}
	says, named := strings.CutPrefix(doc, c.Name+": ")
	says, todo, found := strings.Cut(says, " To do: ")
	if !named || !found || says == "" || todo == "" {
		return c, fmt.Errorf("the comment of %s is not of the form \"%s: what it means. To do: what the user does.\"",
			c.Name, c.Name)
	}
	c.Says, c.Todo = says, todo
	return c, nil
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

// Text is a comment on one line.
func Text(comment *ast.CommentGroup) string { return strings.Join(strings.Fields(comment.Text()), " ") }
