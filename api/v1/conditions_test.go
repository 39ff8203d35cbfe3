package v1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// A condition or reason that nothing emits would be documented for nobody. What is
// emitted is handed to a function or put into a value inside of one; to be compared
// with, or to be in a list of the package, is not to be emitted.
func TestEveryConditionAndReasonIsEmitted(t *testing.T) {
	emitted := map[string]bool{}
	files, err := filepath.Glob("../../internal/controller/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the controller's files are %v, %v", files, err)
	}
	for _, path := range files {
		if !strings.HasSuffix(path, "_test.go") {
			collectEmitted(parse(t, path), emitted)
		}
	}
	constants := 0
	ast.Inspect(parse(t, "conditions.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			constants++
			if name := spec.Names[0].Name; !emitted[name] {
				t.Errorf("%s is never emitted: remove it", name)
			}
		}
		return true
	})
	if constants == 0 {
		t.Error("conditions.go has no constants")
	}
}

// collectEmitted adds the names X of every v1.X that a function of the file emits.
func collectEmitted(file *ast.File, emitted map[string]bool) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				return false
			case *ast.SelectorExpr:
				if p, ok := n.X.(*ast.Ident); ok && p.Name == "v1" {
					emitted[n.Sel.Name] = true
				}
			}
			return true
		})
	}
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
