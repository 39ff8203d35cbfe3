package sampledb

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world"
	"toban.dev/internal/protocol"
)

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
			s := scopeOf(world.Core{DB: db, Config: protocol.Config{SystemIdentifier: c.identifier}})
			s.Seen.Claims = map[int]*corev1.PersistentVolumeClaim{1: c.claim}
			if c.primary != nil {
				s.Seen.Claims[0] = c.primary
			}
			if got := s.unsaved(s.Seen.Claims[1], 1); got != c.stays {
				t.Errorf("it stays: %v", got)
			}
		})
	}
}
