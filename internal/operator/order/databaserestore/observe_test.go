package databaserestore

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
)

// What comes back on one side alone would have the sides differ.
func TestNothingIsBroughtBackWhileThereAreTwoSides(t *testing.T) {
	for step, held := range map[string]bool{
		v1.SidesFollowing: true, v1.SidesChanged: true, v1.UpgradeChecking: false, v1.UpgradeUpgraded: false,
	} {
		db := &v1.SampleDB{}
		for _, kind := range []string{v1.ConditionArchiving, v1.ConditionAvailable} {
			db.Status.Conditions = append(db.Status.Conditions,
				metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
		db.Status.Upgrade = &v1.UpgradeStatus{Step: step, Sides: &v1.SidesStatus{Step: step}}
		if got := notReady(db); strings.Contains(got, "blue/green upgrade") != held || !held && got != "" {
			t.Errorf("%s: %q", step, got)
		}
	}
}
