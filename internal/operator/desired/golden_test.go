package desired

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/desired/desiredtest"
	"toban.dev/internal/protocol"
)

// sampleDB makes a small SampleDB.
var sampleDB = desiredtest.SampleDB

var settings = Settings{
	Image: "registry.example/toban:1", PostgreSQL: "docker.io/library/postgres", Namespace: "toban-system",
}

func three(db *v1.SampleDB) { db.Spec.Instances = 3 }

// withoutBackup does without an archive.
func withoutBackup(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{None: true} }

// onVolume gives the archive a volume, which is what an empty backup means.
func onVolume(db *v1.SampleDB) {
	db.Spec.Instances, db.Spec.Backup = 2, &v1.BackupSpec{Schedule: "@daily"}
}

// inS3 sets every field of a backup to S3.
func inS3(db *v1.SampleDB) {
	db.Spec.Instances = 3
	db.Spec.Backup = &v1.BackupSpec{
		Store: v1.StoreSpec{S3: &v1.S3Store{
			Bucket: "archives", Prefix: "production", Endpoint: "https://minio.example:9000/", Region: "tokyo",
			PathStyle: true, Credentials: &v1.SecretReference{Name: "minio"}, CA: &v1.SecretReference{Name: "minio-ca"},
			DeletionCredentials: &v1.SecretReference{Name: "minio-remover"},
		}},
		SecondStore: &v1.SecondStoreSpec{S3: &v1.SecondS3Store{
			Bucket: "copies", Prefix: "far", Endpoint: "https://minio.elsewhere.example:9000", PathStyle: true,
			Credentials: v1.SecretReference{Name: "copier"}, CA: &v1.SecretReference{Name: "copies-ca"},
		}},
		Encryption: &v1.EncryptionSpec{
			Recipient: "age1" + strings.Repeat("q", 58), Key: v1.SecretReference{Name: "archive-key"},
		},
		Schedule: "0 3 * * *", TimeZone: "Asia/Tokyo",
		Incremental: &v1.IncrementalSpec{FullEvery: 5},
		Retention:   v1.RetentionSpec{Count: 14, Days: 30},
	}
}

// full sets every field of the spec.
func full(db *v1.SampleDB) {
	class, priority := "fast", "high"
	db.Spec = v1.SampleDBSpec{
		Version:   18,
		Instances: 2,
		Storage:   v1.StorageSpec{Size: "20Gi", StorageClassName: &class, WhenScaled: v1.ScaleDelete},
		Image:     "registry.example/postgres:18.1",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		},
		PostgreSQL: v1.PostgreSQLSpec{
			Parameters: map[string]v1.ParameterValue{"Work_Mem": "16MB", "max_connections": "200"},
			HBA:        []string{"hostssl all all 10.0.0.0/8 scram-sha-256"},
		},
		Init: &v1.InitSpec{
			Database: "shop", Owner: "shopkeeper", Extensions: []string{"pg_trgm"},
			SQL: []v1.SQLSource{
				{ConfigMap: &v1.KeySelector{Name: "schema", Key: "tables.sql"}},
				{Secret: &v1.KeySelector{Name: "rows", Key: "rows.sql"}},
			},
		},
		DeletionPolicy: v1.DeletionRetain,
		Durability:     v1.DurabilityAsync,
		Eviction:       v1.EvictionAllow,
		Service: v1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"lb.example/internal": "true"},
		},
		Network: v1.NetworkSpec{From: []v1.NetworkPeer{
			{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}},
			{
				PodSelector:       &metav1.LabelSelector{},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "books"}},
			},
			{IPBlock: &v1.IPBlock{CIDR: "10.0.0.0/8", Except: []v1.CIDR{"10.9.0.0/16"}}},
		}},
		Metrics: &v1.MetricsSpec{
			From: []v1.NetworkPeer{
				{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "prometheus"}}},
			},
			QueriesRead: v1.QueriesReadAllData,
			Queries: []v1.MetricsQuery{
				{Name: "orders", SQL: "select state, count(*) from orders group by 1", Labels: []string{"state"}},
				{Name: "jobs", SQL: "select count(*) as waiting from jobs", Database: "jobs"},
			},
		},
		TLS: v1.TLSSpec{Names: []v1.ServerName{"db.example.com", "192.0.2.7"}, SecretName: "shop-tls"},
		Pod: v1.PodSpec{
			Labels: map[string]string{"team": "shop"}, Annotations: map[string]string{"note": "x"},
			NodeSelector:      map[string]string{"disk": "fast"},
			Tolerations:       []corev1.Toleration{{Key: "database", Operator: corev1.TolerationOpExists}},
			Affinity:          &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}},
			PriorityClassName: priority,
			ImagePullSecrets:  []corev1.LocalObjectReference{{Name: "pull"}},
		},
	}
}

// A reviewer sees in the golden files how objects change. The longest legal name
// shows that every name made from it is legal too.
func TestObjectsAreAsInTheGoldenFiles(t *testing.T) {
	one, s3 := base{"one", objects(t, sampleDB("one")), "one"}, base{"s3", objects(t, sampleDB("one", inS3)), "one"}
	whole(t, one.file, one.objects)
	whole(t, s3.file, s3.objects)
	for name, db := range map[string]*v1.SampleDB{
		"three": sampleDB("one", three, withoutBackup),
		"full":  sampleDB("one", full, withoutBackup),
		"zones": sampleDB("one", three, withoutBackup, func(db *v1.SampleDB) {
			db.Spec.ZoneSpread = v1.ZoneSpreadRequired
			db.Spec.Primary = &v1.PrimarySpec{Zones: []string{"tokyo-b"}, Avoid: []int32{2}}
		}),
		"longest": sampleDB(longest, onVolume, three),
		"volume":  sampleDB("one", onVolume),
		"wal": sampleDB("one", three, withoutBackup, func(db *v1.SampleDB) {
			fast := "fast"
			db.Spec.Storage.WAL = &v1.WALSpec{Size: "2Gi", StorageClassName: &fast}
			db.Spec.Readers = &v1.ReadersSpec{Count: 1}
			db.Spec.RestoreFrom = &v1.RestoreSpec{
				SampleDB: "other", Target: &v1.RestoreTarget{Time: "2026-11-20T03:15:00.25+09:00"},
			}
			db.Spec.Version, db.Status.Major = 18, 17
			db.Status.Upgrade = &v1.UpgradeStatus{
				ID: "18-0a1b2c", From: 17, To: 18, Step: v1.UpgradeClosing,
				FormerImage: "docker.io/library/postgres:17",
			}
		}),
		"readers": sampleDB("one", three, withoutBackup, func(db *v1.SampleDB) {
			db.Spec.Readers = &v1.ReadersSpec{Autoscale: &v1.ReadersAutoscale{Min: 1, Max: 8, CPU: 70}}
			db.Spec.Network.From = []v1.NetworkPeer{{PodSelector: &metav1.LabelSelector{}}}
			db.Status.Readers = &v1.ReadersStatus{Desired: 2, Ready: 1}
			db.Spec.Service.ReadNearest = true
			db.Spec.Service.ReadMaxLag = &metav1.Duration{Duration: 10 * time.Second}
		}),
		"pooler": sampleDB("one", three, withoutBackup, func(db *v1.SampleDB) {
			db.Spec.Pooler = &v1.PoolerSpec{Instances: 2, Mode: v1.PoolTransaction, MaxClients: 1000}
			db.Spec.Network.From = []v1.NetworkPeer{{PodSelector: &metav1.LabelSelector{}}}
		}),
		"pools": sampleDB("one", three, withoutBackup, func(db *v1.SampleDB) {
			db.Spec.Readers = &v1.ReadersSpec{Count: 1, Only: true}
			db.Spec.Pooler = &v1.PoolerSpec{
				Instances: 2, Mode: v1.PoolTransaction, MaxClients: 1000,
				Autoscale: &v1.PoolerAutoscale{Max: 5, CPU: 70}, ReadOnly: &v1.ReadPoolSpec{Instances: 2},
				Service: v1.PoolServiceSpec{
					Type: corev1.ServiceTypeLoadBalancer, Annotations: map[string]string{"lb": "internal"},
				},
			}
		}),
		"relay": sampleDB("one", three, withoutBackup, func(db *v1.SampleDB) {
			db.Spec.Service.Route = v1.RouteRelay
			db.Spec.Network.From = []v1.NetworkPeer{{PodSelector: &metav1.LabelSelector{}}}
		}),
		"upgraded": sampleDB("one", withoutBackup, func(db *v1.SampleDB) {
			db.Spec.Version, db.Status.Major = 18, 17
			db.Spec.Upgrade = &v1.UpgradeSpec{Method: v1.UpgradeCopy}
			db.Status.Upgrade = &v1.UpgradeStatus{
				ID: "18-0a1b2c", From: 17, To: 18, Step: v1.UpgradeClosing,
				FormerImage: "docker.io/library/postgres:17",
			}
		}),
		"rehearsed": sampleDB("one", inS3, func(db *v1.SampleDB) {
			db.Spec.Version, db.Status.Major = 18, 17
			db.Spec.Upgrade = &v1.UpgradeSpec{Method: v1.UpgradeCopy}
			db.Status.Upgrade = &v1.UpgradeStatus{
				ID: "18-0a1b2c", From: 17, To: 18, Step: v1.UpgradeRehearsing,
				FormerImage: "docker.io/library/postgres:17",
			}
		}),
		"restored": sampleDB("one", withoutBackup, func(db *v1.SampleDB) {
			db.Spec.RestoreFrom = &v1.RestoreSpec{
				SampleDB: "other", Target: &v1.RestoreTarget{Time: "2026-11-20T03:15:00.25+09:00"},
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			from := one
			if name == "rehearsed" {
				from = s3
			}
			from.different(t, name, objects(t, db))
		})
	}
}

func objects(t *testing.T, db *v1.SampleDB) []client.Object {
	t.Helper()
	config := Config(db, Known{
		SystemIdentifier: "7710296685985419287", Authority: "AUTHORITY\n", Operator: "OPERATOR\n", Witness: "0b5d",
	})
	configMap, err := ConfigMap(db, config)
	if err != nil {
		t.Fatal(err)
	}
	claim, err := Claim(db, Instances(db)-1, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, err := StatefulSet(db, settings, config, Instances(db), nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := []client.Object{claim}
	if db.Spec.Storage.WAL != nil {
		wal, err := WALVolume.Claim(db, Instances(db)-1, nil)
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, wal)
	}
	revision := AppRevision(db, 0, "", "", 0)
	revision.UID = "7e55"
	issuer := AuthorityRevision(db, 0)
	issuer.UID = "7e56"
	out := []client.Object{
		configMap, issuer, AuthoritySecret(db, issuer, []byte("CERT"), []byte("KEY")), revision,
		AppSecret(db, revision, "0123456789abcdef", []byte("CERT")),
		ServiceAccount(db), Role(db, Instances(db)), RoleBinding(db), Lease(db),
	}
	out = append(append(out, claims...), set)
	for _, s := range Services(db, Leads{PassedOn: db.Spec.Service.Route == v1.RouteRelay}) {
		out = append(out, s)
	}
	out = append(out, NetworkPolicy(db, settings), InitJob(db, settings, "0a0b0c0d"))
	if db.Spec.Image != "" { // one of all has to do
		out = append(out, ImageJob(db, settings, false))
	}
	if budget := Budget(db); budget != nil {
		out = append(out, budget)
	}
	if MostReaders(db) > 0 {
		out = append(out, readersObjects(t, db, config)...)
	}
	if db.Spec.Pooler != nil {
		out = append(out, poolerObjects(t, db, config)...)
	}
	if Backup(db) != nil {
		out = append(out, archiveObjects(t, db, config)...)
	}
	if db.Status.Upgrade != nil {
		out = append(out, UpgradeObjects(t, db, config)...)
	}
	if db.Spec.RestoreFrom != nil {
		out = append(out, restoreObjects(t, db, config)...)
	}
	return out
}

// readersObjects are those that come with spec.readers.
func readersObjects(t *testing.T, db *v1.SampleDB, config protocol.Config) []client.Object {
	t.Helper()
	set, err := ReadersSet(db, settings, config, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := []client.Object{set, ReadersBudget(db)}
	if autoscaler := ReadersAutoscaler(db); autoscaler != nil {
		out = append(out, autoscaler)
	}
	return out
}

// poolerObjects are those that come with spec.pooler.
func poolerObjects(t *testing.T, db *v1.SampleDB, config protocol.Config) []client.Object {
	t.Helper()
	revision := PoolRevision(db, 0)
	revision.UID = "7e57"
	out := []client.Object{revision, PoolSecret(db, revision, []byte("CERT"), []byte("KEY"))}
	for _, pool := range Pools(db) {
		told, err := pool.ConfigMap(db, config, []string{"10.0.0.9"})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, told, pool.NetworkService(db), pool.Policy(db, settings), pool.Budget(db),
			pool.Deployment(db, settings, pool.Least))
		if scaler := pool.Autoscaler(db); scaler != nil {
			out = append(out, scaler)
		}
	}
	return out
}

// restoreObjects are those that come with spec.restoreFrom: from a bucket, and from a volume
// with its server and without.
func restoreObjects(t *testing.T, db *v1.SampleDB, config protocol.Config) []client.Object {
	t.Helper()
	out := []client.Object{RestorePolicy(db, settings)}
	volume := v1.ArchiveReference{Path: "shop/other-0b5d", Claim: "other-archive"}
	for _, source := range []Source{
		{Archive: ArchiveReference(sampleDB("other", inS3)), Backup: "20261120T031500Z-3f2a"},
		{Archive: volume, Server: "other", Authority: "AUTHORITY\n"},
		{Archive: volume},
	} {
		told, err := RestoreSettings(db, config, FirstRestore(db), source)
		if err != nil {
			t.Fatal(err)
		}
		configMap, err := RestoreConfigMap(db, told)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, configMap, RestoreJob(db, settings, FirstRestore(db), source))
	}
	return out
}

// archiveObjects are those that come with spec.backup.
func archiveObjects(t *testing.T, db *v1.SampleDB, config protocol.Config) []client.Object {
	t.Helper()
	settingsMap, err := BackupConfigMap(db, config, Manifest(db, "0 of-this-name"), Spared{})
	if err != nil {
		t.Fatal(err)
	}
	backup := ScheduledBackup(db, time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC))
	backup.UID = "0b5e"
	verified := backup.DeepCopy()
	verified.Status.ID = "20261120T030000Z-3f2a"
	verify, err := VerifyJob(db, verified, settings, "please")
	if err != nil {
		t.Fatal(err)
	}
	out := findObjects(t, db)
	out = append(out,
		settingsMap, BackupPolicy(db, settings), backup, BackupJob(db, backup, settings, time.Hour), verify,
		RetentionJob(db, settings, time.Date(2026, 11, 20, 3, 10, 0, 0, time.UTC)),
	)
	if Backup(db).SecondStore != nil {
		out = append(out, CopyJob(db, settings))
	}
	out = append(out, bringObjects(t, db, config)...)
	out = append(out, drillObjects(db)...)
	if !OnVolume(db) {
		return out
	}
	claim, err := ArchiveClaim(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	return append(out, claim, ArchiveDeployment(db, settings), ArchiveService(db), ArchivePolicy(db))
}

// findObjects are those of a command that looks for lost backups in an object store.
func findObjects(t *testing.T, db *v1.SampleDB) []client.Object {
	t.Helper()
	if OnVolume(db) {
		return nil
	}
	pod, err := FindPod(db, settings, Find{Namespace: "shop", Unique: "x7k2p"})
	if err != nil {
		t.Fatal(err)
	}
	return []client.Object{pod}
}

// bringObjects are those of a DatabaseRestore.
func bringObjects(t *testing.T, db *v1.SampleDB, config protocol.Config) []client.Object {
	t.Helper()
	source := OwnSource(db, PresentArchivePath(db), "AUTHORITY\n")
	x := Bring{Config: config, Source: source, Wanted: &v1.DatabaseRestore{
		ObjectMeta: metav1.ObjectMeta{
			Name: strings.Repeat("r", 51), Namespace: db.Namespace, UID: "0b5f",
			CreationTimestamp: metav1.Date(2026, 11, 23, 9, 30, 0, 0, time.UTC),
		},
		Spec: v1.DatabaseRestoreSpec{
			SampleDB: db.Name, Tables: []string{"public.orders"}, Mode: v1.RestoreReplace,
			Target: &v1.RestoreTarget{Time: "2026-11-23T09:15:00Z"},
		},
	}}
	told, err := BringConfigMap(db, x)
	if err != nil {
		t.Fatal(err)
	}
	job, err := BringJob(db, settings, x, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return []client.Object{told, job}
}

// drillObjects are those of a FaultDrill.
func drillObjects(db *v1.SampleDB) []client.Object {
	drill := &v1.FaultDrill{
		ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("d", 51), Namespace: db.Namespace, UID: "0b60"},
		Spec: v1.FaultDrillSpec{
			SampleDB: db.Name, Fault: v1.FaultServerHung, Duration: metav1.Duration{Duration: 10 * time.Second},
			Observe: metav1.Duration{Duration: 30 * time.Second}, AbortAfter: metav1.Duration{Duration: time.Minute},
		},
	}
	return []client.Object{DrillJob(db, settings, drill, time.Hour)}
}

// checkName holds names to 63 characters, and those of what makes Pods of itself to what leaves room for the ends.
func checkName(t *testing.T, object client.Object) {
	t.Helper()
	if errs := validation.IsDNS1123Label(object.GetName()); len(errs) > 0 {
		t.Errorf("name %q: %v", object.GetName(), errs)
	}
	ends := map[string]int{"StatefulSet": len("-1234567890"), "Job": len("-abcde")}
	for kind, end := range ends {
		if strings.HasSuffix(fmt.Sprintf("%T", object), kind) && len(object.GetName())+end > 63 {
			t.Errorf("%s %q leaves no room for what its Pods' labels add", kind, object.GetName())
		}
	}
	for key, value := range object.GetLabels() {
		if errs := validation.IsValidLabelValue(value); len(errs) > 0 {
			t.Errorf("label %s=%s: %v", key, value, errs)
		}
	}
}
