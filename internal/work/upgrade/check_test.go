package upgrade

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The scripts of an extension are found where the image has them, and are not those of one with a longer name.
func TestTheScriptsOfExtensions(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "extension"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"hstore--1.4.sql", "hstore--1.4--1.5.sql", "hstore_plperl--1.0.sql", "hstore.control", "README.sql",
	} {
		if err := os.WriteFile(filepath.Join(folder, "extension", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{"hstore": {"1.4--1.5", "1.4"}, "hstore_plperl": {"1.0"}}
	if got := scripts([]string{t.TempDir(), folder}); !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}
