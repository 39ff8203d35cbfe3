package volumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// Aside is former data that lies on the volume of an instance beside that of now. No other instance has it, so it is
// lost with the volume. Where there is none, What is "".
type Aside struct {
	// What says what it is, as in "it has …", and Until how it goes when nobody needs it.
	What, Until string
}

// DataAside is what lies aside on the volume of an instance. restored is the restore in place whose data the instances
// have, "" for none.
func DataAside(db *v1.SampleDB, instance, restored string, claim *corev1.PersistentVolumeClaim) Aside {
	if id := RestoreAside(db, instance, restored, claim); id != "" {
		return Aside{
			What:  fmt.Sprintf("the data that the restore %s has replaced, in the folder before-%s", id, id),
			Until: untilRestoreGoes(db, restored),
		}
	}
	u := db.Status.Upgrade
	if u != nil && u.WayBack == v1.WayBackFormerData && u.Instance == instance && olderThan(claim, u.CompletedAt) {
		return Aside{
			What: fmt.Sprintf("the data of PostgreSQL %d from before the upgrade, in the folder before-%s", u.From,
				u.ID),
			Until: fmt.Sprintf("`kubectl toban upgrade %s --accept` removes it, or the end of spec.upgrade.keep",
				db.Name),
		}
	}
	return Aside{}
}

func untilRestoreGoes(db *v1.SampleDB, restored string) string {
	if db.Spec.Restore == nil && restored != "" {
		return fmt.Sprintf("spec.restore removes it, with `id: %s`, which is done, and `before: Delete`", restored)
	}
	return "`before: Delete` in spec.restore removes it"
}

// RestoreAside is the restore in place whose replaced data is on the volume of an instance, "" for none, or where the
// spec wants such data removed. The status knows the last one, the claim also those before.
func RestoreAside(db *v1.SampleDB, instance, restored string, claim *corev1.PersistentVolumeClaim) string {
	if spec := db.Spec.Restore; spec != nil && spec.Before == v1.BeforeDelete {
		return ""
	}
	last := db.Status.Restore
	if last != nil && last.ID != "" && last.Cause == "" && last.ID == restored && last.Instance == instance &&
		olderThan(claim, last.PreparedAt) {
		return last.ID
	}
	if claim != nil {
		return claim.Annotations[naming.AnnotationSetAside]
	}
	return ""
}

// olderThan says that the volume of a claim was there at a moment. What is not known is taken to be so.
func olderThan(claim *corev1.PersistentVolumeClaim, at *metav1.Time) bool {
	return claim == nil || at == nil || !at.Before(&claim.CreationTimestamp)
}
