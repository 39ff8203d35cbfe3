package restore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/maphash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/format"
)

// manifestFile is what a manifest says of a file.
type manifestFile struct {
	Path      string `json:"Path"`
	Encoded   string `json:"Encoded-Path"` // hexadecimal, of a path that is not UTF-8
	Size      int64  `json:"Size"`
	Algorithm string `json:"Checksum-Algorithm"`
	Checksum  string `json:"Checksum"`
}

// newHash makes what computes a file's checksum as it stands in the manifest. PostgreSQL writes a CRC as the
// machine has it in memory (pg_checksum_final in checksum_helper.c), which is the least significant byte first
// on all that Toban runs on.
func (f manifestFile) newHash() (hash.Hash, error) {
	switch f.Algorithm {
	case "CRC32C":
		return littleEndian{crc32.New(crc32.MakeTable(crc32.Castagnoli))}, nil
	case "SHA256": // that of backups from before
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("its checksum is %q, which is not known", f.Algorithm)
}

// littleEndian is a CRC with its bytes in the order of the manifest.
type littleEndian struct{ hash.Hash32 }

func (h littleEndian) Sum(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, h.Sum32()) }

// FileError says which files of a data directory are not as the manifest has them.
type FileError struct{ Files []string }

// Error names the files, of many the first.
func (e *FileError) Error() string {
	const most = 10
	text := strings.Join(e.Files[:min(len(e.Files), most)], "; ")
	if more := len(e.Files) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "files differ from the manifest: " + text
}

// VerifyFiles checks every file of a data directory that no server has been started on against its
// backup_manifest, as pg_verifybackup does, but side by side. The error is a *FileError where files differ. The
// manifest is read as it goes: of ten million files only a number for each is kept.
func VerifyFiles(ctx context.Context, data string, workers int) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	known, wrong := newPathSet(), &wrongFiles{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	read := eachFile(filepath.Join(data, format.FileManifest), func(file manifestFile) error {
		known.add(file.Path)
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := file.verify(data); err != nil {
				wrong.add(file.Path + ": " + err.Error())
			}
			return nil
		})
		return ctx.Err()
	})
	if err := errors.Join(group.Wait(), read); err != nil {
		return err
	}
	if err := unknownFiles(data, known, wrong); err != nil {
		return err
	}
	return wrong.err()
}

// wrongFiles gathers what differs.
type wrongFiles struct {
	mutex sync.Mutex
	files []string
}

func (w *wrongFiles) add(words string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.files = append(w.files, words)
}

func (w *wrongFiles) err() error {
	if len(w.files) == 0 {
		return nil
	}
	slices.Sort(w.files)
	return &FileError{w.files}
}

// pathSet is a set of paths by numbers of 64 bits. That two of ten million have the same happens once in a hundred
// thousand, and then an unknown file might go unnoticed that has the number of one which is known: once in 10^12.
type pathSet struct {
	seed    maphash.Seed
	numbers []uint64
	ordered bool
}

func newPathSet() *pathSet { return &pathSet{seed: maphash.MakeSeed()} }

func (s *pathSet) add(path string) { s.numbers = append(s.numbers, maphash.String(s.seed, path)) }

func (s *pathSet) has(path string) bool {
	if !s.ordered {
		slices.Sort(s.numbers)
		s.ordered = true
	}
	_, found := slices.BinarySearch(s.numbers, maphash.String(s.seed, path))
	return found
}

// eachFile goes through the files of a manifest, and checks the manifest itself: its last line has the SHA-256 of all
// before.
func eachFile(name string, do func(manifestFile) error) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	defer file.Close()
	head := &headSum{sum: sha256.New()}
	text := io.TeeReader(file, head)
	checksum, err := readManifest(json.NewDecoder(text), do)
	if err == nil {
		_, err = io.Copy(io.Discard, text)
	}
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	if hex.EncodeToString(head.sum.Sum(nil)) != checksum {
		return errors.New("the manifest's own checksum is wrong")
	}
	return nil
}

// headSum sums up all lines but the last.
type headSum struct {
	sum  hash.Hash
	held []byte
}

// Write implements io.Writer.
func (h *headSum) Write(text []byte) (int, error) {
	h.held = append(h.held, text...)
	end := bytes.LastIndexByte(bytes.TrimRight(h.held, "\n"), '\n') + 1
	h.sum.Write(h.held[:end])
	h.held = append(h.held[:0], h.held[end:]...)
	return len(text), nil
}

// readManifest goes through the files of a manifest (PostgreSQL 17 documentation, chapter 69), and returns the checksum
// that stands at its end.
func readManifest(text *json.Decoder, do func(manifestFile) error) (checksum string, err error) {
	if err := expect(text, json.Delim('{')); err != nil {
		return "", err
	}
	for text.More() {
		key, err := text.Token()
		if err != nil {
			return "", err
		}
		var other json.RawMessage
		switch key {
		case "Files":
			err = readFiles(text, do)
		case "Manifest-Checksum":
			err = text.Decode(&checksum)
		default:
			err = text.Decode(&other)
		}
		if err != nil {
			return "", err
		}
	}
	return checksum, expect(text, json.Delim('}'))
}

func readFiles(text *json.Decoder, do func(manifestFile) error) error {
	if err := expect(text, json.Delim('[')); err != nil {
		return err
	}
	for text.More() {
		var file manifestFile
		if err := text.Decode(&file); err != nil {
			return err
		}
		if file.Encoded != "" {
			path, err := hex.DecodeString(file.Encoded)
			if err != nil {
				return err
			}
			file.Path = string(path)
		}
		if !filepath.IsLocal(file.Path) {
			return fmt.Errorf("it has a file %q", file.Path)
		}
		if err := do(file); err != nil {
			return err
		}
	}
	return expect(text, json.Delim(']'))
}

func expect(text *json.Decoder, want json.Delim) error {
	if token, err := text.Token(); err != nil {
		return err
	} else if token != want {
		return fmt.Errorf("it has %v where %v should be", token, want)
	}
	return nil
}

// verify checks one file.
func (f manifestFile) verify(data string) error {
	if ignored(f.Path) {
		return nil
	}
	file, err := os.Open(filepath.Join(data, f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(format.Missing)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	sum, err := f.newHash()
	if err != nil {
		return err
	}
	size, err := io.Copy(sum, file)
	switch {
	case err != nil:
		return err
	case size != f.Size:
		return fmt.Errorf("it has %d bytes, not %d", size, f.Size)
	case hex.EncodeToString(sum.Sum(nil)) != f.Checksum:
		return errors.New(format.Altered)
	}
	return nil
}

// ignored are the files that pg_verifybackup leaves out too: they change after a backup is unpacked.
func ignored(path string) bool {
	switch path {
	case format.FileManifest, "postgresql.auto.conf", "recovery.signal", "standby.signal":
		return true
	}
	return path == "pg_wal" || strings.HasPrefix(path, "pg_wal/")
}

// unknownFiles adds those that the manifest does not have.
func unknownFiles(data string, known *pathSet, wrong *wrongFiles) error {
	see := func(path string) {
		if !ignored(path) && !known.has(path) {
			wrong.add(path + ": unknown")
		}
	}
	if err := walk(data, "", see); err != nil {
		return err
	}
	links, err := os.ReadDir(filepath.Join(data, "pg_tblspc"))
	if err != nil {
		return err
	}
	for _, link := range links {
		folder, err := filepath.EvalSymlinks(filepath.Join(data, "pg_tblspc", link.Name()))
		if err != nil {
			return err
		}
		if err := walk(folder, "pg_tblspc/"+link.Name()+"/", see); err != nil {
			return err
		}
	}
	return nil
}

// walk goes through the regular files of a folder. A volume's own lost+found is none of PostgreSQL's.
func walk(folder, prefix string, see func(path string)) error {
	return filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "lost+found" {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() {
			relative, err := filepath.Rel(folder, name)
			if err != nil {
				return err
			}
			see(prefix + relative)
		}
		return nil
	})
}
