package restore

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
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/operator/sampledb/world/worldtest"
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
		"the volume of a lone instance is new": {func(*lossView) {}, world.LossRestores, "x-0"},
		"those of all instances are": {
			func(v *lossView) { v.volumes = volumesOf(world.VolumeNew, world.VolumeNew, world.VolumeNew) },
			world.LossRestores, "x-0",
		},
		"there has never been data": {func(v *lossView) { v.database = false }, world.LossNoDatabase, ""},
		"an instance takes writes":  {func(v *lossView) { v.primary = "x-0" }, world.LossNone, ""},
		"the instance does not answer": {func(v *lossView) { v.volumes = volumesOf(world.VolumeUnknown) },
			world.LossUnknown, ""},
		"one of three does not answer": {
			func(v *lossView) { v.volumes = volumesOf(world.VolumeNew, world.VolumeUnknown, world.VolumeNew) },
			world.LossUnknown, "",
		},
		"one of three has data, and an election may be under way": {
			func(v *lossView) { v.volumes = volumesOf(world.VolumeNew, world.VolumeHasData, world.VolumeNew) },
			world.LossHasData, "",
		},
		"one of three has data, and can't be elected": {func(v *lossView) {
			v.volumes, v.elects = volumesOf(world.VolumeNew, world.VolumeHasData, world.VolumeNew), false
		}, world.LossMajority, "x-1"},
		"two of four have data, and can't be elected": {func(v *lossView) {
			v.volumes, v.elects = volumesOf(world.VolumeHasData, world.VolumeNew, world.VolumeHasData,
				world.VolumeNew), false
			v.volumes[2].position = ha.Position{Term: 1, LSN: 0x5000000}
		}, world.LossMajority, "x-2"},
		"all have data, and can't elect": {func(v *lossView) {
			v.volumes, v.elects = volumesOf(world.VolumeHasData, world.VolumeHasData), false
		}, world.LossHasData, ""},
		"the volume of an instance that was scaled away is there": {
			func(v *lossView) { v.left = []string{"data-x-1"} }, world.LossLeft, "x-0",
		},
		"something else is under way": {func(v *lossView) { v.busy = "an upgrade" }, world.LossBusy, "x-0"},
		"the data directory was removed": {
			func(v *lossView) { v.volumes = volumesOf(world.VolumeCleared) }, world.LossDirectory, "x-0",
		},
		"there is no archive":               {func(v *lossView) { v.archive = false }, world.LossNoArchive, ""},
		"there is no backup in the archive": {func(v *lossView) { v.backup = false }, world.LossNoBackup, ""},
		"the spec does not allow it":        {func(v *lossView) { v.allowed = false }, world.LossWaits, "x-0"},
	} {
		t.Run(name, func(t *testing.T) {
			v := lossView{
				database: true, elects: true, archive: true, backup: true, allowed: true,
				volumes: volumesOf(world.VolumeNew),
			}
			c.change(&v)
			if got := DecideLoss(v); got.Reason != c.reason || got.Onto != c.onto {
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
		"data":      {protocol.Status{Data: protocol.DataPresent}, world.VolumeHasData},
		"not known": {protocol.Status{Data: protocol.DataUnknown}, world.VolumeUnknown},
		"half a copy": {
			protocol.Status{Data: "incomplete", Election: protocol.Election{Voter: "x-0.b"}}, world.VolumeUnknown,
		},
		"none, of a release that does not say who votes": {protocol.Status{Data: protocol.DataEmpty},
			world.VolumeUnknown},
		"none, of a new voter": {
			protocol.Status{Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.b"}}, world.VolumeNew,
		},
		"none, of a new voter that others have told of the quorum": {protocol.Status{
			Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.b", Configuration: alone},
		}, world.VolumeNew},
		"none, of who has led": {protocol.Status{
			Data: protocol.DataEmpty, Election: protocol.Election{Voter: "x-0.a", Configuration: alone},
		}, world.VolumeCleared},
	} {
		t.Run(name, func(t *testing.T) {
			if got := volumeState(c.answer); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestWhatIsKnownOfVolumes(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*Topics)
		want   string
	}{
		"new and empty":             {func(*Topics) {}, world.LossRestores},
		"the agent does not answer": {func(s *Topics) { s.Seen.Answers = nil }, world.LossUnknown},
		"there is no Pod":           {func(s *Topics) { s.Seen.Pods = nil }, world.LossUnknown},
		"the Pod is about to end":   {func(s *Topics) { s.Seen.Pods[0].DeletionTimestamp = &now }, world.LossUnknown},
		"there is no claim":         {func(s *Topics) { s.Seen.Claims = nil }, world.LossUnknown},
		"the claim is being deleted": {func(s *Topics) { s.Seen.Claims[0].DeletionTimestamp = &now },
			world.LossUnknown},
		"the claim has no volume yet": {func(s *Topics) { s.Seen.Claims[0].Status.Phase = "Pending" },
			world.LossUnknown},
		"another claim is there": {
			func(s *Topics) { s.Seen.Claims[1] = &corev1.PersistentVolumeClaim{} }, world.LossLeft,
		},
		"a stop is under way": {func(s *Topics) { s.Stop = &v1.StopStatus{} }, world.LossBusy},
		"it is being deleted": {func(s *Topics) { s.DB.DeletionTimestamp = &now }, world.LossBusy},
		"spec.restore is wanted": {func(s *Topics) { s.DB.Spec.Restore = &v1.InPlaceRestore{ID: "a"} },
			world.LossBusy},
		"spec.restore was done":   {func(s *Topics) { s.restoredOnce("a") }, world.LossRestores},
		"no backup was complete":  {func(s *Topics) { s.DB.Status.Backup.LastBackup = "" }, world.LossNoBackup},
		"the spec says nothing":   {func(s *Topics) { s.Backup.WhenDataIsLost = "" }, world.LossWaits},
		"the spec says to wait":   {func(s *Topics) { s.Backup.WhenDataIsLost = v1.DataLostWait }, world.LossWaits},
		"the spec has no archive": {func(s *Topics) { s.Backup = nil }, world.LossNoArchive},
	} {
		t.Run(name, func(t *testing.T) {
			s := topicsOn(worldtest.Emptied())
			c.change(s)
			if got := DecideLoss(s.LossView()); got.Reason != c.want {
				t.Errorf("decided %+v, want %s", got, c.want)
			}
		})
	}
}

// restoredOnce has spec.restore of an id, which is done, before another that the operator has begun.
func (s *Topics) restoredOnce(id string) {
	s.DB.Spec.Restore = &v1.InPlaceRestore{ID: id}
	s.Config.Restored, s.Config.RestoredBefore = "lost-1", id
}

func TestWhatMayBeMissingIsSaidAfterwards(t *testing.T) {
	s := topicsOn(worldtest.Emptied())
	s.Loss = DecideLoss(s.LossView())
	s.beginAgain()
	if r := s.Restore; r.Cause != v1.CauseDataLost || r.Instance != "x-0" || r.ArchiveEnd != "0/5000000" ||
		r.ID != "lost-20010909-014640" || len(s.QueuedEvents) != 1 {
		t.Errorf("it begins with %+v, %v", r, s.QueuedEvents)
	}
	commit := metav1.NewTime(s.Now.Add(-time.Second))
	s.Restore.Backup, s.Restore.LSN, s.Restore.LastTransactionAt = "b", "0/4FFFFF0", &commit
	s.RestoreSeen, s.Restored = true, restoredTo(s.Restore)
	status := v1.SampleDBStatus{}
	s.SetRestored(&status)
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
		change func(*Topics)
		wanted string
	}{
		"while the data is lost":          {func(*Topics) {}, "lost-1"},
		"while nobody can be asked":       {func(s *Topics) { s.Seen.Answers = nil }, "lost-1"},
		"not when the data is there":      {func(s *Topics) { s.answerWith(protocol.DataPresent) }, ""},
		"not when it may not any more":    {func(s *Topics) { s.Backup.WhenDataIsLost = v1.DataLostWait }, ""},
		"not when it is done":             {func(s *Topics) { s.Config.Restored = "lost-1" }, ""},
		"not where spec.restore wants it": {func(s *Topics) { s.DB.Spec.Restore = &v1.InPlaceRestore{ID: "a"} }, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			s := topicsOn(worldtest.Emptied())
			s.DB.Status.Restore = &v1.RestoreStatus{ID: "lost-1", Cause: v1.CauseDataLost}
			c.change(s)
			s.Loss = DecideLoss(s.LossView())
			wanted := s.InPlaceWanted()
			if wanted == nil && c.wanted != "" || wanted != nil && wanted.ID != c.wanted {
				t.Errorf("wanted is %+v, want %q", wanted, c.wanted)
			}
		})
	}
}

func (s *Topics) answerWith(data protocol.Data) {
	answer := s.Seen.Answers["x-0"]
	answer.Data = data
	s.Seen.Answers["x-0"] = answer
}
