package book

import (
	"cmp"
	"slices"

	"toban.dev/internal/archive/format"
)

// KeyUse says which parts of an archive need a key.
type KeyUse struct {
	// Recipient is its public half, "" for what nobody has noted the key of.
	Recipient string
	// Backups and WAL are how many of them there are. WAL from the moment of a change counts for both keys.
	Backups, WAL int
}

// KeyUses are the keys that the archive needs, by their public halves. It does no I/O.
func (c Catalogue) KeyUses() []KeyUse {
	uses := map[string]*KeyUse{}
	of := func(recipient string) *KeyUse {
		if uses[recipient] == nil {
			uses[recipient] = &KeyUse{Recipient: recipient}
		}
		return uses[recipient]
	}
	for _, b := range c.Backups {
		if b.Encrypted() {
			of(b.Recipient).Backups++
		}
	}
	for _, u := range c.Unread {
		if u.Backup != "" {
			of("").Backups++
		}
	}
	for _, t := range c.Terms {
		notes := t.KeyNotes()
		for _, w := range t.WAL {
			if _, encrypted, _ := format.PlainName(w.Object.Name); !encrypted {
				continue
			}
			for _, recipient := range RecipientsOf(notes, w.Piece) {
				of(recipient).WAL++
			}
		}
		for _, o := range t.Histories {
			if _, encrypted, _ := format.PlainName(o.Name); encrypted { // a former version wrote it
				of("").WAL++
			}
		}
	}
	var out []KeyUse
	for _, u := range uses {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b KeyUse) int { return cmp.Compare(a.Recipient, b.Recipient) })
	return out
}

// KeyNotes are the notes of a folder, in their order.
func (t *Term) KeyNotes() []format.KeyNote {
	var notes []format.KeyNote
	for _, o := range t.Keys {
		_, name, _ := format.ParseTerm(o.Name)
		if note, ok := format.ParseKeyNote(name); ok {
			notes = append(notes, note)
		}
	}
	slices.SortFunc(notes, func(a, b format.KeyNote) int { return cmp.Compare(a.Number, b.Number) })
	return notes
}

// RecipientsOf are those that an encrypted piece may be for: who has written a note has written from there on, and up
// to where the WAL ended when the next one wrote theirs.
func RecipientsOf(notes []format.KeyNote, p format.Piece) []string {
	begin, end := p.Segment.Start().Add(uint64(p.From)), p.Segment.Start().Add(uint64(p.To))
	var out []string
	if len(notes) > 0 && notes[0].Number > 1 && begin < notes[0].Ahead {
		out = append(out, "")
	}
	for i, n := range notes {
		if end > n.From && (i+1 == len(notes) || begin < notes[i+1].Ahead) {
			out = append(out, n.Recipient)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
