package desired

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// IsGreen says that a SampleDB is the second side of another one, and of which. It is by its owner: one whose
// annotation somebody has removed lets no client in.
func IsGreen(db *v1.SampleDB) (of string, is bool) {
	owner := metav1.GetControllerOf(db)
	if owner == nil || owner.Kind != "SampleDB" || db.Name != naming.Green(owner.Name) {
		return "", false
	}
	return owner.Name, true
}

// TwoSides says that a blue/green upgrade has begun to make a second side, and has not ended: the sides must not come
// to differ by anything but what clients write, which the link carries. It carries no role and no password, and
// nothing of a restore.
func TwoSides(db *v1.SampleDB) bool {
	switch sidesStep(db) {
	case v1.SidesPublishing, v1.SidesCopying, v1.SidesFollowing, v1.SidesComparing, v1.SidesReady, v1.SidesChanging,
		v1.SidesChanged, v1.SidesChangingBack, v1.SidesComingHome, v1.SidesCancelling:
		return true
	}
	return false
}

// sidesStep is that of a blue/green upgrade, "" where there is none.
func sidesStep(db *v1.SampleDB) string {
	if u := db.Status.Upgrade; u != nil && u.Sides != nil {
		return u.Sides.Step
	}
	return ""
}

// otherSide is the SampleDB of the other side, "" where there is none; first is that whose Pods do the work of both.
func otherSide(db *v1.SampleDB) (other, first string) {
	if of, green := IsGreen(db); green {
		return of, of
	}
	if linked(db) {
		return naming.Green(db.Name), db.Name
	}
	return "", ""
}

// linked says that the other side follows, or is about to. It is so from the first step on, and as long as there is
// any: what changes with it has standbys connect anew, so that the SampleDB is not Ready for a moment, and the step is
// Waiting.
func linked(db *v1.SampleDB) bool {
	if _, green := IsGreen(db); green {
		return true
	}
	switch sidesStep(db) {
	case "", v1.UpgradeUpgraded, v1.UpgradeFailed:
		return false
	}
	return true
}

// sideClosed says that a side lets no client in, because the other one serves or is to.
func sideClosed(db *v1.SampleDB) bool {
	if _, green := IsGreen(db); green {
		return db.Annotations[naming.AnnotationSide] != naming.SideServes
	}
	return db.Status.Upgrade.BlueClosed()
}
