package cli

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/cli/cluster/clustertest"
)

// The manifest that the console shows is that of the SampleDB which `toban restore --into` makes.
func TestTheConsoleClonesAsTheVerbDoes(t *testing.T) {
	db := clustertest.ThreeReady()
	db.Spec.Service.Annotations = map[string]string{"dns": "shop.example.com"}
	const to = "2026-11-20T03:15:00+09:00"
	made, err := called.Clone(db, "other", to)
	if err != nil {
		t.Fatal(err)
	}
	want := db.Spec.DeepCopy()
	want.Service = v1.ServiceSpec{}
	want.RestoreFrom = &v1.RestoreSpec{SampleDB: db.Name, Target: &v1.RestoreTarget{Time: to}}
	if made.Kind != "SampleDB" || made.Namespace != db.Namespace || made.Name != "other" ||
		!equality.Semantic.DeepEqual(made.Spec, *want) {
		t.Errorf("it is %+v, want the spec %+v", made, want)
	}
	if made.Status.Phase != "" || len(made.Annotations) > 0 {
		t.Errorf("it has what belongs to the other one: %+v", made)
	}
}

// A SampleDB without an archive has no way back, and the console says so in the words of the verb.
func TestTheConsoleSaysThatThereIsNoArchive(t *testing.T) {
	db := clustertest.ThreeReady()
	db.Spec.Backup = &v1.BackupSpec{None: true}
	if _, err := called.Clone(db, "other", "2026-11-20T03:15:00Z"); err == nil ||
		!strings.Contains(err.Error(), "has no archive") {
		t.Errorf("it says %v", err)
	}
}

// A name is of one namespace: with all of them the console would not know which database is meant.
func TestTheConsoleOfAllNamespacesTakesNoName(t *testing.T) {
	c := Console("test")
	c.SetArgs([]string{"shop", "--all-namespaces"})
	c.SilenceErrors, c.SilenceUsage = true, true
	if err := c.Execute(); err == nil || !strings.Contains(err.Error(), "give --namespace") {
		t.Errorf("it says %v", err)
	}
}
