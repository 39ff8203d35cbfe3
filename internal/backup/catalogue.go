package backup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// The types of a base backup.
const (
	TypeFull        = "full"
	TypeIncremental = "incremental"
)

// Object is one of a backup, as it lies in the bucket.
type Object struct {
	// Name is that within the backup's folder, with the endings that a Encoder adds.
	Name string `json:"name"`
	// Size is in bytes, SHA256 in hexadecimal, both of what lies in the bucket.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Tablespace is one besides PostgreSQL's own.
type Tablespace struct {
	OID      uint32 `json:"oid"`
	Location string `json:"location"`
}

// Backup is what backup.json says of a base backup.
type Backup struct {
	ID string `json:"id"`
	// Type is TypeFull or TypeIncremental, Parent the id of what an incremental one is the change from.
	Type   string `json:"type"`
	Parent string `json:"parent,omitempty"`
	// Label is the user's. Trigger is why it was made (naming.TriggerSchedule and its like), "" in one
	// from before this was noted.
	Label   string    `json:"label,omitempty"`
	Trigger string    `json:"trigger,omitempty"`
	Started time.Time `json:"started"`
	Stopped time.Time `json:"stopped"`
	// StartLSN is where its WAL begins, StopLSN from where on it is consistent.
	StartLSN      wal.LSN      `json:"-"`
	StopLSN       wal.LSN      `json:"-"`
	StartTimeline wal.Timeline `json:"startTimeline"`
	StopTimeline  wal.Timeline `json:"stopTimeline"`
	// Term is that in which it was taken; its term history says whose WAL it goes on with.
	Term uint64 `json:"term"`
	// Recipient is the public half of the key that it needs, "" without encryption, and in one from before this was
	// noted.
	Recipient        string       `json:"recipient,omitempty"`
	SystemIdentifier string       `json:"systemIdentifier"`
	ServerVersion    string       `json:"serverVersion"`
	Tablespaces      []Tablespace `json:"tablespaces,omitempty"`
	// Layout is 0, or layoutLists of a backup that is too large for that: then its manifest may be in ManifestParts,
	// and its pieces in Lists, by tar file as Tars say.
	Layout        int         `json:"layout,omitempty"`
	Manifest      Object      `json:"manifest"`
	ManifestParts []Object    `json:"manifestParts,omitempty"`
	Pieces        []Object    `json:"pieces"`
	Lists         []PieceList `json:"lists,omitempty"`
	Tars          []Tar       `json:"tars,omitempty"`
	// SampleDB has the manifest of what was backed up. It has no name in a backup from before this was noted.
	SampleDB Object `json:"sampledb,omitzero"`
	// RawBytes is the size of its content, StoredBytes that of its objects.
	RawBytes    int64 `json:"rawBytes"`
	StoredBytes int64 `json:"storedBytes"`
}

// lsnText is an LSN that is written as PostgreSQL does.
type lsnText wal.LSN

func (l lsnText) MarshalText() ([]byte, error) { return []byte(wal.LSN(l).String()), nil }

func (l *lsnText) UnmarshalText(text []byte) error {
	lsn, err := wal.ParseLSN(string(text))
	*l = lsnText(lsn)
	return err
}

type backupFields Backup

type backupFile struct {
	backupFields
	StartLSN lsnText `json:"startLSN"`
	StopLSN  lsnText `json:"stopLSN"`
}

// MarshalJSON writes backup.json.
func (b Backup) MarshalJSON() ([]byte, error) {
	if b.Layout != 0 {
		b.ID += layoutsRemark
	}
	return json.Marshal(backupFile{backupFields(b), lsnText(b.StartLSN), lsnText(b.StopLSN)})
}

// UnmarshalJSON reads backup.json.
func (b *Backup) UnmarshalJSON(text []byte) error {
	var file backupFile
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	if file.Layout > layoutLists {
		return fmt.Errorf("the backup is in layout %d, and this program knows %d: take a newer version of Toban",
			file.Layout, layoutLists)
	}
	if err := checkTars(file.Tars); err != nil {
		return err
	}
	file.ID = strings.TrimSuffix(file.ID, layoutsRemark)
	*b = Backup(file.backupFields)
	b.StartLSN, b.StopLSN = wal.LSN(file.StartLSN), wal.LSN(file.StopLSN)
	return nil
}

// WAL is a piece of it as it lies in the archive.
type WAL struct {
	Piece
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
	Owner *Owner
	Terms map[uint64]*Term
	// Backups are those that exist (invariant 5), oldest first.
	Backups    []Backup
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
	Piece Piece
	// To is up to where in the segment it is of use, in bytes: what follows may be of
	// a leader whose WAL was not continued there.
	To uint32
}

// termHistoryFile is lineage.json.
type termHistoryFile struct {
	Term   uint64      `json:"term"`
	Starts []startFile `json:"starts"`
}

type startFile struct {
	Term     uint64       `json:"term"`
	LSN      lsnText      `json:"lsn"`
	Timeline wal.Timeline `json:"timeline"`
}

func formatTermHistory(starts []ha.TermStart) ([]byte, error) {
	file := termHistoryFile{Term: starts[len(starts)-1].Term}
	for _, s := range starts {
		file.Starts = append(file.Starts, startFile{s.Term, lsnText(s.LSN), s.Timeline})
	}
	text, err := json.Marshal(file)
	return append(text, '\n'), err
}

func parseTermHistory(text []byte, term uint64) ([]ha.TermStart, error) {
	var file termHistoryFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if file.Term != term || len(file.Starts) == 0 || file.Starts[len(file.Starts)-1].Term != term {
		return nil, fmt.Errorf("it is not the term history of term %d", term)
	}
	var starts []ha.TermStart
	for _, s := range file.Starts {
		starts = append(starts, ha.TermStart{Term: s.Term, LSN: wal.LSN(s.LSN), Timeline: s.Timeline})
	}
	return starts, nil
}

// NewCatalogue makes one of a whole listing, and of the contents of the small
// json objects by their names.
func NewCatalogue(objects []bucket.Object, contents map[string][]byte) Catalogue {
	return newCatalogue(objects, contents, nil)
}

// newCatalogue makes one of a listing in which the pieces of some backups were counted only, by the backup's id.
func newCatalogue(objects []bucket.Object, contents map[string][]byte, pieces map[string]tally) Catalogue {
	c := Catalogue{Terms: map[uint64]*Term{}, Contents: map[string][]bucket.Object{}, lacks: map[string]string{}}
	folders := map[string][]bucket.Object{}
	for _, o := range objects {
		id, name, inBase := strings.Cut(strings.TrimPrefix(o.Name, FolderBase), "/")
		switch {
		case o.Name == FileArchive:
			c.addOwner(contents[o.Name])
		case strings.HasPrefix(o.Name, FolderWAL):
			c.addWAL(o, contents)
		case strings.HasPrefix(o.Name, FolderBase) && inBase && id != "" && name != "":
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
		func(a, b Backup) int { return cmp.Or(a.Stopped.Compare(b.Stopped), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(c.Unfinished, func(a, b Unfinished) int { return cmp.Compare(a.ID, b.ID) })
	return c
}

func (c *Catalogue) addOwner(text []byte) {
	owner, err := parseOwner(text)
	if err != nil {
		c.Unread = append(c.Unread, Unread{Name: FileArchive, Problem: err.Error()})
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

func (c *Catalogue) addWAL(o bucket.Object, contents map[string][]byte) {
	term, rest, ok := ParseTerm(o.Name)
	if !ok {
		c.Strangers = append(c.Strangers, o)
		return
	}
	if rest == FileLineage {
		history, err := parseTermHistory(contents[o.Name], term)
		if err != nil {
			c.Unread = append(c.Unread, Unread{Name: o.Name, Problem: err.Error(), Term: term})
		}
		t := c.term(term)
		t.TermHistory, t.Note = history, o
		return
	}
	plain, _, ok := PlainName(rest)
	if piece, is := ParsePiece(plain); ok && is {
		t := c.term(term)
		t.WAL = append(t.WAL, WAL{piece, o})
		return
	}
	if timeline, is := wal.ParseHistoryFile(plain); ok && is {
		c.term(term).addHistory(timeline, o)
		return
	}
	if _, is := ParseGap(rest); is {
		t := c.term(term)
		t.Gaps = append(t.Gaps, o)
		return
	}
	if _, is := parseKeyNote(rest); is {
		t := c.term(term)
		t.Keys = append(t.Keys, o)
		return
	}
	if _, is := parseClockNote(rest); is {
		t := c.term(term)
		t.Clocks = append(t.Clocks, o)
		return
	}
	c.Strangers = append(c.Strangers, o)
}

// addHistory adds a timeline's history. One that needs no key is preferred.
func (t *Term) addHistory(timeline wal.Timeline, o bucket.Object) {
	there, taken := t.Histories[timeline]
	if _, encrypted, _ := PlainName(o.Name); taken && encrypted {
		there, o = o, there
	}
	if taken {
		t.Spare = append(t.Spare, there)
	}
	t.Histories[timeline] = o
}

func (c *Catalogue) addBackup(id string, in []bucket.Object, contents map[string][]byte, pieces tally) {
	note := FolderBase + id + "/" + FileBackup
	if !slices.ContainsFunc(in, func(o bucket.Object) bool { return o.Name == note }) {
		c.Unfinished = append(c.Unfinished, Unfinished{id, in})
		return
	}
	c.Contents[id] = in
	var b Backup
	err := json.Unmarshal(contents[note], &b)
	if err == nil && b.ID != id {
		err = fmt.Errorf("it is that of %q", b.ID)
	}
	if err != nil {
		c.Unread = append(c.Unread, Unread{Name: note, Problem: err.Error(), Backup: id})
		return
	}
	if b.listed() {
		if pieces == nil {
			pieces = tally{}
		}
		c.Contents[id] = slices.DeleteFunc(slices.Clone(in),
			func(o bucket.Object) bool { return pieces.add(strings.TrimPrefix(o.Name, b.folder()), o.Size) })
		c.lacks[id] = pieces.lacks(b)
	}
	c.Backups = append(c.Backups, b)
}

// Read lists an archive and reads its small objects. The bucket is rooted at the archive.
func Read(ctx context.Context, b bucket.Bucket) (Catalogue, error) { return read(ctx, b, "") }

// ReadWAL is Read without the backups, which may have millions of objects.
func ReadWAL(ctx context.Context, b bucket.Bucket) (Catalogue, error) { return read(ctx, b, FolderWAL) }

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
		id, name, _ := strings.Cut(strings.TrimPrefix(o.Name, FolderBase), "/")
		switch {
		case pieces[id] != nil && pieces[id].add(name, o.Size):
			continue
		case isSmall(o.Name) && name == FileBackup:
			// It says whether its pieces need to be kept in mind, most of which come after it.
			if notes[o.Name], err = readWhole(ctx, b, o.Name); err != nil {
				return Catalogue{}, err
			}
			if isListed(notes[o.Name]) {
				pieces[id] = tally{}
			}
		case isSmall(o.Name):
			small = append(small, o.Name)
		}
		objects = append(objects, o)
	}
	contents, err := readSmall(ctx, b, small)
	if err != nil {
		return Catalogue{}, err
	}
	maps.Copy(contents, notes)
	return newCatalogue(objects, contents, pieces), nil
}

// isListed says that a backup.json is of one whose pieces are in lists.
func isListed(text []byte) bool {
	var b Backup
	return json.Unmarshal(text, &b) == nil && b.listed()
}

func isSmall(name string) bool {
	if name == FileArchive {
		return true
	}
	parts := strings.Split(name, "/")
	return len(parts) == 3 &&
		(parts[0]+"/" == FolderWAL && parts[2] == FileLineage || parts[0]+"/" == FolderBase && parts[2] == FileBackup)
}

// readSmall reads objects, eight at a time.
func readSmall(ctx context.Context, b bucket.Bucket, names []string) (map[string][]byte, error) {
	contents := map[string][]byte{}
	var mutex sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, name := range names {
		group.Go(func() error {
			content, err := readWhole(ctx, b, name)
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

// smallLimit is how large a json object may be, in bytes: a backup.json is much smaller than the largest object.
const smallLimit = 512 << 20

func readWhole(ctx context.Context, b bucket.Bucket, name string) ([]byte, error) {
	return readMost(ctx, b, name, smallLimit)
}

// readMost reads an object, up to so many bytes.
func readMost(ctx context.Context, b bucket.Bucket, name string, most int64) ([]byte, error) {
	r, err := b.Get(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer r.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(io.LimitReader(r, most)); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return content.Bytes(), nil
}

// cutoff is where the WAL of the i-th term of a term history is no longer continued: at the
// first start of a later one. Starts need not be in order (ha.Joins).
func cutoff(history []ha.TermStart, i int) wal.LSN {
	first := wal.MaxLSN
	for _, s := range history[i+1:] {
		first = min(first, s.LSN)
	}
	return first
}
