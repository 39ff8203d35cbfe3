package format

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"

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

// KeyNote says for whom the leader of a term encrypts from then on. It is the name of an object in the term's folder.
type KeyNote struct {
	// Number counts the notes of a folder. The first is 1, or 2 where WAL was there of which nobody has noted it.
	Number uint64
	// From is where the leader goes on to archive. Ahead is where its WAL ended then: what another wrote before it,
	// for another key, lies before that.
	From, Ahead wal.LSN
	// Recipient is the public half of the key.
	Recipient string
}

// KeyPrefix begins the names of notes of keys.
const KeyPrefix = "key-"

var keyName = regexp.MustCompile(`^key-([0-9A-F]{8})-([0-9A-F]{16})-([0-9A-F]{16})-(age1[0-9a-z]{58})$`)

// Name is that of the note in a term's folder.
func (k KeyNote) Name() string {
	return fmt.Sprintf("%s%08X-%016X-%016X-%s", KeyPrefix, k.Number, uint64(k.From), uint64(k.Ahead), k.Recipient)
}

// ParseKeyNote is the note of which that is the name; false for any other name.
func ParseKeyNote(name string) (KeyNote, bool) {
	m := keyName.FindStringSubmatch(name)
	if m == nil {
		return KeyNote{}, false
	}
	number, _ := strconv.ParseUint(m[1], 16, 64) // the expression has seen to it
	from, _ := strconv.ParseUint(m[2], 16, 64)
	ahead, _ := strconv.ParseUint(m[3], 16, 64)
	return KeyNote{number, wal.LSN(from), wal.LSN(ahead), m[4]}, number > 0
}

// Encrypted says that a backup needs a key.
func (b Backup) Encrypted() bool {
	return slices.ContainsFunc(b.ManifestObjects(),
		func(o Object) bool { return strings.Contains(o.Name, endEncrypted) })
}
