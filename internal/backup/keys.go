package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/wal"
)

// Recipient is the public half of the key that everything is encrypted for ("age1…"), "" where nothing is.
func (s *Encoder) Recipient() string {
	if r, ok := s.recipient.(*age.X25519Recipient); ok {
		return r.String()
	}
	return ""
}

// Recipients are the public halves of keys in age's own format, in their order.
func Recipients(keys string) ([]string, error) {
	identities, err := age.ParseIdentities(strings.NewReader(keys))
	if err != nil {
		return nil, fmt.Errorf("the key of the encryption is none of age (AGE-SECRET-KEY-1…): %w", err)
	}
	var out []string
	for _, identity := range identities {
		if key, ok := identity.(*age.X25519Identity); ok {
			out = append(out, key.Recipient().String())
		}
	}
	return out, nil
}

// keyNote says for whom the leader of a term encrypts from then on. It is the name of an object in the term's folder.
type keyNote struct {
	// Number counts the notes of a folder. The first is 1, or 2 where WAL was there of which nobody has noted it.
	Number uint64
	// From is where the leader goes on to archive. Ahead is where its WAL ended then: what another wrote before it,
	// for another key, lies before that.
	From, Ahead wal.LSN
	// Recipient is the public half of the key.
	Recipient string
}

// keyPrefix begins the names of notes of keys.
const keyPrefix = "key-"

var keyName = regexp.MustCompile(`^key-([0-9A-F]{8})-([0-9A-F]{16})-([0-9A-F]{16})-(age1[0-9a-z]{58})$`)

// name is that of the note in a term's folder.
func (k keyNote) name() string {
	return fmt.Sprintf("%s%08X-%016X-%016X-%s", keyPrefix, k.Number, uint64(k.From), uint64(k.Ahead), k.Recipient)
}

// parseKeyNote is the note of which that is the name; false for any other name.
func parseKeyNote(name string) (keyNote, bool) {
	m := keyName.FindStringSubmatch(name)
	if m == nil {
		return keyNote{}, false
	}
	number, _ := strconv.ParseUint(m[1], 16, 64) // the expression has seen to it
	from, _ := strconv.ParseUint(m[2], 16, 64)
	ahead, _ := strconv.ParseUint(m[3], 16, 64)
	return keyNote{number, wal.LSN(from), wal.LSN(ahead), m[4]}, number > 0
}

// noteKey writes for whom it is encrypted from here on, before anything is, unless the last note says the same. It does
// not where the leader goes on before its place: the server may still have WAL that retention has removed.
func (f *termFolder) noteKey(ctx context.Context, from, ahead wal.LSN) error {
	recipient := f.Encoder.Recipient()
	if recipient == "" {
		return nil
	}
	last, began, err := f.lastKey(ctx)
	if err != nil || last.Recipient == recipient && last.From <= from {
		return err
	}
	note := keyNote{last.Number + 1, from, ahead, recipient}
	if last.Number == 0 && began {
		note.Number++
	}
	content := []byte("From here on objects are encrypted for " + recipient + ".\n")
	err = f.Bucket.Create(ctx, f.folder+note.name(), content)
	if err != nil && !errors.Is(err, bucket.ErrExists) {
		return fmt.Errorf("note for which key is encrypted: %w", err)
	}
	return nil
}

// lastKey is the last note in the own folder, empty if there is none, and whether there is something else. The names of
// WAL come before those of notes.
func (f *termFolder) lastKey(ctx context.Context) (last keyNote, began bool, err error) {
	for o, err := range f.Bucket.List(ctx, f.folder+keyPrefix) {
		if err != nil {
			return last, false, fmt.Errorf("look for notes of keys: %w", err)
		}
		if note, ok := parseKeyNote(strings.TrimPrefix(o.Name, f.folder)); ok && note.Number > last.Number {
			last = note
		}
	}
	for o, err := range f.Bucket.List(ctx, f.folder) {
		if err != nil {
			return last, false, fmt.Errorf("look what is in the folder of the term: %w", err)
		}
		return last, !strings.HasPrefix(o.Name, f.folder+keyPrefix), nil
	}
	return last, false, nil
}

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
		if b.encrypted() {
			of(b.Recipient).Backups++
		}
	}
	for _, u := range c.Unread {
		if u.Backup != "" {
			of("").Backups++
		}
	}
	for _, t := range c.Terms {
		notes := t.keyNotes()
		for _, w := range t.WAL {
			if _, encrypted, _ := PlainName(w.Object.Name); !encrypted {
				continue
			}
			for _, recipient := range recipientsOf(notes, w.Piece) {
				of(recipient).WAL++
			}
		}
		for _, o := range t.Histories {
			if _, encrypted, _ := PlainName(o.Name); encrypted { // a former version wrote it
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

// encrypted says that a backup needs a key.
func (b Backup) encrypted() bool {
	return slices.ContainsFunc(b.manifest(), func(o Object) bool { return strings.Contains(o.Name, endEncrypted) })
}

// keyNotes are the notes of a folder, in their order.
func (t *Term) keyNotes() []keyNote {
	var notes []keyNote
	for _, o := range t.Keys {
		_, name, _ := ParseTerm(o.Name)
		if note, ok := parseKeyNote(name); ok {
			notes = append(notes, note)
		}
	}
	slices.SortFunc(notes, func(a, b keyNote) int { return cmp.Compare(a.Number, b.Number) })
	return notes
}

// recipientsOf are those that an encrypted piece may be for: who has written a note has written from there on, and up
// to where the WAL ended when the next one wrote theirs.
func recipientsOf(notes []keyNote, p Piece) []string {
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
