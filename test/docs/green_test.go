package docs_test

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired/sides"
)

// The second side of a blue/green upgrade is one that a cluster takes, of the former version as of the new one,
// whatever the spec has that goes only with one of them; so is what its backups bring back.
func TestTheSecondSideIsTaken(t *testing.T) {
	window := v1.Window{Start: "03:00", Duration: metav1.Duration{Duration: time.Hour}}
	db := &v1.SampleDB{
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "shop", UID: "0b5c0000"},
		Spec: v1.SampleDBSpec{
			Version: 18, Instances: 3, Storage: v1.StorageSpec{Size: "10Gi"},
			Backup:  &v1.BackupSpec{Schedule: "@daily", Incremental: &v1.IncrementalSpec{FullEvery: 5}},
			Update:  &v1.UpdateSpec{Window: &window},
			Primary: &v1.PrimarySpec{Avoid: []int32{2}, HandOver: v1.HandOverInWindow},
			Upgrade: &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen},
		},
	}
	for _, g := range []sides.GreenOf{{Version: 16}, {Version: 17, Branch: 3}, {Version: 18, Serves: true}} {
		g.Position = "0/3000060"
		green := sides.Green(db, g)
		green.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "SampleDB"}
		text, err := json.Marshal(green)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range []string{string(text), green.Annotations[naming.AnnotationManifest]} {
			var object map[string]any
			if err := json.Unmarshal([]byte(one), &object); err != nil {
				t.Fatal(err)
			}
			delete(object, "status") // which is not written with it
			if err := taken(object); err != nil {
				t.Errorf("of version %d: %v\n%s", g.Version, err, one)
			}
		}
	}
}
