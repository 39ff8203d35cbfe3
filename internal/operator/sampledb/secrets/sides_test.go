package secrets

import (
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/sampledb/world/worldtest"
)

func TestAPasswordIsNotRotatedWhileThereAreTwoSides(t *testing.T) {
	for step, want := range map[string]bool{v1.SidesPublishing: true, v1.SidesChanged: true, v1.UpgradeFailed: false} {
		if got := worldtest.OfTwoSides(step).Rotation().Sides; got != want {
			t.Errorf("%s: %v", step, got)
		}
	}
}
