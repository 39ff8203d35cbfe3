package desired

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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
			naming.AnnotationArgo:                              "application:toban.dev/SampleDB:shop/x",
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

func TestOnlyAManifestIsAnnotated(t *testing.T) {
	for _, text := range []string{"", "{}", `{"metadata":1}`, `{"metadata":null}`} {
		if got := annotated([]byte(text), map[string]string{"a": "b"}); string(got) != text {
			t.Errorf("%q becomes %q", text, got)
		}
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

// A second side has data of the former version for a while, when the PostgreSQL asks for the new one already.
func TestTheManifestOfAServerNamesTheVersionOfItsData(t *testing.T) {
	db := Server(foodb(func(pg *pgv1.PostgreSQL) { pg.Spec.Version = ptr.To[int32](18) }), nil)
	db.Spec.Version, db.Spec.Backup = 16, &v1.BackupSpec{Schedule: "0 3 * * *"}
	OfVersion(db)
	object, err := ReadManifest(Manifest(db, "u.code").Raw)
	again, is := object.(*pgv1.PostgreSQL)
	if err != nil || !is || again.Name != "foodb" || *again.Spec.Version != 16 ||
		again.Spec.Backup.Schedule != "0 3 * * *" {
		t.Errorf("it makes %+v, %v", object, err)
	}
	plain := sampleDB("x")
	if OfVersion(plain); plain.Annotations[naming.AnnotationManifest] != "" {
		t.Error("a SampleDB that was made for nothing else has a manifest of something else")
	}
}

// Whoever may write a SampleDB may give it any annotation, and any owner. Only the manifest of what it was made for
// goes into a backup.
func TestOnlyTheManifestOfItsOwnerIsCopied(t *testing.T) {
	server := Server(foodb(func(*pgv1.PostgreSQL) {}), nil)
	ours, owner := server.Annotations[naming.AnnotationManifest], server.OwnerReferences[0]
	for name, c := range map[string]struct {
		manifest string
		owner    metav1.OwnerReference
		want     bool
	}{
		"its own":                   {ours, owner, true},
		"that of another kind":      {`{"apiVersion":"v1","kind":"Secret"}`, owner, false},
		"that of another name":      {strings.Replace(ours, `"name":"foodb"`, `"name":"bar"`, 1), owner, false},
		"that of another namespace": {strings.Replace(ours, `"namespace":"`, `"namespace":"x`, 1), owner, false},
		"one with unknown parts":    {strings.Replace(ours, `"spec":{`, `"spec":{"a":1,`, 1), owner, false},
		"one with another owner": {
			ours, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "foodb"}, false,
		},
		"one of its owner's kind": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"foodb"}}`,
			metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "foodb"}, false,
		},
		"no text at all": {"{", owner, false},
	} {
		db, controls := server.DeepCopy(), true
		c.owner.Controller = &controls
		db.OwnerReferences, db.Annotations[naming.AnnotationManifest] = []metav1.OwnerReference{c.owner}, c.manifest
		text := string(Manifest(db, "u.code").Raw)
		if got := text == c.manifest; got != c.want {
			t.Errorf("%s: it is copied: %v: %s", name, got, text)
		}
		if !c.want && !strings.Contains(text, `"kind":"SampleDB"`) {
			t.Errorf("%s: it is not its own: %s", name, text)
		}
	}
}

// What comes back needs volumes of the size to which they have grown, and a limit that lets it be created.
func TestAManifestHasTheSizeThatTheVolumesHaveGrownTo(t *testing.T) {
	for name, c := range map[string]struct {
		grown, limit    string
		wantSize, wantL string
	}{
		"they have not grown":          {"", "100Gi", "10Gi", "100Gi"},
		"they have":                    {"20Gi", "100Gi", "20Gi", "100Gi"},
		"the limit is lower meanwhile": {"20Gi", "15Gi", "20Gi", "20Gi"},
		"the size was raised since":    {"5Gi", "100Gi", "10Gi", "100Gi"},
		"nobody's size":                {"much", "100Gi", "10Gi", "100Gi"},
	} {
		db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop"}}
		db.Spec.Storage = v1.StorageSpec{Size: "10Gi", Grow: &v1.GrowSpec{Limit: c.limit}}
		if c.grown != "" {
			db.Status.Storage = &v1.StorageStatus{Size: c.grown}
		}
		owned := db.DeepCopy()
		controls := true
		owned.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "exp.wheel.jp/v1", Kind: "PostgreSQL", Name: "x", Controller: &controls,
		}}
		owned.Annotations = map[string]string{naming.AnnotationManifest: `{"apiVersion":"exp.wheel.jp/v1",` +
			`"kind":"PostgreSQL","metadata":{"name":"x","namespace":"shop"},"spec":{"storage":` +
			`{"size":"10Gi","grow":{"limit":"` + c.limit + `"}},"db":"kept"}}`}
		for of, db := range map[string]*v1.SampleDB{"a SampleDB": db, "a PostgreSQL": owned} {
			var got struct {
				Spec struct {
					Storage v1.StorageSpec `json:"storage"`
					DB      string         `json:"db"`
				} `json:"spec"`
			}
			if err := json.Unmarshal(Manifest(db, "").Raw, &got); err != nil {
				t.Fatal(err)
			}
			if s := got.Spec.Storage; s.Size != c.wantSize || s.Grow.Limit != c.wantL {
				t.Errorf("%s, of %s: it has %s up to %s", name, of, s.Size, s.Grow.Limit)
			}
			if db == owned && got.Spec.DB != "kept" {
				t.Errorf("%s: what else it had is lost", name)
			}
		}
		if db.Spec.Storage.Grow.Limit != c.limit || db.Spec.Storage.Size != "10Gi" {
			t.Errorf("%s: the SampleDB was changed", name)
		}
	}
}

// What follows from the size of the volumes follows from the one in force.
func TestWhatFollowsFromTheSizeInForce(t *testing.T) {
	db := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	db.Spec.Storage.Size, db.Status.Storage = "10Gi", &v1.StorageStatus{Size: "20Gi"}
	claim, err := Claim(db, 0, nil)
	if err != nil || claim.Spec.Resources.Requests.Storage().String() != "20Gi" {
		t.Errorf("a volume asks for %v, %v", claim.Spec.Resources.Requests.Storage(), err)
	}
	archive, err := ArchiveClaim(db, nil)
	if err != nil || archive.Spec.Resources.Requests.Storage().String() != "40Gi" {
		t.Errorf("that of the archive asks for %v, %v", archive.Spec.Resources.Requests.Storage(), err)
	}
	scratch, err := scratchVolume(db)
	if err != nil {
		t.Fatal(err)
	}
	if got := scratch.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests.Storage().String(); got != "20Gi" {
		t.Errorf("a scratch volume asks for %s", got)
	}
	if got := Parameters(db)["max_wal_size"]; got != "2048MB" {
		t.Errorf("max_wal_size is %s", got)
	}
}
