package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"toban.dev/internal/change/bluegreen"
)

// docs/bluegreencatalog.md has each system catalog, with what the code says that is done with it. That the list is
// complete is looked at with real servers (test/local/upgrade).
func TestTheCatalogsOfBlueGreenAreOnTheirPage(t *testing.T) {
	const page = "../../docs/bluegreencatalog.md"
	_, table, there := strings.Cut(read(t, page), "| --- | --- | --- |\n")
	if !there {
		t.Fatalf("%s has no table", page)
	}
	rows := strings.Split(strings.TrimSpace(table), "\n")
	for i, c := range bluegreen.Catalogs {
		want := fmt.Sprintf("| `%s` | %s | %s |", c.Name, c.Treatment, c.Why)
		if i >= len(rows) || rows[i] != want {
			t.Errorf("line %d of the table of %s is not\n%s", i+1, page, want)
		}
	}
	if len(rows) > len(bluegreen.Catalogs) {
		t.Errorf("%s has more lines than the list", page)
	}
}

// Each refusal that the list names is one that there is.
func TestTheCatalogsNameRefusalsThatThereAre(t *testing.T) {
	code := read(t, "../../internal/change/bluegreen/carry.go") + read(t, "../../internal/change/major/check.go") +
		read(t, "../../internal/work/bluegreen/change.go")
	for _, c := range bluegreen.Catalogs {
		for _, reason := range names(c.Why, "\\(`([A-Z][A-Za-z]+)`\\)") {
			if !strings.Contains(code, `= "`+reason+`"`) {
				t.Errorf("of %s it names %s, and there is no such reason", c.Name, reason)
			}
		}
	}
}
