package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// straight is what prints past root.Escaped. The handlers of slog escape by themselves.
var straight = regexp.MustCompile(`os\.Std(out|err)\b|\bfmt\.Print|\bprintln?\(|\blog\.(Print|Fatal)`)

// escapes are the lines that may.
var escapes = regexp.MustCompile(`slog\.NewTextHandler\(os\.Stderr|root\.Escaped\(os\.Stderr\)`)

// What a verb prints, others may have chosen: it goes through the command's own writers, which escape it.
func TestNoVerbPrintsPastItsCommand(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path == "process": // what runs in Pods has logs
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if straight.MatchString(line) && !escapes.MatchString(line) {
				t.Errorf("%s:%d prints past its command's writers (OutOrStdout, ErrOrStderr):\n%s", path, i+1, line)
			}
		}
		return err
	})
	if err != nil || files < 50 {
		t.Errorf("%d files were read: %v", files, err)
	}
}
