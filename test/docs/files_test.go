package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// longest is how many lines a file of Go may have. A longer one has more than one subject.
const longest = 500

// Tests may be longer: what they test together stays together. Generated files are as they are.
func TestFilesAreShort(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".local", "bin", "node_modules"}, entry.Name()):
			return fs.SkipDir
		case entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		head, _, _ := bytes.Cut(content, []byte("\npackage "))
		generated := bytes.Contains(head, []byte("Code generated"))
		if lines := bytes.Count(content, []byte("\n")); lines >= longest && !generated {
			t.Errorf("%s has %d lines, and %d are too many: split it by subject", path, lines, longest)
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("%d files were read: %v", seen, err)
	}
}

// widest is how many characters a line of a page may have.
const widest = 120

// Lines of prose can be read in any editor, and compared. What can't be broken stays as it is: a row of a table, what
// is fenced as code, and a line without a space.
func TestLinesOfPagesAreShort(t *testing.T) {
	for _, page := range pages(t) {
		prose, _ := split(read(t, page))
		for _, line := range strings.Split(prose, "\n") {
			breaks := !strings.HasPrefix(line, "|") && strings.Contains(strings.TrimSpace(line), " ")
			if n := utf8.RuneCountInString(line); n > widest && breaks {
				t.Errorf("%s has a line of %d characters, more than %d: %s", page, n, widest, line)
			}
		}
	}
}
