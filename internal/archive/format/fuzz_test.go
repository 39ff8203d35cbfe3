package format

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// What lies in a bucket may have been written by anybody. How long these look for an input that breaks something:
// CONTRIBUTING.md, "Tests".

// A name that is understood is the name that would be written for what was understood: no object has two names.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"000000010000000000000004", "000000010000000000000004.00002000-00004000",
		"wal/00000007/x", "wal/100000000/x", "gap-0000000000000001-0000000000000002", "0000000A.history",
		"base.tar.00007.zst", "16400.tar.123456.zst.age", "FFFFFFFFFFFFFFFF000000FF"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		again := name
		if p, ok := ParsePiece(name); ok {
			again = p.String()
			if p.From >= p.To || uint64(p.To) > SegmentSize {
				t.Errorf("%q is from %d to %d", name, p.From, p.To)
			}
		}
		if term, rest, ok := ParseTerm(name); ok {
			again = TermFolder(term) + rest
		}
		if gap, ok := ParseGap(name); ok {
			again = gap.Name()
		}
		if tar, number, ending := ParsePieceName(name); tar != "" {
			again = strings.TrimSuffix(PieceName(tar, number)+ending, ".")
			name = strings.TrimSuffix(name, ".")
		}
		if again != name {
			t.Errorf("%q is read as %q", name, again)
		}
	})
}

// backup.json is understood or refused; what is understood stays the same when it is written and read again.
func FuzzBackup(f *testing.F) {
	f.Add([]byte(`{"id":"a","type":"full","startLSN":"0/4000028","stopLSN":"1/0",
		"pieces":[{"name":"base.tar.00000.zst"}]}`))
	f.Add([]byte(`{"id":"a, in layout 2: a newer version of Toban can read it","layout":2,
		"startLSN":"0/1","stopLSN":"0/2","lists":[{"name":"pieces.00000.json","tars":["base.tar"]}],
		"tars":[{"name":"base.tar","ending":".zst","pieces":3,"storedBytes":9}]}`))
	f.Add([]byte(`{"id":"a","layout":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var b, again Backup
		if json.Unmarshal(text, &b) != nil {
			return
		}
		written, err := json.Marshal(b)
		if err != nil {
			return // a date after the year 9999
		}
		if err := json.Unmarshal(written, &again); err != nil {
			t.Fatalf("%s can't be read again: %v", written, err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(twice, written) {
			t.Errorf("%s becomes %s, %v", written, twice, err)
		}
	})
}

func FuzzTermHistory(f *testing.F) {
	f.Add([]byte(`{"term":2,"starts":[{"term":1,"lsn":"0/0","timeline":1},
		{"term":2,"lsn":"0/5000000","timeline":2}]}`), uint64(2))
	f.Add([]byte(`{"term":2,"starts":[]}`), uint64(2))
	f.Fuzz(func(t *testing.T, text []byte, term uint64) {
		starts, err := ParseTermHistory(text, term)
		if err != nil {
			return
		}
		written, err := FormatTermHistory(starts)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseTermHistory(written, term); err != nil || !slices.Equal(starts, again) {
			t.Errorf("%v becomes %v, %v", starts, again, err)
		}
	})
}

// archive.json names an owner, or is refused.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"format":1,"uid":"u","namespace":"n","name":"x","systemIdentifier":"7"}`))
	f.Add([]byte(`{"format":2,"uid":"u"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		owner, err := ParseOwner(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(owner)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseOwner(written); err != nil || !reflect.DeepEqual(again, owner) || owner.UID == "" {
			t.Errorf("%+v becomes %+v, %v", owner, again, err)
		}
	})
}
