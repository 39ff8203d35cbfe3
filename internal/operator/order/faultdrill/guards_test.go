package faultdrill

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
)

func TestABackupMustBeNewEnough(t *testing.T) {
	last := func(d time.Duration) *v1.BackupStatus {
		at := metav1.NewTime(ago(d))
		return &v1.BackupStatus{LastBackupAt: &at}
	}
	day := &metav1.Duration{Duration: 24 * time.Hour}
	for name, c := range map[string]struct {
		within *metav1.Duration
		backup *v1.BackupStatus
		words  string // "" where it may be broken
	}{
		"it does not matter":     {nil, nil, ""},
		"there is none":          {day, nil, "has no complete backup"},
		"none is complete":       {day, &v1.BackupStatus{}, "has no complete backup"},
		"it is new":              {day, last(23 * time.Hour), ""},
		"it is just new enough":  {day, last(24 * time.Hour), ""},
		"it is older than asked": {day, last(25 * time.Hour), "is of 2026-11-24T02:00:00Z, which is longer ago"},
	} {
		s := lookAt(&v1.FaultDrill{Spec: v1.FaultDrillSpec{BackupWithin: c.within}})
		s.seen.db = &v1.SampleDB{Status: v1.SampleDBStatus{Backup: c.backup}}
		if got := s.noBackup(); (got == "") != (c.words == "") || !strings.Contains(got, c.words) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Drills that have begun and are not over count; one that has begun itself waits for nobody.
func TestHowManyDrillsThereAreAtOnce(t *testing.T) {
	at := metav1.NewTime(now)
	drill := func(uid types.UID, begun, over bool) (d v1.FaultDrill) {
		d.UID = uid
		if begun {
			d.Status.StartedAt = &at
		}
		if over {
			d.Status.CompletedAt = &at
		}
		return d
	}
	all := []v1.FaultDrill{
		drill("a", true, false), drill("b", true, true), drill("c", false, false), drill("d", true, false),
		drill("e", false, true),
	}
	for uid, want := range map[types.UID]int{"a": 1, "c": 2} {
		if got := underWay(all, uid); got != want {
			t.Errorf("besides %s there are %d", uid, got)
		}
	}
	for name, c := range map[string]struct {
		most  int32
		begun bool
		waits bool
	}{
		"no limit": {0, false, false}, "one more may begin": {3, false, false}, "there are enough": {2, false, true},
		"it has begun": {2, true, false},
	} {
		d := drill("c", c.begun, false)
		d.Spec.AtOnce = c.most
		s := lookAt(&d)
		s.seen.begun = 2
		if got := s.tooMany(); (got != "") != c.waits || c.waits && !strings.Contains(got, "2 other FaultDrills") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
