package former

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// archive is a locale archive with locales whose files all have the same texts.
func archive(names ...string) []byte {
	put := binary.NativeEndian.PutUint32
	const table, records = 56, 400
	text := bytes.Repeat([]byte{0}, records+len(names)*200)
	put(text, archiveMagic)
	put(text[8:], table)
	put(text[16:], uint32(len(names)+1)) // with an empty entry
	shared := uint32(len(text))
	text = append(text, "shared"...)
	for i, name := range names {
		at, record := uint32(len(text)), uint32(records+i*200)
		text = append(append(text, name...), 0)
		put(text[table+12*i+4:], at)
		put(text[table+12*i+8:], record)
		for number := range categories {
			put(text[record+4+8*uint32(number):], shared)
			put(text[record+8+8*uint32(number):], 6)
		}
	}
	return text
}

func TestTheLocalesOfAnArchiveGetFolders(t *testing.T) {
	to := t.TempDir()
	if err := unpackLocales(archive("en_US.utf8", "de_DE.utf8"), to); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"en_US.utf8/LC_COLLATE", "de_DE.utf8/LC_MESSAGES/SYS_LC_MESSAGES"} {
		if text, err := os.ReadFile(filepath.Join(to, path)); err != nil || string(text) != "shared" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if files, _ := os.ReadDir(filepath.Join(to, "de_DE.utf8")); len(files) != len(categories) {
		t.Errorf("%d files, want %d", len(files), len(categories))
	}
}

func TestABrokenArchiveIsRefused(t *testing.T) {
	whole := archive("en_US.utf8")
	outside := archive("../../etc")
	beyond := slices.Clone(whole)
	binary.NativeEndian.PutUint32(beyond[404:], 1<<30)
	for name, text := range map[string][]byte{
		"empty": nil, "another file": []byte("something else that is long enough"), "cut": whole[:450],
		"a name that leads outside": outside, "a file beyond the end": beyond,
	} {
		if err := unpackLocales(text, t.TempDir()); !errors.Is(err, errArchive) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
