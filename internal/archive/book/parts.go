package book

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/transfer"
)

// PiecesOf are those of a tar file, in order. Lists are read one after the other.
func PiecesOf(ctx context.Context, b format.Backup, from bucket.Bucket, tar string) iter.Seq2[format.Object, error] {
	return func(yield func(format.Object, error) bool) {
		if !b.Listed() {
			give(format.SortPieces(b.Pieces), tar, yield)
			return
		}
		for _, list := range b.Lists {
			if !slices.Contains(list.Tars, tar) {
				continue
			}
			pieces, err := readList(ctx, b, from, list)
			if err != nil {
				yield(format.Object{}, err)
				return
			}
			if !give(pieces, tar, yield) {
				return
			}
		}
	}
}

// give passes on the pieces of a tar file, and says whether more are wanted.
func give(pieces []format.Object, tar string, yield func(format.Object, error) bool) bool {
	for _, o := range pieces {
		if strings.HasPrefix(o.Name, tar+".") && !yield(o, nil) {
			return false
		}
	}
	return true
}

func readList(
	ctx context.Context, b format.Backup, from bucket.Bucket, list format.PieceList,
) (pieces []format.Object, err error) {
	text, err := ReadStored(ctx, from, b.Folder(), list.Object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &pieces); err != nil {
		return nil, &format.ObjectError{Name: b.Folder() + list.Name, What: format.Altered, Err: err}
	}
	return pieces, nil
}

// Part is an object that backup.json names, or a list that it names does. List says that it is such a list.
type Part struct {
	format.Object
	List bool
}

// Parts goes through all objects of a backup, a list before the pieces in it. The pieces of a list that is broken are
// not known: it is told as an error then.
func Parts(ctx context.Context, b format.Backup, from bucket.Bucket) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		for _, o := range b.Objects() {
			if !yield(Part{Object: o}, nil) {
				return
			}
		}
		for _, list := range b.Lists {
			if !yield(Part{list.Object, true}, nil) {
				return
			}
			pieces, err := readList(ctx, b, from, list)
			if err != nil && !yield(Part{list.Object, true}, err) {
				return
			}
			for _, o := range pieces {
				if !yield(Part{Object: o}, nil) {
					return
				}
			}
		}
	}
}

// tally is what there is of the tar files of a backup that is in lists: the numbers of pieces are known by their
// count, so a listing of millions need not be kept.
type tally map[string]*format.Tar

// add counts an object of the backup's folder, and says whether it is a piece.
func (c tally) add(name string, size int64) bool {
	tar, _, ending := format.ParsePieceName(name)
	if tar == "" {
		return false
	}
	if c[tar+ending] == nil {
		c[tar+ending] = &format.Tar{Name: tar, Ending: ending}
	}
	c[tar+ending].Pieces++
	c[tar+ending].StoredBytes += size
	return true
}

// lacks says which tar file of a backup is not there as it was written, "" for none.
func (c tally) lacks(b format.Backup) string {
	for _, tar := range b.Tars {
		if there := c[tar.Name+tar.Ending]; there == nil || *there != tar {
			return fmt.Sprintf("%s%s.*%s (one of its %d pieces)", b.Folder(), tar.Name, tar.Ending, tar.Pieces)
		}
	}
	return ""
}

// Contents are what lies in the folder of a backup, to be compared with what its backup.json says.
type Contents struct {
	backup format.Backup
	sizes  map[string]int64
	tars   tally
}

// NewContents has nothing there yet.
func NewContents(b format.Backup) Contents { return Contents{b, map[string]int64{}, tally{}} }

// Add says that an object is there.
func (c Contents) Add(o bucket.Object) {
	name := strings.TrimPrefix(o.Name, c.backup.Folder())
	if !c.backup.Listed() || !c.tars.add(name, o.Size) {
		c.sizes[name] = o.Size
	}
}

// Lost is an object that is named in backup.json and is not there, or not of its size; "" for none.
func (c Contents) Lost() string {
	all := c.backup.Objects()
	for _, list := range c.backup.Lists {
		all = append(all, list.Object)
	}
	for _, o := range all {
		if size, ok := c.sizes[o.Name]; o.Name != "" && (!ok || size != o.Size) {
			return c.backup.Folder() + o.Name
		}
	}
	return ""
}

// ContentsOf are all objects of a backup that exists. Those of tar files that are in lists are named by their numbers.
func (c Catalogue) ContentsOf(b format.Backup) []bucket.Object {
	all := slices.Clone(c.Contents[b.ID])
	for _, tar := range b.Tars {
		for i := range tar.Pieces {
			all = append(all, bucket.Object{Name: b.Folder() + format.PieceName(tar.Name, i) + tar.Ending})
		}
	}
	return all
}

// ReadPiece reads a piece of a backup whose folder this is, and opens it.
func ReadPiece(
	ctx context.Context, from bucket.Bucket, decoder *format.Decoder, folder string, o format.Object,
) ([]byte, error) {
	stored, err := ReadStored(ctx, from, folder, o)
	if err != nil {
		return nil, err
	}
	return format.Decode(decoder, folder+o.Name, stored, format.PieceSize)
}

// ReadStored reads an object of which size and SHA-256 are known, as it lies in the bucket.
func ReadStored(ctx context.Context, from bucket.Bucket, folder string, o format.Object) ([]byte, error) {
	name := folder + o.Name
	stored, err := transfer.Download(ctx, from, name, o.Size)
	if err != nil {
		return nil, err
	}
	if err := o.Check(name, stored); err != nil {
		return nil, err
	}
	return stored, nil
}

// Missing is an object of the backup that is not there, or not of its size, also a piece that is in lists; "" for none.
func (c Contents) Missing() string { return cmp.Or(c.Lost(), c.tars.lacks(c.backup)) }
