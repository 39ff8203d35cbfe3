package restore

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func fileWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhereTheArchivesAreIsReadFromAFile(t *testing.T) {
	const store = "store: {s3: {bucket: backups, credentials: {name: s3}}}\n"
	for name, c := range map[string]struct{ text, bucket, words string }{
		"what stands in spec.backup": {store, "backups", ""},
		"a SampleDB among others": {
			"kind: Secret\n---\nkind: SampleDB\nmetadata: {name: other}\nspec: {}\n---\n" +
				"kind: SampleDB\nspec:\n  backup: {store: {s3: {bucket: b2}}}\n", "b2", "",
		},
		"a SampleDB on a volume": {"kind: SampleDB\nspec: {backup: {store: {volume: {}}}}\n", "", "no object store"},
		"nothing":                {"", "", "no object store"},
		"a mistake":              {"stroe: {s3: {bucket: b}}\n", "", "stroe"},
		"no YAML":                {"{", "", "read "},
	} {
		db, err := readStore(fileWith(t, c.text))
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && db.Spec.Backup.Store.S3.Bucket != c.bucket {
			t.Errorf("%s: %+v", name, db.Spec.Backup.Store)
		}
	}
}

// foundManifest is a manifest of the SampleDB main.
const foundManifest = `{"apiVersion":"toban.dev/v1","kind":"SampleDB","metadata":{"name":"main","namespace":"shop"},` +
	`"spec":{}}`

// foundLines is what the Pod writes that looks into a store.
const foundLines = `{"backup":{"namespace":"shop","name":"main","uid":"0a1b2c3d-4e5f","path":"shop/main-0a1b2c3d",` +
	`"id":"one","trigger":"schedule","stopped":"2026-11-20T03:00:00Z","stopLSN":"0/3000100",` +
	`"serverVersion":"17.6","bytes":1048576,"sampledb":` + foundManifest + `}}
{"backup":{"namespace":"shop","name":"main","uid":"0a1b2c3d-4e5f","path":"shop/main-0a1b2c3d",` +
	`"id":"two","trigger":"final","stopped":"2026-11-21T03:00:00Z","stopLSN":"0/4000100",` +
	`"serverVersion":"17.6","sampledb":` + foundManifest + `}}
{"backup":{"namespace":"shop","name":"old","uid":"9","path":"shop/old-9","id":"three",` +
	`"stopped":"2026-11-19T03:00:00Z","problem":"it is of an older Toban"}}
{"backup":{"namespace":"shop","name":"spoilt","uid":"8","path":"shop/spoilt-8","id":"four","problem":"no JSON"}}
`

func TestWhatTheStoreHasIsBroughtBack(t *testing.T) {
	found, err := readFound([]byte(foundLines + `{"end":true}`))
	if err != nil {
		t.Fatal(err)
	}
	of := &v1.BackupSpec{
		Store:      v1.StoreSpec{S3: &v1.S3Store{Bucket: "backups"}},
		Encryption: &v1.EncryptionSpec{Recipient: "age1"},
	}
	all := findLost(databaseBackups(found, of), nil)
	if len(all) != 2 || all[0].name != "main" || all[0].backup.Name != "main-final-0a1b2c3d" || all[0].note != "" ||
		!strings.Contains(all[1].note, "spec.restoreFrom.archive.path: shop/old-9") {
		t.Fatalf("lost are %+v", all)
	}
	for backup, want := range map[string]string{"": "", "one": "0/3000100"} {
		from, err := choose(all, "main", backup)
		if err != nil {
			t.Fatal(err)
		}
		o := &undeleteOptions{store: "a file", backup: backup}
		o.Namespace = "shop"
		got := (&undelete{undeleteOptions: o, from: from}).restoreFrom()
		if got.Backup != "" || !equality.Semantic.DeepEqual(got.Archive, &v1.ArchiveReference{
			Store: of.Store, Path: "shop/main-0a1b2c3d", Encryption: of.Encryption,
		}) {
			t.Errorf("%q is restored from %+v", backup, got)
		}
		lsn := ""
		if got.Target != nil {
			lsn = got.Target.LSN
		}
		if lsn != want {
			t.Errorf("%q is restored up to %q, want %q", backup, lsn, want)
		}
	}
}

// A person sees by what it is known whose an archive is, before its backup is brought back.
func TestWhoseAnArchiveIsIsSaidWhereItDoesNotSaySo(t *testing.T) {
	text := strings.ReplaceAll(foundLines, `"path":"shop/main-0a1b2c3d"`, `"path":"shop/main-0a1b2c3d","byFolder":true`)
	found, err := readFound([]byte(strings.ReplaceAll(text, "0a1b2c3d-4e5f", "0a1b2c3d") + `{"end":true}`))
	if err != nil {
		t.Fatal(err)
	}
	const want = "archive.json is lost. By the name of its folder, shop/main-0a1b2c3d, the archive is main's"
	all := findLost(databaseBackups(found, &v1.BackupSpec{}), nil)
	for _, backup := range []string{"", "one"} {
		from, err := choose(all, "main", backup)
		if err != nil || from.note != want || backup == "" && from.backup.Name != "main-final-0a1b2c3d" {
			t.Errorf("%q: %+v, %v", backup, from, err)
		}
	}
}

// What is wrong with archive.json is said as it is: one that is there is not lost.
func TestAnArchiveThatNamesNoSampleDBIsNotCalledLost(t *testing.T) {
	f := protocol.FoundBackup{Path: "shop/main-0a1b2c3d", Name: "main", ByFolder: true, NotSaid: "archive.json names x"}
	const want = "archive.json names x. By the name of its folder, shop/main-0a1b2c3d, the archive is main's"
	if got := byFolder(f); got != want {
		t.Errorf("it says %q", got)
	}
}

// A backup that can't be read is in no list of what comes back. Who looks for it sees that not all was read.
func TestWhatCouldNotBeReadIsListed(t *testing.T) {
	found, err := readFound([]byte(foundLines +
		`{"backup":{"name":"main","path":"shop/main-0a1b2c3d","id":"five","byFolder":true}}
{"backup":{"path":"shop/c","id":"","problem":"read archive.json: it is asleep"}}
{"end":true}`))
	if err != nil {
		t.Fatal(err)
	}
	var out, none bytes.Buffer
	shown := shownLost{Namespace: "shop", Deleted: []deleted{{Name: "main"}}, Unread: unreadOf(found)}
	const want = `There may be more: not all of the store could be read.
  shop/spoilt-8/base/four/backup.json (of spoilt): no JSON
  shop/main-0a1b2c3d/base/five/backup.json (of main): it does not say when the backup ended; archive.json is lost. ` +
		`By the name of its folder, shop/main-0a1b2c3d, the archive is main's
  shop/c/archive.json: read archive.json: it is asleep
`
	if err := shown.write(&out); err != nil || !strings.HasSuffix(out.String(), want) {
		t.Errorf("%v, it shows\n%s", err, out.String())
	}
	shown.Deleted = nil
	if err := shown.write(&none); err != nil || !strings.HasSuffix(none.String(), want) {
		t.Errorf("%v, without a backup it shows\n%s", err, none.String())
	}
	ofGreen := append(shown.Unread, unread{SampleDB: naming.Green("main")})
	if got := ofName(ofGreen, "main"); len(got) != 3 {
		t.Errorf("with one of the second side, of main are %+v", got)
	}
	for name, c := range map[string]struct {
		own     []unread
		backup  string
		asks    bool
		refuses bool
	}{
		"nobody is asked":   {shown.Unread, "", false, true},
		"somebody is":       {shown.Unread, "", true, false},
		"a backup is named": {shown.Unread, "b", false, false},
		"all could be read": {nil, "", false, false},
	} {
		o := undeleteOptions{backup: c.backup}
		if err := o.unsure(c.own, c.asks); (err != nil) != c.refuses {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := ofName(shown.Unread, "main"); len(got) != 2 || len(shown.Unread) != 3 ||
		got[1].Object != "shop/c/archive.json" {
		t.Errorf("of main are %+v", got)
	}
}

// That is said, too, where something keeps undelete from bringing it back: whoever goes the other way has to know it.
func TestWhoseAnArchiveIsIsSaidNextToWhatIsInTheWay(t *testing.T) {
	const whose = "archive.json is lost. By the name of its folder, shop/main-0a1b2c3d, the archive is main's"
	one := protocol.FoundBackup{
		Namespace: "shop", Name: "main", UID: "0a1b2c3d", Path: "shop/main-0a1b2c3d", ByFolder: true, ID: "one",
		Stopped: time.Unix(1_800_000_000, 0), SampleDB: []byte(foundManifest),
	}
	unread, refused := one, one
	unread.SampleDB, unread.Problem = nil, "it is encrypted"
	refused.SampleDB = []byte(`{"kind":"Pod"}`)
	live := []v1.SampleDB{{ObjectMeta: metav1.ObjectMeta{Name: "main"}}}
	for name, c := range map[string]struct {
		found protocol.FoundBackup
		live  []v1.SampleDB
		want  string
	}{
		"another has its name":    {one, live, "another SampleDB"},
		"its spec is not known":   {unread, nil, "its spec is not known"},
		"and why":                 {unread, nil, "it is encrypted"},
		"its manifest is refused": {refused, nil, "its manifest is refused"},
	} {
		all := findLost(databaseBackups([]protocol.FoundBackup{c.found}, &v1.BackupSpec{}), c.live)
		if len(all) != 1 || !strings.Contains(all[0].note, c.want) || !strings.HasSuffix(all[0].note, whose) {
			t.Errorf("%s: %+v", name, all)
		}
	}
	all := findLost(databaseBackups([]protocol.FoundBackup{unread}, &v1.BackupSpec{}), nil)
	if _, err := choose(all, "main", ""); err == nil || !strings.Contains(err.Error(), "not known (it is encrypted") {
		t.Errorf("%v", err)
	}
}

// A Pod that ended too early has not found all, so that nothing of it counts.
func TestAStoreThatWasNotReadToItsEndIsAnError(t *testing.T) {
	for text, words := range map[string]string{
		foundLines:                               "has not told all",
		foundLines + `{"error":"access denied"}`: "access denied",
		foundLines + `{"backup":{"name":"mai`:    "has not told all",
		"":                                       "has not told all",
		"panic: something else than lines of ours":                    "has not told all",
		"toban: access denied\n" + `{"error":"access denied"}` + "\n": "access denied", // to people, and first
	} {
		if _, err := readFound([]byte(text)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
