package restore

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// backupOf is a complete backup of a SampleDB with a UID, that ended at an hour.
func backupOf(db, uid, name string, hour int, modify ...func(*v1.DatabaseBackup)) v1.DatabaseBackup {
	at := metav1.NewTime(time.Date(2026, 11, 20, hour, 0, 0, 0, time.UTC))
	b := v1.DatabaseBackup{
		TypeMeta:   metav1.TypeMeta{APIVersion: "toban.dev/v1", Kind: "DatabaseBackup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("of-" + name)},
		Spec:       v1.DatabaseBackupSpec{SampleDB: db},
		Status: v1.DatabaseBackupStatus{
			ID: "id-" + name, CompletedAt: &at,
			Archive:    &v1.ArchiveReference{Path: naming.ArchivePath("shop", db, uid)},
			Manifest:   &runtime.RawExtension{Raw: []byte(manifestOf("toban.dev/v1", "SampleDB", db, ""))},
			Conditions: []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}},
		},
	}
	for _, m := range modify {
		m(&b)
	}
	return b
}

func live(name, uid string) v1.SampleDB {
	return v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(uid)}}
}

func removed(b *v1.DatabaseBackup) { b.Status.Conditions[0].Status = metav1.ConditionFalse }

// major18 puts a backup into the archive of another major version.
func major18(b *v1.DatabaseBackup) {
	b.Status.Archive.Path, b.Status.ServerVersion = naming.MajorArchivePath(b.Status.Archive.Path, 18), "18.1"
}

// sided is a backup from the middle of a blue/green upgrade: what its side did, and the SampleDB whose second side it
// is of, "" for none.
func sided(does, of string) func(*v1.DatabaseBackup) {
	return func(b *v1.DatabaseBackup) {
		b.Status.Manifest.Raw = []byte(manifestOf("toban.dev/v1", "SampleDB", "x", fmt.Sprintf(
			`,"annotations":{%q:%q,%q:%q}`, naming.AnnotationSide, does, naming.AnnotationSideOf, of)))
	}
}

func inStore(b *v1.DatabaseBackup) { b.UID = "" }

// What a SampleDB of two sides comes back from: the side that has served to the end.
func TestWhichSideIsBroughtBack(t *testing.T) {
	own := func(name string, hour int, modify ...func(*v1.DatabaseBackup)) v1.DatabaseBackup {
		return backupOf("x", "u", name, hour, modify...)
	}
	green := func(name, does string, hour int, modify ...func(*v1.DatabaseBackup)) v1.DatabaseBackup {
		return backupOf("x-green", "g", name, hour, append(modify, sided(does, "x/u"))...)
	}
	follows := sided(naming.SideFollows, "")
	mayLack := func(name string) string {
		return "x's own instances may have served again: what was written there may be missing, and may be in the " +
			"archive of their backup, whose end --backup " + name + " brings back. For all of the archive, create a " +
			"SampleDB OTHER with spec.restoreFrom.archive.path: shop/x-u"
	}
	for name, c := range map[string]struct {
		backups []v1.DatabaseBackup
		live    []v1.SampleDB
		want    string
	}{
		"the second side's last backup": {
			[]v1.DatabaseBackup{own("x-1", 1), own("x-2", 2, follows), green("x-green-final-g", "serves", 3)}, nil,
			"x x-green-final-g",
		},
		"the second side's archive, where no last backup was taken": {
			[]v1.DatabaseBackup{own("x-1", 2), green("x-green-1", "follows", 1)}, nil, "x x-green-1",
		},
		"the first side's last backup, where the second side left none": {
			[]v1.DatabaseBackup{own("x-1", 1), green("x-green-1", "serves", 2), own("x-final-u", 3, follows)}, nil,
			"x x-final-u (x-green has served: what was written there last may be missing, and may be in the archive " +
				"of its backup: --backup x-green-1)",
		},
		"the first side, where it has served again": {
			[]v1.DatabaseBackup{
				own("x-1", 1), green("x-green-final-g", "serves", 2), own("x-2", 3), own("x-3", 4, follows),
			}, nil, "x x-2",
		},
		"the second side of one that is there": {
			[]v1.DatabaseBackup{own("x-1", 1), green("x-green-final-g", "serves", 2)}, []v1.SampleDB{live("x", "u")},
			"x x-green-final-g (another SampleDB has its name: kubectl toban restore x-green --into OTHER --backup " +
				"x-green-final-g --size SIZE)",
		},
		"nothing, where both sides are there": {
			[]v1.DatabaseBackup{own("x-1", 1), green("x-green-1", "serves", 2)},
			[]v1.SampleDB{live("x", "u"), live("x-green", "g")}, "",
		},
		"the first side, where a store has a second one that has only followed": {
			[]v1.DatabaseBackup{own("x-1", 1, inStore), green("x-green-1", "follows", 2, inStore)}, nil, "x x-1",
		},
		"the second side, where a store has one that has served": {
			[]v1.DatabaseBackup{own("x-1", 3, inStore, follows), green("x-green-1", "serves", 2, inStore)}, nil,
			"x x-green-1 (" + mayLack("x-1") + ")",
		},
		"the second side, where a store has no backup of the first one since": {
			[]v1.DatabaseBackup{own("x-1", 1, inStore), green("x-green-1", "serves", 2, inStore)}, nil,
			"x x-green-1 (" + mayLack("x-1") + ")",
		},
		"the second side's last backup, which a store has": {
			[]v1.DatabaseBackup{own("x-1", 1, inStore), green("x-green-final-g", "serves", 2, inStore)}, nil,
			"x x-green-final-g",
		},
		"the first side, where a store has a second one that has served long ago": {
			[]v1.DatabaseBackup{
				own("x-1", 1, inStore), green("x-green-1", "serves", 2, inStore), own("x-2", 9, inStore),
			}, nil, "x x-2",
		},
	} {
		var got []string
		for _, l := range findLost(c.backups, c.live) {
			line := l.name + " " + l.backup.Name
			if l.note != "" {
				line += " (" + l.note + ")"
			}
			got = append(got, line)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	all := findLost([]v1.DatabaseBackup{own("x-1", 1), green("x-green-final-g", "serves", 2)}, nil)
	if _, err := choose(all, "x-green", ""); err == nil || !strings.Contains(err.Error(), "kubectl toban undelete x") {
		t.Errorf("the second side comes back by its name: %v", err)
	}
}

// A backup comes back with its own version, also one that was taken when the spec said another already.
func TestABackupComesBackWithItsVersion(t *testing.T) {
	manifest := func(b *v1.DatabaseBackup) {
		b.Status.Manifest.Raw = []byte(strings.Replace(
			manifestOf("toban.dev/v1", "SampleDB", "x", ""), `"spec":{`, `"spec":{"version":18`, 1))
		b.Status.ServerVersion = "17.6"
	}
	backups := []v1.DatabaseBackup{backupOf("x", "u", "x-1", 1, manifest), backupOf("x", "u", "x-2", 2, major18)}
	all := findLost(backups, nil)
	from, err := choose(all, "x", "x-1")
	if err != nil {
		t.Fatal(err)
	}
	o := undeleteOptions{backup: "x-1"}
	o.Namespace = "shop"
	object, err := (&undelete{undeleteOptions: &o, from: from}).object()
	if err != nil {
		t.Fatal(err)
	}
	if db, is := object.(*v1.SampleDB); !is || db.Spec.Version != 17 {
		t.Errorf("it comes back as %v", object)
	}
}

func TestWhatCanBeBroughtBack(t *testing.T) {
	for name, c := range map[string]struct {
		backups []v1.DatabaseBackup
		live    []v1.SampleDB
		want    string // name, backup, and whether there is a note
	}{
		"nothing":              {nil, nil, ""},
		"of one that is there": {[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1)}, []v1.SampleDB{live("x", "u")}, ""},
		"the last of its backups": {
			[]v1.DatabaseBackup{
				backupOf("x", "u", "x-1", 1), backupOf("x", "u", "x-final-u", 3), backupOf("x", "u", "x-2", 2),
			}, nil, "x x-final-u",
		},
		"not the former archive of one that is there": {
			[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1), backupOf("x", "u", "x-2", 2, major18)},
			[]v1.SampleDB{live("x", "u")}, "",
		},
		"once, after an upgrade": {
			[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1), backupOf("x", "u", "x-2", 2, major18)}, nil, "x x-2",
		},
		"not one that is removed": {
			[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1), backupOf("x", "u", "x-2", 2, removed)}, nil, "x x-1",
		},
		"another has the name": {
			[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1), backupOf("x", "v", "x-2", 2)},
			[]v1.SampleDB{live("x", "v")}, "x x-1 note",
		},
		"two of one name, the last first": {
			[]v1.DatabaseBackup{
				backupOf("x", "u", "x-1", 1), backupOf("x", "v", "x-2", 2), backupOf("a", "w", "a-1", 0),
			}, nil, "x x-2, x x-1, a a-1",
		},
		"of an older Toban": {
			[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1, func(b *v1.DatabaseBackup) { b.Status.Manifest = nil })},
			nil, "x x-1 note",
		},
		"one whose manifest makes something else": {
			[]v1.DatabaseBackup{backupOf("x", "u", "x-1", 1, func(b *v1.DatabaseBackup) {
				b.Status.Manifest.Raw = []byte(manifestOf("v1", "Secret", "x", ""))
			})}, nil, "x x-1 note",
		},
		"one whose status somebody has spoilt": {
			[]v1.DatabaseBackup{
				backupOf("x", "u", "x-1", 1, func(b *v1.DatabaseBackup) { b.Status.CompletedAt = nil }),
			}, nil, "",
		},
	} {
		var got []string
		for _, l := range findLost(c.backups, c.live) {
			line := l.name + " " + l.backup.Name
			if l.note != "" {
				line += " note"
			}
			got = append(got, line)
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestWhichBackupAnUndeleteTakes(t *testing.T) {
	old := backupOf("old", "o", "old-1", 1, func(b *v1.DatabaseBackup) { b.Status.Manifest = nil })
	all := findLost([]v1.DatabaseBackup{
		backupOf("x", "u", "x-1", 1), backupOf("x", "u", "x-2", 2), backupOf("x", "v", "x-3", 3), old,
	}, nil)
	for name, c := range map[string]struct{ db, backup, want, words string }{
		"the last":                  {"x", "", "x-3", ""},
		"one of a former one":       {"x", "x-1", "x-1", ""},
		"one that is not there":     {"x", "x-9", "", "no complete DatabaseBackup x-9"},
		"a SampleDB without any":    {"y", "", "", "no backup of a deleted SampleDB y"},
		"one whose spec is unknown": {"old", "", "", "kubectl toban restore old --into old --backup old-1 --size SIZE"},
	} {
		got, err := choose(all, c.db, c.backup)
		if (err == nil) != (c.words == "") || err != nil && !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && got.backup.Name != c.want {
			t.Errorf("%s: %s, want %s", name, got.backup.Name, c.want)
		}
	}
}

// What kubectl get -o yaml or json has written: a list, one, or several documents.
func TestBackupsAreReadFromAFile(t *testing.T) {
	one, other := backupOf("x", "u", "x-1", 1), backupOf("x", "u", "x-2", 2)
	elsewhere := backupOf("x", "u", "x-3", 3, func(b *v1.DatabaseBackup) { b.Namespace = "theirs" })
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, c := range map[string]struct{ text, want string }{
		"one":            {text(one), "x-1"},
		"a list":         {text(map[string]any{"kind": "List", "items": []any{one, other, elsewhere}}), "x-1 x-2"},
		"two documents":  {text(one) + "\n---\n" + text(other), "x-1 x-2"},
		"YAML":           {"kind: DatabaseBackup\nmetadata: {name: shop-1, namespace: shop}\n", "shop-1"},
		"something else": {"kind: Secret\nmetadata: {name: shop-1, namespace: shop}\n", ""},
		"an empty file":  {"", ""},
	} {
		path := filepath.Join(t.TempDir(), "backups")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readBackups(path, "shop")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var names []string
		for _, b := range got {
			names = append(names, b.Name)
		}
		slices.Sort(names)
		if strings.Join(names, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, names, c.want)
		}
	}
}
