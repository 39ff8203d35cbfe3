package take

import (
	"encoding/json"
	"fmt"
	"slices"

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
