package docs_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// list is a numbered list of promises of a page: the heading that it stands below, and what the page's table of tests
// calls it.
type list struct{ heading, name string }

// tested are the pages that say themselves which tests look at what they promise.
var tested = map[string][]list{
	"stop.md":       {{"What is promised", "promised"}, {"Sleep", "sleep"}},
	"readers.md":    {{"Why they can't cost a write", "write"}},
	"faultdrill.md": {{"What is never broken", "broken"}},
	"upgradesteps.md": {
		{"A newer minor version", "minor"}, {"A newer major version", "major"}, {"The rehearsal", "rehearsal"},
		{"How the data gets to another major version", "data"}, {"The operator and its agents", "agents"},
	},
}

// none stands in a row in which no test is named: that is said, and not left out.
const none = "–"

// Each promise of such a page has a row in its table, and each test of a row is there.
func TestPagesNameTheTestsOfTheirPromises(t *testing.T) {
	for page, lists := range tested {
		text := read(t, root+"/docs/"+page)
		_, table, found := strings.Cut(text, "\n## What was tested")
		if !found {
			t.Errorf("docs/%s does not say what was tested", page)
			continue
		}
		rows := rowsOfTests(t, page, table)
		for _, l := range lists {
			for _, promise := range l.promises(t, page, text) {
				if !slices.Contains(rows, promise) {
					t.Errorf("docs/%s names no test for %q, and does not say that there is none", page, promise)
				}
			}
		}
		for _, row := range rows {
			if name, number, numbered := strings.Cut(row, " "); numbered && isNumber(number) &&
				!slices.ContainsFunc(lists, func(l list) bool {
					return l.name == name && slices.Contains(l.promises(t, page, text), row)
				}) {
				t.Errorf("docs/%s has the row %q, and no such promise", page, row)
			}
		}
	}
}

func isNumber(word string) bool {
	_, err := strconv.Atoi(word)
	return err == nil
}

// promises are those of a list, as the first column of the table has them.
func (l list) promises(t *testing.T, page, text string) []string {
	t.Helper()
	_, part, found := strings.Cut(text, "\n## "+l.heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	numbers := names(part, `(?m)^([0-9]+)\. `)
	if !found || len(numbers) < 4 {
		t.Fatalf("docs/%s has below %q the promises %q", page, l.heading, numbers)
	}
	for i := range numbers {
		numbers[i] = l.name + " " + numbers[i]
	}
	return numbers
}

var rowOfTests = regexp.MustCompile(`(?m)^\| ([^|]+) \| (\S+) \| ([^|]+) \|$`)

// rowsOfTests are the first columns of the rows that have a package and tests, which must be there.
func rowsOfTests(t *testing.T, page, table string) (rows []string) {
	t.Helper()
	for _, row := range rowOfTests.FindAllStringSubmatch(table, -1) {
		if row[2] == "---" || row[2] == "package" {
			continue
		}
		rows = append(rows, row[1])
		for name := range strings.FieldsSeq(row[3]) {
			if (row[2] != none || name != none) && !hasTest(t, row[2], name) {
				t.Errorf("docs/%s names %s of %s, which is not there", page, name, row[2])
			}
		}
	}
	return rows
}
