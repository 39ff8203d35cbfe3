package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// withSpaces makes a volume with data, and data that was set aside, which have tablespaces in these folders.
func withSpaces(t *testing.T, data, before []string) DataDirectory {
	t.Helper()
	d := DataDirectory{Volume: t.TempDir()}
	for of, names := range map[string][]string{"data": data, "before-1/data": before} {
		links := filepath.Join(d.Volume, of, "pg_tblspc")
		if err := os.MkdirAll(links, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if err := os.Symlink(filepath.Join(d.Volume, name), filepath.Join(links, filepath.Base(name))); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// A copy has its tablespaces in other folders than the source where something is in those.
func TestACopyHasTablespacesInFoldersOfItsOwn(t *testing.T) {
	folder := t.TempDir()
	full, empty := filepath.Join(folder, "a=full"), filepath.Join(folder, "empty")
	for _, path := range []string{filepath.Join(full, "PG_17_1"), empty} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(folder, "copied")
	options, err := mapSpaces([]string{full, empty, filepath.Join(folder, "none"), copied + ".toban-0123abcd", copied})
	if err != nil || len(options) != 6 {
		t.Fatalf("the options are %q, %v", options, err)
	}
	escaped := filepath.Join(folder, `a\=full`)
	if to := options[1]; to[:len(escaped)+1] != escaped+"=" || !ofCopy.MatchString(to) {
		t.Errorf("of what is full, it is %q", to)
	}
	if options[3] != copied+".toban-0123abcd="+copied {
		t.Errorf("of one that was copied itself, it is %q", options[3])
	}
	if to := options[5]; !strings.HasPrefix(to, copied+"="+copied+".toban-") {
		t.Errorf("of one whose folder is taken by then, it is %q", to)
	}
	if _, err := mapSpaces([]string{"/" + strings.Repeat("a", longestSpace)}); err == nil {
		t.Error("a folder that no base backup takes is taken")
	}
}

// What no data on the volume has any more is removed, and nothing else: not that of the data, or of what was set aside,
// nor somebody else's.
func TestWhatNoDataHasOfTablespacesIsRemoved(t *testing.T) {
	d := withSpaces(t, []string{"s/fast.toban-00000001"}, []string{"s/fast.toban-00000002", "s/old"})
	stay := []string{
		"s/fast.toban-00000001/PG_17_1", "s/fast.toban-00000002/PG_17_1", "s/old/PG_17_1", "s/fast/mine",
		"s/other/PG_17_1",
	}
	gone := []string{"s/fast.toban-00000003/PG_17_1", "s/fast/PG_17_1", "s/fast/PG_16_9"}
	for _, path := range append(slices.Clone(stay), gone...) {
		if err := os.MkdirAll(filepath.Join(d.Volume, path, "5"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "else")
	if err := os.MkdirAll(filepath.Join(elsewhere, "PG_17_1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.sweepSpaces([]string{
		filepath.Join(d.Volume, "s/fast"), filepath.Join(d.Volume, "s/old"), elsewhere,
	}); err != nil {
		t.Fatal(err)
	}
	is := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	for _, path := range stay {
		if !is(filepath.Join(d.Volume, path, "5")) {
			t.Errorf("%s is gone", path)
		}
	}
	for _, path := range append(gone, "s/fast.toban-00000003") {
		if is(filepath.Join(d.Volume, path)) {
			t.Errorf("%s is still there", path)
		}
	}
	if !is(filepath.Join(elsewhere, "PG_17_1")) {
		t.Error("what is not on the volume is gone")
	}
}

// Where it can't be read what data has, nothing is removed.
func TestNothingIsRemovedWhereLinksCantBeRead(t *testing.T) {
	d := withSpaces(t, nil, nil)
	fast := filepath.Join(d.Volume, "s/fast/PG_17_1")
	if err := os.MkdirAll(fast, 0o700); err != nil {
		t.Fatal(err)
	}
	links := filepath.Join(d.Volume, "data/pg_tblspc") // of a loop of links no entry can be read
	if err := errors.Join(os.Remove(links), os.Symlink("pg_tblspc", links)); err != nil {
		t.Fatal(err)
	}
	if err := d.sweepSpaces([]string{filepath.Dir(fast)}); err == nil {
		t.Error("nothing is said")
	}
	if _, err := os.Stat(fast); err != nil {
		t.Error("it is gone")
	}
}
