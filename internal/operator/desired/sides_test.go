package desired_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	pgv1 "toban.dev/api/postgresql/v1"
	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
	"toban.dev/internal/operator/desired/desiredtest"
	"toban.dev/internal/operator/desired/sides"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// ofTwoSides raises the version of a SampleDB whose spec has what the strategy takes.
func ofTwoSides(db *v1.SampleDB) {
	desired.TestFull(db)
	desired.TestInS3(db)
	window := v1.Window{Start: "03:00"}
	db.Spec.TLS.SecretName, db.Spec.Init = "", nil
	db.Spec.Version, db.Spec.Image = 18, "registry.example/postgres:18.1"
	db.Spec.Update = &v1.UpdateSpec{Window: &window}
	db.Spec.Primary = &v1.PrimarySpec{Avoid: []int32{2}, HandOver: v1.HandOverInWindow}
	db.Spec.StopWindows = []v1.Window{window}
	db.Spec.Service.ReadMaxLag = &metav1.Duration{Duration: 10 * time.Second}
	db.Spec.Upgrade = &v1.UpgradeSpec{Strategy: v1.StrategyBlueGreen, Method: v1.UpgradeCopy}
	db.Status.Major = 16
	db.Status.Upgrade = &v1.UpgradeStatus{
		ID: "18-0a1b2c", From: 16, To: 18, Step: v1.SidesCopying, FormerImage: "docker.io/library/postgres:16",
		Sides: &v1.SidesStatus{Step: v1.SidesCopying, Serves: v1.SideBlue, Position: "0/3000060"},
	}
}

func copied(db *v1.SampleDB) *v1.SampleDB {
	return sides.Green(db, sides.GreenOf{Position: "0/3000060", Version: 16, Image: "docker.io/library/postgres:16"})
}

// A reviewer sees in the golden file what a blue/green upgrade makes.
func TestObjectsOfTwoSidesAreAsInTheGoldenFile(t *testing.T) {
	db := desiredtest.SampleDB("one", ofTwoSides)
	desired.TestWhole(t, "sides", sidesObjects(t, db))
	long := desiredtest.SampleDB(desired.TestLongest, ofTwoSides)
	for _, object := range sidesObjects(t, long) {
		desired.TestCheckName(t, object)
	}
}

func init() {
	desired.SidesObjects = func(t *testing.T) []client.Object {
		t.Helper()
		return sidesObjects(t, desiredtest.SampleDB("one", ofTwoSides))
	}
}

func sidesObjects(t *testing.T, db *v1.SampleDB) []client.Object {
	t.Helper()
	green := copied(db)
	green.UID = "0b5d"
	config := desired.Config(db, desired.Known{Authority: "AUTHORITY\n", Operator: "OPERATOR\n"})
	second := desired.Config(green, desired.Known{Authority: "OTHER\n", Given: "AUTHORITY\n"})
	u := v1.UpgradeStatus{ID: "18-0a1b2c", To: 18, Sides: &v1.SidesStatus{Position: "0/3000060"}}
	told, err := sides.ConfigMap(db, sides.Settings(config, &u, &second))
	if err != nil {
		t.Fatal(err)
	}
	revision := sides.GreenCertificateRevision(db, 0, "AUTHORITY\n")
	revision.UID = "7e58"
	out := []client.Object{
		green, revision, sides.GreenCertificateSecret(db, revision, []byte("CERT"), []byte("KEY"), "AUTHORITY\n"),
		told, sides.Policy(db, desired.TestSettings),
	}
	for _, x := range []sides.Step{
		{ID: "18-0a1b2c", Work: protocol.SidesPublish}, {ID: "18-0a1b2c", Work: protocol.SidesChange, FromGreen: true},
	} {
		out = append(out, sides.Job(db, desired.TestSettings, x))
	}
	return out
}

// Only publish and cancel are done where there may be no second side: all else would begin without its authority.
func TestAPodWaitsForTheAuthorityOfTheSecondSide(t *testing.T) {
	db := desiredtest.SampleDB("x", ofTwoSides)
	for work, want := range map[protocol.SidesWork]bool{
		protocol.SidesPublish: true, protocol.SidesCancel: true, protocol.SidesFollow: false,
		protocol.SidesCompare: false, protocol.SidesLeave: false, protocol.SidesChange: false,
	} {
		pod := sides.Job(db, desired.TestSettings, sides.Step{Work: work}).Spec.Template.Spec
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "green-authority" })
		secret := pod.Volumes[i].Projected.Sources[0].Secret
		if got := secret.Optional != nil && *secret.Optional; got != want || secret.Name != "x-green-ca" {
			t.Errorf("%s: the Secret %s may be missing: %v", work, secret.Name, got)
		}
	}
}

func TestEachTryOfAStepIsAnotherJob(t *testing.T) {
	db := desiredtest.SampleDB("x", ofTwoSides)
	names := map[string]sides.Step{}
	for _, x := range []sides.Step{
		{ID: "a", Work: protocol.SidesFollow}, {ID: "b", Work: protocol.SidesFollow},
		{ID: "a", Work: protocol.SidesCompare}, {ID: "a", Work: protocol.SidesFollow, Run: "1"},
		{ID: "a", Work: protocol.SidesFollow, FromGreen: true},
	} {
		if before, there := names[x.JobName(db)]; there {
			t.Errorf("%+v has the Job of %+v", x, before)
		}
		names[x.JobName(db)] = x
	}
}

// The agents of the second side take the certificate, and everybody who trusts the first side's authority knows them.
func TestTheSecondSideIsKnownByTheNamesOfBoth(t *testing.T) {
	db := desiredtest.SampleDB("x", ofTwoSides)
	now := time.Now()
	authority, err := pki.NewAuthority([]byte("seed"), "toban shop/x", now)
	if err != nil {
		t.Fatal(err)
	}
	former, err := pki.NewAuthority([]byte("former"), "toban shop/x", now)
	if err != nil {
		t.Fatal(err)
	}
	other := string(former.CertPEM())
	leaf, err := authority.IssueLasting(naming.IdentityGreen, sides.GreenNames(db), now)
	if err != nil {
		t.Fatal(err)
	}
	secret := sides.GreenCertificateSecret(db, sides.GreenCertificateRevision(db, 0, ""), leaf.CertPEM, leaf.KeyPEM,
		other+string(authority.CertPEM()))
	green := desired.Config(copied(db), desired.Known{Least: 5}) // two are on their way out
	required := green.Certificate.Names
	for _, m := range green.Members {
		required = append(required, m.Host)
	}
	for _, name := range append(required, desired.Config(db, desired.Known{}).ServerNames...) {
		if _, err := (pki.Given{
			Certificate: secret.Data[naming.KeyTLSCertificate], Key: secret.Data[naming.KeyTLSKey],
			Authority: secret.Data[naming.KeyCA],
		}).Check([]string{name}, now.Add(400*24*time.Hour)); err != nil {
			t.Error(err)
		}
	}
	if green.Certificate.Secret != secret.Name || len(required) < 7 {
		t.Errorf("it shows that of %s, for %v", green.Certificate.Secret, required)
	}
}

func TestAnotherAuthorityOrNameHasAnotherCertificateIssued(t *testing.T) {
	db := desiredtest.SampleDB("x", ofTwoSides)
	first := sides.GreenCertificateRevision(db, 0, "A").Name
	if sides.GreenCertificateRevision(db, 7, "A").Name == first ||
		sides.GreenCertificateRevision(db, 0, "AB").Name == first {
		t.Error("after a step of a rotation of the authority it is the same")
	}
	db.Spec.Instances++
	if sides.GreenCertificateRevision(db, 0, "A").Name != first {
		t.Error("with another instance it is another")
	}
	db.Spec.TLS.Names = append(db.Spec.TLS.Names, "other.example.com")
	if sides.GreenCertificateRevision(db, 0, "A").Name == first {
		t.Error("with another name it is the same")
	}
}

// What was written while it serves is nowhere else.
func TestTheSecondSideIsDeletedWithItsDataOnlyWhileItFollows(t *testing.T) {
	for name, c := range map[string]struct {
		spec   v1.DeletionPolicy
		serves string
		opened bool
		want   v1.DeletionPolicy
	}{
		"it follows":                 {"", v1.SideBlue, false, v1.DeletionDelete},
		"it follows, all is kept":    {v1.DeletionRetain, v1.SideBlue, false, v1.DeletionDelete},
		"it serves":                  {"", v1.SideGreen, true, ""},
		"sides change back":          {"", v1.SideGreen, false, ""},
		"it serves, all is kept":     {v1.DeletionRetain, v1.SideGreen, true, v1.DeletionRetain},
		"it serves, nothing is kept": {v1.DeletionDelete, v1.SideGreen, true, v1.DeletionDelete},
	} {
		db := desiredtest.SampleDB("x", ofTwoSides)
		db.Spec.DeletionPolicy, db.Status.Upgrade.Sides.Serves = c.spec, c.serves
		if got := sides.Green(db, sides.GreenOf{Version: 18, Serves: c.opened}).Spec.DeletionPolicy; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatTheSecondSideHasBegunWithStays(t *testing.T) {
	db := desiredtest.SampleDB("x", ofTwoSides)
	first := copied(db)
	next := sides.Green(db, sides.GreenOf{Position: "0/5000000", Branch: 3, Version: 18, Have: first})
	if got := next.Spec.RestoreFrom.Target; *got != *first.Spec.RestoreFrom.Target {
		t.Errorf("it has begun with %+v, and is to begin with %+v", first.Spec.RestoreFrom.Target, got)
	}
	if of, is := desired.IsGreen(next); !is || of != "x" {
		t.Errorf("it is green of %q: %v", of, is)
	}
	if _, is := desired.IsGreen(db); is {
		t.Error("the first side is green")
	}
}

// inStep is a SampleDB whose upgrade is in a step, with its second side.
func inStep(step, serves string) (db, green *v1.SampleDB) {
	db = desiredtest.SampleDB("x", ofTwoSides)
	db.Status.Upgrade.Step, db.Status.Upgrade.Sides.Step, db.Status.Upgrade.Sides.Serves = step, step, serves
	return db, sides.Green(db, sides.GreenOf{
		Version: 18, Serves: serves == v1.SideGreen && step != v1.SidesChangingBack,
	})
}

// One side at most lets clients in, whatever the step.
func TestOneSideLetsClientsIn(t *testing.T) {
	for _, c := range []struct {
		step, serves  string
		first, second bool // is closed
		apart, linked bool
	}{
		{v1.UpgradeWaiting, v1.SideBlue, false, true, false, true},
		{v1.UpgradeChecking, v1.SideBlue, false, true, false, true},
		{v1.SidesPublishing, v1.SideBlue, false, true, true, true},
		{v1.SidesReady, v1.SideBlue, false, true, true, true},
		{v1.SidesChanging, v1.SideBlue, true, true, true, true},
		{v1.SidesChanging, v1.SideGreen, true, false, true, true},
		{v1.SidesChanged, v1.SideGreen, true, false, true, true},
		{v1.SidesChangingBack, v1.SideGreen, true, true, true, true},
		{v1.SidesComingHome, v1.SideGreen, true, false, true, true},
		{v1.SidesCancelling, v1.SideBlue, false, true, true, true},
		{v1.UpgradeUpgraded, v1.SideBlue, false, true, false, false},
		{v1.UpgradeFailed, v1.SideBlue, false, true, false, false},
	} {
		db, green := inStep(c.step, c.serves)
		first, second := desired.Config(db, desired.Known{}), desired.Config(green, desired.Known{})
		if first.Closed != c.first || second.Closed != c.second {
			t.Errorf("%s, %s serves: closed are %v and %v", c.step, c.serves, first.Closed, second.Closed)
		}
		if first.Link != c.linked || !second.Link || desired.TwoSides(db) != c.apart {
			t.Errorf("%s: linked are %v and %v; two sides: %v", c.step, first.Link, second.Link, desired.TwoSides(db))
		}
	}
	db, green := inStep(v1.SidesChanged, v1.SideGreen)
	db.DeletionTimestamp = &metav1.Time{Time: time.Unix(2e9, 0)}
	if !desired.Config(db, desired.Known{Left: true}).Closed {
		t.Error("deleted with its kind, the side lets clients in that does not serve")
	}
	delete(green.Annotations, naming.AnnotationSide)
	if !desired.Config(green, desired.Known{}).Closed {
		t.Error("without its annotation, the second side lets clients in")
	}
	if plain := desired.Config(desiredtest.SampleDB("x"), desired.Known{}); plain.Closed || plain.Link {
		t.Errorf("without an upgrade: closed %v, linked %v", plain.Closed, plain.Link)
	}
}

func TestServicesLeadToTheSideThatServes(t *testing.T) {
	for serves, want := range map[string]string{v1.SideBlue: "x", v1.SideGreen: "x-green"} {
		for _, instances := range []int32{1, 3} {
			db, green := inStep(v1.SidesChanged, serves)
			db.Spec.Instances = instances
			db.Spec.Readers = &v1.ReadersSpec{Count: 1}
			role := protocol.RoleStandby
			if instances == 1 {
				role = protocol.RolePrimary
			}
			all := desired.Services(db, desired.Leads{})
			for i, role := range []protocol.Role{protocol.RolePrimary, role} {
				if got := all[i].Spec.Selector; !maps.Equal(got, naming.RoleSelector(want, string(role))) {
					t.Errorf("%s serves: %s leads to %v", serves, all[i].Name, got)
				}
			}
			if got := all[2].Spec.Selector; !maps.Equal(got, naming.InstanceSelector("x")) {
				t.Errorf("%s gives names to %v", all[2].Name, got)
			}
			own := desired.Services(green, desired.Leads{})[0].Spec.Selector
			if got := own[naming.LabelSampleDB]; got != "x-green" {
				t.Errorf("that of the second side leads to %s", got)
			}
		}
	}
	db, _ := inStep(v1.SidesChanged, v1.SideGreen)
	passedOn := desired.Leads{PassedOn: true}
	if got := desired.Services(db, passedOn)[0].Spec; got.Selector[naming.LabelSampleDB] != "x-green" ||
		got.Ports[0].TargetPort.StrVal != "postgresql" {
		t.Errorf("with relays of the other side it leads to %v", got)
	}
}

// Readers of the second side serve as those of the first do: NAME-ro leads to whom that one's own Service leads to.
func TestWhoOnlyReadsIsLedToReadersOfTheSecondSide(t *testing.T) {
	db, green := inStep(v1.SidesChanged, v1.SideGreen)
	db.Spec.Readers = &v1.ReadersSpec{Count: 2, Only: true}
	if got := copied(db).Spec.Readers; got == nil || *got != *db.Spec.Readers {
		t.Errorf("the second side has the readers %+v", got)
	}
	green.Spec.Readers = db.Spec.Readers
	for ready, component := range map[int32]string{0: naming.ComponentInstance, 1: naming.ComponentReader} {
		green.Status.Readers = &v1.ReadersStatus{Ready: ready}
		own := desired.Services(green, desired.Leads{})[1].Spec.Selector
		got := desired.Services(db, desired.Leads{Green: green})[1].Spec.Selector
		if !maps.Equal(got, own) || got[naming.LabelComponent] != component {
			t.Errorf("with %d readers that are ready it leads to %v, and green's own to %v", ready, got, own)
		}
		blue, _ := inStep(v1.SidesChanged, v1.SideBlue)
		if got := desired.Services(blue, desired.Leads{Green: green})[1].Spec.Selector; maps.Equal(got, own) {
			t.Errorf("while the first side serves it leads to %v", got)
		}
	}
}

// Where a user says who reaches the servers, those of the other side and the Pods of the upgrade do too.
func TestTheOtherSideReachesTheServers(t *testing.T) {
	db, green := inStep(v1.SidesFollowing, v1.SideBlue)
	for _, side := range []struct {
		db    *v1.SampleDB
		other string
	}{{db, "x-green"}, {green, "x"}} {
		for _, pod := range []struct {
			sampledb, component string
			reaches             bool
		}{
			{side.other, naming.ComponentInstance, true}, {"x", naming.ComponentSides, true},
			{"x-green", naming.ComponentSides, false}, {side.other, naming.ComponentReader, false},
			{"y", naming.ComponentInstance, false}, {"y", naming.ComponentSides, false},
		} {
			if got := reaches(t, side.db, pod.sampledb, pod.component); got != pod.reaches {
				t.Errorf("%s: %s of %s reaches it: %v", side.db.Name, pod.component, pod.sampledb, got)
			}
		}
	}
	alone := desiredtest.SampleDB("x", ofTwoSides)
	alone.Status.Upgrade = nil
	if reaches(t, alone, "x-green", naming.ComponentInstance) || reaches(t, alone, "x", naming.ComponentSides) {
		t.Error("without an upgrade the other side reaches it")
	}
}

// reaches says that the NetworkPolicy of a SampleDB lets a Pod reach PostgreSQL.
func reaches(t *testing.T, db *v1.SampleDB, sampledb, component string) bool {
	t.Helper()
	pod := labels.Set{naming.LabelSampleDB: sampledb, naming.LabelComponent: component}
	for _, rule := range desired.NetworkPolicy(db, desired.TestSettings).Spec.Ingress {
		if rule.Ports[0].Port.IntVal != naming.PortPostgreSQL {
			continue
		}
		for _, from := range rule.From {
			selector, err := metav1.LabelSelectorAsSelector(from.PodSelector)
			if err != nil {
				t.Fatal(err)
			}
			if from.PodSelector != nil && from.NamespaceSelector == nil && selector.Matches(pod) {
				return true
			}
		}
	}
	return false
}

// A backup of the second side of a PostgreSQL's server brings the PostgreSQL back, with the version of the data.
func TestABackupOfTheSecondSideBringsThePostgreSQLBack(t *testing.T) {
	version := int32(18)
	pg := &pgv1.PostgreSQL{ObjectMeta: metav1.ObjectMeta{Name: "foodb", Namespace: "shop", UID: "p"}}
	pg.Spec.DB, pg.Spec.Version = "foo", &version
	db := desired.Server(pg, nil)
	db.UID = "u"
	db.Status.Upgrade = &v1.UpgradeStatus{Sides: &v1.SidesStatus{Step: v1.SidesChanged, Serves: v1.SideGreen}}
	green := sides.Green(db, sides.GreenOf{Version: 17, Credentials: "u.code", Serves: true})
	green.OwnerReferences = []metav1.OwnerReference{desired.Owner(db)}
	manifest := desired.Manifest(green, "u.code")
	side := desired.SideOfBackup(&v1.DatabaseBackup{Status: v1.DatabaseBackupStatus{Manifest: manifest}})
	if want := (desired.BackupSide{Of: "foodb", UID: "u", Does: naming.SideServes}); side != want {
		t.Errorf("it is of %+v, want %+v", side, want)
	}
	object, err := desired.ReadManifest(manifest.Raw)
	again, is := object.(*pgv1.PostgreSQL)
	if err != nil || !is || again.Name != "foodb" || again.Spec.DB != "foo" || *again.Spec.Version != 17 {
		t.Errorf("it makes %+v, %v", object, err)
	}
	// One that lies on the server of another is nobody's second side.
	pg.Spec.Server = &pgv1.ServerReference{Name: "shared"}
	green.Annotations[naming.AnnotationManifest] = desired.Server(pg, nil).Annotations[naming.AnnotationManifest]
	if object, err := desired.ReadManifest(desired.Manifest(green, "u.code").Raw); err != nil ||
		object.GetObjectKind().GroupVersionKind().Kind != "SampleDB" {
		t.Errorf("it makes %+v, %v", object, err)
	}
}

// A backup says of which side of a blue/green upgrade it is, and whether that served: what clients write is only there.
func TestAManifestSaysWhichSideItIsOf(t *testing.T) {
	for serves, want := range map[string][2]desired.BackupSide{
		v1.SideBlue:  {{}, {Of: "x", UID: "u", Does: naming.SideFollows}},
		v1.SideGreen: {{Does: naming.SideFollows}, {Of: "x", UID: "u", Does: naming.SideServes}},
	} {
		db := desiredtest.SampleDB("x", func(db *v1.SampleDB) {
			db.UID = "u"
			db.Status.Upgrade = &v1.UpgradeStatus{Sides: &v1.SidesStatus{Step: v1.SidesChanging, Serves: serves}}
		})
		green := sides.Green(db, sides.GreenOf{Version: 18, Credentials: "u.code"})
		green.OwnerReferences = []metav1.OwnerReference{desired.Owner(db)}
		for i, of := range []*v1.SampleDB{db, green} {
			manifest := desired.Manifest(of, "u.code")
			got := desired.SideOfBackup(&v1.DatabaseBackup{Status: v1.DatabaseBackupStatus{Manifest: manifest}})
			if got != want[i] {
				t.Errorf("where %s serves, a backup of %s is of %+v, want %+v", serves, of.Name, got, want[i])
			}
			var again v1.SampleDB
			if err := json.Unmarshal(manifest.Raw, &again); err != nil || again.Name != "x" ||
				again.Annotations[naming.AnnotationCredentials] != "u.code" {
				t.Errorf("it makes %+v, %v", again.ObjectMeta, err)
			}
		}
	}
}
