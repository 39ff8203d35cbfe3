package keep

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
)

// archiveOf is what an archive has by a text: a line is the name of an object, and after a blank what is in it.
func archiveOf(text string) (objects []bucket.Object, contents map[string][]byte) {
	contents = map[string][]byte{}
	at := archivetest.Day(1)
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
		c := book.NewCatalogue(objects, contents, nil)
		known := map[string]int{}
		for _, name := range namesIn(c) {
			known[name]++
		}
		for _, o := range objects {
			if known[o.Name] != 1 && o.Name != format.FileArchive {
				t.Errorf("%q is in the catalogue %d times", o.Name, known[o.Name])
			}
		}
		d := Retain(c, Policy{Count: 1, Now: archivetest.Day(28)})
		for _, name := range d.Names {
			stranger := slices.ContainsFunc(c.Strangers, func(o bucket.Object) bool { return o.Name == name })
			unread := slices.ContainsFunc(c.Unread, func(u book.Unread) bool { return u.Name == name })
			_, listed := contents[name]
			inside := strings.HasPrefix(name, format.FolderBase) && path.Clean(name) == name
			if stranger || unread || !listed && !inside {
				t.Errorf("%q is deleted: stranger %v, unread %v, listed %v", name, stranger, unread, listed)
			}
		}
		_, _ = c.Choose(book.Wanted{Target: book.Target{}, Now: archivetest.Day(28)})
		for _, history := range c.TermHistories() {
			if to, missing := c.Covered(history, 0); missing != nil && missing.From > missing.To || to > 1<<63 {
				t.Errorf("%v covers up to %s, then lacks %v", history, to, missing)
			}
		}
	})
}

// names are all that a catalogue knows, by kind.
func namesIn(c book.Catalogue) (names []string) {
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
