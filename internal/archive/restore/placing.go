package restore

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// castagnoli is of the polynomial of CRC-32C, which processors compute themselves.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fetched is a piece that has come: its content, or the record of it where that is on the volume already.
type fetched struct {
	object  format.Object
	content []byte
	kept    *unpacked
}

// placing unpacks one tar file into a folder. Nothing gets outside of it: os.Root sees to that, also where a symbolic
// link would lead there. The only links are those of the tablespaces.
type placing struct {
	*unpacking
	backup format.Backup
	root   *os.Root
	folder string
	spaces map[uint32]string
	at     place
	// free has room for each piece that may be in memory.
	free chan struct{}
}

func newPlacing(u *unpacking, b format.Backup) *placing {
	return &placing{unpacking: u, backup: b, free: make(chan struct{}, u.Workers)}
}

// unpackTar unpacks the pieces of a tar file: they are fetched side by side, gone through in their order, and written
// side by side.
func (u *unpacking) unpackTar(
	ctx context.Context, b format.Backup, tar, folder string, spaces map[uint32]string,
) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open %s: %w", folder, err)
	}
	defer root.Close()
	p := newPlacing(u, b)
	p.root, p.folder, p.spaces = root, folder, spaces
	if err := p.tidy(tar); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the downloads, whatever ended this
	pieces := p.bounded(ctx, book.PiecesOf(ctx, b, u.Bucket, tar))
	err = p.placeAll(ctx, group, transfer.ReadOrdered(ctx, pieces, u.Workers, p.fetch))
	if failed := group.Wait(); failed != nil {
		return failed // it is why the downloads ended
	}
	return err
}

// tidy removes what a server has added since a process before this one has unpacked: what no note has, and what is
// longer than it was.
func (p *placing) tidy(tar string) error {
	if !p.resumed {
		return nil
	}
	sizes, err := p.journal.sizes(p.backup.ID, tar)
	if err != nil {
		return err
	}
	err = fs.WalkDir(p.root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." || name == "lost+found" {
			return err
		}
		size, known := sizes[hashName(name)]
		switch {
		case !known && entry.IsDir():
			if err := p.root.RemoveAll(name); err != nil {
				return err
			}
			return fs.SkipDir
		case !known:
			return p.root.Remove(name)
		case size >= 0:
			return p.shorten(name, size)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("remove what is not of the backup: %w", err)
	}
	return nil
}

// shorten cuts off what a file has beyond a size.
func (p *placing) shorten(name string, size int64) error {
	info, err := p.root.Lstat(name)
	if err != nil || info.Size() <= size {
		return err
	}
	file, err := p.root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Truncate(size), file.Close())
}

// bounded has each piece wait for room in memory.
func (p *placing) bounded(ctx context.Context, pieces iter.Seq2[format.Object, error]) iter.Seq2[format.Object, error] {
	return func(yield func(format.Object, error) bool) {
		for o, err := range pieces {
			select {
			case p.free <- struct{}{}:
			case <-ctx.Done():
				err = ctx.Err()
			}
			if !yield(o, err) {
				return
			}
		}
	}
}

// written says that a piece is no longer in memory.
func (p *placing) written() { <-p.free }

// fetch downloads a piece, unless it is on the volume already.
func (p *placing) fetch(ctx context.Context, o format.Object) (fetched, error) {
	if kept := p.journal.find(p.backup.ID, o); kept != nil && p.fits(kept.Extents) {
		return fetched{object: o, kept: kept}, nil
	}
	content, err := book.ReadPiece(ctx, p.Bucket, p.Decoder, p.backup.Folder(), o)
	return fetched{object: o, content: content}, err
}

// placeAll goes through the pieces in their order, and has them written.
func (p *placing) placeAll(ctx context.Context, group *errgroup.Group, pieces *transfer.Ordered[fetched]) error {
	for {
		piece, err := pieces.Next()
		if errors.Is(err, io.EOF) {
			return p.at.end()
		}
		if err == nil && piece.kept != nil && piece.kept.From != p.at {
			piece.content, err = book.ReadPiece(ctx, p.Bucket, p.Decoder, p.backup.Folder(), piece.object)
			piece.kept = nil
		}
		if err != nil {
			return err
		}
		if piece.kept != nil {
			p.pass(*piece.kept)
			continue
		}
		if err := p.place(group, piece); err != nil {
			return err
		}
	}
}

// pass goes over a piece that is on the volume.
func (p *placing) pass(kept unpacked) {
	for _, e := range kept.Extents {
		p.meter.Add(int(e.Length))
	}
	p.at = kept.To
	p.written()
}

// place has a piece written at the side, and noted.
func (p *placing) place(group *errgroup.Group, piece fetched) error {
	record := unpacked{Backup: p.backup.ID, Piece: piece.object, From: p.at}
	var err error
	if record.Extents, err = p.at.split(piece.content); err != nil {
		return err
	}
	record.To = p.at
	for _, e := range record.Extents {
		if err := p.prepare(e); err != nil {
			return fmt.Errorf("unpack %q: %w", e.Name, err)
		}
	}
	group.Go(func() error {
		defer p.written()
		for i := range record.Extents {
			if err := p.write(&record.Extents[i], record.To); err != nil {
				return fmt.Errorf("unpack %q: %w", record.Extents[i].Name, err)
			}
		}
		return p.journal.note(record)
	})
	return nil
}

// prepare makes, in the order of the tar file, what others need: folders, links, and a file that goes on in the next
// piece.
func (p *placing) prepare(e extent) error {
	switch {
	case e.Kind == tar.TypeDir && e.Name != ".":
		if err := p.root.Mkdir(e.Name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	case e.Kind == tar.TypeSymlink:
		return p.link(e.Name)
	case e.Kind == 0 && e.Name == p.at.Name && e.Offset == 0:
		file, err := p.root.OpenFile(e.Name, p.flags(0), 0o600)
		if err != nil {
			return err
		}
		return file.Close()
	}
	return nil
}

// flags open a file for an extent. One that begins must not be there, but where a process before this one has made it.
func (p *placing) flags(offset int64) int {
	flags := os.O_WRONLY | os.O_CREATE
	if offset == 0 && !p.resumed {
		flags |= os.O_EXCL
	}
	return flags
}

// write writes a stretch of a file; the piece ends at a place.
func (p *placing) write(e *extent, end place) error {
	if e.Kind != 0 {
		return nil
	}
	flags := p.flags(e.Offset)
	if e.Name == end.Name {
		flags = os.O_WRONLY // it is prepared
	}
	file, err := p.root.OpenFile(e.Name, flags, 0o600)
	if err != nil {
		return err
	}
	e.Sum = crc32.Checksum(e.content, castagnoli)
	_, err = file.WriteAt(e.content, e.Offset)
	if closed := file.Close(); err == nil {
		err = closed
	}
	p.meter.Add(len(e.content))
	e.content = nil
	return err
}

// fits says whether all of a piece is on the volume as it was written.
func (p *placing) fits(extents []extent) bool {
	buffer := make([]byte, 256<<10)
	for _, e := range extents {
		if !p.has(e, buffer) {
			return false
		}
	}
	return true
}

func (p *placing) has(e extent, buffer []byte) bool {
	switch e.Kind {
	case tar.TypeDir:
		info, err := p.root.Lstat(e.Name)
		return err == nil && info.IsDir()
	case tar.TypeSymlink:
		there, err := os.Readlink(filepath.Join(p.folder, e.Name))
		wanted, unknown := p.target(e.Name)
		return err == nil && unknown == nil && there == wanted
	}
	file, err := p.root.Open(e.Name)
	if err != nil {
		return false
	}
	defer file.Close()
	sum := crc32.New(castagnoli)
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, io.NewSectionReader(file, e.Offset, e.Length), buffer)
	return err == nil && n == e.Length && sum.Sum32() == e.Sum
}

var tablespaceLink = regexp.MustCompile(`^pg_tblspc/([1-9][0-9]*)$`)

// link makes the link of a tablespace, to where that goes now.
func (p *placing) link(name string) error {
	target, err := p.target(name)
	if err != nil {
		return err
	}
	at := filepath.Join(p.folder, name)
	if _, err := os.Readlink(at); p.resumed && err == nil {
		if err := os.Remove(at); err != nil {
			return err
		}
	}
	return os.Symlink(target, at)
}

// target is where the link of a tablespace leads.
func (p *placing) target(name string) (string, error) {
	m := tablespaceLink.FindStringSubmatch(name)
	if m == nil {
		return "", errors.New("it is a symbolic link, and of no tablespace")
	}
	oid, err := strconv.ParseUint(m[1], 10, 32)
	if err != nil {
		return "", err
	}
	folder, ok := p.spaces[uint32(oid)]
	if !ok {
		return "", errors.New("it is of a tablespace that backup.json does not have")
	}
	return filepath.Abs(folder)
}
