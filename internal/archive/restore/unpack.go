package restore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
	"toban.dev/internal/postgres"
)

// UnpackOptions say which base backup is to become a data directory, and where.
type UnpackOptions struct {
	// Bucket is rooted at the archive.
	Bucket  bucket.Bucket
	Decoder *format.Decoder
	// Chain is the backup with those it is the change from, the full one first.
	Chain []format.Backup
	// Data becomes the data directory. Neither it nor the folders of the tablespaces, by OID,
	// may have anything in them.
	Data        string
	Tablespaces map[uint32]string
	// Scratch is a folder on the same file system for the parts of a chain of
	// several, Programs where pg_combinebackup is (PostgreSQL 17). A full backup needs neither.
	Scratch, Programs string
	// Check has each part of a chain of several checked against its own manifest: what they are put
	// together to has another.
	Check bool
	// Workers is how many pieces are fetched, opened and written side by side; 0 is Streams. Each needs at
	// most about 100 MiB: a piece, the same compressed, and its decoder's window.
	Workers int
	// Journal, if set, is a file for notes of what is unpacked. Then a process before this one may have unpacked of the
	// same chain into the same folders: what it has noted is not fetched again, if its checksums fit, and all else that
	// is there is removed.
	Journal string
	// Progress, if set, is called at most five times a second.
	Progress func(transfer.Progress)
}

// Unpack makes a data directory of a base backup, and brings it to disk. It is
// not consistent before WAL up to the stop LSN is replayed. Of an object that is not as it was written, the error
// is an *ObjectError. What is half done after an error is the caller's to remove.
func Unpack(ctx context.Context, o UnpackOptions) error {
	if o.Workers <= 0 {
		o.Workers = transfer.Streams()
	}
	if len(o.Chain) == 0 {
		return errors.New("unpack: there is no backup")
	}
	total := int64(0)
	for _, b := range o.Chain {
		total += b.RawBytes
	}
	u := &unpacking{UnpackOptions: o, meter: transfer.NewMeter(o.Progress, total)}
	err := u.openJournal()
	if err == nil {
		err = u.run(ctx)
		u.journal.close()
	}
	u.meter.End()
	if err != nil {
		return fmt.Errorf("unpack base backup %s: %w", o.Chain[len(o.Chain)-1].ID, err)
	}
	return nil
}

type unpacking struct {
	UnpackOptions
	meter   *transfer.Meter
	journal *journal // nil for none
	// resumed says that a process before this one may have begun, and that its notes may be lost.
	resumed bool
}

func (u *unpacking) openJournal() (err error) {
	if u.resumed = u.Journal != ""; u.resumed {
		u.journal, err = openJournal(u.Journal)
	}
	return err
}

func (u *unpacking) run(ctx context.Context) error {
	last := u.Chain[len(u.Chain)-1]
	for _, space := range last.Tablespaces {
		if u.Tablespaces[space.OID] == "" {
			return fmt.Errorf("there is no folder for tablespace %d (it was in %s)", space.OID, space.Location)
		}
	}
	if len(u.Chain) > 1 {
		return u.combine(ctx)
	}
	if last.Type != format.TypeFull {
		return fmt.Errorf("it is %s, and its parent %s is not there", last.Type, last.Parent)
	}
	if err := u.unpackOne(ctx, last, u.Data, u.Tablespaces); err != nil {
		return err
	}
	return u.sync()
}

// combine unpacks the whole chain and puts it together.
func (u *unpacking) combine(ctx context.Context) error {
	// The programs make what they have by a rename at the end for nobody: so all of it is on disk only after the sync.
	args := []string{"--no-sync", "--manifest-checksums=" + format.ManifestChecksums, "--output", u.Data}
	var folders []string
	for i, b := range u.Chain {
		folder := filepath.Join(u.Scratch, b.ID)
		spaces := map[uint32]string{}
		for _, space := range b.Tablespaces {
			spaces[space.OID] = filepath.Join(u.Scratch, fmt.Sprintf("%s.%d", b.ID, space.OID))
			if i == len(u.Chain)-1 { // the mapping is of the last backup's folders
				args = append(args, "--tablespace-mapping", spaces[space.OID]+"="+u.Tablespaces[space.OID])
			}
		}
		if err := u.unpackPart(ctx, b, folder, spaces); err != nil {
			return fmt.Errorf("%s: %w", b.ID, err)
		}
		folders = append(folders, folder)
	}
	if err := u.clearCombined(); err != nil {
		return err
	}
	var words bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(u.Programs, "pg_combinebackup"),
		append(args, folders...)...)
	cmd.Stderr = &words
	if err := postgres.Children.Run(cmd); err != nil {
		return fmt.Errorf("pg_combinebackup: %w: %s", err, strings.TrimSpace(words.String()))
	}
	if err := u.sync(); err != nil {
		return err
	}
	return u.dropScratch()
}

// clearCombined removes what a process before this one has put together.
func (u *unpacking) clearCombined() error {
	if !u.resumed {
		return nil
	}
	folders := []string{u.Data}
	for _, folder := range u.Tablespaces {
		folders = append(folders, folder)
	}
	for _, folder := range folders {
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("remove what was put together in part: %w", err)
		}
	}
	return nil
}

func (u *unpacking) dropScratch() error {
	for _, b := range u.Chain {
		all, err := filepath.Glob(filepath.Join(u.Scratch, b.ID+"*"))
		if err != nil {
			return err
		}
		for _, folder := range all {
			if err := os.RemoveAll(folder); err != nil {
				return err
			}
		}
	}
	return nil
}

// unpackPart unpacks one of several.
func (u *unpacking) unpackPart(ctx context.Context, b format.Backup, folder string, spaces map[uint32]string) error {
	if err := u.unpackOne(ctx, b, folder, spaces); err != nil || !u.Check {
		return err
	}
	return VerifyFiles(ctx, folder, u.Workers)
}

// unpackOne unpacks one backup with its manifest.
func (u *unpacking) unpackOne(ctx context.Context, b format.Backup, data string, spaces map[uint32]string) error {
	if err := u.makeEmpty(data); err != nil {
		return err
	}
	if err := u.unpackTar(ctx, b, format.BaseTar, data, spaces); err != nil {
		return err
	}
	for _, space := range b.Tablespaces {
		if err := u.makeEmpty(spaces[space.OID]); err != nil {
			return err
		}
		if err := u.unpackTar(ctx, b, fmt.Sprintf("%d.tar", space.OID), spaces[space.OID], nil); err != nil {
			return err
		}
	}
	return u.unpackManifest(ctx, b, data)
}

// unpackManifest puts PostgreSQL's manifest beside the data.
func (u *unpacking) unpackManifest(ctx context.Context, b format.Backup, data string) error {
	manifest, err := book.OpenManifest(ctx, u.Bucket, u.Decoder, b)
	if err != nil {
		return err
	}
	defer manifest.Close()
	file, err := os.OpenFile(filepath.Join(data, format.FileManifest), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	if _, err := io.Copy(file, manifest); err != nil {
		return errors.Join(fmt.Errorf("write the manifest: %w", err), file.Close())
	}
	return file.Close()
}

// makeEmpty makes a folder, which may be there already without anything in it but what this is to go on with.
// PostgreSQL takes no data directory that others may enter.
func (u *unpacking) makeEmpty(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make %s: %w", folder, err)
	}
	if err := os.Chmod(folder, 0o700); err != nil { //nolint:gosec // G302: it is a folder
		return fmt.Errorf("make %s: %w", folder, err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("look into %s: %w", folder, err)
	}
	for _, entry := range entries {
		if entry.Name() != "lost+found" && !u.resumed { // a volume of its own has one
			return fmt.Errorf("%s is not empty", folder)
		}
	}
	return nil
}

// sync brings the data directory and the tablespaces to disk: whole file systems, which is
// much faster than one fsync for each of a thousand small files (syncfs(2)).
func (u *unpacking) sync() error {
	folders := []string{u.Data, filepath.Dir(u.Data)}
	for _, folder := range u.Tablespaces {
		folders = append(folders, folder)
	}
	for _, name := range folders {
		if err := postgres.SyncFileSystem(name); err != nil {
			return err
		}
	}
	return nil
}
