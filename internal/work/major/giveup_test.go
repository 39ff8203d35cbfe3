package major

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// worked is a volume with data of 17 that an upgrade to 18 has worked on, with a tablespace, and the note that the new
// data is whole where that has a system identifier.
func worked(t *testing.T, system string) string {
	t.Helper()
	path := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(path, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("data/PG_VERSION", "17\n")
	write("data/global/pg_control.old", "the old data's")
	write("restore/data/PG_VERSION", "18\n")
	write("tablespaces/one/PG_17_202406281/1/2", "old")
	write("tablespaces/one/PG_18_202506291/1/2", "new")
	if err := errors.Join(os.MkdirAll(filepath.Join(path, "data/pg_tblspc"), 0o700),
		os.Symlink(filepath.Join(path, "tablespaces/one"), filepath.Join(path, "data/pg_tblspc/16384"))); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(state{ID: "18-abc", To: 18, Method: protocol.MethodLink})
	if err != nil {
		t.Fatal(err)
	}
	write("upgrade.json", string(text))
	if system != "" {
		note := volume.Prepared{InPlace: "18-abc", Upgrade: &protocol.UpgradeResult{SystemIdentifier: system}}
		if err := note.Write(path); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// Only the data that counts is left to be taken over: what a try has left that was given up while the instance was away
// is undone, whole or not, also when a later try of the same upgrade has ended well on another volume.
func TestWhatAnotherTryHasLeftIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		has, id, system string
		undone          bool
	}{
		"it is the data that counts":       {"75", "18-abc", "75", false},
		"nobody knows which counts":        {"75", "18-abc", "", false},
		"that of another try counts":       {"74", "18-abc", "75", true},
		"it is half done":                  {"", "18-abc", "75", true},
		"it is half done, and nobody says": {"", "18-abc", "", true},
		"no upgrade is to be taken over":   {"75", "", "", false},
		"another upgrade is":               {"75", "18-def", "76", false},
	} {
		t.Run(name, func(t *testing.T) {
			path := worked(t, c.has)
			waits := func(whom string) { t.Errorf("it waits for %s", whom) }
			if err := GiveUpOthers(t.Context(), path, c.id, c.system, waits); err != nil {
				t.Fatal(err)
			}
			for file, old := range map[string]bool{
				"restore": false, "upgrade.json": false, "tablespaces/one/PG_18_202506291": false,
				"data/global/pg_control": true, "data/PG_VERSION": true, "tablespaces/one/PG_17_202406281": true,
			} {
				_, err := os.Stat(filepath.Join(path, file))
				if there, want := err == nil, old == c.undone || file == "data/PG_VERSION" ||
					file == "tablespaces/one/PG_17_202406281"; there != want {
					t.Errorf("%s is there: %v, expected %v", file, there, want)
				}
			}
			note, err := volume.ReadPrepared(path)
			if err != nil || (note == nil) != (c.undone || c.has == "") {
				t.Errorf("the note is %+v, %v", note, err)
			}
		})
	}
}
