package sampledb

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/protocol"
)

func TestAVolumeGoesOnlyWhenNothingIsOnItThatThePrimaryHasNot(t *testing.T) {
	released := volume{
		instance: "x-2", ordinal: 2, want: 1, deletes: true, scaled: true, primary: "x-0", voters: []string{"x-0"},
	}
	with := func(change func(*volume)) volume {
		v := released
		change(&v)
		return v
	}
	for name, c := range map[string]struct {
		volume volume
		reason string
	}{
		"its instance was scaled away, and counts no more": {released, removalReleased},
		"the spec wants its instance":                      {with(func(v *volume) { v.want = 3 }), removalWanted},
		"volumes of instances that are scaled away stay": {
			with(func(v *volume) { v.deletes = false }), removalRetained,
		},
		"the StatefulSet is gone, or still has the instance": {
			with(func(v *volume) { v.scaled = false }), removalNotScaled,
		},
		"a Pod uses it":       {with(func(v *volume) { v.pod = "x-2" }), removalUsed},
		"a restore is wanted": {with(func(v *volume) { v.restoring = true }), removalRestoring},
		"nobody is known to take writes": {
			with(func(v *volume) { v.primary, v.voters = "", nil }), removalNoPrimary,
		},
		"the primary does not say who counts": {with(func(v *volume) { v.voters = nil }), removalUnknown},
		"its instance still counts": {
			with(func(v *volume) { v.voters = []string{"x-0", "x-2"} }), removalVoting,
		},
		"its instance is the primary":           {with(func(v *volume) { v.primary = "x-2" }), removalVoting},
		"the primary's volume is being deleted": {with(func(v *volume) { v.going = true }), removalGoing},
		"a restore in place has set its data aside there": {
			with(func(v *volume) { v.setAside = "oops" }), removalSetAside,
		},
		"it is of a former SampleDB, and the primary's is newer": {
			with(func(v *volume) { v.former = true }), removalFormer,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := remove(c.volume)
			if d.reason != c.reason || d.remove != (c.reason == removalReleased) {
				t.Errorf("decided %+v, want %s", d, c.reason)
			}
			silent := map[string]bool{removalReleased: true, removalWanted: true, removalRetained: true}
			if silent[c.reason] != (d.message == "") {
				t.Errorf("it says %q", d.message)
			}
		})
	}
}

// No backup was taken of what no instance has ever spoken of, nor of a former database beside another one.
func TestVolumesThatTheLastBackupHasNotStay(t *testing.T) {
	now := time.Unix(1.8e9, 0)
	claim := func(at time.Duration, phase corev1.PersistentVolumeClaimPhase) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(at))},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: phase},
		}
	}
	const before, later, bound = -time.Hour, time.Minute, corev1.ClaimBound
	for name, c := range map[string]struct {
		policy         v1.DeletionPolicy
		identifier     string
		claim, primary *corev1.PersistentVolumeClaim
		last           string
		stays          bool
	}{
		"no instance has said what it has":    {"", "", claim(later, bound), nil, "", true},
		"and it may be of a former SampleDB":  {"", "", claim(before, bound), nil, "", true},
		"but there is no volume yet":          {"", "", claim(later, corev1.ClaimPending), nil, "", false},
		"Delete was said":                     {v1.DeletionDelete, "", claim(before, bound), nil, "", false},
		"the last backup has it":              {"", "7", claim(later, bound), claim(later, bound), "x-0", false},
		"all volumes are of a former one":     {"", "7", claim(before, bound), claim(before, bound), "x-0", false},
		"only the primary's is not":           {"", "7", claim(before, bound), claim(later, bound), "x-0", true},
		"the primary's was made anew by then": {"", "7", claim(before, bound), claim(before/2, bound), "x-0", true},
		"who was primary is not known":        {"", "7", claim(before, bound), claim(before, bound), "", true},
		"the primary's volume is gone":        {"", "7", claim(before, bound), nil, "x-0", true},
	} {
		t.Run(name, func(t *testing.T) {
			db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", CreationTimestamp: metav1.NewTime(now)}}
			db.Spec.DeletionPolicy, db.Status.LastPrimary = c.policy, c.last
			s := scopeOf(core{db: db, config: protocol.Config{SystemIdentifier: c.identifier}})
			s.seen.claims = map[int]*corev1.PersistentVolumeClaim{1: c.claim}
			if c.primary != nil {
				s.seen.claims[0] = c.primary
			}
			if got := s.unsaved(s.seen.claims[1], 1); got != c.stays {
				t.Errorf("it stays: %v", got)
			}
		})
	}
}
