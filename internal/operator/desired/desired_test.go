package desired

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jackc/pgx/v5/pgconn"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

func TestDefaultsFitMemoryAndVolume(t *testing.T) {
	for name, c := range map[string]struct {
		memory, volume int64
		want           map[string]string
	}{
		"nothing known about memory": {0, 10 * gib, map[string]string{
			"shared_buffers": "128MB", "max_wal_size": "1024MB", "min_wal_size": "256MB",
			"wal_keep_size": "512MB", "max_slot_wal_keep_size": "2560MB", "effective_cache_size": "",
		}},
		"a quarter of the memory is for the buffers": {4 * gib, 10 * gib, map[string]string{
			"shared_buffers": "1024MB", "effective_cache_size": "3072MB", "maintenance_work_mem": "256MB",
		}},
		"the smallest volume still holds its WAL": {0, 256 * mib, map[string]string{
			"max_wal_size": "32MB", "min_wal_size": "32MB", "wal_keep_size": "16MB", "max_slot_wal_keep_size": "64MB",
		}},
		"a large volume does not mean endless recovery": {0, 1000 * gib, map[string]string{
			"max_wal_size": "8192MB", "min_wal_size": "1024MB", "wal_keep_size": "1024MB",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := defaults(c.memory, c.volume)
			for parameter, want := range c.want {
				if got[parameter] != want {
					t.Errorf("%s = %q, want %q", parameter, got[parameter], want)
				}
			}
		})
	}
}

func TestUsersParametersWinWhateverTheirCase(t *testing.T) {
	db := sampleDB("x", func(db *v1.SampleDB) {
		db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{"MAX_Connections": "7", "my.own": "x"}
	})
	got := Parameters(db)
	if got["max_connections"] != "7" || got["my.own"] != "x" || got["MAX_Connections"] != "" {
		t.Errorf("got %v", got)
	}
}

func TestConnectionStringsWithEveryCharacterCanBeRead(t *testing.T) {
	const owner, database, password = `o w:n/e@r\`, `d?b&=+%/ü`, `p:w`
	db := sampleDB("x", func(db *v1.SampleDB) { db.Spec.Init = &v1.InitSpec{Owner: owner, Database: database} })
	data := AppSecret(db, AppRevision(db, 0, "", "", 0), password, nil).Data
	// The file that it names is in the application's Pod.
	uri := strings.Replace(string(data[naming.KeyURI]), "/var/run/toban/x/ca.crt", authorityFile(t), 1)
	config, err := pgconn.ParseConfig(uri)
	if err != nil {
		t.Fatal(err)
	}
	if config.User != owner || config.Database != database || config.Password != password ||
		config.Host != "x.shop.svc" {
		t.Errorf("uri is read as user %q, database %q, password %q, host %q",
			config.User, config.Database, config.Password, config.Host)
	}
	jdbc, err := url.Parse(strings.TrimPrefix(string(data[naming.KeyJDBC]), "jdbc:"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tls := range map[string]url.Values{"jdbc-uri": jdbc.Query(), "uri": queryOf(t, uri)} {
		if tls.Get("sslmode") != "verify-full" || !strings.HasSuffix(tls.Get("sslrootcert"), "/ca.crt") {
			t.Errorf("by %s a client does not know the server: %v", name, tls)
		}
	}
	if len(config.Fallbacks) > 0 || config.TLSConfig == nil || config.TLSConfig.ServerName != "x.shop.svc" {
		t.Errorf("by uri a client takes %v, %v", config.TLSConfig, config.Fallbacks)
	}
	if jdbc.Query().Get("user") != owner || jdbc.Path != "/"+database {
		t.Errorf("jdbc-uri is read as user %q, database %q", jdbc.Query().Get("user"), jdbc.Path)
	}
	if got, want := string(data[naming.KeyPgpass]), `x.shop.svc:5432:d?b&=+%/ü:o w\:n/e@r\\:p\:w`+"\n"; got != want {
		t.Errorf("pgpass is %q, want %q", got, want)
	}
}

// By the hosts of all instances a client finds the primary by itself.
func TestConnectionStringsWithAllHostsLeadToThePrimary(t *testing.T) {
	db := sampleDB("x", three)
	data := AppSecret(db, AppRevision(db, 0, "", "", 3), "secret", nil).Data
	text := strings.Replace(string(data[naming.KeyHostsURI]), "/var/run/toban/x/ca.crt", authorityFile(t), 1)
	config, err := pgconn.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{config.Host}
	for _, f := range config.Fallbacks {
		hosts = append(hosts, f.Host)
		if f.TLSConfig == nil || f.TLSConfig.ServerName != f.Host {
			t.Errorf("at %s a client takes any server", f.Host)
		}
	}
	want := []string{"x-0.x-instances.shop.svc", "x-1.x-instances.shop.svc", "x-2.x-instances.shop.svc"}
	if !slices.Equal(hosts, want) || config.ValidateConnect == nil {
		t.Errorf("a client tries %v, and looks for the primary: %t", hosts, config.ValidateConnect != nil)
	}
	jdbc := string(data[naming.KeyHostsJDBC])
	if !strings.HasPrefix(jdbc, "jdbc:postgresql://"+strings.Join(want, ":5432,")+":5432/app?") ||
		!strings.HasSuffix(jdbc, "&targetServerType=primary&hostRecheckSeconds=1") {
		t.Errorf("Java reads %q", jdbc)
	}
	for _, key := range []string{naming.KeyReadURI, naming.KeyReadJDBC} {
		if !strings.Contains(string(data[key]), "x-ro.shop.svc:5432/app?") {
			t.Errorf("%s is %q", key, data[key])
		}
	}
}

// authorityFile is a file as ca.crt of a Secret is.
func authorityFile(t *testing.T) string {
	t.Helper()
	authority, err := pki.NewAuthority([]byte("seed"), "toban shop/x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), naming.KeyCA)
	if err := os.WriteFile(path, authority.CertPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// queryOf are the parameters of a URI whose path url.Parse may not like.
func queryOf(t *testing.T, uri string) url.Values {
	t.Helper()
	_, query, _ := strings.Cut(uri, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestOutdatedNamesWhatOfTheSpecHasChanged(t *testing.T) {
	was := sampleDB("x", full)
	pod := func(db *v1.SampleDB, s Settings) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: podTemplate(db, s, protocol.Config{}).ObjectMeta}
	}
	for name, c := range map[string]struct {
		change func(*v1.SampleDB)
		want   []string
	}{
		"nothing":     {func(*v1.SampleDB) {}, nil},
		"image":       {func(db *v1.SampleDB) { db.Spec.Image = "other" }, []string{FacetImage}},
		"memory":      {func(db *v1.SampleDB) { db.Spec.Resources.Limits = nil }, []string{FacetResources}},
		"tolerations": {func(db *v1.SampleDB) { db.Spec.Pod.Tolerations = nil }, []string{FacetScheduling}},
		"labels": {
			func(db *v1.SampleDB) { db.Spec.Pod.Labels["a"] = "b" }, []string{FacetMetadata},
		},
		"a pull secret, for later pulls": {func(db *v1.SampleDB) { db.Spec.Pod.ImagePullSecrets = nil }, nil},
		"another certificate": {
			func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "other" }, []string{FacetCertificate},
		},
		"no certificate any more":    {func(db *v1.SampleDB) { db.Spec.TLS.SecretName = "" }, nil},
		"another name of the server": {func(db *v1.SampleDB) { db.Spec.TLS.Names = nil }, nil},
		"a parameter":                {func(db *v1.SampleDB) { db.Spec.PostgreSQL.Parameters = nil }, nil},
		"the same quantity in other words": {func(db *v1.SampleDB) {
			db.Spec.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("0.5")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			now := was.DeepCopy()
			c.change(now)
			if got := Outdated(now, settings, pod(was, settings)); !slices.Equal(got, c.want) {
				t.Errorf("outdated in %v, want %v", got, c.want)
			}
		})
	}
}

// Somebody who writes {} where nothing was, or takes it away, wants no other Pods. Neither does a Pod of release 0.1.0,
// whose facets tell the two apart.
func TestAnEmptyMapIsAsGoodAsNone(t *testing.T) {
	empty := v1.PodSpec{
		Labels: map[string]string{}, Annotations: map[string]string{}, NodeSelector: map[string]string{},
		Tolerations: []corev1.Toleration{},
	}
	for _, c := range []struct{ was, now v1.PodSpec }{{empty, v1.PodSpec{}}, {v1.PodSpec{}, empty}} {
		was := sampleDB("x", func(db *v1.SampleDB) { db.Spec.Pod = c.was })
		now := sampleDB("x", func(db *v1.SampleDB) { db.Spec.Pod = c.now })
		pod := &corev1.Pod{ObjectMeta: podTemplate(was, settings, protocol.Config{}).ObjectMeta}
		if got := Outdated(now, settings, pod); got != nil {
			t.Errorf("%+v to %+v: outdated in %v", c.was, c.now, got)
		}
		pod.Annotations[naming.AnnotationFacets] = encodeFacets(facetsOf(was, settings, asWritten))
		if got := Outdated(was, settings, pod); got != nil {
			t.Errorf("%+v, of release 0.1.0: outdated in %v", c.was, got)
		}
	}
}

// Without the Secret in its Pod an agent has nothing to show.
func TestAPodWithoutTheCertificateIsReplaced(t *testing.T) {
	db := sampleDB("x", three)
	pod := &corev1.Pod{ObjectMeta: podTemplate(db, settings, protocol.Config{}).ObjectMeta}
	db.Spec.TLS = v1.TLSSpec{Names: []v1.ServerName{"db.example.com"}}
	if got := Outdated(db, settings, pod); got != nil {
		t.Errorf("another name replaces the Pod: %v", got)
	}
	db.Spec.TLS.SecretName = "shop-tls"
	if got := Outdated(db, settings, pod); !slices.Equal(got, []string{FacetCertificate}) {
		t.Errorf("outdated in %v", got)
	}
}

func TestANewOperatorRestartsNoDatabase(t *testing.T) {
	db := sampleDB("x", three)
	pod := &corev1.Pod{ObjectMeta: podTemplate(db, settings, protocol.Config{}).ObjectMeta}
	pod.Annotations[naming.AnnotationFacets] = strings.ReplaceAll(pod.Annotations[naming.AnnotationFacets],
		`"scheduling"`, `"of an older operator"`)
	if got := Outdated(db, settings, pod); got != nil {
		t.Errorf("a facet that the older operator did not know restarts the Pod: %v", got)
	}
	other := podTemplate(db,
		Settings{Image: "toban:2", PostgreSQL: "mirror.example/postgres", Namespace: "elsewhere"}, protocol.Config{})
	if other.Annotations[naming.AnnotationFacets] != podTemplate(db, settings,
		protocol.Config{}).Annotations[naming.AnnotationFacets] {
		t.Error("the operator's settings are in the facets")
	}
	pod.Annotations[naming.AnnotationFacets] = "broken by somebody"
	if got := Outdated(db, settings, pod); got != nil {
		t.Errorf("a broken annotation restarts the Pod: %v", got)
	}
}

func TestAClaimNeverShrinksAndKeepsItsClass(t *testing.T) {
	class := "given"
	current := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("50Gi")},
		},
	}}
	claim, err := Claim(sampleDB("x"), 0, current)
	if err != nil {
		t.Fatal(err)
	}
	if got := claim.Spec.Resources.Requests.Storage().String(); got != "50Gi" {
		t.Errorf("asks for %s of a volume of 50Gi", got)
	}
	if *claim.Spec.StorageClassName != class {
		t.Errorf("moves to class %s", *claim.Spec.StorageClassName)
	}
}

func TestAStatefulSetKeepsItsClaimTemplate(t *testing.T) {
	db := sampleDB("x")
	first, err := StatefulSet(db, settings, protocol.Config{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	db.Spec.Storage.Size = "99Gi"
	second, err := StatefulSet(db, settings, protocol.Config{}, 1, first)
	if err != nil {
		t.Fatal(err)
	}
	if got := second.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String(); got != "10Gi" {
		t.Errorf("the template, which can't be changed, asks for %s", got)
	}
}

func TestAnUnparsableSizeIsAnErrorAndNoPanic(t *testing.T) {
	db := sampleDB("x", func(db *v1.SampleDB) { db.Spec.Storage.Size = "banana" })
	if _, err := StatefulSet(db, settings, protocol.Config{}, 1, &appsv1.StatefulSet{}); err == nil {
		t.Error("no error")
	}
	Parameters(db)
}

func TestThePlanIsNamedByWhatItDoes(t *testing.T) {
	db := sampleDB("x", full)
	before := Plan(db).Hash
	db.Spec.Instances = 5
	if Plan(db).Hash != before {
		t.Error("another Job would run because instances were added")
	}
	db.Spec.Init.Extensions = nil
	if Plan(db).Hash == before {
		t.Error("a mended spec.init would not run")
	}
	db.Spec.Init = nil
	if p := Plan(db); p.Database != "app" || p.Owner != "app" {
		t.Errorf("without spec.init the database is %s of %s", p.Database, p.Owner)
	}
}

func TestEverythingIsOwnedButRetainedVolumes(t *testing.T) {
	db := sampleDB("x", full, withoutBackup)
	for _, object := range objects(t, db) {
		_, isClaim := object.(*corev1.PersistentVolumeClaim)
		// NAME-app and NAME-ca belong to their revisions, and those to the SampleDB.
		owner := metav1.GetControllerOf(object)
		byRevision := owner != nil && (owner.Name == AppRevision(db, 0, "", "", 0).Name ||
			owner.Name == AuthorityRevision(db, 0).Name)
		if owned := byRevision || metav1.IsControlledBy(object, db); owned == isClaim {
			t.Errorf("%T %s: owned is %v", object, object.GetName(), owned)
		}
	}
}

func TestALoneInstanceIsEvictedOnlyWhereTheSpecAllowsIt(t *testing.T) {
	for name, c := range map[string]struct {
		instances int32
		eviction  v1.Eviction
		want      int // what may be away; -1 for no budget
	}{
		"one, by default":          {1, "", 0},
		"one that is protected":    {1, v1.EvictionProtect, 0},
		"one that may be evicted":  {1, v1.EvictionAllow, -1},
		"three, by default":        {3, "", 1},
		"three, which may be, too": {3, v1.EvictionAllow, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := -1
			budget := Budget(sampleDB("x",
				func(db *v1.SampleDB) { db.Spec.Instances, db.Spec.Eviction = c.instances, c.eviction }))
			if budget != nil {
				got = budget.Spec.MaxUnavailable.IntValue()
			}
			if got != c.want {
				t.Errorf("%d may be away, want %d", got, c.want)
			}
		})
	}
}

func TestWhatTheWitnessAndTheDurabilityAreRestartsNothing(t *testing.T) {
	was, now := sampleDB("x", three), sampleDB("x", three,
		func(db *v1.SampleDB) { db.Spec.Durability = v1.DurabilityAsync })
	if Config(was, Known{}).Revision == Config(now, Known{}).Revision ||
		Config(was, Known{}).Revision == Config(was, Known{Witness: "u"}).Revision {
		t.Error("the agents would not be told")
	}
	if facets(was, settings) != facets(now, settings) {
		t.Error("the Pods would be replaced")
	}
}

// A new image on record replaces no Pod that was made before one was, but during an update; and the template has to
// have it before a Pod is replaced.
func TestTheImageOnRecord(t *testing.T) {
	db := sampleDB("x", three)
	before := &corev1.Pod{ObjectMeta: podTemplate(db, settings, protocol.Config{}).ObjectMeta}
	db.Status.Image = &v1.ImageStatus{Name: NamedImage(db, settings), Runs: "docker.io/library/postgres@sha256:11"}
	if got := Image(db, settings); got != db.Status.Image.Runs {
		t.Errorf("instances are made from %s", got)
	}
	if got := Outdated(db, settings, before); got != nil || Made(db, settings, before.ObjectMeta) {
		t.Errorf("outdated in %v; the template counts as made", got)
	}
	db.Status.Update = &v1.UpdateStatus{Step: v1.UpdateReplacing}
	if got := Outdated(db, settings, before); !slices.Equal(got, []string{FacetDigest}) {
		t.Errorf("during an update it is outdated in %v", got)
	}
	before.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: naming.ContainerPostgreSQL, ImageID: "docker-pullable://postgres@sha256:11"},
	}
	if got := Outdated(db, settings, before); got != nil {
		t.Errorf("it runs the image, and is outdated in %v", got)
	}
	after := &corev1.Pod{ObjectMeta: podTemplate(db, settings, protocol.Config{}).ObjectMeta}
	if !Made(db, settings, after.ObjectMeta) {
		t.Error("the template does not count as made")
	}
	db.Status.Image.Runs = "docker.io/library/postgres@sha256:22"
	if got := Outdated(db, settings, after); !slices.Equal(got, []string{FacetDigest}) {
		t.Errorf("after an update it is outdated in %v", got)
	}
	db.Spec.Image = "mirror.example/postgres:17"
	if got := Image(db, settings); got != db.Spec.Image {
		t.Errorf("what is on record is of another image, and instances are made from %s", got)
	}
}

func TestRepositories(t *testing.T) {
	for _, same := range [][2]string{
		{"postgres:17", "docker.io/library/postgres@sha256:11"}, {"shop/postgres", "docker.io/shop/postgres:17"},
		{"localhost/postgres:17", "localhost/postgres@sha256:11"}, {"a.example:5000/p:17", "a.example:5000/p"},
	} {
		if !SameRepository(same[0], same[1]) {
			t.Errorf("%s and %s are not the same", same[0], same[1])
		}
	}
	if SameRepository("postgres:17", "mirror.example/library/postgres:17") || SameRepository("a/p", "a.example/p") {
		t.Error("different ones are the same")
	}
}
