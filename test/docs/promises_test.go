package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each invariant of a page has a test that is there, and the table has no others.
func TestPromisesHaveTests(t *testing.T) {
	table := read(t, "promises.md")
	for _, page := range []string{"ha.md", "archive.md", "databaserestore.md", "connections.md", "sides.md"} {
		invariants := names(match(t, "../../docs/"+page, `(?s)\n## Invariants\n(.*?)\n## `), `(?m)^([0-9]+)\. `)
		if len(invariants) < 7 {
			t.Fatalf("docs/%s has the invariants %q", page, invariants)
		}
		_, part, found := strings.Cut(table, "\n## "+page+"\n")
		if !found {
			t.Fatalf("promises.md has nothing of %s", page)
		}
		part, _, _ = strings.Cut(part, "\n## ")
		held := names(part, `(?m)^\| ([0-9]+) \|`)
		if lacks, more := without(invariants, held), without(held, invariants); len(lacks)+len(more) > 0 {
			t.Errorf("of docs/%s promises.md lacks %q, and has %q which are none", page, lacks, more)
		}
		lines := regexp.MustCompile(`(?m)^\| [0-9]+ \| (\S+) \| (.*) \|$`).FindAllStringSubmatch(part, -1)
		for _, line := range lines {
			for name := range strings.FieldsSeq(line[2]) {
				if !hasTest(t, line[1], name) {
					t.Errorf("promises.md names %s of %s, which is not there", name, line[1])
				}
			}
		}
		if len(lines) != strings.Count(part, "\n| ")-2 { // but for the heading
			t.Errorf("%d lines of promises.md on %s have a number, a package and tests: others don't", len(lines), page)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
