package backup

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
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// manifestText is PostgreSQL's manifest (17 documentation, chapter 69).
type manifestText struct {
	Files    []manifestFile `json:"Files"`
	Checksum string         `json:"Manifest-Checksum"`
}

type manifestFile struct {
	Path      string `json:"Path"`
	Encoded   string `json:"Encoded-Path"` // hexadecimal, of a path that is not UTF-8
	Size      int64  `json:"Size"`
	Algorithm string `json:"Checksum-Algorithm"`
	Checksum  string `json:"Checksum"`
}

// manifestChecksums is the algorithm that manifests are asked for with.
const manifestChecksums = "CRC32C"

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

func (e *FileError) Error() string {
	const most = 10
	text := strings.Join(e.Files[:min(len(e.Files), most)], "; ")
	if more := len(e.Files) - most; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return "files differ from the manifest: " + text
}

// VerifyFiles checks every file of a data directory that no server has been started on against its
// backup_manifest, as pg_verifybackup does, but side by side. The error is a *FileError where files differ.
func VerifyFiles(ctx context.Context, data string, workers int) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	files, err := readManifest(filepath.Join(data, FileManifest))
	if err != nil {
		return err
	}
	wrong := make([]string, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i, file := range files {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := file.verify(data); err != nil {
				wrong[i] = file.Path + ": " + err.Error()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	e := &FileError{}
	for _, words := range wrong {
		if words != "" {
			e.Files = append(e.Files, words)
		}
	}
	more, err := unknownFiles(data, files)
	if err != nil {
		return err
	}
	if e.Files = append(e.Files, more...); len(e.Files) > 0 {
		return e
	}
	return nil
}

// readManifest reads a manifest and checks it: its last line has the SHA-256 of all before.
func readManifest(name string) ([]manifestFile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	var m manifestText
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	end := bytes.LastIndexByte(bytes.TrimRight(text, "\n"), '\n') + 1
	if sum := sha256.Sum256(text[:end]); hex.EncodeToString(sum[:]) != m.Checksum {
		return nil, errors.New("the manifest's own checksum is wrong")
	}
	for i, file := range m.Files {
		if file.Encoded != "" {
			path, err := hex.DecodeString(file.Encoded)
			if err != nil {
				return nil, fmt.Errorf("read the manifest: %w", err)
			}
			m.Files[i].Path = string(path)
		}
		if !filepath.IsLocal(m.Files[i].Path) {
			return nil, fmt.Errorf("the manifest has a file %q", m.Files[i].Path)
		}
	}
	return m.Files, nil
}

// verify checks one file.
func (f manifestFile) verify(data string) error {
	if ignored(f.Path) {
		return nil
	}
	file, err := os.Open(filepath.Join(data, f.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(Missing)
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
		return errors.New(Altered)
	}
	return nil
}

// ignored are the files that pg_verifybackup leaves out too: they change after a backup is unpacked.
func ignored(path string) bool {
	switch path {
	case FileManifest, "postgresql.auto.conf", "recovery.signal", "standby.signal":
		return true
	}
	return path == "pg_wal" || strings.HasPrefix(path, "pg_wal/")
}

// unknownFiles are those that the manifest does not have.
func unknownFiles(data string, files []manifestFile) (unknown []string, err error) {
	known := map[string]bool{}
	for _, file := range files {
		known[file.Path] = true
	}
	see := func(path string) {
		if !known[path] && !ignored(path) {
			unknown = append(unknown, path+": unknown")
		}
	}
	if err := walk(data, "", see); err != nil {
		return nil, err
	}
	links, err := os.ReadDir(filepath.Join(data, "pg_tblspc"))
	if err != nil {
		return nil, err
	}
	for _, link := range links {
		folder, err := filepath.EvalSymlinks(filepath.Join(data, "pg_tblspc", link.Name()))
		if err != nil {
			return nil, err
		}
		if err := walk(folder, "pg_tblspc/"+link.Name()+"/", see); err != nil {
			return nil, err
		}
	}
	return unknown, nil
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
