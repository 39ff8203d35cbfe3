// Package clustertest has SampleDBs for the tests of verbs.
package clustertest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// ThreeReady is a SampleDB with a primary and two standbys, all ready.
func ThreeReady() *v1.SampleDB {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "u"}}
	db.Status.Primary = "shop-0"
	for ordinal := range 3 {
		db.Status.InstanceStatuses = append(db.Status.InstanceStatuses,
			v1.InstanceStatus{Name: naming.Instance("shop", ordinal), Ready: true, Voter: true})
	}
	return db
}

// OnSides is a SampleDB on its way from 17 to 18 by a second side.
func OnSides(step, serves string) *v1.SampleDB {
	db := ThreeReady()
	db.Spec.Version, db.Status.Major = 18, 17
	db.Status.Upgrade = &v1.UpgradeStatus{
		From: 17, To: 18, Message: "so it is", Sides: &v1.SidesStatus{Step: step, Serves: serves},
	}
	return db
}
