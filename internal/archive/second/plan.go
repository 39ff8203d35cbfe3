package second

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/wal"
)

// FileCopy says in the second store that this is a copy of an archive (docs/archive.md, invariant 14).
const FileCopy = "copy.json"

// Plan is what the copy of an archive lacks, in the order in which it is copied: whenever that is cut short, the
// copy is an archive that can be restored (docs/store.md, "A second store").
type Plan struct {
	// Terms are the folders of WAL, the first term first.
	Terms []Term
	// Backups are those that have ended, parents before their children.
	Backups []Backup
	// Alone are objects that only the copy has. In are the backups that the archive has.
	Alone map[string]bool
	In    map[string]bool
	// Copied are the backups that the copy has already.
	Copied map[string]bool
	// Differ are objects that have another size in the copy. Neither is touched.
	Differ []string
}

// Term is what is to be copied of the folder of a term: what says whose WAL it is and what it continues, and then
// the WAL in the order of its positions.
type Term struct {
	Term  uint64
	Notes []bucket.Object
	WAL   []book.WAL
}

// Backup is a backup of which something is to be copied: objects, and at the end its backup.json, unless the copy
// has that already and has lost the others.
type Backup struct {
	ID      string
	Objects []bucket.Object
	// Note is backup.json; its name is empty where the copy has it.
	Note bucket.Object
}

// PlanCopy compares a listing of an archive with one of its copy, both in the order of names. So a backup.json is
// listed before the WAL that was archived before it was written. Only what differs is kept in memory.
func PlanCopy(archive, copied iter.Seq2[bucket.Object, error]) (Plan, error) {
	p := planning{Plan: Plan{Alone: map[string]bool{}, In: map[string]bool{}, Copied: map[string]bool{}},
		terms: map[uint64]*Term{}}
	for pair, err := range sideBySide(archive, copied) {
		if err != nil {
			return Plan{}, err
		}
		p.add(pair)
	}
	p.endBackup()
	for _, t := range p.terms {
		slices.SortFunc(t.Notes, compareNotes)
		slices.SortFunc(t.WAL, func(a, b book.WAL) int {
			return cmp.Or(cmp.Compare(a.Segment.Number, b.Segment.Number), cmp.Compare(a.From, b.From),
				cmp.Compare(a.To, b.To), cmp.Compare(a.Object.Name, b.Object.Name))
		})
		p.Terms = append(p.Terms, *t)
	}
	slices.SortFunc(p.Terms, func(a, b Term) int { return cmp.Compare(a.Term, b.Term) })
	return p.Plan, nil
}

// planning is a plan that is being made.
type planning struct {
	Plan
	terms map[uint64]*Term
	// backup is the one whose folder is being listed, whole once its backup.json was seen in the archive.
	backup Backup
	whole  bool
}

func (p *planning) add(o pair) {
	id, ofBackup := format.BackupOf(o.name())
	if id != p.backup.ID {
		p.endBackup()
		p.backup.ID = id
	}
	note := ofBackup && strings.HasSuffix(o.name(), "/"+format.FileBackup)
	if note && o.copied != nil {
		p.Copied[id] = true
	}
	if note && o.archive != nil {
		p.In[id], p.whole = true, true
	}
	switch {
	case o.archive == nil:
		if o.name() != FileCopy {
			p.Alone[o.name()] = true
		}
	case o.copied != nil && o.copied.Size != o.archive.Size:
		p.Differ = append(p.Differ, o.name())
	case o.copied != nil || o.name() == format.FileArchive: // which is written by the claim
	case note:
		p.backup.Note = *o.archive
	case ofBackup:
		p.backup.Objects = append(p.backup.Objects, *o.archive)
	default:
		p.addWAL(*o.archive)
	}
}

// endBackup adds the backup whose folder was listed, if it has ended and something of it is to be copied.
func (p *planning) endBackup() {
	if p.whole && (p.backup.Note.Name != "" || len(p.backup.Objects) > 0) {
		p.Backups = append(p.Backups, p.backup)
	}
	p.backup, p.whole = Backup{}, false
}

// addWAL adds an object of a term's folder, unless it has a name that nobody knows.
func (p *planning) addWAL(o bucket.Object) {
	c := book.Catalogue{Terms: map[uint64]*book.Term{}}
	c.AddWAL(o, map[string][]byte{})
	for term, one := range c.Terms {
		if p.terms[term] == nil {
			p.terms[term] = &Term{Term: term}
		}
		t := p.terms[term]
		if len(one.WAL) > 0 {
			t.WAL = append(t.WAL, one.WAL...)
			continue
		}
		t.Notes = append(t.Notes, o)
	}
}

// compareNotes puts lineage.json first: without it nobody knows whose WAL follows.
func compareNotes(a, b bucket.Object) int {
	later := func(o bucket.Object) int {
		if strings.HasSuffix(o.Name, "/"+format.FileLineage) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(later(a), later(b)), cmp.Compare(a.Name, b.Name))
}

// pair is an object as it is in the archive and in the copy, nil where it is not.
type pair struct{ archive, copied *bucket.Object }

func (p pair) name() string {
	if p.archive != nil {
		return p.archive.Name
	}
	return p.copied.Name
}

// sideBySide goes through two listings at once.
func sideBySide(archive, copied iter.Seq2[bucket.Object, error]) iter.Seq2[pair, error] {
	return func(yield func(pair, error) bool) {
		nextArchive, stopArchive := pull("the archive", archive)
		defer stopArchive()
		nextCopied, stopCopied := pull("the copy", copied)
		defer stopCopied()
		a, err := nextArchive()
		c, cErr := nextCopied()
		for {
			var p pair
			switch {
			case err != nil || cErr != nil:
				yield(pair{}, cmp.Or(err, cErr))
				return
			case a == nil && c == nil:
				return
			case c == nil || a != nil && a.Name < c.Name:
				p.archive = a
			case a == nil || c.Name < a.Name:
				p.copied = c
			default:
				p = pair{a, c}
			}
			if !yield(p, nil) {
				return
			}
			if p.archive != nil {
				a, err = nextArchive()
			}
			if p.copied != nil {
				c, cErr = nextCopied()
			}
		}
	}
}

// pull gives the objects of a listing one after the other, and nil at its end.
func pull(what string, all iter.Seq2[bucket.Object, error]) (next func() (*bucket.Object, error), stop func()) {
	one, stop := iter.Pull2(all)
	return func() (*bucket.Object, error) {
		o, err, ok := one()
		switch {
		case !ok:
			return nil, nil //nolint:nilnil // the end
		case err != nil:
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		return &o, nil
	}, stop
}

// Removal is what is removed from a copy.
type Removal struct {
	// Names are the objects, in this order.
	Names []string
	// Lost are the backups that the archive has lost: only the copy has them, and the rules keep them.
	Lost []string
	// Held is what is not removed though the rules would have it, and why.
	Held []string
}

// PlanRemoval decides what of a copy goes: what the archive does not have any more, and what by the rules, applied
// to the copy alone, need not be kept (docs/archive.md, invariant 17). The archive must have been listed to its end.
func PlanRemoval(copied book.Catalogue, plan Plan, policy keep.Policy) Removal {
	var out Removal
	for _, b := range copied.Backups {
		if plan.In[b.ID] {
			policy.Pinned = append(slices.Clone(policy.Pinned), b.ID)
		}
	}
	d := keep.Retain(copied, policy)
	names := d.Names
	if d.Empty && len(plan.In) == 0 {
		names = allNames(copied)
	}
	for _, name := range names {
		id, ofBackup := format.BackupOf(name)
		if plan.Alone[name] && (!ofBackup || !plan.In[id]) {
			out.Names = append(out.Names, name)
		}
	}
	if len(plan.Alone) > 0 {
		out.Held = d.Held
	}
	removed := map[string]bool{}
	for _, name := range out.Names {
		removed[name] = true
	}
	for _, b := range copied.Backups {
		note := b.Folder() + format.FileBackup
		if plan.Alone[note] && !removed[note] && keepsForItself(d, b, policy) {
			out.Lost = append(out.Lost, b.ID)
		}
	}
	return out
}

// keepsForItself says that by a rule retention keeps a backup that would have kept it in the archive too. Moments of
// the promised days that lie in its window are none: when WAL was written a copy knows less well.
func keepsForItself(d keep.Deletions, b format.Backup, p keep.Policy) bool {
	for _, v := range d.Kept {
		if v.Name != b.Folder() {
			continue
		}
		switch v.Reason {
		case keep.KeptCount, keep.KeptLastGood, keep.KeptPinned, keep.KeptInUse:
			return true
		case keep.KeptAge:
			return b.Stopped.After(p.Now.Add(-p.Age))
		}
	}
	return false
}

// allNames are all objects of an archive that are known by their names, archive.json last.
func allNames(c book.Catalogue) (names []string) {
	for _, b := range c.Backups {
		names = append(names, keep.FolderNames(b.Folder(), c.ContentsOf(b))...)
	}
	for _, u := range c.Unfinished {
		for _, o := range u.Objects {
			names = append(names, o.Name)
		}
	}
	for _, t := range c.Terms {
		for _, w := range t.WAL {
			names = append(names, w.Object.Name)
		}
		for _, o := range t.Histories {
			names = append(names, o.Name)
		}
		for _, o := range slices.Concat(t.Gaps, t.Keys, t.Clocks, t.Spare, []bucket.Object{t.Note}) {
			if o.Name != "" {
				names = append(names, o.Name)
			}
		}
	}
	return append(names, format.FileArchive)
}

// LacksWAL says which WAL of a backup, from its start to its stop, an archive does not have, "" for none.
func LacksWAL(c book.Catalogue, b format.Backup) string {
	lacks := ""
	for _, history := range c.TermHistories() { // the newest need not be of the branch that the backup is of
		if !c.In(b, history) {
			continue
		}
		to, _ := c.Covered(history, b.StartLSN)
		if to >= b.StopLSN {
			return ""
		}
		lacks = cmp.Or(lacks, format.Gap{From: max(to, b.StartLSN), To: b.StopLSN}.String())
	}
	return cmp.Or(lacks, fmt.Sprintf("what term %d continues", b.Term))
}

// checkCopied says what is wrong with WAL, or a note of it, as it lies in the archive. What is encrypted can't be read:
// it must begin as age begins.
func checkCopied(name string, stored []byte) error {
	_, rest, _ := format.ParseTerm(name)
	plain, encrypted, sealed := format.PlainName(rest)
	if encrypted {
		if !strings.HasPrefix(string(stored[:min(len(stored), len(format.AgeIntro))]), format.AgeIntro) {
			return &format.ObjectError{Name: name, What: format.Altered,
				Err: fmt.Errorf("it does not begin with %q", format.AgeIntro)}
		}
		return nil
	}
	if rest == format.FileLineage {
		term, _, _ := format.ParseTerm(name)
		if _, err := format.ParseTermHistory(stored, term); err != nil {
			return &format.ObjectError{Name: name, What: format.Altered, Err: err}
		}
		return nil
	}
	if !sealed {
		return nil // a note, which is its name
	}
	content, err := format.Decode(&format.Decoder{}, name, stored, wal.SegmentSize)
	if err != nil {
		return err
	}
	p, ok := format.ParsePiece(plain)
	if !ok {
		return nil // a history
	}
	return format.CheckWAL(name, p, content)
}
