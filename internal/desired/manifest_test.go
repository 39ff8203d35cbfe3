package desired

import (
	"encoding/json"
	"strings"
	"testing"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestAManifestMakesTheSampleDBAgain(t *testing.T) {
	db := sampleDB("x", full, func(db *v1.SampleDB) {
		db.Labels = map[string]string{"team": "shop"}
		db.Annotations = map[string]string{
			"note": "mine", naming.AnnotationDatabasesFrom: "a,b", naming.AnnotationSwitchover: "any",
			"kubectl.kubernetes.io/last-applied-configuration": "{}",
		}
		db.Spec.RestoreFrom, db.Spec.Restore = &v1.RestoreSpec{Backup: "b"}, &v1.InPlaceRestore{
			ID: "i", Confirm: "x", Backup: "b",
		}
	})
	var again v1.SampleDB
	if err := json.Unmarshal(Manifest(db, "u.code").Raw, &again); err != nil {
		t.Fatal(err)
	}
	if again.Kind != "SampleDB" || again.APIVersion != "toban.dev/v1" || again.Name != "x" ||
		again.Namespace != "shop" || again.Labels["team"] != "shop" {
		t.Errorf("it is of %s %s", again.Kind, again.Name)
	}
	if a := again.Annotations; len(a) != 3 || a["note"] != "mine" || a[naming.AnnotationDatabasesFrom] != "a,b" ||
		a[naming.AnnotationCredentials] != "u.code" {
		t.Errorf("annotations are %v: requests and what kubectl keeps are not for the next one", a)
	}
	if again.Spec.RestoreFrom != nil || again.Spec.Restore != nil {
		t.Error("it would be restored to what it began with")
	}
	db.Spec.RestoreFrom, db.Spec.Restore = nil, nil
	if Hash(again.Spec) != Hash(db.Spec) {
		t.Error("the spec is another")
	}
	if again.UID != "" || again.ResourceVersion != "" {
		t.Error("it names the former object")
	}
}

// What comes back is what the user had written, which is not always the SampleDB.
func TestTheManifestOfAServerIsThatOfItsPostgreSQL(t *testing.T) {
	db := Server(foodb(func(pg *pgv1.PostgreSQL) { pg.Spec.RestoreFrom = &v1.RestoreSpec{Backup: "b"} }), nil)
	text := string(Manifest(db, "u.code").Raw)
	var again pgv1.PostgreSQL
	if err := json.Unmarshal([]byte(text), &again); err != nil {
		t.Fatal(err)
	}
	if again.Kind != "PostgreSQL" || again.Spec.DB != "foo" || again.Spec.RestoreFrom != nil {
		t.Errorf("it is %s", text)
	}
	// Somebody else's SampleDB may have any annotation.
	db.OwnerReferences = nil
	if text := string(Manifest(db, "u.code").Raw); !strings.Contains(text, `"SampleDB"`) {
		t.Errorf("it is %s", text)
	}
}
