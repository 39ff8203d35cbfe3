package v1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A condition or reason that nothing emits would be documented for nobody. What is
// emitted is handed to a function or put into a value inside of one; to be compared
// with, or to be in a list of the package, is not to be emitted; to be the value of a row of a table is. It is asked of
// every package of kinds.
func TestEveryConditionAndReasonIsEmitted(t *testing.T) {
	emitted := map[string]bool{}
	for _, path := range controllerFiles(t) {
		collectEmitted(parse(t, path), emitted)
	}
	handedOn := handedOn(t)
	others, err := filepath.Glob("../*/v1/conditions*.go")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Glob("../v1/conditions*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(others, own...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		pkg := "toban.dev/api/" + filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), "../"))
		constants := 0
		ast.Inspect(parse(t, path), func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				constants++
				if name := spec.Names[0].Name; !emitted[pkg+"."+name] && !handedOn[word(spec)] {
					t.Errorf("%s of %s is never emitted: remove it", name, pkg)
				}
			}
			return true
		})
		if constants == 0 {
			t.Errorf("%s has no constants", path)
		}
	}
}

// controllerFiles are the operator's own, however deep its folders are.
func controllerFiles(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../../internal/operator", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("the controllers' files are %v, %v", files, err)
	}
	return files
}

// handedOn are the reasons of agents, which a controller hands on as they are.
func handedOn(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	ast.Inspect(parse(t, "../../internal/postgres/database/database.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			out[word(spec)] = true
		}
		return true
	})
	return out
}

// word is the value of a constant as it is written.
func word(spec *ast.ValueSpec) string {
	if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
		return literal.Value
	}
	return ""
}

// collectEmitted adds PACKAGE.X for every X of a package of kinds that a function of the file emits.
func collectEmitted(file *ast.File, emitted map[string]bool) {
	packages := map[string]string{}
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := path[strings.LastIndex(path, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		packages[name] = path
	}
	collect := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return false
		case *ast.SelectorExpr:
			if p, ok := n.X.(*ast.Ident); ok {
				emitted[packages[p.Name]+"."+n.Sel.Name] = true
			}
		}
		return true
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			ast.Inspect(d, collect)
		case *ast.GenDecl: // of a table the values, not what they are found by
			ast.Inspect(d, func(n ast.Node) bool {
				if row, ok := n.(*ast.KeyValueExpr); ok {
					ast.Inspect(row.Value, collect)
				}
				return true
			})
		}
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
