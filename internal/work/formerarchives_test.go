package work

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/protocol"
	"toban.dev/internal/work/pod"
)

// formerWorld is a store with the archive of a former major version, and with so many backups in the present one.
func formerWorld(t *testing.T, present int) *taking {
	t.Helper()
	store := bucket.OpenFolder(t.TempDir())
	r := &taking{store: store, archive: bucket.Sub(store, "shop/x-pg18")}
	r.settings.Archive.Owner, r.settings.Archive.Path = "uid", "shop/x-pg18"
	for path, system := range map[string]string{"shop/x-pg18": "2", "shop/x": "1"} {
		owner := format.Owner{UID: "uid", Namespace: "shop", Name: "x", SystemIdentifier: system}
		if err := format.Claim(t.Context(), bucket.Sub(store, path), owner); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, bucket.Sub(store, "shop/x-pg18"), present)
	fill(t, bucket.Sub(store, "shop/x"), 10)
	return r
}

// keep runs retention.
func (t *taking) keeps(test *testing.T, keep protocol.Retention, former protocol.FormerArchive) protocol.FormerResult {
	test.Helper()
	settings := protocol.BackupSettings{Keep: keep, Former: []protocol.FormerArchive{former}}
	t.Pod.Options, t.Pod.Log = pod.Options{Settings: settingsFile(test, settings)}, pod.New(pod.Options{}).Log
	if err := t.retain(test.Context()); err != nil {
		test.Fatal(err)
	}
	if len(t.result.Former) != 1 {
		test.Fatalf("it tells of %+v", t.result.Former)
	}
	return t.result.Former[0]
}

// left are the backups in the archive of the former major version, and how many objects there are.
func (t *taking) left(test *testing.T) (backups []string, objects int) {
	test.Helper()
	names, err := listNames(test.Context(), bucket.Sub(t.store, "shop/x"))
	if err != nil {
		test.Fatal(err)
	}
	for _, name := range names {
		if id, ok := backupOfObject(name); ok && strings.HasSuffix(name, format.FileBackup) {
			backups = append(backups, id)
		}
	}
	return backups, len(names)
}

// What newer archives have counts first: as many of the former one go as come there, and at last it is empty.
func TestRetentionGoesOnInFormerArchives(t *testing.T) {
	former := protocol.FormerArchive{Path: "shop/x", Major: 17}
	for present, want := range map[int]int{0: 7, 3: 4} {
		r := formerWorld(t, present)
		told := r.keeps(t, protocol.Retention{Count: 7}, former)
		if backups, _ := r.left(t); len(backups) != want || !slices.Contains(backups, "b9") || told.Empty ||
			len(told.Windows) != 1 || told.Windows[0].LatestLSN == "" || told.Windows[0].Latest.IsZero() {
			t.Errorf("with %d newer backups %v are left: %+v", present, backups, told)
		}
		for i := present; i < 7; i++ { // more are taken
			fill(t, r.archive, i+1)
		}
		told = r.keeps(t, protocol.Retention{Count: 7, Days: 0}, former)
		if backups, objects := r.left(t); objects > 0 || !told.Empty || told.Held != "" {
			t.Errorf("with 7 newer backups %v are left, of %d objects: %+v", backups, objects, told)
		}
		if told = r.keeps(t, protocol.Retention{Count: 7}, former); !told.Empty {
			t.Errorf("an archive that is gone is %+v", told)
		}
	}
}

// Moments of the promised days stay, and what is pinned; nothing goes where that is not known.
func TestWhatStaysInFormerArchives(t *testing.T) {
	former := protocol.FormerArchive{Path: "shop/x", Major: 17}
	r := formerWorld(t, 9)
	if told := r.keeps(t, protocol.Retention{Count: 7, Days: 1}, former); told.Empty {
		t.Errorf("the last day is gone: %+v", told)
	}
	if backups, _ := r.left(t); len(backups) != 10 {
		t.Errorf("of the last day %v are left", backups)
	}
	former.Pinned = []string{"b2"}
	r.settings.Archive.Bucket.KeepAll = true
	if told := r.keeps(t, protocol.Retention{Count: 9}, former); told.Empty || len(told.Removed) > 0 {
		t.Errorf("who removes nothing has removed %+v", told)
	}
	r.settings.Archive.Bucket.KeepAll = false
	for count := 6; count >= 1; count -= 2 { // in steps, or it is taken for a mistake
		r.keeps(t, protocol.Retention{Count: 9 + count}, former)
	}
	r.keeps(t, protocol.Retention{Count: 9}, former)
	if backups, _ := r.left(t); fmt.Sprint(backups) != "[b2]" {
		t.Errorf("of a pinned one %v are left", backups)
	}
	r.settings.Archive.Owner = "another"
	if told := r.keeps(t, protocol.Retention{Count: 9}, former); told.Held == "" || told.Empty {
		t.Errorf("the archive of another is %+v", told)
	}
}
