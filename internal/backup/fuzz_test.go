package backup

import (
	"bytes"
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/bucket"
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
			if p.From >= p.To || uint64(p.To) > segmentSize {
				t.Errorf("%q is from %d to %d", name, p.From, p.To)
			}
		}
		if term, rest, ok := ParseTerm(name); ok {
			again = TermFolder(term) + rest
		}
		if gap, ok := ParseGap(name); ok {
			again = gap.name()
		}
		if tar, number, ending := parsePiece(name); tar != "" {
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
		starts, err := parseTermHistory(text, term)
		if err != nil {
			return
		}
		written, err := formatTermHistory(starts)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseTermHistory(written, term); err != nil || !slices.Equal(starts, again) {
			t.Errorf("%v becomes %v, %v", starts, again, err)
		}
	})
}

// archiveOf is what an archive has by a text: a line is the name of an object, and after a blank what is in it.
func archiveOf(text string) (objects []bucket.Object, contents map[string][]byte) {
	contents = map[string][]byte{}
	at := day(1)
	for line := range strings.Lines(text) {
		name, content, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if _, twice := contents[name]; !twice && len(contents) < 40 {
			at = at.Add(time.Hour)
			contents[name] = []byte(content)
			objects = append(objects, bucket.Object{Name: name, Size: int64(len(content)), Modified: at})
		}
	}
	return objects, contents
}

// fuzzBackup is the rest of a backup.json.
const fuzzBackup = `"started":"2026-11-01T00:00:00Z","stopped":"2026-11-01T01:00:00Z","startTimeline":1,` +
	`"stopTimeline":1,"manifest":{"name":"m","size":1},"pieces":[]}`

const fuzzArchive = `archive.json {"format":1,"uid":"u","namespace":"n","name":"x","systemIdentifier":"7"}
wal/00000001/lineage.json {"term":1,"starts":[{"term":1,"lsn":"0/0","timeline":1}]}
wal/00000001/000000010000000000000002.zst x
wal/00000001/000000010000000000000003.zst x
wal/00000001/gap-0000000004000000-0000000005000000 x
wal/00000002/lineage.json {"term":2,"starts":[{"term":1,"lsn":"0/0","timeline":1},` +
	`{"term":2,"lsn":"0/6000000","timeline":2}]}
wal/00000002/00000002.history.zst x
wal/00000002/000000020000000000000006.00000000-00002000.zst x
base/a/backup.json {"id":"a","type":"full","term":1,"startLSN":"0/2000028","stopLSN":"0/3000000",` + fuzzBackup + `
base/a/m x
base/b/base.tar.00000.zst x
base/c/backup.json {"id":"c","type":"full","term":1,"startLSN":"0/3000028","stopLSN":"0/3800000",` +
	`"label":"c",` + fuzzBackup + `
base/c/m x
lost+found x
`

// Whatever lies in an archive: each object is known as something once, and retention deletes what is listed only,
// nothing that it does not know, and in none of those places where something could not be understood.
func FuzzCatalogue(f *testing.F) {
	f.Add(fuzzArchive)
	lists := func(tars string) string { // of the backup a
		return strings.Replace(fuzzArchive, `"manifest"`, `"layout":2,"lists":[{"name":"m","size":1,"tars":["x"]}],`+
			`"tars":[`+tars+`],"manifest"`, 1)
	}
	f.Add(lists(`{"name":"base.tar","ending":".zst","pieces":1000000000000}`))
	f.Add(lists(`{"name":"../../wal/x.tar","ending":"","pieces":2}`))
	f.Add(strings.ReplaceAll(fuzzArchive, `"term":2`, `"term":18446744073709551615`))
	f.Add(strings.ReplaceAll(fuzzArchive, `000000010000000000000003`, `FFFFFFFFFFFFFFFF000000FF`))
	f.Fuzz(func(t *testing.T, text string) {
		objects, contents := archiveOf(text)
		c := NewCatalogue(objects, contents)
		known := map[string]int{}
		for _, name := range namesIn(c) {
			known[name]++
		}
		for _, o := range objects {
			if known[o.Name] != 1 && o.Name != FileArchive {
				t.Errorf("%q is in the catalogue %d times", o.Name, known[o.Name])
			}
		}
		d := Retain(c, Policy{Count: 1, Now: day(28)})
		for _, name := range d.Names {
			stranger := slices.ContainsFunc(c.Strangers, func(o bucket.Object) bool { return o.Name == name })
			unread := slices.ContainsFunc(c.Unread, func(u Unread) bool { return u.Name == name })
			_, listed := contents[name]
			inside := strings.HasPrefix(name, FolderBase) && path.Clean(name) == name
			if stranger || unread || !listed && !inside {
				t.Errorf("%q is deleted: stranger %v, unread %v, listed %v", name, stranger, unread, listed)
			}
		}
		_, _ = c.Choose(Wanted{Target: Target{}, Now: day(28)})
		for _, history := range c.TermHistories() {
			if to, missing := c.Covered(history, 0); missing != nil && missing.From > missing.To || to > 1<<63 {
				t.Errorf("%v covers up to %s, then lacks %v", history, to, missing)
			}
		}
	})
}

// names are all that a catalogue knows, by kind.
func namesIn(c Catalogue) (names []string) {
	add := func(objects ...bucket.Object) {
		for _, o := range objects {
			names = append(names, o.Name)
		}
	}
	for _, term := range c.Terms {
		for _, w := range term.WAL {
			add(w.Object)
		}
		for _, o := range term.Histories {
			add(o)
		}
		add(slices.Concat(term.Gaps, term.Keys, term.Clocks, term.Spare)...)
		if term.Note.Name != "" {
			add(term.Note)
		}
	}
	for _, u := range c.Unfinished {
		add(u.Objects...)
	}
	for _, all := range c.Contents {
		add(all...)
	}
	add(c.Strangers...)
	return names
}

// archive.json names an owner, or is refused.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"format":1,"uid":"u","namespace":"n","name":"x","systemIdentifier":"7"}`))
	f.Add([]byte(`{"format":2,"uid":"u"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		owner, err := parseOwner(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(owner)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := parseOwner(written); err != nil || !reflect.DeepEqual(again, owner) || owner.UID == "" {
			t.Errorf("%+v becomes %+v, %v", owner, again, err)
		}
	})
}
