package backup

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// How large the lists of pieces are; less in tests.
var (
	// mostInline is how many pieces stand in backup.json itself: that has 160 bytes for each, and an object at most
	// bucket.MaxObject.
	mostInline = 300_000
	// listLength is how many pieces stand in a list.
	listLength = 100_000
)

// piecesOf are those of a tar file, in order. Lists are read one after the other.
func piecesOf(ctx context.Context, b format.Backup, from bucket.Bucket, tar string) iter.Seq2[format.Object, error] {
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
	text, err := readStored(ctx, from, b.Folder(), list.Object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &pieces); err != nil {
		return nil, &format.ObjectError{Name: b.Folder() + list.Name, What: format.Altered, Err: err}
	}
	return pieces, nil
}

// part is an object that backup.json names, or a list that it names does. List says that it is such a list.
type part struct {
	format.Object
	list bool
}

// parts goes through all objects of a backup, a list before the pieces in it. The pieces of a list that is broken are
// not known: it is told as an error then.
func parts(ctx context.Context, b format.Backup, from bucket.Bucket) iter.Seq2[part, error] {
	return func(yield func(part, error) bool) {
		for _, o := range b.Objects() {
			if !yield(part{Object: o}, nil) {
				return
			}
		}
		for _, list := range b.Lists {
			if !yield(part{list.Object, true}, nil) {
				return
			}
			pieces, err := readList(ctx, b, from, list)
			if err != nil && !yield(part{list.Object, true}, err) {
				return
			}
			for _, o := range pieces {
				if !yield(part{Object: o}, nil) {
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

// contents are what lies in the folder of a backup, to be compared with what its backup.json says.
type contents struct {
	backup format.Backup
	sizes  map[string]int64
	tars   tally
}

func newContents(b format.Backup) contents { return contents{b, map[string]int64{}, tally{}} }

func (c contents) add(o bucket.Object) {
	name := strings.TrimPrefix(o.Name, c.backup.Folder())
	if !c.backup.Listed() || !c.tars.add(name, o.Size) {
		c.sizes[name] = o.Size
	}
}

// lost is an object that is named in backup.json and is not there, or not of its size; "" for none.
func (c contents) lost() string {
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

// contentsOf are all objects of a backup that exists. Those of tar files that are in lists are named by their numbers.
func (c Catalogue) contentsOf(b format.Backup) []bucket.Object {
	all := slices.Clone(c.Contents[b.ID])
	for _, tar := range b.Tars {
		for i := range tar.Pieces {
			all = append(all, bucket.Object{Name: b.Folder() + format.PieceName(tar.Name, i) + tar.Ending})
		}
	}
	return all
}

// lister notes the pieces of a backup that is being taken, in order, and has them written in lists where there are too
// many for backup.json.
type lister struct {
	// put writes a list.
	put func(name string, text []byte) (format.Object, error)
	// done are the pieces that were written before one in front of them, by their number in the whole backup.
	done   map[int]format.Object
	next   int
	pieces []format.Object
	lists  []format.PieceList
	tars   []format.Tar
}

// add notes that a piece was written. The number is that in the whole backup, in the order of the tar files.
func (l *lister) add(number int, piece format.Object) error {
	if l.done == nil {
		l.done = map[int]format.Object{}
	}
	l.done[number] = piece
	for {
		o, ok := l.done[l.next]
		if !ok {
			return nil
		}
		delete(l.done, l.next)
		l.next++
		l.count(o)
		l.pieces = append(l.pieces, o)
		if len(l.lists) == 0 && len(l.pieces) <= mostInline {
			continue
		}
		if err := l.flush(listLength); err != nil {
			return err
		}
	}
}

// count notes how much there is of a tar file.
func (l *lister) count(o format.Object) {
	tar, _, ending := format.ParsePieceName(o.Name)
	if last := len(l.tars) - 1; last < 0 || l.tars[last].Name != tar {
		l.tars = append(l.tars, format.Tar{Name: tar, Ending: ending})
	}
	last := &l.tars[len(l.tars)-1]
	last.Pieces++
	last.StoredBytes += o.Size
}

// flush writes lists as long as there are so many pieces.
func (l *lister) flush(length int) error {
	for len(l.pieces) > 0 && len(l.pieces) >= length {
		some := l.pieces[:min(listLength, len(l.pieces))]
		text, err := json.Marshal(some)
		if err != nil {
			return err
		}
		list := format.PieceList{}
		for _, o := range some {
			if tar, _, _ := format.ParsePieceName(o.Name); !slices.Contains(list.Tars, tar) {
				list.Tars = append(list.Tars, tar)
			}
		}
		if list.Object, err = l.put(fmt.Sprintf("pieces.%05d.json", len(l.lists)), text); err != nil {
			return err
		}
		l.lists, l.pieces = append(l.lists, list), slices.Clone(l.pieces[len(some):])
	}
	return nil
}

// end puts what backup.json says of the pieces into it.
func (l *lister) end(b *format.Backup) error {
	if len(l.lists) == 0 {
		b.Pieces = format.SortPieces(l.pieces)
		return nil
	}
	if err := l.flush(1); err != nil {
		return err
	}
	b.Layout, b.Pieces, b.Lists, b.Tars = format.LayoutLists, nil, l.lists, l.tars
	return nil
}
