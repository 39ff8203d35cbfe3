package sampledb

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/ha"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// volumesOf are those of the instances x-0, x-1 and so on.
func volumesOf(states ...string) []instanceVolume {
	var out []instanceVolume
	for i, state := range states {
		out = append(out, instanceVolume{instance: naming.Instance("x", i), state: state})
	}
	return out
}

func TestWhenDataIsLostForGood(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*lossView)
		reason, onto string
	}{
		"the volume of a lone instance is new": {func(*lossView) {}, lossRestores, "x-0"},
		"those of all instances are": {
			func(v *lossView) { v.volumes = volumesOf(volumeNew, volumeNew, volumeNew) }, lossRestores, "x-0",
		},
		"there has never been data":    {func(v *lossView) { v.database = false }, lossNoDatabase, ""},
		"an instance takes writes":     {func(v *lossView) { v.primary = "x-0" }, lossNone, ""},
		"the instance does not answer": {func(v *lossView) { v.volumes = volumesOf(volumeUnknown) }, lossUnknown, ""},
		"one of three does not answer": {
			func(v *lossView) { v.volumes = volumesOf(volumeNew, volumeUnknown, volumeNew) }, lossUnknown, "",
		},
		"one of three has data, and an election may be under way": {
			func(v *lossView) { v.volumes = volumesOf(volumeNew, volumeHasData, volumeNew) }, lossHasData, "",
		},
		"one of three has data, and can't be elected": {func(v *lossView) {
			v.volumes, v.elects = volumesOf(volumeNew, volumeHasData, volumeNew), false
		}, lossMajority, "x-1"},
		"two of four have data, and can't be elected": {func(v *lossView) {
			v.volumes, v.elects = volumesOf(volumeHasData, volumeNew, volumeHasData, volumeNew), false
			v.volumes[2].position = ha.Position{Term: 1, LSN: 0x5000000}
		}, lossMajority, "x-2"},
		"all have data, and can't elect": {func(v *lossView) {
			v.volumes, v.elects = volumesOf(volumeHasData, volumeHasData), false
		}, lossHasData, ""},
		"the volume of an instance that was scaled away is there": {
			func(v *lossView) { v.left = []string{"data-x-1"} }, lossLeft, "x-0",
		},
		"something else is under way": {func(v *lossView) { v.busy = "an upgrade" }, lossBusy, "x-0"},
		"the data directory was removed": {
			func(v *lossView) { v.volumes = volumesOf(volumeCleared) }, lossDirectory, "x-0",
		},
		"there is no archive":               {func(v *lossView) { v.archive = false }, lossNoArchive, ""},
		"there is no backup in the archive": {func(v *lossView) { v.backup = false }, lossNoBackup, ""},
		"the spec does not allow it":        {func(v *lossView) { v.allowed = false }, lossWaits, "x-0"},
	} {
		t.Run(name, func(t *testing.T) {
			v := lossView{
				database: true, elects: true, archive: true, backup: true, allowed: true, volumes: volumesOf(volumeNew),
			}
			c.change(&v)
			if got := decideLoss(v); got.reason != c.reason || got.onto != c.onto {
				t.Errorf("decided %+v, want %s onto %q", got, c.reason, c.onto)
			}
		})
	}
}

func TestWhatAnAgentSaysOfItsVolume(t *testing.T) {
	alone := ha.Configuration{Term: 1, Version: 1, Now: ha.Quorum{Voters: []ha.Voter{"x-0.a"}, Acknowledgements: 1}}
	for name, c := range map[string]struct {
		answer protocol.Status
		want   string
	}{
		"data":      {protocol.Status{Data: protocol.DataPresent}, volumeHasData},
		"not known": {protocol.Status{Data: protocol.DataUnknown}, volumeUnknown},
		"half a copy": {
			protocol.Status{Data: "incomplete", Election: protocol.Election{Voter: "x-0.b"}}, volumeUnknown,
		},
		"none, of a release that does not say who votes": {protocol.Status{Data: protocol.DataEmpty}, volumeUnknown},
		"none, of a new voter": {
			protocol.Status{Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.b"}}, volumeNew,
		},
		"none, of a new voter that others have told of the quorum": {protocol.Status{
			Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.b", Configuration: alone},
		}, volumeNew},
		"none, of who has led": {protocol.Status{
			Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.a", Configuration: alone},
		}, volumeCleared},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumeState(c.answer); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// emptied is a SampleDB x of one instance whose volume is new, with an archive.
func emptied() *act {
	s := actOf(core{db: &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, now: time.Unix(1e9, 0)})
	s.backup = &v1.BackupSpec{
		WhenDataIsLost: v1.DataLostRestore, MaxLag: &metav1.Duration{Duration: 10 * time.Second},
	}
	at := metav1.NewTime(s.now)
	s.config = protocol.Config{
		SystemIdentifier: "7300000000000000001", Major: 17, Members: []protocol.Member{{Name: "x-0"}},
	}
	s.db.Status.Backup = &v1.BackupStatus{
		Archive: s.archivePath(), Version: 17, LastBackup: "x-1", ArchivedLSN: "0/5000000", Latest: &at,
	}
	s.seen.claims = map[int]*corev1.PersistentVolumeClaim{
		0: {Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}},
	}
	s.seen.pods = map[int]*corev1.Pod{0: {}}
	s.seen.answers = map[string]protocol.Status{
		"x-0": {Name: "x-0", Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.b"}},
	}
	return s
}

func TestWhatIsKnownOfVolumes(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*scope)
		want   string
	}{
		"new and empty":               {func(*scope) {}, lossRestores},
		"the agent does not answer":   {func(s *scope) { s.seen.answers = nil }, lossUnknown},
		"there is no Pod":             {func(s *scope) { s.seen.pods = nil }, lossUnknown},
		"the Pod is about to end":     {func(s *scope) { s.seen.pods[0].DeletionTimestamp = &now }, lossUnknown},
		"there is no claim":           {func(s *scope) { s.seen.claims = nil }, lossUnknown},
		"the claim is being deleted":  {func(s *scope) { s.seen.claims[0].DeletionTimestamp = &now }, lossUnknown},
		"the claim has no volume yet": {func(s *scope) { s.seen.claims[0].Status.Phase = "Pending" }, lossUnknown},
		"another claim is there": {
			func(s *scope) { s.seen.claims[1] = &corev1.PersistentVolumeClaim{} }, lossLeft,
		},
		"a stop is under way":     {func(s *scope) { s.stop = &v1.StopStatus{} }, lossBusy},
		"it is being deleted":     {func(s *scope) { s.db.DeletionTimestamp = &now }, lossBusy},
		"spec.restore is wanted":  {func(s *scope) { s.db.Spec.Restore = &v1.InPlaceRestore{ID: "a"} }, lossBusy},
		"spec.restore was done":   {func(s *scope) { s.restoredOnce("a") }, lossRestores},
		"no backup was complete":  {func(s *scope) { s.db.Status.Backup.LastBackup = "" }, lossNoBackup},
		"the spec says nothing":   {func(s *scope) { s.backup.WhenDataIsLost = "" }, lossWaits},
		"the spec says to wait":   {func(s *scope) { s.backup.WhenDataIsLost = v1.DataLostWait }, lossWaits},
		"the spec has no archive": {func(s *scope) { s.backup = nil }, lossNoArchive},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOn(emptied())
			c.change(s)
			if got := decideLoss(s.lossView()); got.reason != c.want {
				t.Errorf("decided %+v, want %s", got, c.want)
			}
		})
	}
}

// restoredOnce has spec.restore of an id, which is done, before another that the operator has begun.
func (s *scope) restoredOnce(id string) {
	s.db.Spec.Restore = &v1.InPlaceRestore{ID: id}
	s.config.Restored, s.config.RestoredBefore = "lost-1", id
}

func TestWhatIsSaidOfLostData(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		says   []string
	}{
		"it waits": {func(s *scope) { s.backup.WhenDataIsLost = "" }, []string{
			"that of x-0 is new and empty", "at least to 0/5000000 of 2001-09-09T01:46:40Z", "up to 10s of commits",
			"former PersistentVolume", "kubectl toban restore x --to latest",
		}},
		"a volume is left": {
			func(s *scope) { s.seen.claims[1] = &corev1.PersistentVolumeClaim{} },
			[]string{"may have some (spec.instances)"},
		},
		"it begins again":    {func(*scope) {}, []string{"begins again with that (spec.backup.whenDataIsLost)"}},
		"there is no backup": {func(s *scope) { s.db.Status.Backup.LastBackup = "" }, []string{"the only copy"}},
		"how far the archive goes is not known": {
			func(s *scope) { s.db.Status.Backup.Latest = nil }, []string{"not known before it is read"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOn(emptied())
			c.change(s)
			s.loss = decideLoss(s.lossView())
			got := available(s)
			for _, words := range c.says {
				if got.reason != v1.ReasonDataLost || !strings.Contains(got.message, words) {
					t.Errorf("%s: %s\nlacks %q", got.reason, got.message, words)
				}
			}
		})
	}
}

func TestWhatMayBeMissingIsSaidAfterwards(t *testing.T) {
	s := scopeOn(emptied())
	s.loss = decideLoss(s.lossView())
	s.beginAgain()
	if r := s.restore; r.Cause != v1.CauseDataLost || r.Instance != "x-0" || r.ArchiveEnd != "0/5000000" ||
		r.ID != "lost-20010909-014640" || len(s.events) != 1 {
		t.Errorf("it begins with %+v, %v", r, s.events)
	}
	commit := metav1.NewTime(s.now.Add(-time.Second))
	s.restore.Backup, s.restore.LSN, s.restore.LastTransactionAt = "b", "0/4FFFFF0", &commit
	s.restoreSeen, s.restored = true, restoredTo(s.restore)
	status := v1.SampleDBStatus{}
	s.setRestored(&status)
	said := meta.FindStatusCondition(status.Conditions, v1.ConditionRestored)
	for _, words := range []string{
		"backup b, and the WAL up to 0/4FFFFF0", "the last transaction is of 2001-09-09T01:46:39Z",
		"at least to 0/5000000 of 2001-09-09T01:46:40Z", "is missing",
	} {
		if said == nil || !strings.Contains(said.Message, words) {
			t.Errorf("the condition is %+v, and lacks %q", said, words)
		}
	}
}

func TestARestoreThatWasBegunByItselfGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scope)
		wanted string
	}{
		"while the data is lost":          {func(*scope) {}, "lost-1"},
		"while nobody can be asked":       {func(s *scope) { s.seen.answers = nil }, "lost-1"},
		"not when the data is there":      {func(s *scope) { s.answerWith(protocol.DataPresent) }, ""},
		"not when it may not any more":    {func(s *scope) { s.backup.WhenDataIsLost = v1.DataLostWait }, ""},
		"not when it is done":             {func(s *scope) { s.config.Restored = "lost-1" }, ""},
		"not where spec.restore wants it": {func(s *scope) { s.db.Spec.Restore = &v1.InPlaceRestore{ID: "a"} }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scopeOn(emptied())
			s.db.Status.Restore = &v1.RestoreStatus{ID: "lost-1", Cause: v1.CauseDataLost}
			c.change(s)
			s.loss = decideLoss(s.lossView())
			wanted := s.inPlaceWanted()
			if wanted == nil && c.wanted != "" || wanted != nil && wanted.ID != c.wanted {
				t.Errorf("wanted is %+v, want %q", wanted, c.wanted)
			}
		})
	}
}

func (s *scope) answerWith(data protocol.Data) {
	answer := s.seen.answers["x-0"]
	answer.Data = data
	s.seen.answers["x-0"] = answer
}
