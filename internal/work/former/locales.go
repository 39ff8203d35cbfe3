package former

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// locales copies those of the C library: a database with one can be opened with it alone. The folders are copied. What
// is in the one file of all (locale-archive) is put into folders too, because the C library reads that file from its
// own place only.
func (c *collecting) locales(context.Context) error {
	to := filepath.Join(c.to, folderLocales)
	entries, err := os.ReadDir(c.Locales)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("collect the locales: %w", err)
	}
	for _, entry := range entries {
		from := filepath.Join(c.Locales, entry.Name())
		if info, err := os.Stat(from); err != nil || !info.IsDir() {
			continue
		}
		copied := func(path, target string) error { return copyFile(path, target, 0o644) }
		if err := walk(from, filepath.Join(to, entry.Name()), copied); err != nil {
			return err
		}
	}
	archive, err := os.ReadFile(filepath.Join(c.Locales, "locale-archive"))
	if err == nil {
		err = unpackLocales(archive, to)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("%w: the locales of its C library: %w", ErrImage, err)
	}
	made, err := os.ReadDir(to)
	if err != nil {
		return fmt.Errorf("collect the locales: %w", err)
	}
	for _, entry := range made {
		c.made.Locales = append(c.made.Locales, entry.Name())
	}
	slices.Sort(c.made.Locales)
	return nil
}

// archiveMagic begins a locale archive (glibc source, locale/locarchive.h).
const archiveMagic = 0xde020109

// categories are the files of a locale, by their number in an archive; 6 is that of all together.
var categories = map[int]string{
	0: "LC_CTYPE", 1: "LC_NUMERIC", 2: "LC_TIME", 3: "LC_COLLATE", 4: "LC_MONETARY", 5: "LC_MESSAGES/SYS_LC_MESSAGES",
	7: "LC_PAPER", 8: "LC_NAME", 9: "LC_ADDRESS", 10: "LC_TELEPHONE", 11: "LC_MEASUREMENT", 12: "LC_IDENTIFICATION",
}

var errArchive = errors.New("the locale archive is not understood")

// localeArchive is one in memory. A number beyond its end makes it broken.
type localeArchive struct {
	text   []byte
	broken bool
	// written are the files by their place in the archive: most locales share some.
	written map[uint32]string
}

func (a *localeArchive) number(at uint32) uint32 {
	if uint64(at)+4 > uint64(len(a.text)) {
		a.broken = true
		return 0
	}
	return binary.NativeEndian.Uint32(a.text[at:])
}

func (a *localeArchive) part(at, length uint32) []byte {
	if uint64(at)+uint64(length) > uint64(len(a.text)) {
		a.broken = true
		return nil
	}
	return a.text[at : at+length]
}

// unpackLocales makes a folder of each locale in an archive.
func unpackLocales(archive []byte, to string) error {
	a := &localeArchive{text: archive, written: map[uint32]string{}}
	if a.number(0) != archiveMagic {
		return errArchive
	}
	names, size := a.number(8), a.number(16)
	if uint64(size)*12 > uint64(len(archive)) {
		return errArchive
	}
	for i := range size {
		entry := names + 12*i // its hash, its name, its record
		name, record := a.number(entry+4), a.number(entry+8)
		if a.broken {
			return errArchive
		}
		if record == 0 {
			continue
		}
		if err := a.unpack(a.name(name), record, to); err != nil {
			return err
		}
	}
	return nil
}

func (a *localeArchive) name(at uint32) string {
	if uint64(at) > uint64(len(a.text)) {
		a.broken = true
		return ""
	}
	text, _, _ := bytes.Cut(a.text[at:min(int(at)+256, len(a.text))], []byte{0})
	return string(text)
}

// unpack writes the files of one locale. A record has a reference count, and the place and length of each category.
func (a *localeArchive) unpack(name string, record uint32, to string) error {
	if name == "" || filepath.Base(name) != name || name == ".." || name == "." {
		return errArchive
	}
	for number, file := range categories {
		at := record + 4 + 8*uint32(number) //nolint:gosec // a small one
		begin, length := a.number(at), a.number(at+4)
		content := a.part(begin, length)
		if a.broken {
			return errArchive
		}
		if err := a.write(filepath.Join(to, name, file), begin, content); err != nil {
			return err
		}
	}
	return nil
}

func (a *localeArchive) write(path string, begin uint32, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // for everybody
		return err
	}
	if first, ok := a.written[begin]; ok {
		if err := os.Link(first, path); err == nil || errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	a.written[begin] = path
	return os.WriteFile(path, content, 0o644) //nolint:gosec // for everybody
}
