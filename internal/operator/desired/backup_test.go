package desired

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

func TestOnlyBackupNoneDoesWithoutAnArchive(t *testing.T) {
	without, byDefault := sampleDB("x", withoutBackup), sampleDB("x")
	if Archive(without, "CA", Versions{}) != nil || OnVolume(without) || Config(without, Known{}).Archive != nil {
		t.Error("a SampleDB with backup.none has an archive")
	}
	if Archive(byDefault, "CA", Versions{}) == nil || !OnVolume(byDefault) ||
		Config(byDefault, Known{}).Archive == nil {
		t.Error("a SampleDB that says nothing about backups has no archive")
	}
}

func TestWhatIsNotSaidAboutBackupsHasADefault(t *testing.T) {
	const day, week = "31 0 * * *", "31 1 * * 4" // of the UID 0b5c
	for name, c := range map[string]struct {
		spec             *v1.BackupSpec
		schedule, proofs string
		count            int32
	}{
		"nothing at all":    {nil, day, week, 7},
		"an empty backup":   {&v1.BackupSpec{}, day, week, 7},
		"a schedule":        {&v1.BackupSpec{Schedule: "@hourly"}, "@hourly", week, 7},
		"no schedule":       {&v1.BackupSpec{Schedule: ScheduleNone}, "", week, 7},
		"how many are kept": {&v1.BackupSpec{Retention: v1.RetentionSpec{Count: 3}}, day, week, 3},
		"each is proven":    {&v1.BackupSpec{Verification: v1.VerificationSpec{AfterBackup: true}}, day, "", 7},
		"each, and by a schedule": {
			&v1.BackupSpec{Verification: v1.VerificationSpec{AfterBackup: true, Schedule: "@weekly"}},
			day, "@weekly", 7,
		},
		"proofs only when asked for": {
			&v1.BackupSpec{Verification: v1.VerificationSpec{Schedule: ScheduleNone}}, day, "", 7,
		},
		"neither backups nor an archive": {&v1.BackupSpec{None: true}, "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			db := sampleDB("x", func(db *v1.SampleDB) { db.Spec.Backup = c.spec })
			asked := c.spec.DeepCopy()
			got := Backup(db)
			if got == nil {
				got = &v1.BackupSpec{}
			}
			if got.Schedule != c.schedule || got.Verification.Schedule != c.proofs || got.Retention.Count != c.count {
				t.Errorf("backups %q, proofs %q, kept %d; want %q, %q, %d",
					got.Schedule, got.Verification.Schedule, got.Retention.Count, c.schedule, c.proofs, c.count)
			}
			if !equality.Semantic.DeepEqual(db.Spec.Backup, asked) {
				t.Error("the spec has changed")
			}
		})
	}
}

// A thousand SampleDBs that say nothing about when must not all take their backups at once.
func TestDefaultSchedulesAreSpreadAndCanBeUnderstood(t *testing.T) {
	hours, days := map[string]int{}, map[string]int{}
	for i := range 1000 {
		b := Backup(sampleDB("x", func(db *v1.SampleDB) { db.UID = types.UID(fmt.Sprintf("0b5c-%d", i)) }))
		for _, schedule := range []string{b.Schedule, b.Verification.Schedule} {
			if _, err := cron.ParseStandard(schedule); err != nil {
				t.Fatal(err)
			}
		}
		hours[strings.Fields(b.Schedule)[1]]++
		days[strings.Fields(b.Verification.Schedule)[4]]++
	}
	if len(hours) != 24 || len(days) != 7 {
		t.Errorf("backups at %d hours of 24, proofs on %d days of 7", len(hours), len(days))
	}
	for hour, n := range hours {
		if n > 100 {
			t.Errorf("%d of 1000 backups at %s o'clock", n, hour)
		}
	}
}

// The only copy of data goes where Delete is said, and nowhere else.
func TestDeletionNeedsABackupOrTheWordDelete(t *testing.T) {
	for name, c := range map[string]struct {
		policy v1.DeletionPolicy
		backup *v1.BackupSpec
		want   v1.DeletionPolicy
	}{
		"nothing said":        {"", nil, v1.DeletionSnapshot},
		"spec.backup removed": {v1.DeletionSnapshot, nil, v1.DeletionSnapshot},
		"with a store": {
			"", &v1.BackupSpec{Store: v1.StoreSpec{S3: &v1.S3Store{}}}, v1.DeletionSnapshot,
		},
		"no archive":                      {"", &v1.BackupSpec{None: true}, v1.DeletionRetain},
		"no archive, but Snapshot":        {v1.DeletionSnapshot, &v1.BackupSpec{None: true}, v1.DeletionRetain},
		"Delete":                          {v1.DeletionDelete, nil, v1.DeletionDelete},
		"Delete without an archive":       {v1.DeletionDelete, &v1.BackupSpec{None: true}, v1.DeletionDelete},
		"Retain":                          {v1.DeletionRetain, nil, v1.DeletionRetain},
		"a policy that nobody knows here": {"Shred", nil, v1.DeletionSnapshot},
	} {
		db := sampleDB("x", func(db *v1.SampleDB) { db.Spec.DeletionPolicy, db.Spec.Backup = c.policy, c.backup })
		if got := DeletionPolicy(db); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What the archive of a SampleDB lies on must be there in its cluster, which may have no default class.
func TestTheArchiveIsInTheClassOfTheVolumes(t *testing.T) {
	fast := "fast"
	claim, err := ArchiveClaim(sampleDB("x", func(db *v1.SampleDB) { db.Spec.Storage.StorageClassName = &fast }), nil)
	if err != nil || claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != fast {
		t.Errorf("the class is %v, %v", claim.Spec.StorageClassName, err)
	}
}

// A Pod that was made before there were archives has no Secrets of the store, whatever its annotation does not say.
func TestAPodIsOutdatedWhenItLacksTheSecretsOfTheStore(t *testing.T) {
	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{naming.AnnotationFacets: facets(sampleDB("x", withoutBackup), settings)},
	}}
	if got := Outdated(sampleDB("x", onVolume), settings, before); len(got) > 0 {
		t.Errorf("a volume needs no Secret, but outdated are %v", got)
	}
	if got := Outdated(sampleDB("x", inS3), settings, before); !slices.Equal(got, []string{FacetStore}) {
		t.Errorf("outdated are %v, want the store", got)
	}
	broken := before.DeepCopy()
	broken.Annotations[naming.AnnotationFacets] = "broken"
	if got := Outdated(sampleDB("x", inS3), settings, broken); len(got) > 0 {
		t.Errorf("nothing is known of the Pod, but outdated are %v", got)
	}
}

func TestTheClaimOfAnArchiveIsTwiceAnInstancesAndNeverShrinks(t *testing.T) {
	claim, err := ArchiveClaim(sampleDB("x", onVolume), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := claim.Spec.Resources.Requests.Storage().String(); got != "20Gi" {
		t.Errorf("size is %s, want 20Gi", got)
	}
	if len(claim.OwnerReferences) > 0 {
		t.Error("the archive goes with the SampleDB")
	}
	small := sampleDB("x", onVolume, func(db *v1.SampleDB) { db.Spec.Storage.Size = "1Gi" })
	if least, err := ArchiveClaim(small, nil); err != nil ||
		least.Spec.Resources.Requests.Storage().String() != "10Gi" {
		t.Errorf("the archive of a small one has %s, want 10Gi: %v", least.Spec.Resources.Requests.Storage(), err)
	}
	// One that is there may be in a class whose volumes can't grow.
	there := claim.DeepCopy()
	there.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
	if same, err := ArchiveClaim(small, there); err != nil || same.Spec.Resources.Requests.Storage().String() != "2Gi" {
		t.Errorf("an archive that is there grows to %s without being asked: %v",
			same.Spec.Resources.Requests.Storage(), err)
	}
	smaller := sampleDB("x", onVolume,
		func(db *v1.SampleDB) { db.Spec.Backup.Store.Volume = &v1.VolumeStore{Size: "5Gi"} })
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("40Gi")
	if claim, err = ArchiveClaim(smaller, claim); err != nil ||
		claim.Spec.Resources.Requests.Storage().String() != "40Gi" {
		t.Errorf("size is %s, %v", claim.Spec.Resources.Requests.Storage(), err)
	}
}

// Neither a ConfigMap nor a Pod's command may have what is in a Secret; only its name is known here.
func TestSettingsHavePathsAndNoSecrets(t *testing.T) {
	db := sampleDB("x", inS3)
	settings := BackupSettings(db, Config(db, Known{Authority: "CA", Operator: "OP"}))
	b := settings.Archive.Bucket
	if b.Credentials != naming.PathStore || b.CA != "" || b.S3.Endpoint != "https://minio.example:9000" ||
		b.Prefix != "production" {
		t.Errorf("the bucket is %+v", b)
	}
	if settings.Archive.Path != "shop/x-0b5c" || !strings.HasPrefix(settings.Archive.Recipient, "age1") ||
		settings.Keep.Days != 30 || settings.FullEvery != 5 {
		t.Errorf("the settings are %+v", settings)
	}
	if len(settings.Hosts) != 3 {
		t.Errorf("the hosts are %v", settings.Hosts)
	}
}

// inGCS and inAzure set every field of a store.
func inGCS(db *v1.SampleDB) {
	db.Spec.Backup = &v1.BackupSpec{Store: v1.StoreSpec{GCS: &v1.GCSStore{
		Bucket: "archives", Prefix: "production", Credentials: &v1.SecretReference{Name: "gcs-key"},
	}}}
}

func inAzure(db *v1.SampleDB) {
	db.Spec.Backup = &v1.BackupSpec{Store: v1.StoreSpec{Azure: &v1.AzureStore{
		Account: "shop", Container: "archives", Prefix: "production", Endpoint: "https://azurite.example:10000/shop",
		Credentials: &v1.SecretReference{Name: "azure-key"},
	}}}
}

// storeCase is a store, what its Pods mount, and how they open it.
type storeCase struct {
	db                     *v1.SampleDB
	credentials, authority string
	bucket                 bucket.Config
}

func storeCases() map[string]storeCase {
	own := func(modify func(*v1.SampleDB)) *v1.SampleDB {
		return sampleDB("x", modify, func(db *v1.SampleDB) {
			store := &db.Spec.Backup.Store
			switch {
			case store.S3 != nil:
				store.S3.Credentials, store.S3.CA, store.S3.DeletionCredentials = nil, nil, nil
			case store.GCS != nil:
				store.GCS.Credentials = nil
			case store.Azure != nil:
				store.Azure.Credentials = nil
			}
		})
	}
	inS3All := func(db *v1.SampleDB) { // with credentials that may do everything
		inS3(db)
		db.Spec.Backup.Store.S3.DeletionCredentials = nil
	}
	s3 := &bucket.S3{Endpoint: "https://minio.example:9000", Region: "tokyo", Bucket: "archives", PathStyle: true}
	gcs := &bucket.GCS{Bucket: "archives"}
	azure := &bucket.Azure{Account: "shop", Container: "archives", Endpoint: "https://azurite.example:10000/shop"}
	of := func(c bucket.Config, credentials string) bucket.Config {
		c.Prefix, c.Credentials = "production", credentials
		return c
	}
	return map[string]storeCase{
		"S3":  {sampleDB("x", inS3All), "minio", "minio-ca", of(bucket.Config{S3: s3}, naming.PathStore)},
		"GCS": {sampleDB("x", inGCS), "gcs-key", "", of(bucket.Config{GCS: gcs}, naming.PathStore)},
		"Azure": {
			sampleDB("x", inAzure), "azure-key", "", of(bucket.Config{Azure: azure}, naming.PathStore),
		},
		"S3, by the Pods' own identity":    {own(inS3), "", "", of(bucket.Config{S3: s3}, "")},
		"GCS, by the Pods' own identity":   {own(inGCS), "", "", of(bucket.Config{GCS: gcs}, "")},
		"Azure, by the Pods' own identity": {own(inAzure), "", "", of(bucket.Config{Azure: azure}, "")},
	}
}

// The credentials that a SampleDB names for its store are mounted wherever the store is used, and where the programs
// are told to look for them.
func TestWhoUsesTheStoreHasItsCredentials(t *testing.T) {
	for name, c := range storeCases() {
		t.Run(name, func(t *testing.T) {
			if got := Archive(c.db, "", Versions{}).Bucket; !reflect.DeepEqual(got, c.bucket) {
				t.Errorf("the bucket is opened as %+v, want %+v", got, c.bucket)
			}
			for who, pod := range podsWithStore(t, c.db) {
				for _, want := range []struct{ path, secret string }{
					{naming.PathStore, c.credentials}, {naming.PathStoreCA, c.authority},
				} {
					if got := secretAt(pod, want.path); got != want.secret {
						t.Errorf("%s has the Secret %q at %s, want %q", who, got, want.path, want.secret)
					}
				}
			}
		})
	}
}

// podsWithStore are the Pods that use a SampleDB's store.
func podsWithStore(t *testing.T, db *v1.SampleDB) map[string]corev1.PodSpec {
	t.Helper()
	set, err := StatefulSet(db, settings, Config(db, Known{}), 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	backup := &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	verify, err := VerifyJob(db, backup, settings, "please")
	if err != nil {
		t.Fatal(err)
	}
	restore := RestoreJob(db, settings, FirstRestore(sampleDB("x", func(db *v1.SampleDB) {
		db.Spec.RestoreFrom = &v1.RestoreSpec{Backup: "b"}
	})), Source{Archive: ArchiveReference(db)})
	return map[string]corev1.PodSpec{
		"an instance":    set.Spec.Template.Spec,
		"a backup":       BackupJob(db, backup, settings, time.Hour).Spec.Template.Spec,
		"retention":      RetentionJob(db, settings, time.Now()).Spec.Template.Spec,
		"a verification": verify.Spec.Template.Spec,
		"a restore":      restore.Spec.Template.Spec,
	}
}

// secretAt is the Secret that some container of a Pod has at a path, "" for none.
func secretAt(pod corev1.PodSpec, path string) string {
	for _, c := range slices.Concat(pod.Containers, pod.InitContainers) {
		for _, m := range c.VolumeMounts {
			i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			if m.MountPath == path && i >= 0 && pod.Volumes[i].Secret != nil {
				return pod.Volumes[i].Secret.SecretName
			}
		}
	}
	return ""
}

// What a client commits after the last backup is nowhere when the volumes go, and the deletionPolicy may be changed
// meanwhile and back.
func TestASampleDBThatGoesLetsNoClientIn(t *testing.T) {
	for _, policy := range []v1.DeletionPolicy{"", v1.DeletionSnapshot, v1.DeletionRetain, v1.DeletionDelete} {
		db := sampleDB("x", func(db *v1.SampleDB) { db.Spec.DeletionPolicy = policy })
		if Config(db, Known{}).Closed {
			t.Errorf("%q: it is closed while nobody deletes it", policy)
		}
		db.DeletionTimestamp = &db.CreationTimestamp
		if !Config(db, Known{}).Closed || Config(db, Known{Left: true}).Closed {
			t.Errorf("%q: it is not closed when it goes, or is when its data is left", policy)
		}
	}
}

// Retention counts backups by their trigger, so that none that was made with a purpose is evicted by the schedule.
func TestTheJobOfABackupSaysWhyItIsMade(t *testing.T) {
	db := sampleDB("x", onVolume)
	ofApp := func(name string) *v1.DatabaseBackup {
		return &v1.DatabaseBackup{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{naming.LabelMyApp: "shop"}},
		}
	}
	ofAnother := ScheduledBackup(db, time.Unix(1e9, 0))
	ofAnother.Labels[naming.LabelOwner] = "0b5d"
	for name, c := range map[string]struct {
		backup *v1.DatabaseBackup
		want   string
	}{
		"one that was due": {ScheduledBackup(db, time.Unix(1e9, 0)), naming.TriggerSchedule},
		"the last one":     {FinalBackup(db), naming.TriggerFinal},
		"one before a migration": {
			ofApp(naming.MigrationBackup("shop", "0a1b2c3d")), naming.TriggerMigration,
		},
		"one of an application for something else": {ofApp("shop-other"), naming.TriggerRequest},
		"one that a user asks for": {
			&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, naming.TriggerRequest,
		},
		"one of a SampleDB that had the name before": {ofAnother, naming.TriggerRequest},
	} {
		t.Run(name, func(t *testing.T) {
			command := BackupJob(db, c.backup, settings, time.Hour).Spec.Template.Spec.Containers[0].Command
			if i := slices.Index(command, "--trigger"); i < 0 || command[i+1] != c.want {
				t.Errorf("the command is %v, expected --trigger %s", command, c.want)
			}
		})
	}
}

// What an application has put into its database may run where SQL is run: there must be nothing to take.
func TestWhereAVerificationRunsSQLThereIsNoSecret(t *testing.T) {
	for name, db := range map[string]*v1.SampleDB{
		"on a volume": sampleDB("x", onVolume), "in S3, encrypted": sampleDB("x", inS3),
	} {
		t.Run(name, func(t *testing.T) {
			job, err := VerifyJob(db, &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, settings, "please")
			if err != nil {
				t.Fatal(err)
			}
			pod := job.Spec.Template.Spec
			secret := map[string]bool{volumeRun: true} // the restoring container writes keys there
			for _, v := range pod.Volumes {
				secret[v.Name] = secret[v.Name] || v.Secret != nil || v.Projected != nil
			}
			if restore := pod.InitContainers[len(pod.InitContainers)-1]; restore.Name != naming.ContainerRestore ||
				!mountsAny(restore, secret) {
				t.Errorf("the container %s, which restores, mounts %v", restore.Name, restore.VolumeMounts)
			}
			if len(pod.Containers) != 1 || mountsAny(pod.Containers[0], secret) {
				t.Errorf("the containers %+v run SQL and mount a Secret", pod.Containers)
			}
			hasSecret := func(e corev1.EnvVar) bool {
				return e.ValueFrom != nil || strings.HasPrefix(e.Value, naming.PathStore)
			}
			if env := pod.Containers[0].Env; slices.ContainsFunc(env, hasSecret) {
				t.Errorf("the container that runs SQL has the environment %v", env)
			}
			if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
				t.Error("it has a token of the API")
			}
		})
	}
}

func mountsAny(c corev1.Container, volumes map[string]bool) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return volumes[m.Name] })
}

// A value that PostgreSQL refuses keeps a running server as it is. It must not keep a deleted
// database from coming back.
func TestARestoreDoesNotDependOnTheLoadsParameters(t *testing.T) {
	db := sampleDB("x", func(db *v1.SampleDB) {
		db.Spec.RestoreFrom = &v1.RestoreSpec{Backup: "b"}
		db.Spec.PostgreSQL.Parameters = map[string]v1.ParameterValue{
			"work_mem": "much", "shared_preload_libraries": "timescaledb", "timescaledb.license": "apache",
		}
	})
	got, err := RestoreSettings(db, Config(db, Known{}), FirstRestore(db), Source{})
	if err != nil {
		t.Fatal(err)
	}
	if p := got.Parameters; len(p) != 2 || p["shared_preload_libraries"] == "" || p["timescaledb.license"] == "" {
		t.Errorf("the server that restores runs with %v", p)
	}
}

// The private half of the key is for who reads: an incremental backup, and the last one, which is proved.
func TestWhichBackupsGetTheKey(t *testing.T) {
	asked := &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	encrypted := sampleDB("x", inS3, func(db *v1.SampleDB) { db.Spec.Backup.Incremental = nil })
	foreign := FinalBackup(encrypted)
	foreign.Labels[naming.LabelOwner] = "another"
	for name, c := range map[string]struct {
		db           *v1.SampleDB
		backup       *v1.DatabaseBackup
		key, toProve bool
	}{
		"a full one":                    {encrypted, asked, false, false},
		"the last one":                  {encrypted, FinalBackup(encrypted), true, true},
		"an incremental one":            {sampleDB("x", inS3), asked, true, false},
		"the last, without a key":       {sampleDB("x", onVolume), FinalBackup(sampleDB("x", onVolume)), false, true},
		"one with the name of the last": {encrypted, foreign, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := BackupJob(c.db, c.backup, settings, time.Hour).Spec.Template.Spec
			if got := mountsAny(pod.Containers[0], map[string]bool{volumeKey: true}); got != c.key {
				t.Errorf("it mounts the key: %v", got)
			}
			if got := slices.Contains(pod.Containers[0].Command, "--prove"); got != c.toProve {
				t.Errorf("it is proved: %v", got)
			}
		})
	}
	retention := RetentionJob(encrypted, settings, time.Now()).Spec.Template.Spec
	if mountsAny(retention.Containers[0], map[string]bool{volumeKey: true}) {
		t.Error("who removes backups can read them")
	}
}

// Which keys the Secret has is seen by a container that has nothing else: neither the store's credentials, nor the
// authority, nor what a server sends.
func TestWhoSeesWhichKeysThereAre(t *testing.T) {
	encrypted := sampleDB("x", inS3, func(db *v1.SampleDB) { db.Spec.Backup.Incremental = nil })
	asked := &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	for name, pod := range map[string]corev1.PodSpec{
		"a backup":  BackupJob(encrypted, asked, settings, time.Hour).Spec.Template.Spec,
		"retention": RetentionJob(encrypted, settings, time.Now()).Spec.Template.Spec,
	} {
		var mounted []string
		for _, c := range pod.InitContainers {
			if c.Name != naming.ContainerKeys {
				continue
			}
			for _, m := range c.VolumeMounts {
				mounted = append(mounted, m.Name)
			}
		}
		if want := []string{volumeKey, volumeRun}; !slices.Equal(mounted, want) {
			t.Errorf("%s: it mounts %v, want %v", name, mounted, want)
		}
	}
	plain := BackupJob(sampleDB("x", onVolume), asked, settings, time.Hour).Spec.Template.Spec
	if len(plain.InitContainers) != 1 {
		t.Errorf("without encryption there are %d init containers", len(plain.InitContainers))
	}
}

// The Pod of a Job that removes something may wait until the Job's deadline: it knows that its moment may be as old.
func TestWhoRemovesSomethingKnowsHowLongItMayHaveWaited(t *testing.T) {
	db, now := sampleDB("x", inS3), time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	backup := &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	for name, c := range map[string]struct {
		job  *batchv1.Job
		want time.Duration
	}{
		"retention":             {RetentionJob(db, settings, now), 24 * time.Hour},
		"the second store":      {AskedAt(CopyJob(db, settings), now), 24 * time.Hour},
		"a backup of many days": {AskedAt(BackupJob(db, backup, settings, 300*time.Hour), now), 300 * time.Hour},
	} {
		deadline := time.Duration(*c.job.Spec.ActiveDeadlineSeconds) * time.Second
		command := strings.Join(c.job.Spec.Template.Spec.Containers[0].Command, " ")
		want := " --asked-at 2026-11-30T03:00:00Z --ended-after " + c.want.String()
		if deadline != c.want || !strings.HasSuffix(command, want) {
			t.Errorf("%s is ended after %s, and runs %s", name, deadline, command)
		}
	}
}

// Only the Job that removes what is not to be kept has the credentials that may, in every store, and nobody else tries.
func TestOnlyRetentionMayDelete(t *testing.T) {
	may, other := &v1.SecretReference{Name: "remover"}, &v1.SecretReference{Name: "writer"}
	inS3 := func(credentials, deletion *v1.SecretReference) v1.StoreSpec {
		return v1.StoreSpec{S3: &v1.S3Store{Bucket: "b", Credentials: credentials, DeletionCredentials: deletion}}
	}
	gcs := &v1.GCSStore{Bucket: "b", Credentials: other, DeletionCredentials: may}
	azure := &v1.AzureStore{Account: "a", Container: "c", Credentials: other, DeletionCredentials: may}
	for name, c := range map[string]struct {
		store v1.StoreSpec
		apart bool
	}{
		"S3":                              {inS3(other, may), true},
		"GCS":                             {v1.StoreSpec{GCS: gcs}, true},
		"Azure":                           {v1.StoreSpec{Azure: azure}, true},
		"beside the identity of Pods":     {inS3(nil, may), true},
		"one for everything":              {inS3(other, nil), false},
		"a volume, which knows no others": {v1.StoreSpec{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := sampleDB("x", three, func(db *v1.SampleDB) { db.Spec.Backup = &v1.BackupSpec{Store: c.store} })
			for _, object := range objects(t, db) {
				text, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				retention := object.GetName() == "x-retention"
				if got := strings.Contains(string(text), "secretName: remover"); got != (retention && c.apart) {
					t.Errorf("%T %s mounts it: %v", object, object.GetName(), got)
				}
				if retention && c.apart && strings.Contains(string(text), "secretName: writer") {
					t.Error("the Job has both")
				}
			}
			if DeletesApart(db) != c.apart || Archive(db, "", Versions{}).Bucket.KeepAll != c.apart ||
				BackupSettings(db, protocol.Config{}).Archive.Bucket.KeepAll != c.apart {
				t.Errorf("the instances are told to remove nothing: %v", Archive(db, "", Versions{}).Bucket.KeepAll)
			}
		})
	}
}

func TestTheJobOfABackupBySnapshotHasTheFlag(t *testing.T) {
	db := sampleDB("main", inS3)
	backup := &v1.DatabaseBackup{
		ObjectMeta: metav1.ObjectMeta{Name: "before-the-import", Namespace: "shop", UID: types.UID("1a2b")},
		Spec: v1.DatabaseBackupSpec{
			SampleDB: "main", Method: v1.MethodVolumeSnapshot, VolumeSnapshotClassName: "fast",
		},
	}
	job := BackupJob(db, backup, settings, time.Hour)
	c := job.Spec.Template.Spec.Containers[0]
	if !slices.Contains(c.Command, "--"+naming.FlagSnapshot) {
		t.Errorf("it runs %v", c.Command)
	}
	if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == naming.PathKey }) {
		t.Error("it has the key of the archive, and reads nothing there")
	}
}
