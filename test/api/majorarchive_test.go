package api

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/protocol"
)

// runs plays the end of an upgrade, or of one that is taken back: what runs is another major version, in another
// database system. The archive does not work before a primary has looked at it.
func (k *taker) runs(db *v1.SampleDB, major int, system string) *v1.SampleDB {
	k.Helper()
	object := &corev1.ConfigMap{}
	k.read(naming.ConfigMap(db.Name), object)
	config, err := desired.ParseConfig(object)
	k.must(err)
	config.Major, config.SystemIdentifier = major, system
	text, err := json.Marshal(config)
	k.must(err)
	object.Data[naming.KeyConfig] = string(text)
	k.must(k.api.Update(k.Context(), object))
	now := k.sample(db.Name)
	now.Status.SystemIdentifier, now.Status.Major = system, int32(major)
	k.must(k.api.Status().Update(k.Context(), now))
	now.Spec.Version = int32(major)
	k.must(k.api.Update(k.Context(), now))
	k.agents.change("10.1.0.1", func(s *protocol.Status) { s.Archive, s.SystemIdentifier = nil, system })
	k.now = k.now.Add(time.Minute)
	return k.reconcile(db)
}

// works has the archive work, in which nothing was before.
func (k *taker) works(db *v1.SampleDB, lsn string) *v1.SampleDB {
	k.Helper()
	k.now = k.now.Add(time.Minute)
	return k.reconcile(k.archive(db, &protocol.ArchiveStatus{LSN: lsn}))
}

// completeLast completes the backup that was asked for last.
func (k *taker) completeLast(db *v1.SampleDB, id, version string) (*v1.DatabaseBackup, *v1.SampleDB) {
	k.Helper()
	all := k.backups()
	b := &v1.DatabaseBackup{}
	k.read(all[len(all)-1], b)
	result := taken
	result.ID, result.ServerVersion, result.Archive = id, version, k.agents.told().Archive.Path
	result.Windows = []protocol.Window{{Branch: 1, Earliest: k.now, EarliestLSN: "0/4000100"}}
	b = k.completeWith(b, result)
	return b, k.reconcile(db)
}

// former are the archives of former major versions, as PATH's last part.
func former(db *v1.SampleDB) (out []string) {
	for _, f := range db.Status.Backup.Former {
		out = append(out, f.Path[strings.LastIndex(f.Path, "/")+1:])
	}
	return out
}

func TestAMajorUpgradeBeginsAnotherArchive(t *testing.T) {
	k, db := newWorld(t).ready("x")
	first := naming.ArchivePath(k.namespace, "x", string(db.UID))
	if s := db.Status; s.FirstVersion != 17 || s.Backup.Version != 17 || s.Backup.Archive != first {
		t.Fatalf("before, the status is %d, %+v", s.FirstVersion, s.Backup)
	}
	db = k.reconcile(db)
	before := k.backups()
	db = k.runs(db, 18, "77")
	if a := k.agents.told().Archive; a.Path != first+"-pg18" || k.agents.told().FirstMajor != 17 {
		t.Fatalf("the agents are told of %s, first %d", a.Path, k.agents.told().FirstMajor)
	}
	k.turnedOver(db.Status.Backup, first)
	if got := k.backups(); !slices.Equal(got, before) {
		t.Errorf("a backup is asked for before the archive works: %v", got)
	}
	// It does not wait for the schedule.
	db = k.works(db, "0/9000000")
	if got := k.backups(); len(got) != len(before)+1 {
		t.Fatalf("the backups are %v", got)
	}
	taken18, db := k.completeLast(db, "20261121T000000Z-aaaa", "18.1")
	if !taken18.Spec.Full || taken18.Status.Archive.Path != first+"-pg18" {
		t.Errorf("the first backup is %+v, in %s", taken18.Spec, taken18.Status.Archive.Path)
	}
	if s := db.Status.Backup; s.LastBackup != taken18.Name || s.Earliest == nil || len(s.Windows) != 1 {
		t.Errorf("then the status is %+v", s)
	}
	k.staysComplete(before[0], first)
	k.rests(db)
	if got := k.backups(); len(got) != len(before)+1 {
		t.Errorf("the backups are %v", got)
	}
}

// turnedOver fails the test unless the archive is that of 18, with nothing in it yet, and that of 17 is on record.
func (k *taker) turnedOver(b *v1.BackupStatus, first string) {
	k.Helper()
	if b.Archive != first+"-pg18" || b.Version != 18 || b.LastBackup != "" || b.Latest != nil || len(b.Windows) > 0 {
		k.Errorf("the status of the new archive is %+v", b)
	}
	if len(b.Former) != 1 || b.Former[0].Path != first || b.Former[0].Version != 17 || b.Former[0].Until == nil ||
		b.Former[0].Since == nil {
		k.Errorf("the former archives are %+v", b.Former)
	}
}

// staysComplete fails the test unless a backup is a complete one of 17.6 in an archive.
func (k *taker) staysComplete(name, archive string) {
	k.Helper()
	b := &v1.DatabaseBackup{}
	k.read(name, b)
	if b.Status.Archive.Path != archive || b.Status.ServerVersion != "17.6" ||
		!meta.IsStatusConditionTrue(b.Status.Conditions, v1.ConditionComplete) {
		k.Errorf("the backup of before is %+v", b.Status)
	}
}

// An upgrade that is taken back goes on in the folder of before, and one after another has a folder each.
func TestAnUpgradeThatIsTakenBackGoesOnInItsArchive(t *testing.T) {
	k, db := newWorld(t).ready("x", func(db *v1.SampleDB) { db.Spec.Version = 16 })
	first := naming.ArchivePath(k.namespace, "x", string(db.UID))
	db = k.reconcile(db)
	last, windows := db.Status.Backup.LastBackup, len(k.backups())
	db = k.runs(db, 17, "77")
	db = k.runs(db, 16, identifier)
	db = k.works(db, "0/9000000")
	if s := db.Status.Backup; k.agents.told().Archive.Path != first || k.agents.told().FirstMajor != 0 ||
		s.Archive != first || s.Version != 16 || len(s.Former) > 0 || s.LastBackup != last {
		t.Errorf("taken back it is %+v, the agents are told of %s", s, k.agents.told().Archive.Path)
	}
	if got := k.backups(); len(got) != windows {
		t.Errorf("the backups are %v", got)
	}
	db = k.runs(db, 17, "78")
	db = k.works(db, "0/A000000")
	_, db = k.completeLast(db, "20261121T000000Z-aaaa", "17.7")
	db = k.runs(db, 18, "79")
	if got := former(db); len(got) != 2 || !strings.HasSuffix(got[0], "-pg17") || "ns/"+got[1] == first {
		t.Errorf("the former archives are %v", got)
	}
	if f := db.Status.Backup.Former; f[0].Version != 17 || f[1].Version != 16 || !f[0].Since.Equal(f[1].Until) {
		t.Errorf("the former archives are %+v", f)
	}
}

// What is not on record any more is found in the ConfigMap and in the backups.
func TestFormerArchivesAreFoundAgain(t *testing.T) {
	k, db := newWorld(t).ready("x")
	first := naming.ArchivePath(k.namespace, "x", string(db.UID))
	db = k.reconcile(db)
	db = k.runs(db, 18, "77")
	db = k.works(db, "0/9000000")
	_, db = k.completeLast(db, "20261121T000000Z-aaaa", "18.1")
	count := len(k.backups())
	for name, lose := range map[string]func(now *v1.SampleDB){
		"the part about the archive": func(now *v1.SampleDB) { now.Status.Backup, now.Status.FirstVersion = nil, 0 },
		"the whole status":           func(now *v1.SampleDB) { now.Status = v1.SampleDBStatus{SystemIdentifier: "77"} },
	} {
		now := k.sample("x")
		lose(now)
		k.must(k.api.Status().Update(k.Context(), now))
		for range 3 {
			db = k.works(db, "0/9000000")
		}
		if s := db.Status; s.FirstVersion != 17 || s.Backup.Archive != first+"-pg18" || len(s.Backup.Former) != 1 ||
			s.Backup.Former[0].Path != first || s.Backup.Former[0].Version != 17 {
			t.Errorf("without %s it is %d, %+v", name, s.FirstVersion, s.Backup)
		}
		if got := k.backups(); len(got) != count {
			t.Errorf("without %s another backup is taken: %v", name, got)
		}
	}
	k.expect(db, v1.ConditionArchiving, metav1.ConditionTrue, v1.ReasonArchiving)
}

// upgraded is a SampleDB that has run 17 and runs 18, and a moment of when it ran 17.
func (w *world) upgraded(name string) (k *taker, db *v1.SampleDB, before string) {
	w.Helper()
	k, db = w.ready(name)
	asked := taken
	asked.ID = "20261122T000000Z-bbbb"
	asked.Windows = []protocol.Window{{Branch: 1, Earliest: k.now, EarliestLSN: "0/4"}}
	k.completeWith(k.ask(name+"-1-asked", name), asked)
	db = k.reconcile(db)
	before = k.now.UTC().Format(time.RFC3339)
	k.now = k.now.Add(time.Hour)
	db = k.runs(db, 18, "77")
	db = k.works(db, "0/9000000")
	_, db = k.completeLast(db, "20261121T000000Z-aaaa", "18.1")
	return k, db, before
}

// restoredFrom is the folder from which the Pod of a new SampleDB's restore reads, "" where there is no such Pod.
func (k *taker) restoredFrom(name string) string {
	k.Helper()
	settings := &corev1.ConfigMap{}
	if !k.find(naming.RestoreConfigMap(name), settings) {
		return ""
	}
	var told protocol.RestoreSettings
	k.must(json.Unmarshal([]byte(settings.Data[naming.KeyRestore]), &told))
	return told.Path
}

func TestARestoreNeedsTheVersionOfThatTime(t *testing.T) {
	k, db, before := newWorld(t).upgraded("x")
	first := naming.ArchivePath(k.namespace, "x", string(db.UID))
	after := k.now.UTC().Format(time.RFC3339)
	all := k.backups()
	for name, c := range map[string]struct {
		spec  v1.RestoreSpec
		path  string
		words string
	}{
		"before":      {v1.RestoreSpec{SampleDB: "x", Target: &v1.RestoreTarget{Time: before}}, first, ""},
		"position":    {v1.RestoreSpec{SampleDB: "x", Target: &v1.RestoreTarget{LSN: "0/4000200"}}, first, ""},
		"old-backup":  {v1.RestoreSpec{Backup: all[0]}, first, ""},
		"after":       {v1.RestoreSpec{SampleDB: "x", Target: &v1.RestoreTarget{Time: after}}, "", "version: 18"},
		"the-end":     {v1.RestoreSpec{SampleDB: "x"}, "", "version: 18"},
		"last-backup": {v1.RestoreSpec{Backup: all[len(all)-1]}, "", "version: 18"},
	} {
		again := k.create(name, from(c.spec)) // spec.version is 17
		if got := k.restoredFrom(name); got != c.path {
			t.Errorf("%s is read from %q, want %q", name, got, c.path)
		}
		if c.words == "" {
			continue
		}
		if words := k.expect(again, v1.ConditionRestored, metav1.ConditionFalse,
			v1.ReasonRestoreFailed); !strings.Contains(words, c.words) {
			t.Errorf("%s says %q", name, words)
		}
	}
	// In place it is refused, and the database goes on.
	for id, restore := range map[string]v1.InPlaceRestore{
		"--into OTHER --to " + before:     {Target: &v1.RestoreTarget{Time: before}},
		"--into OTHER --backup " + all[0]: {Backup: all[0]},
	} {
		restore.ID, restore.Confirm = "r"+desired.Hash(id), "x"
		db = k.edit(db, func(db *v1.SampleDB) { db.Spec.Restore = &restore })
		if words := k.expect(db, v1.ConditionRestored, metav1.ConditionFalse,
			v1.ReasonRestoreFailed); !strings.Contains(words, id) {
			t.Errorf("it says %q, want %q", words, id)
		}
		k.expect(db, v1.ConditionReady, metav1.ConditionTrue, v1.ReasonReady)
	}
}

func TestTheRestoreVerbKnowsTheVersionOfThatTime(t *testing.T) {
	k, db, before := newWorld(t).upgraded("x")
	first := naming.ArchivePath(k.namespace, "x", string(db.UID))
	o := k.asks("x\n", func() {}, "x", "--to", before)
	o.check(t, "ran PostgreSQL 17 then, and runs 18 now")
	o = k.asks("", func() {}, "x", "--into", "again", "--to", before, "--wait=false")
	o.check(t, "", "again: begins with x as it was at "+before+", with PostgreSQL 17, which x ran then",
		"with PostgreSQL 17, only --into: of branch")
	again := k.sample("again")
	if f := again.Spec.RestoreFrom; again.Spec.Version != 17 || f.Archive == nil || f.Archive.Path != first ||
		f.Target == nil || f.Target.Time != before {
		t.Errorf("it is of version %d and begins with %+v", again.Spec.Version, f)
	}
	o = k.asks("", func() {}, "x", "--into", "end", "--to", "latest", "--version", "17", "--wait=false")
	o.check(t, "", "with PostgreSQL 17")
	if f := k.sample("end").Spec.RestoreFrom; f.Archive == nil || f.Archive.Path != first || f.Target != nil {
		t.Errorf("it begins with %+v", f)
	}
	o = k.asks("", func() {}, "x", "--into", "now", "--to", "latest", "--wait=false")
	o.check(t, "", "now: begins with x")
	if s := k.sample("now").Spec; s.Version != 18 || s.RestoreFrom.SampleDB != "x" {
		t.Errorf("it is %+v", s)
	}
	o = k.asks("", func() {}, "x", "--into", "never", "--to", "latest", "--version", "16", "--wait=false")
	o.check(t, "no archive of PostgreSQL 16")
}

// Retention goes on in a former archive, which is forgotten when nothing is left there; and a backup of it is verified
// with its own version.
func TestAFormerArchiveIsLookedAfter(t *testing.T) {
	k, db, _ := newWorld(t).upgraded("x")
	first := naming.ArchivePath(k.namespace, "x", string(db.UID))
	old := &v1.DatabaseBackup{}
	k.read(k.backups()[1], old)
	old.Spec.Keep = true
	k.must(k.api.Update(k.Context(), old))
	db = k.reconcile(db)
	settings := &corev1.ConfigMap{}
	k.read("x-backup", settings)
	told, err := backupSettings(settings)
	k.must(err)
	if len(told.Former) != 1 || told.Former[0].Path != first || told.Former[0].Major != 17 ||
		!slices.Equal(told.Former[0].Pinned, []string{old.Status.ID}) || len(told.Keep.Pinned) > 0 {
		t.Errorf("the Pods of backups are told of %+v, pinned %v", told.Former, told.Keep.Pinned)
	}
	job, err := desired.VerifyJob(db, old, k.reconciler.Settings, "now")
	k.must(err)
	pod := job.Spec.Template.Spec
	restore := pod.InitContainers[len(pod.InitContainers)-1]
	for _, c := range []corev1.Container{restore, pod.Containers[0]} {
		if words := strings.Join(c.Command, " "); !strings.HasSuffix(c.Image, ":17") ||
			!strings.Contains(words, "--archive "+first+" --major 17") {
			t.Errorf("%s runs %s: %s", c.Name, c.Image, words)
		}
	}
	formers := k.backups()[:2]
	for n, empty := range []bool{false, true} {
		b := k.ask("more-"+string(rune('a'+n)), "x")
		result := taken
		result.ID, result.ServerVersion, result.Archive = "more", "18.1", first+"-pg18"
		result.Former = []protocol.FormerResult{{
			Path: first, Major: 17, Removed: []string{taken.ID}, Held: "an object can't be understood", Empty: empty,
		}}
		k.completeWith(b, result)
		k.now = k.now.Add(time.Hour)
		db = k.reconcile(db)
		if got := db.Status.Backup.Former; (len(got) == 0) != empty || !empty && got[0].Retention == "" {
			t.Errorf("empty: %v, and there is %+v", empty, got)
		}
	}
	for _, name := range formers {
		k.read(name, old)
		if old.Status.Phase != "Removed" {
			t.Errorf("%s is %s", name, old.Status.Phase)
		}
	}
}
