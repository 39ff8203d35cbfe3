package book

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"toban.dev/internal/archive/archivetest"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/bucket/buckettest"
	"toban.dev/internal/archive/format"
)

// listed counts how much of a bucket is listed.
type listed struct {
	bucket.Bucket
	objects *int
}

func (l listed) ListAfter(ctx context.Context, prefix, after string) iter.Seq2[bucket.Object, error] {
	return func(yield func(bucket.Object, error) bool) {
		for o, err := range l.Bucket.ListAfter(ctx, prefix, after) {
			*l.objects++
			if !yield(o, err) {
				return
			}
		}
	}
}

// storedBackup puts a backup into an archive as Take does, with the manifest of a SampleDB, nil for none.
func storedBackup(t *testing.T, in bucket.Bucket, encoder *format.Encoder, id string, manifest []byte) {
	t.Helper()
	b := format.Backup{ID: id, ServerVersion: "17.6", Stopped: time.Unix(1_800_000_000, 0).UTC()}
	if manifest != nil {
		in := archivetest.Folder{T: t, Bucket: in, Encoder: encoder, ID: id}
		b.SampleDB = in.Put(format.FileSampleDB, manifest)
	}
	archivetest.PutBackup(t, in, b)
	for n := range 50 {
		putAll(t, in, map[string]string{format.FolderBase + id + "/" + format.PieceName(format.BaseTar,
			n) + format.EndCompressed: "a piece"})
	}
}

func putAll(t *testing.T, in bucket.Bucket, objects map[string]string) {
	t.Helper()
	for name, content := range objects {
		if err := in.Put(t.Context(), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
}

func coderOf(t *testing.T, keys string) (*format.Encoder, *format.Decoder) {
	t.Helper()
	recipient := ""
	if keys != "" {
		key, err := age.ParseX25519Identity(keys)
		if err != nil {
			t.Fatal(err)
		}
		recipient = key.Recipient().String()
	}
	encoder, err := format.NewEncoder(recipient)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := format.NewDecoder(keys)
	if err != nil {
		t.Fatal(err)
	}
	return encoder, decoder
}

// ownerFile is the archive.json of an archive.
const ownerFile = `{"format": 1, "uid": "0a1b2c3d-0", "namespace": "shop", "name": "main"}`

// findAll is what Find says of a namespace, a line each.
func findAll(t *testing.T, in bucket.Bucket, namespace string, decoder *format.Decoder) (lines []string) {
	t.Helper()
	err := Find(t.Context(), in, namespace, decoder, func(f Found) error {
		problem, _, _ := strings.Cut(f.Problem, ":")
		lines = append(lines, fmt.Sprintf("%s of %s: %s %s%s", f.Backup.ID, f.Owner.Name, f.Path, f.SampleDB, problem))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestBackupsAreFoundWhereNothingButTheStoreIsLeft(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		key := ""
		if encrypted {
			identity, err := age.GenerateX25519Identity()
			if err != nil {
				t.Fatal(err)
			}
			key = identity.String()
		}
		encoder, decoder := coderOf(t, key)
		all := buckettest.NewMemory()
		for _, path := range []string{
			"shop/main-0a1b2c3d", "shop/main-0a1b2c3d-pg18", "shop/empty-99999999", "shop2/x-1",
		} {
			archive := bucket.Sub(all, path)
			putAll(t, archive, map[string]string{
				format.FileArchive:                   ownerFile,
				"base/unfinished/base.tar.00000.zst": "of a backup that did not end",
			})
			for n := range 200 {
				putAll(t, archive, map[string]string{fmt.Sprintf("wal/00000001/%024X.zst", n): "WAL"})
			}
		}
		storedBackup(t, bucket.Sub(all, "shop/main-0a1b2c3d"), encoder, "20261120T000000Z-0001", []byte(`{"n":1}`))
		storedBackup(t, bucket.Sub(all, "shop/main-0a1b2c3d"), encoder, "20261121T000000Z-0002", []byte(`{"n":2}`))
		storedBackup(t, bucket.Sub(all, "shop/main-0a1b2c3d-pg18"), encoder, "20261122T000000Z-0003", nil)
		storedBackup(t, bucket.Sub(all, "shop2/x-1"), encoder, "20261122T000000Z-0004", []byte(`{"n":4}`))
		putAll(t, all, map[string]string{
			"shop/main-0a1b2c3d/base/broken/backup.json": "{",
			"shop/a-file": "no archive", "shop/other/file": "of others",
		})
		objects := 0
		got := findAll(t, listed{all, &objects}, "shop", decoder)
		want := []string{
			"20261122T000000Z-0003 of main: shop/main-0a1b2c3d-pg18 " +
				"it is of an older Toban, which did not store the manifest",
			`20261120T000000Z-0001 of main: shop/main-0a1b2c3d {"n":1}`,
			`20261121T000000Z-0002 of main: shop/main-0a1b2c3d {"n":2}`,
			"broken of main: shop/main-0a1b2c3d backup.json can't be understood",
		}
		if !slices.Equal(got, want) {
			t.Errorf("encrypted %t: found\n%s\nwant\n%s", encrypted, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if objects > 30 {
			t.Errorf("%d objects were listed to find four backups", objects)
		}
		if got := findAll(t, all, "nobody", decoder); got != nil {
			t.Errorf("in a namespace that never was: %q", got)
		}
	}
}

// A store may lose archive.json, or its content. The backups are there, and a restore needs nothing else.
func TestBackupsAreFoundWhereArchiveJSONIsLost(t *testing.T) {
	encoder, decoder := coderOf(t, "")
	for name, c := range map[string]struct {
		owner  string // "" for none
		folder string
		want   string
	}{
		"it is there":            {ownerFile, "main-0a1b2c3d", "main 0a1b2c3d-0 false"},
		"it is missing":          {"", "main-0a1b2c3d", "main 0a1b2c3d true"},
		"after a major upgrade":  {"", "main-0a1b2c3d-pg18", "main 0a1b2c3d true"},
		"it is empty":            {"\n", "main-0a1b2c3d", "main 0a1b2c3d true"},
		"it is garbled":          {"\x00\x00", "main-0a1b2c3d", "main 0a1b2c3d true"},
		"it is nobody's archive": {"", "base-files", ""},
		"it names nobody":        {"{}", "main-0a1b2c3d", "main 0a1b2c3d true"},
		"it is null":             {"null", "main-0a1b2c3d", "main 0a1b2c3d true"},
		"it has no UID":          {`{"format": 1}`, "main-0a1b2c3d", "main 0a1b2c3d true"},
		"it is another's file":   {"{}", "base-files", ""},
		"its names are none": {`{"format": 1, "uid": "0a1b2c3d-0", "namespace": "shop", "name": "ma\nin"}`,
			"main-0a1b2c3d", "main 0a1b2c3d true"},
	} {
		said := map[string]string{
			"it is there": "", "it is garbled": "archive.json can't be understood: ",
			"it names nobody": "archive.json names nobody", "it is null": "archive.json names nobody",
			"it has no UID":      "archive.json names nobody",
			"its names are none": `archive.json names the SampleDB "ma\nin" in the namespace "shop", and none can`,
		}
		notSaid, is := said[name]
		if !is {
			notSaid = "archive.json is lost"
		}

		all := buckettest.NewMemory()
		archive := bucket.Sub(all, "shop/"+c.folder)
		storedBackup(t, archive, encoder, "one", []byte(`{"n":1}`))
		if c.owner != "" {
			putAll(t, archive, map[string]string{format.FileArchive: c.owner})
		}
		got := ""
		err := Find(t.Context(), all, "shop", decoder, func(f Found) error {
			got += fmt.Sprintf("%s %s %t", f.Owner.Name, f.Owner.UID, f.ByFolder)
			if f.Owner.Namespace != "shop" || string(f.SampleDB) != `{"n":1}` {
				t.Errorf("%s: %+v", name, f)
			}
			if !strings.HasPrefix(f.NotSaid, notSaid) || (f.NotSaid == "") != (notSaid == "") {
				t.Errorf("%s: it says %q, not %q", name, f.NotSaid, notSaid)
			}
			return nil
		})
		if err != nil || got != c.want {
			t.Errorf("%s: found %q, %v", name, got, err)
		}
	}
}

// asleep is a bucket whose objects of some names have to be fetched from an archive tier before they can be read.
type asleep struct {
	bucket.Bucket
	names []string
}

func (a asleep) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if slices.Contains(a.names, name) {
		return nil, errors.New("not valid for the object's storage class")
	}
	return a.Bucket.Get(ctx, name)
}

// One object that can't be read keeps nothing else from being found, and is told by its name.
func TestWhatCannotBeReadIsToldAndTheSearchGoesOn(t *testing.T) {
	encoder, decoder := coderOf(t, "")
	all := buckettest.NewMemory()
	for _, folder := range []string{"shop/a-0a1b2c3d", "shop/b-0a1b2c3d", "shop/c", "shop/files", "shop/z-0a1b2c3d"} {
		archive := bucket.Sub(all, folder)
		storedBackup(t, archive, encoder, "one", []byte(`{"n":1}`))
		storedBackup(t, archive, encoder, "two", []byte(`{"n":2}`))
		if folder != "shop/files" {
			putAll(t, archive, map[string]string{format.FileArchive: ownerFile})
		}
	}
	var got []string
	err := Find(t.Context(), asleep{all, []string{
		"shop/a-0a1b2c3d/base/one/backup.json", "shop/a-0a1b2c3d/base/two/sampledb.json.zst",
		"shop/b-0a1b2c3d/archive.json", "shop/c/archive.json",
	}}, "shop", decoder, func(f Found) error {
		got = append(got, fmt.Sprintf("%s %q of %s %t %s", f.Path, f.Backup.ID, f.Owner.Name, f.Backup.Stopped.IsZero(),
			cmp.Or(f.NotSaid, f.Problem, string(f.SampleDB))))
		return nil
	})
	const why = "not valid for the object's storage class"
	if want := []string{
		`shop/a-0a1b2c3d "one" of main true read base/one/backup.json: ` + why,
		`shop/a-0a1b2c3d "two" of main false read base/two/sampledb.json.zst: ` + why,
		`shop/b-0a1b2c3d "one" of b false archive.json can't be read (read archive.json: ` + why + `)`,
		`shop/b-0a1b2c3d "two" of b false archive.json can't be read (read archive.json: ` + why + `)`,
		`shop/c "" of  true read archive.json: ` + why,
		`shop/z-0a1b2c3d "one" of main false {"n":1}`,
		`shop/z-0a1b2c3d "two" of main false {"n":2}`,
	}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, found\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A search that is broken off does not take what it has not read for unreadable.
func TestASearchThatIsBrokenOffHasNotFoundAll(t *testing.T) {
	encoder, decoder := coderOf(t, "")
	all := buckettest.NewMemory()
	for _, id := range []string{"one", "two"} {
		storedBackup(t, bucket.Sub(all, "shop/a-0a1b2c3d"), encoder, id, []byte(`{"n":1}`))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	found := 0
	err := Find(ctx, all, "shop", decoder, func(Found) error { found++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || found != 1 {
		t.Errorf("%v, and %d were found", err, found)
	}
}

// An archive in a layout that is not known is told with that, and keeps nobody from finding the others.
func TestAnArchiveInANewerLayoutIsFoundWithItsProblem(t *testing.T) {
	encoder, decoder := coderOf(t, "")
	all := buckettest.NewMemory()
	for folder, owner := range map[string]string{
		"shop/main-0a1b2c3d": `{"format": 2}`, "shop/other-0a1b2c3d": ownerFile, "shop/files": `{"format": 2}`,
	} {
		archive := bucket.Sub(all, folder)
		storedBackup(t, archive, encoder, "one", []byte(`{"n":1}`))
		putAll(t, archive, map[string]string{format.FileArchive: owner})
	}
	got := findAll(t, all, "shop", decoder)
	want := []string{
		"one of main: shop/main-0a1b2c3d archive.json", // the problem, up to its first colon
		`one of main: shop/other-0a1b2c3d {"n":1}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q", got)
	}
}

func TestAManifestThatIsNoneIsFoundWithItsProblem(t *testing.T) {
	encoder, decoder := coderOf(t, "")
	all := buckettest.NewMemory()
	storedBackup(t, bucket.Sub(all, "shop/main-0a1b2c3d"), encoder, "one", []byte(`{"n":`))
	got := findAll(t, all, "shop", decoder)
	if len(got) != 1 || !strings.HasSuffix(got[0], "sampledb.json.zst is no manifest") {
		t.Errorf("found %q", got)
	}
}

func TestWhatCannotBeDecryptedIsFoundWithItsProblem(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	encoder, _ := coderOf(t, identity.String())
	_, without := coderOf(t, "")
	all := buckettest.NewMemory()
	archive := bucket.Sub(all, "shop/main-1")
	putAll(t, archive, map[string]string{format.FileArchive: ownerFile})
	storedBackup(t, archive, encoder, "one", []byte(`{"n":1}`))
	got := findAll(t, all, "shop", without)
	if len(got) != 1 || !strings.Contains(got[0], "is encrypted, and there is no key") {
		t.Errorf("found %q", got)
	}
}

// The manifest is an object of the backup like others: it goes with the backup, and its loss or change is found.
func TestTheManifestIsAnObjectOfItsBackup(t *testing.T) {
	encoder, _ := coderOf(t, "")
	archive := buckettest.NewMemory()
	storedBackup(t, archive, encoder, "one", []byte(`{"n":1}`))
	c, err := Read(t.Context(), archive)
	if err != nil || len(c.Backups) != 1 || len(c.Strangers) > 0 {
		t.Fatalf("%v, %+v", err, c)
	}
	b := c.Backups[0]
	if got := b.Objects(); len(got) != 1 || got[0].Name != format.FileSampleDB+format.EndCompressed ||
		got[0].SHA256 == "" {
		t.Errorf("the objects of the backup are %+v", got)
	}
	ours := func(o bucket.Object) bool { return strings.Contains(o.Name, format.FileSampleDB) }
	if !slices.ContainsFunc(c.ContentsOf(b), ours) {
		t.Error("it stays when the backup is deleted")
	}
	if lost := NewContents(b).Lost(); lost != "base/one/sampledb.json.zst" {
		t.Errorf("where nothing is there, %q is lost", lost)
	}
}
