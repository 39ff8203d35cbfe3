package docs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// told are the columns of the reference that are there to explain: none of their cells may be empty.
var told = []string{"meaning", "what to do", "what it does"}

// A row of the reference that explains nothing is worse than none: whoever looks it up has nowhere else to look.
func TestTheReferenceExplainsEachRow(t *testing.T) {
	all, err := filepath.Glob(root + "/docs/reference/*.md")
	if err != nil {
		t.Fatal(err)
	}
	cells := 0
	for _, page := range all {
		var columns []string
		for _, line := range strings.Split(read(t, page), "\n") {
			row := rowOf(line)
			switch {
			case row == nil:
				columns = nil
			case columns == nil:
				columns = row
			}
			for i, cell := range row {
				if i >= len(columns) || !slices.Contains(told, columns[i]) {
					continue
				}
				if cells++; cell == "" {
					t.Errorf("%s: the column %q is empty: %s", filepath.Base(page), columns[i], line)
				}
			}
		}
	}
	if cells < 300 {
		t.Errorf("only %d cells were found that explain something", cells)
	}
}

// rowOf are the cells of a line of a table, nil where it is none. A vertical line in a cell is written \|.
func rowOf(line string) []string {
	line, found := strings.CutPrefix(line, "|")
	if !found {
		return nil
	}
	var cells []string
	line = strings.ReplaceAll(strings.TrimSuffix(strings.TrimSpace(line), "|"), `\|`, "\x00")
	for cell := range strings.SplitSeq(line, "|") {
		cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", `\|`)))
	}
	return cells
}
