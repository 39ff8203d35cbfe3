package sampledb

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/operator/sampledb/world"
)

// What a person asks for by an annotation is in one table: a change of each wakes a reconcile, and no topic reads or
// removes one past it.
func TestNoRequestIsReadPastTheTable(t *testing.T) {
	const table = "world/request.go"
	text, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\t(Request\w+) +Request = (naming\.Annotation\w+)$`)
	rows := row.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 14 || len(rows) != len(world.Requests) {
		t.Errorf("the table has %d requests, and %d wake a reconcile", len(rows), len(world.Requests))
	}
	if once := slices.Compact(slices.Sorted(slices.Values(world.Requests))); len(once) != len(world.Requests) {
		t.Errorf("one is there twice: %q", world.Requests)
	}
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, row := range rows {
			n := len(regexp.MustCompile(regexp.QuoteMeta(row[2])+`\b`).FindAll(code, -1))
			if path == table && n != 1 || path != table && n > 0 {
				t.Errorf("%s has %s %d times: ask for world.%s", path, row[2], n, row[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
