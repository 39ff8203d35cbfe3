package restore

import (
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/postgres"
)

// Only what another process has made of the same backups is gone on with.
func TestWhatARestoreTakesUp(t *testing.T) {
	chain := func(id, manifest string) []format.Backup {
		own := format.Object{Name: format.FileManifest, SHA256: manifest}
		return []format.Backup{{ID: "full"}, {ID: id, Manifest: own}}
	}
	for name, c := range map[string]struct {
		chain  []format.Backup
		spaces string // where the tablespaces are to be
		harm   func(folder string) error
		stays  bool
	}{
		"the same":               {chain("one", "1"), "spaces", nil, true},
		"another backup":         {chain("two", "1"), "spaces", nil, false},
		"another of the same id": {chain("one", "2"), "spaces", nil, false},
		"a part of the chain":    {chain("one", "1")[1:], "spaces", nil, false},
		"with other tablespaces": {chain("one", "1"), "elsewhere", nil, false},
		"of nobody knows what":   {chain("one", "1"), "spaces", func(f string) error { return os.Remove(f) }, false},
		"with a note that is cut": {
			chain("one", "1"), "spaces", func(f string) error { return os.Truncate(f, 5) }, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			begin := func(spaces string, chain []format.Backup) {
				t.Helper()
				folder := filepath.Join(volume, "restore")
				r := &restoring{
					RestoreOptions: RestoreOptions{Folder: folder, Tablespaces: filepath.Join(volume, spaces)},
					scratch:        newScratch(postgres.Programs{}, folder, "", nil, nil),
				}
				archivetest.Must(t, os.MkdirAll(folder, 0o700), r.takeUp(t.Context(), chain))
			}
			begin("spaces", chain("one", "1"))
			data := []string{filepath.Join(volume, "restore/data"), filepath.Join(volume, c.spaces, "16400")}
			for _, folder := range data {
				archivetest.Must(t, os.MkdirAll(folder, 0o700))
			}
			if c.harm != nil {
				archivetest.Must(t, c.harm(filepath.Join(volume, "restore", fileBegun)))
			}
			begin(c.spaces, c.chain)
			for _, folder := range data {
				if _, err := os.Stat(folder); (err == nil) != c.stays {
					t.Errorf("%s: %v", folder, err)
				}
			}
		})
	}
}
