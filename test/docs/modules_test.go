package docs_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// go.mod calls a module direct where our code imports it, and no other: go mod tidy would have nothing to change there.
func TestModulesAreMarkedAsTheyAreUsed(t *testing.T) {
	direct, used := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(read(t, "../../go.mod")) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") && strings.Contains(fields[0], ".") {
			direct[fields[0]] = !strings.HasSuffix(strings.TrimSpace(line), "// indirect")
		}
	}
	if len(direct) < 20 {
		t.Fatalf("only %d modules were found in go.mod", len(direct))
	}
	for path := range imports(t) {
		best := ""
		for module := range direct {
			if (path == module || strings.HasPrefix(path, module+"/")) && len(module) > len(best) {
				best = module
			}
		}
		used[best] = true
	}
	for module, marked := range direct {
		if marked != used[module] {
			t.Errorf("go.mod says of %s that it is direct: %v, our code imports it: %v; go mod tidy",
				module, marked, used[module])
		}
	}
}

// imports are the paths that the code of this module imports, tests too.
func imports(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "../.." {
			_, err := os.Stat(filepath.Join(path, "go.mod")) // another module
			if err == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range file.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			out[name] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
