package faultdrill

import (
	"cmp"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "toban.dev/api/v1"
)

// tooMany is why it waits for drills of other SampleDBs, "" where it does not. One that has begun waits for nobody.
func (s *scope) tooMany() string {
	if most := int(s.Object.Spec.AtOnce); most > 0 && s.seen.begun >= most && s.Object.Status.StartedAt == nil {
		return fmt.Sprintf("%d other FaultDrills of the namespace are under way (spec.atOnce: %d)", s.seen.begun, most)
	}
	return ""
}

// noBackup is why there is no backup that is new enough, "" where there is one, or it does not matter.
func (s *scope) noBackup() string {
	within := s.Object.Spec.BackupWithin
	if within == nil {
		return ""
	}
	var last *metav1.Time
	if b := s.seen.db.Status.Backup; b != nil {
		last = b.LastBackupAt
	}
	switch {
	case last == nil:
		return "the SampleDB has no complete backup, and spec.backupWithin asks for one: kubectl toban backup " +
			s.seen.db.Name
	case s.At.Sub(last.Time) > within.Duration:
		return fmt.Sprintf("the last backup of the SampleDB is of %s, which is longer ago than spec.backupWithin "+
			"(%s): kubectl toban backup %s", last.UTC().Format(time.RFC3339), within.Duration, s.seen.db.Name)
	}
	return ""
}

// underWay is how many drills have begun and are not over, besides one.
func underWay(all []v1.FaultDrill, besides types.UID) (n int) {
	for _, d := range all {
		if d.UID != besides && d.Status.StartedAt != nil && d.Status.CompletedAt == nil {
			n++
		}
	}
	return n
}

// goesFirst says which of two drills that are not over goes first: the one that has begun, else the older one.
func goesFirst(a, b *v1.FaultDrill) bool {
	if begun := a.Status.StartedAt != nil; begun != (b.Status.StartedAt != nil) {
		return begun
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
