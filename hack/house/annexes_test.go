package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// The core imports no annex: it is built without each of them. go build sees another tree (-overlay), in which files
// are not there or have fewer lines.
func TestTheCoreIsWholeWithoutEachAnnex(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, annex := range annexes {
		t.Run(name, func(t *testing.T) {
			overlay := annex.all().overlay(t, root)
			// What the program imports is compiled, and the program is not linked.
			build := exec.CommandContext(t.Context(), "go", "list", "-export", "-overlay", overlay,
				"./cmd/toban", "./internal/cli/process", "./internal/ha/...")
			build.Dir = root
			if said, err := build.CombinedOutput(); err != nil {
				t.Errorf("the core needs it: %v\n%s", err, said)
			}
		})
	}
}

// overlay is the file that tells go build what is taken out.
func (w without) overlay(t *testing.T, root string) string {
	t.Helper()
	replaced := map[string]string{}
	for _, gone := range w.gone {
		err := filepath.WalkDir(filepath.Join(root, gone), func(path string, d fs.DirEntry, err error) error {
			name, relative := filepath.Rel(root, path)
			if err == nil && !d.IsDir() && w.has(filepath.ToSlash(name)) {
				replaced[path] = ""
			}
			return errors.Join(err, relative)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range w.lines {
		path := filepath.Join(root, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		less := regexp.MustCompile(lines).ReplaceAll(text, nil)
		if len(less) == len(text) {
			t.Fatalf("%s has no line of it", name)
		}
		replaced[path] = filepath.Join(t.TempDir(), filepath.Base(name))
		if err := os.WriteFile(replaced[path], less, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}
