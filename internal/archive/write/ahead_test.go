package write

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"filippo.io/age"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/ha"
	"toban.dev/internal/wal"
)

// archiverOf is one whose archive is encrypted, if there is a key, and that knows a secret.
func archiverOf(
	t *testing.T, b *buckettest.Memory, s *archivetest.Source, key *age.X25519Identity, secret string,
) *Archiver {
	t.Helper()
	recipient := ""
	if key != nil {
		recipient = key.Recipient().String()
	}
	encoder, err := format.NewEncoder(recipient)
	if err != nil {
		t.Fatal(err)
	}
	a, err := NewArchiver(ArchiverOptions{Bucket: b, Owner: archivetest.Owner, Encoder: encoder, Source: s,
		TermHistory: s.Terms, Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnArchiveThatIsAhead(t *testing.T) {
	archivetest.SmallSegments(t)
	const segment = 32768
	history := []ha.TermStart{{Term: 3, Timeline: 1}}
	for name, c := range map[string]struct {
		key    *age.X25519Identity
		secret string
		// The volume goes back to an LSN, and the server writes up to another before the archiver looks.
		lost, flushed wal.LSN
		other         []ha.TermStart // another term history then
		noticed       bool
	}{
		"it goes on":                             {nil, "n", 0, 10 * segment, nil, false},
		"a volume goes back":                     {nil, "n", 3 * segment, 3 * segment, nil, true},
		"... and writes a little":                {nil, "n", 3 * segment, 4*segment + 7, nil, true},
		"... and writes more than it had":        {nil, "n", 3 * segment, 20 * segment, nil, true},
		"... by one byte":                        {nil, "n", 5*segment + 99, 20 * segment, nil, true},
		"it goes on, encrypted":                  {archivetest.Keys[0], "n", 0, 10 * segment, nil, false},
		"encrypted, it goes back":                {archivetest.Keys[0], "n", 3 * segment, 3 * segment, nil, true},
		"encrypted, and writes more than it had": {archivetest.Keys[0], "n", 3 * segment, 20 * segment, nil, true},
		"encrypted, by one byte":                 {archivetest.Keys[0], "n", 5*segment + 99, 20 * segment, nil, true},
		"encrypted without a stamp, it goes back": {
			archivetest.Keys[0], "", 3 * segment, 3 * segment, nil, true,
		},
		"encrypted without a stamp, more than it had: nobody can tell": {
			archivetest.Keys[0], "", 3 * segment, 20 * segment, nil, false,
		},
		"a term that begins elsewhere": {
			nil, "n", 3 * segment, 20 * segment, []ha.TermStart{{Term: 1, Timeline: 1}, {Term: 3, LSN: 3 * segment,
				Timeline: 2}}, true,
		},
		"an earlier term than there is": {
			nil, "n", 3 * segment, 4 * segment, []ha.TermStart{{Term: 2, Timeline: 1}}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := buckettest.NewMemory()
			source := &archivetest.Source{Terms: history, End: 5*segment + 100}
			mustStep(t, archiverOf(t, b, source, c.key, c.secret))
			before := maps.Clone(b.Objects)
			source.Lost, source.End = c.lost, c.flushed
			if c.other != nil {
				history = c.other
			}
			a := archiverOf(t, b, source, c.key, c.secret)
			for range 3 {
				_, err := a.Step(t.Context())
				ahead := (*AheadError)(nil)
				if noticed := errors.As(err, &ahead); noticed != c.noticed || err != nil && !noticed {
					t.Fatalf("%v", err)
				}
				if c.noticed && (len(b.Objects) != len(before) || b.Changed > 0 || !errors.As(a.State().Err, &ahead)) {
					t.Errorf("something was written; the state is %+v", a.State())
				}
			}
			if !c.noticed && a.State().Archived != c.flushed {
				t.Errorf("%+v", a.State())
			}
		})
		history = []ha.TermStart{{Term: 3, Timeline: 1}}
	}
}

// A name that is taken is no success by itself: what lies there is compared.
func TestWhatIsThereAlreadyIsCompared(t *testing.T) {
	archivetest.SmallSegments(t)
	history := []ha.TermStart{{Term: 1, Timeline: 1}}
	for name, c := range map[string]struct {
		key   *age.X25519Identity
		lost  wal.LSN // from where on the one that was there first had other WAL
		taken bool
	}{
		"the answer was lost":                 {nil, 0, false},
		"another wrote it":                    {nil, 40000, true},
		"the answer was lost, it's encrypted": {archivetest.Keys[0], 0, false},
		"another wrote it, encrypted":         {archivetest.Keys[0], 40000, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := buckettest.NewMemory()
			source := &archivetest.Source{Terms: history, End: 100}
			a := archiverOf(t, b, source, c.key, "n")
			mustStep(t, a)
			other := archiverOf(t, b, &archivetest.Source{Terms: history, End: 3 * 32768, Lost: c.lost}, c.key, "n")
			mustStep(t, other)
			objects := len(b.Objects)
			source.End = 3 * 32768
			_, err := a.Step(t.Context())
			ahead := (*AheadError)(nil)
			if errors.As(err, &ahead) != c.taken || err != nil && !c.taken ||
				len(b.Objects) != objects || b.Changed > 0 {
				t.Errorf("%v; %d objects of %d", err, len(b.Objects), objects)
			}
			if want := wal.LSN(32768); c.taken && a.State().Archived != want {
				t.Errorf("archived up to %s, want %s", a.State().Archived, want)
			}
		})
	}
}

// Who has the key reads what has a stamp, and the stamp tells nothing without the secret.
func TestStampedObjectsAreReadByAge(t *testing.T) {
	encoder, err := format.NewEncoder(archivetest.Keys[0].Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	one := &termFolder{ArchiverOptions: &ArchiverOptions{Secret: []byte("a")}}
	two := &termFolder{ArchiverOptions: &ArchiverOptions{Secret: []byte("b")}}
	content := []byte(strings.Repeat("some WAL ", 1000))
	stamp := one.stamp("x", content)
	if stamp == two.stamp("x", content) || stamp == one.stamp("y", content) || stamp == one.stamp("x", content[1:]) {
		t.Error("the stamp does not tell the secret, the name and the content")
	}
	stored, err := encoder.EncodeStamped(content, stamp)
	if err != nil || format.StampOf(stored) != stamp {
		t.Fatalf("the stamp is %q, want %q: %v", format.StampOf(stored), stamp, err)
	}
	decoder, err := format.NewDecoder(archivetest.Keys[0].String())
	if err != nil {
		t.Fatal(err)
	}
	r, err := decoder.Decode("x.zst.age", bytes.NewReader(stored))
	if err != nil {
		t.Fatal(err)
	}
	if read, err := io.ReadAll(r); err != nil || !bytes.Equal(read, content) {
		t.Errorf("%d bytes: %v", len(read), err)
	}
	plain, err := encoder.Encode(content)
	if err != nil || format.StampOf(plain) != "" || format.StampOf(nil) != "" {
		t.Errorf("without a stamp it is %q: %v", format.StampOf(plain), err)
	}
}
