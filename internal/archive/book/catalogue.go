// Package book is an archive, read: what a listing of it says, which WAL it has without a gap and along which branches,
// which backup leads to a moment, which keys it needs; and one way to go through the objects of a backup and to read
// segments, with their checks. Restores, verifications, scrubs, the second store, retention and the search for backups
// look into archives by it. It changes nothing.
package book

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// WAL is a piece of it as it lies in the archive.
type WAL struct {
	format.Piece
	Object bucket.Object
}

// Term is the folder of one.
type Term struct {
	// TermHistory is that of its leader, nil if lineage.json is not there.
	TermHistory []ha.TermStart
	// WAL is in order of LSN. Histories are by timeline.
	WAL       []WAL
	Histories map[wal.Timeline]bucket.Object
	// Note is lineage.json, Gaps are the notes of gaps, Keys those of keys, Clocks those of the leader's clock. Spare
	// are histories that are encrypted, and are there without encryption too.
	Note   bucket.Object
	Gaps   []bucket.Object
	Keys   []bucket.Object
	Clocks []bucket.Object
	Spare  []bucket.Object
}

// Unfinished is a backup's folder without a backup.json.
type Unfinished struct {
	ID      string
	Objects []bucket.Object
}

// Catalogue is what a listing of an archive says. Names are those within the archive.
type Catalogue struct {
	// Owner is nil where there is no archive.json.
	Owner *format.Owner
	Terms map[uint64]*Term
	// Backups are those that exist (invariant 5), oldest first.
	Backups    []format.Backup
	Unfinished []Unfinished
	// Contents are all objects in the folder of a backup that exists, by its id, but for pieces that are in lists.
	Contents map[string][]bucket.Object
	// Strangers are objects of other names. They are left alone.
	Strangers []bucket.Object
	// Unread is what could not be understood: nothing that it may need is deleted (invariant 9).
	Unread []Unread
	// lacks are tar files in lists that are not there as they were written, by the backup's id, "" for none.
	lacks map[string]string
}

// WALPlan says what to download for a recovery.
type WALPlan struct {
	// Timeline is the one to recover along.
	Timeline wal.Timeline
	// Histories are objects, each to be put under its name without endings.
	Histories []string
	Segments  []PlannedSegment
}

// PlannedSegment is one that a server will look for.
type PlannedSegment struct {
	Segment wal.Segment
	// File is the name by which it will.
	File string
	// Objects are to be put over each other, in this order.
	Objects []PlannedObject
}

// PlannedObject is WAL to be downloaded.
type PlannedObject struct {
	Name  string
	Piece format.Piece
	// To is up to where in the segment it is of use, in bytes: what follows may be of
	// a leader whose WAL was not continued there.
	To uint32
}

// NewCatalogue makes one of a listing, and of the contents of the small json objects by their names. The pieces of some
// backups may have been counted only, by the backup's id.
func NewCatalogue(objects []bucket.Object, contents map[string][]byte, pieces map[string]tally) Catalogue {
	c := Catalogue{Terms: map[uint64]*Term{}, Contents: map[string][]bucket.Object{}, lacks: map[string]string{}}
	folders := map[string][]bucket.Object{}
	for _, o := range objects {
		id, name, inBase := strings.Cut(strings.TrimPrefix(o.Name, format.FolderBase), "/")
		switch {
		case o.Name == format.FileArchive:
			c.addOwner(contents[o.Name])
		case strings.HasPrefix(o.Name, format.FolderWAL):
			c.AddWAL(o, contents)
		case strings.HasPrefix(o.Name, format.FolderBase) && inBase && id != "" && name != "":
			folders[id] = append(folders[id], o)
		default:
			c.Strangers = append(c.Strangers, o)
		}
	}
	for id, in := range folders {
		c.addBackup(id, in, contents, pieces[id])
	}
	c.infer()
	slices.SortFunc(c.Unread, func(a, b Unread) int { return cmp.Compare(a.Name, b.Name) })
	for _, t := range c.Terms {
		slices.SortStableFunc(t.WAL, func(a, b WAL) int {
			return cmp.Or(cmp.Compare(a.Segment.Number, b.Segment.Number), cmp.Compare(a.From, b.From),
				cmp.Compare(a.To, b.To))
		})
	}
	slices.SortFunc(c.Backups,
		func(a, b format.Backup) int { return cmp.Or(a.Stopped.Compare(b.Stopped), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(c.Unfinished, func(a, b Unfinished) int { return cmp.Compare(a.ID, b.ID) })
	return c
}

func (c *Catalogue) addOwner(text []byte) {
	owner, err := format.ParseOwner(text)
	if err != nil {
		c.Unread = append(c.Unread, Unread{Name: format.FileArchive, Problem: err.Error()})
		return
	}
	c.Owner = &owner
}

// term is the model of a term's folder.
func (c *Catalogue) term(term uint64) *Term {
	if c.Terms[term] == nil {
		c.Terms[term] = &Term{Histories: map[wal.Timeline]bucket.Object{}}
	}
	return c.Terms[term]
}

// AddWAL adds an object of the folder of a term. Contents are those of lineage.json files.
func (c *Catalogue) AddWAL(o bucket.Object, contents map[string][]byte) {
	term, rest, ok := format.ParseTerm(o.Name)
	if !ok {
		c.Strangers = append(c.Strangers, o)
		return
	}
	if rest == format.FileLineage {
		history, err := format.ParseTermHistory(contents[o.Name], term)
		if err != nil {
			c.Unread = append(c.Unread, Unread{Name: o.Name, Problem: err.Error(), Term: term})
		}
		t := c.term(term)
		t.TermHistory, t.Note = history, o
		return
	}
	plain, _, ok := format.PlainName(rest)
	if piece, is := format.ParsePiece(plain); ok && is {
		t := c.term(term)
		t.WAL = append(t.WAL, WAL{piece, o})
		return
	}
	if timeline, is := wal.ParseHistoryFile(plain); ok && is {
		c.term(term).addHistory(timeline, o)
		return
	}
	if _, is := format.ParseGap(rest); is {
		t := c.term(term)
		t.Gaps = append(t.Gaps, o)
		return
	}
	if _, is := format.ParseKeyNote(rest); is {
		t := c.term(term)
		t.Keys = append(t.Keys, o)
		return
	}
	if _, is := format.ParseClockNote(rest); is {
		t := c.term(term)
		t.Clocks = append(t.Clocks, o)
		return
	}
	c.Strangers = append(c.Strangers, o)
}

// addHistory adds a timeline's history. One that needs no key is preferred.
func (t *Term) addHistory(timeline wal.Timeline, o bucket.Object) {
	there, taken := t.Histories[timeline]
	if _, encrypted, _ := format.PlainName(o.Name); taken && encrypted {
		there, o = o, there
	}
	if taken {
		t.Spare = append(t.Spare, there)
	}
	t.Histories[timeline] = o
}

func (c *Catalogue) addBackup(id string, in []bucket.Object, contents map[string][]byte, pieces tally) {
	note := format.FolderBase + id + "/" + format.FileBackup
	if !slices.ContainsFunc(in, func(o bucket.Object) bool { return o.Name == note }) {
		c.Unfinished = append(c.Unfinished, Unfinished{id, in})
		return
	}
	c.Contents[id] = in
	var b format.Backup
	err := json.Unmarshal(contents[note], &b)
	if err == nil && b.ID != id {
		err = fmt.Errorf("it is that of %q", b.ID)
	}
	if err != nil {
		c.Unread = append(c.Unread, Unread{Name: note, Problem: err.Error(), Backup: id})
		return
	}
	if b.Listed() {
		if pieces == nil {
			pieces = tally{}
		}
		c.Contents[id] = slices.DeleteFunc(slices.Clone(in),
			func(o bucket.Object) bool { return pieces.add(strings.TrimPrefix(o.Name, b.Folder()), o.Size) })
		c.lacks[id] = pieces.lacks(b)
	}
	c.Backups = append(c.Backups, b)
}

// Read lists an archive and reads its small objects. The bucket is rooted at the archive.
func Read(ctx context.Context, b bucket.Bucket) (Catalogue, error) { return read(ctx, b, "") }

// ReadWAL is Read without the backups, which may have millions of objects.
func ReadWAL(ctx context.Context, b bucket.Bucket) (Catalogue, error) {
	return read(ctx, b, format.FolderWAL)
}

func read(ctx context.Context, b bucket.Bucket, prefix string) (Catalogue, error) {
	// What is listed may be deleted before it is read: then it is looked for again.
	for try := 1; ; try++ {
		c, err := readOnce(ctx, b, prefix)
		if err == nil || !errors.Is(err, bucket.ErrNotExist) || try == 3 {
			return c, err
		}
	}
}

// A listing that goes on while a leader writes misses nothing that it had before: what
// replaces a part is there before that goes, and has a name that comes later.
func readOnce(ctx context.Context, b bucket.Bucket, prefix string) (Catalogue, error) {
	var objects []bucket.Object
	var small []string
	notes, pieces := map[string][]byte{}, map[string]tally{}
	for o, err := range b.List(ctx, prefix) {
		if err != nil {
			return Catalogue{}, fmt.Errorf("list the archive: %w", err)
		}
		id, name, _ := strings.Cut(strings.TrimPrefix(o.Name, format.FolderBase), "/")
		switch {
		case pieces[id] != nil && pieces[id].add(name, o.Size):
			continue
		case format.IsSmall(o.Name) && name == format.FileBackup:
			// It says whether its pieces need to be kept in mind, most of which come after it.
			if notes[o.Name], err = format.ReadWhole(ctx, b, o.Name); err != nil {
				return Catalogue{}, err
			}
			if isListed(notes[o.Name]) {
				pieces[id] = tally{}
			}
		case format.IsSmall(o.Name):
			small = append(small, o.Name)
		}
		objects = append(objects, o)
	}
	contents, err := readSmall(ctx, b, small)
	if err != nil {
		return Catalogue{}, err
	}
	maps.Copy(contents, notes)
	return NewCatalogue(objects, contents, pieces), nil
}

// isListed says that a backup.json is of one whose pieces are in lists.
func isListed(text []byte) bool {
	var b format.Backup
	return json.Unmarshal(text, &b) == nil && b.Listed()
}

// readSmall reads objects, eight at a time.
func readSmall(ctx context.Context, b bucket.Bucket, names []string) (map[string][]byte, error) {
	contents := map[string][]byte{}
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error {
			content, err := format.ReadWhole(ctx, b, name)
			if err != nil {
				return err
			}
			mutex.Lock()
			defer mutex.Unlock()
			contents[name] = content
			return nil
		})
	}
	return contents, group.Wait()
}
