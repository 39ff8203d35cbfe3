package archive

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func moment(text string) *metav1.Time {
	t := metav1.NewTime(worldtest.At(text))
	return &t
}

// scrubScope is one in which a backup was due, and verified at a later time with what a scrub has found.
func scrubScope(due, verified string, scrub *v1.ScrubStatus) *Topics {
	s := topicsOf(world.Core{DB: &v1.SampleDB{}, Backup: &v1.BackupSpec{
		Verification: v1.VerificationSpec{Scrub: &v1.ScrubSpec{}}}})
	s.Seen.Backups = []v1.DatabaseBackup{{
		ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: *moment(due)},
		Status: v1.DatabaseBackupStatus{
			ID: "b", Archive: &v1.ArchiveReference{Path: s.ArchivePath()}, CompletedAt: moment(due),
			Conditions:   []metav1.Condition{{Type: v1.ConditionComplete, Status: metav1.ConditionTrue}},
			Verification: &v1.VerificationStatus{CompletedAt: moment(verified), Scrub: scrub},
		},
	}}
	return s
}

func TestWhatIsSaidOfAnArchiveThatWasReadAgain(t *testing.T) {
	now := moment("2026-11-20 12:00:00")
	broken := []v1.BrokenObject{{Name: "base/b/x", Problem: "missing"}}
	for name, c := range map[string]struct {
		scrub  *v1.ScrubStatus
		status metav1.ConditionStatus
		words  []string
	}{
		"nothing was":     {nil, "", nil},
		"it could not be": {&v1.ScrubStatus{Error: "away"}, "", nil},
		"a part of it":    {&v1.ScrubStatus{At: now}, metav1.ConditionTrue, []string{"so far"}},
		"all of it": {&v1.ScrubStatus{At: now, WholeSince: moment("2026-10-20 12:00:00")}, metav1.ConditionTrue,
			[]string{"since 2026-10-20T12:00:00Z"}},
		"an object is missing": {&v1.ScrubStatus{At: now, Broken: broken}, metav1.ConditionFalse,
			[]string{"base/b/x (missing)", "put them back"}},
		"many are": {&v1.ScrubStatus{At: now, Broken: broken, More: 3}, metav1.ConditionFalse,
			[]string{"and 3 more"}},
		"one of the newest is so": {&v1.ScrubStatus{At: now, Broken: []v1.BrokenObject{{Newest: true}}},
			metav1.ConditionFalse, []string{"a full one is taken"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Intact(c.scrub)
			if got.Status != c.status {
				t.Errorf("it says %+v", got)
			}
			for _, words := range c.words {
				if !strings.Contains(got.Message, words) {
					t.Errorf("it says %q", got.Message)
				}
			}
		})
	}
}

// What touches the newest backup is made good by a full one, once.
func TestAFullBackupIsTakenWhereTheNewestIsBroken(t *testing.T) {
	scrub := func(newest bool) *v1.ScrubStatus {
		return &v1.ScrubStatus{
			At: moment("2026-11-20 04:00:00"), Broken: []v1.BrokenObject{{Name: "x", Newest: newest}},
		}
	}
	for name, c := range map[string]struct {
		due  string // of the last backup
		of   *v1.ScrubStatus
		want string
	}{
		"the newest is broken":             {"2026-11-20 03:00:00", scrub(true), "2026-11-20 04:00:00"},
		"an older one is":                  {"2026-11-20 03:00:00", scrub(false), ""},
		"another has been taken meanwhile": {"2026-11-20 04:00:05", scrub(true), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := scrubScope(c.due, "2026-11-20 05:00:00", c.of)
			s.Now = worldtest.At("2026-11-20 05:00:10")
			s.DB.Status.Conditions = []metav1.Condition{{Type: v1.ConditionArchiving, Status: metav1.ConditionTrue,
				LastTransitionTime: *moment("2026-11-01 00:00:00")}}
			s.InitializedAt = moment("2026-11-01 00:00:00")
			got, err := s.backupPlan().decide()
			if err != nil || shown(got.Due) != c.want || got.Full != (c.want != "") {
				t.Errorf("due is %+v, %v", got, err)
			}
		})
	}
}

// What is on record stays when the DatabaseBackup has gone that said it, and an older one says less.
func TestHowFarAnArchiveWasReadIsNotForgotten(t *testing.T) {
	older := &v1.ScrubStatus{At: moment("2026-11-13 04:00:00"), Position: "1"}
	newer := &v1.ScrubStatus{At: moment("2026-11-20 04:00:00"), Position: "2"}
	s := scrubScope("2026-11-13 03:00:00", "2026-11-13 05:00:00", older)
	s.DB.Status.Backup = &v1.BackupStatus{Scrub: newer}
	if got := s.Scrub(); got.Position != "2" {
		t.Errorf("it goes back to %+v", got)
	}
	s.DB.Status.Backup.Scrub, s.Seen.Backups[0].Status.Verification.Scrub = older, newer
	if got := s.Scrub(); got.Position != "2" {
		t.Errorf("it stays at %+v", got)
	}
	s.Seen.Backups[0].Status.Archive.Path = "another"
	if got := s.Scrub(); got.Position != "1" {
		t.Errorf("it takes that of another archive: %+v", got)
	}
	s.Backup.Verification.Scrub.None = true
	if got := s.Scrub(); got != nil {
		t.Errorf("nothing is read, and it says %+v", got)
	}
}

// Each object that is found newly broken is told of, and one that stays so is not again.
func TestBrokenObjectsAreToldOfOnce(t *testing.T) {
	status := func(names ...string) v1.SampleDBStatus {
		scrub := &v1.ScrubStatus{At: moment("2026-11-20 04:00:00")}
		for _, name := range names {
			scrub.Broken = append(scrub.Broken, v1.BrokenObject{Name: name})
		}
		v := Intact(scrub)
		return v1.SampleDBStatus{Conditions: []metav1.Condition{
			{Type: v1.ConditionIntact, Status: v.Status, Reason: v.Reason, Message: v.Message}}}
	}
	for name, c := range map[string]struct {
		old, now v1.SampleDBStatus
		told     bool
	}{
		"the first":        {status(), status("a"), true},
		"another":          {status("a"), status("a", "b"), true},
		"the same":         {status("a"), status("a"), false},
		"it is whole":      {status("a"), status(), false},
		"without any word": {v1.SampleDBStatus{}, status("a"), true},
	} {
		if told := len(BrokenChanges(c.old, c.now)) == 1; told != c.told {
			t.Errorf("%s: told %t", name, told)
		}
	}
}
