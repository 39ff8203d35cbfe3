package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"toban.dev/internal/archive/bucket"
)

// layoutLists is the layout of a backup whose pieces stand in lists, or whose manifest is in parts. A program that does
// not know it reads the sentence behind the id instead of an id, and lets the backup alone.
const (
	layoutLists   = 2
	layoutsRemark = ", in layout 2: a newer version of Toban can read it"
)

// How large the lists of pieces are; less in tests.
var (
	// mostInline is how many pieces stand in backup.json itself: that has 160 bytes for each, and an object at most
	// bucket.MaxObject.
	mostInline = 300_000
	// listLength is how many pieces stand in a list.
	listLength = 100_000
)

// PieceList is an object with a part of the list of a backup's pieces: a JSON list of Objects.
type PieceList struct {
	Object
	// Tars are the tar files whose pieces it has.
	Tars []string `json:"tars"`
}

// Tar is a tar file that is in lists of pieces: its pieces are numbered from 0 on.
type Tar struct {
	Name string `json:"name"`
	// Ending is what an Encoder adds to the names of its pieces.
	Ending string `json:"ending"`
	// Pieces is how many there are, StoredBytes the size of all.
	Pieces      int   `json:"pieces"`
	StoredBytes int64 `json:"storedBytes"`
}

// mostPieces is how many pieces a backup may have: those of 256 TiB. The names of all are made when it is deleted.
const mostPieces = 1 << 23

// checkTars refuses tar files whose pieces nobody has written: what follows from them is deleted by name.
func checkTars(tars []Tar) error {
	pieces := 0
	for _, tar := range tars {
		if !tarName.MatchString(tar.Name) || tar.Ending != endCompressed && tar.Ending != endEncrypted {
			return fmt.Errorf("it has a tar file %q with pieces that end with %q", tar.Name, tar.Ending)
		}
		if tar.Pieces < 0 || tar.Pieces > mostPieces-pieces {
			return fmt.Errorf("%s has %d pieces, and a backup at most %d", tar.Name, tar.Pieces, mostPieces)
		}
		pieces += tar.Pieces
	}
	return nil
}

// folder is that of the backup in its archive, with a slash at the end.
func (b Backup) folder() string { return FolderBase + b.ID + "/" }

// listed says that the pieces of the backup stand in lists of their own.
func (b Backup) listed() bool { return len(b.Lists) > 0 }

// manifest is what PostgreSQL's manifest lies in: one object, or parts of it in order.
func (b Backup) manifest() []Object {
	if len(b.ManifestParts) > 0 {
		return b.ManifestParts
	}
	return []Object{b.Manifest}
}

// piecesOf are those of a tar file, in order. Lists are read one after the other.
func piecesOf(ctx context.Context, b Backup, from bucket.Bucket, tar string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if !b.listed() {
			give(sorted(b.Pieces), tar, yield)
			return
		}
		for _, list := range b.Lists {
			if !slices.Contains(list.Tars, tar) {
				continue
			}
			pieces, err := readList(ctx, b, from, list)
			if err != nil {
				yield(Object{}, err)
				return
			}
			if !give(pieces, tar, yield) {
				return
			}
		}
	}
}

// give passes on the pieces of a tar file, and says whether more are wanted.
func give(pieces []Object, tar string, yield func(Object, error) bool) bool {
	for _, o := range pieces {
		if strings.HasPrefix(o.Name, tar+".") && !yield(o, nil) {
			return false
		}
	}
	return true
}

// objects are those that backup.json names itself, but for lists.
func (b Backup) objects() []Object {
	return slices.DeleteFunc(slices.Concat(b.manifest(), []Object{b.SampleDB}, b.Pieces),
		func(o Object) bool { return o.Name == "" })
}

func readList(
	ctx context.Context, b Backup, from bucket.Bucket, list PieceList,
) (pieces []Object, err error) {
	text, err := readStored(ctx, from, b.folder(), list.Object)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &pieces); err != nil {
		return nil, &ObjectError{b.folder() + list.Name, Altered, err}
	}
	return pieces, nil
}

// part is an object that backup.json names, or a list that it names does. List says that it is such a list.
type part struct {
	Object
	list bool
}

// parts goes through all objects of a backup, a list before the pieces in it. The pieces of a list that is broken are
// not known: it is told as an error then.
func parts(ctx context.Context, b Backup, from bucket.Bucket) iter.Seq2[part, error] {
	return func(yield func(part, error) bool) {
		for _, o := range b.objects() {
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

// sorted are pieces by tar file and number. A number of more than five digits comes after those with five.
func sorted(pieces []Object) []Object {
	pieces = slices.Clone(pieces)
	slices.SortFunc(pieces, func(a, b Object) int {
		aTar, aNumber, _ := parsePiece(a.Name)
		bTar, bNumber, _ := parsePiece(b.Name)
		return cmp.Or(strings.Compare(aTar, bTar), cmp.Compare(aNumber, bNumber))
	})
	return pieces
}

// parsePiece is the opposite of PieceName, with what an Encoder has added: base.tar, 7 and .zst of base.tar.00007.zst.
func parsePiece(name string) (tar string, number int, ending string) {
	tar, rest, ok := strings.Cut(name, ".tar.")
	digits, ending, _ := strings.Cut(rest, ".")
	number, err := strconv.Atoi(digits)
	if !ok || err != nil || PieceName(tar+".tar", number) != tar+".tar."+digits {
		return "", 0, ""
	}
	return tar + ".tar", number, "." + ending
}

// tally is what there is of the tar files of a backup that is in lists: the numbers of pieces are known by their
// count, so a listing of millions need not be kept.
type tally map[string]*Tar

// add counts an object of the backup's folder, and says whether it is a piece.
func (c tally) add(name string, size int64) bool {
	tar, _, ending := parsePiece(name)
	if tar == "" {
		return false
	}
	if c[tar+ending] == nil {
		c[tar+ending] = &Tar{Name: tar, Ending: ending}
	}
	c[tar+ending].Pieces++
	c[tar+ending].StoredBytes += size
	return true
}

// lacks says which tar file of a backup is not there as it was written, "" for none.
func (c tally) lacks(b Backup) string {
	for _, tar := range b.Tars {
		if there := c[tar.Name+tar.Ending]; there == nil || *there != tar {
			return fmt.Sprintf("%s%s.*%s (one of its %d pieces)", b.folder(), tar.Name, tar.Ending, tar.Pieces)
		}
	}
	return ""
}

// contents are what lies in the folder of a backup, to be compared with what its backup.json says.
type contents struct {
	backup Backup
	sizes  map[string]int64
	tars   tally
}

func newContents(b Backup) contents { return contents{b, map[string]int64{}, tally{}} }

func (c contents) add(o bucket.Object) {
	name := strings.TrimPrefix(o.Name, c.backup.folder())
	if !c.backup.listed() || !c.tars.add(name, o.Size) {
		c.sizes[name] = o.Size
	}
}

// lost is an object that is named in backup.json and is not there, or not of its size; "" for none.
func (c contents) lost() string {
	all := c.backup.objects()
	for _, list := range c.backup.Lists {
		all = append(all, list.Object)
	}
	for _, o := range all {
		if size, ok := c.sizes[o.Name]; o.Name != "" && (!ok || size != o.Size) {
			return c.backup.folder() + o.Name
		}
	}
	return ""
}

// contentsOf are all objects of a backup that exists. Those of tar files that are in lists are named by their numbers.
func (c Catalogue) contentsOf(b Backup) []bucket.Object {
	all := slices.Clone(c.Contents[b.ID])
	for _, tar := range b.Tars {
		for i := range tar.Pieces {
			all = append(all, bucket.Object{Name: b.folder() + PieceName(tar.Name, i) + tar.Ending})
		}
	}
	return all
}

// lister notes the pieces of a backup that is being taken, in order, and has them written in lists where there are too
// many for backup.json.
type lister struct {
	// put writes a list.
	put func(name string, text []byte) (Object, error)
	// done are the pieces that were written before one in front of them, by their number in the whole backup.
	done   map[int]Object
	next   int
	pieces []Object
	lists  []PieceList
	tars   []Tar
}

// add notes that a piece was written. The number is that in the whole backup, in the order of the tar files.
func (l *lister) add(number int, piece Object) error {
	if l.done == nil {
		l.done = map[int]Object{}
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
func (l *lister) count(o Object) {
	tar, _, ending := parsePiece(o.Name)
	if last := len(l.tars) - 1; last < 0 || l.tars[last].Name != tar {
		l.tars = append(l.tars, Tar{Name: tar, Ending: ending})
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
		list := PieceList{}
		for _, o := range some {
			if tar, _, _ := parsePiece(o.Name); !slices.Contains(list.Tars, tar) {
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
func (l *lister) end(b *Backup) error {
	if len(l.lists) == 0 {
		b.Pieces = sorted(l.pieces)
		return nil
	}
	if err := l.flush(1); err != nil {
		return err
	}
	b.Layout, b.Pieces, b.Lists, b.Tars = layoutLists, nil, l.lists, l.tars
	return nil
}
