package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of packages in docs/packages.md lists those that there are, and no others. The components of an agent
// have tables of their own in docs/architecture.md.
func TestThePagesListEveryPackage(t *testing.T) {
	all := read(t, "../../docs/packages.md")
	page := read(t, "../../docs/architecture.md") + all
	_, table, found := strings.Cut(all, "\n## All packages\n")
	if !found {
		t.Fatal("docs/packages.md has no section of that name")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	listed := names(table, "`((?:api|cmd|internal)/[a-z0-9/-]+)`")
	there := packages(t)
	for _, name := range there {
		room, isRoom := strings.CutPrefix(name, "internal/agent/")
		switch {
		case isRoom && !strings.Contains(page, "`"+room+"`"):
			t.Errorf("neither page has the agent's %s", room)
		case !isRoom && !slices.Contains(listed, name):
			t.Errorf("the table in docs/packages.md does not have %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(there, name) {
			t.Errorf("docs/packages.md has %s, and there is no such package", name)
		}
	}
}

// packages are the folders with Go code that is Toban's own program.
func packages(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, top := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir("../../"+top, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				out = append(out, strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../../"))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) < 30 {
		t.Fatalf("only %d packages were found: %q", len(out), out)
	}
	return out
}

// Who knows one controller finds the place in the next. Those of orders have the rest in package order.
func TestControllersHaveOneShape(t *testing.T) {
	const folder = "../../internal/operator/"
	all := []string{"setup", "controller", "observe", "decide", "act", "status", "events"}
	orders := []string{"controller", "observe", "decide", "status"}
	kinds := map[string][]string{
		"sampledb": all, "postgresql": all, "myapp": all, "order/verification": all,
		"order/databasebackup": orders, "order/databaserestore": orders, "order/faultdrill": orders,
	}
	for kind, files := range kinds {
		for _, name := range files {
			if _, err := os.Stat(folder + kind + "/" + name + ".go"); err != nil {
				t.Errorf("the controller of %s has no %s.go", kind, name)
			}
		}
	}
	controllers, _ := filepath.Glob(folder + "*/controller.go")
	ofOrders, _ := filepath.Glob(folder + "order/*/controller.go")
	if len(controllers)+len(ofOrders) != len(kinds)+1 { // and that of package order
		t.Errorf("there are other controllers: %q %q", controllers, ofOrders)
	}
}

// The files that CONTRIBUTING.md names for what is added most are there.
func TestTheFilesOfContributingAreThere(t *testing.T) {
	page := read(t, "../../CONTRIBUTING.md")
	_, how, _ := strings.Cut(page, "\n## How a field is added\n")
	how, _, _ = strings.Cut(how, "\n## Commits\n")
	files := names(how, "`((?:api|config|docs|hack|internal|test)[a-zA-Z0-9_./]*)`")
	if len(files) < 20 {
		t.Fatalf("only %d files were found: %q", len(files), files)
	}
	for _, file := range files {
		if regexp.MustCompile(`KIND|NAME|TOPIC|ORDER|FOLDER`).MatchString(file) {
			continue
		}
		if _, err := os.Stat("../../" + file); err != nil {
			t.Errorf("CONTRIBUTING.md has %s, which is not there", file)
		}
	}
}
