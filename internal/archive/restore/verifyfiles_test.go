package restore

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/format"
)

// Every file is held against the manifest, and what that does not have is named.
func TestVerifyFiles(t *testing.T) {
	write := func(t *testing.T, data string, files map[string]string) {
		for name, text := range files {
			path := filepath.Join(data, name)
			err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	manifest := `{ "PostgreSQL-Backup-Manifest-Version": 1,
"Files": [
{ "Path": "base/1/2", "Size": 9, "Checksum-Algorithm": "CRC32C", "Checksum": "839206e3" },
{ "Encoded-Path": "626173652f312fff", "Size": 9, "Checksum-Algorithm": "CRC32C", "Checksum": "839206e3" }
],
"WAL-Ranges": [],
`
	manifest += fmt.Sprintf("\"Manifest-Checksum\": \"%x\"}\n", sha256.Sum256([]byte(manifest)))
	for name, c := range map[string]struct {
		change map[string]string
		want   []string
	}{
		"all is as it was":        {nil, nil},
		"an altered file":         {map[string]string{"base/1/2": "12345678_"}, []string{"base/1/2: altered"}},
		"a shorter one":           {map[string]string{"base/1/2": "1"}, []string{"base/1/2: it has 1 bytes, not 9"}},
		"one that is not known":   {map[string]string{"base/1/3": "x"}, []string{"base/1/3: unknown"}},
		"one that does not count": {map[string]string{"pg_wal/x": "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			write(t, data, map[string]string{
				"base/1/2": "123456789", "base/1/\xff": "123456789", "pg_tblspc/.keep": "",
				format.FileManifest: manifest,
			})
			if err := os.Remove(filepath.Join(data, "pg_tblspc/.keep")); err != nil {
				t.Fatal(err)
			}
			write(t, data, c.change)
			err := VerifyFiles(t.Context(), data, 2)
			var wrong *FileError
			if errors.As(err, &wrong) != (c.want != nil) || c.want == nil && err != nil ||
				wrong != nil && !slices.Equal(wrong.Files, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	for name, spoiled := range map[string]string{
		"a checksum that does not fit": strings.Replace(manifest, `"Size": 9`, `"Size": 8`, 1),
		"one that is cut off":          manifest[:len(manifest)/2],
		"a way out":                    strings.Replace(manifest, "base/1/2", "../base/", 1),
	} {
		data := t.TempDir()
		write(t, data, map[string]string{format.FileManifest: spoiled, "pg_tblspc/x/.y": ""})
		if err := VerifyFiles(t.Context(), data, 2); err == nil || !strings.Contains(err.Error(), "manifest") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// How many files there are in the manifest of TestAManifestIsGoneThrough.
var manifestFiles = flag.Int("through", 3000, "files of the manifest in TestAManifestIsGoneThrough")

// All files of a manifest are found; `-through 10000000 -v` says how long that takes, and how much memory.
func TestAManifestIsGoneThrough(t *testing.T) {
	name := filepath.Join(t.TempDir(), format.FileManifest)
	file, err := os.Create(name)
	archivetest.Must(t, err)
	archivetest.Must(t, archivetest.WriteManifest(file, *manifestFiles), file.Close())
	peak := archivetest.WatchMemory(t)
	archivetest.Measured(t, peak, "go through", func() { goThrough(t, name) })
}

// goThrough finds all files in a manifest.
func goThrough(t *testing.T, manifest string) {
	t.Helper()
	n, known := 0, newPathSet()
	err := eachFile(manifest, func(f manifestFile) error {
		known.add(f.Path)
		n++
		return nil
	})
	if err != nil || n != *manifestFiles || !known.has("base/0/7") || known.has("base/0/7x") {
		t.Errorf("%d files, %v", n, err)
	}
}
