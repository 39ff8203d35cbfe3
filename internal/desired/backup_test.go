package desired

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

func TestWithoutABackupThereIsNoArchive(t *testing.T) {
	db := sampleDB("x")
	if Archive(db, "CA") != nil || OnVolume(db) || Config(db, Known{}).Archive != nil {
		t.Error("a SampleDB without spec.backup has an archive")
	}
}

// A Pod that was made before there were archives has no Secrets of the store, whatever its annotation does not say.
func TestAPodIsOutdatedWhenItLacksTheSecretsOfTheStore(t *testing.T) {
	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{naming.AnnotationFacets: facets(sampleDB("x"))}}}
	if got := Outdated(sampleDB("x", onVolume), before); len(got) > 0 {
		t.Errorf("a volume needs no Secret, but outdated are %v", got)
	}
	if got := Outdated(sampleDB("x", inS3), before); !slices.Equal(got, []string{FacetStore}) {
		t.Errorf("outdated are %v, want the store", got)
	}
	broken := before.DeepCopy()
	broken.Annotations[naming.AnnotationFacets] = "broken"
	if got := Outdated(sampleDB("x", inS3), broken); len(got) > 0 {
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
	smaller := sampleDB("x", onVolume, func(db *v1.SampleDB) { db.Spec.Backup.Store.Volume = &v1.VolumeStore{Size: "5Gi"} })
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("40Gi")
	if claim, err = ArchiveClaim(smaller, claim); err != nil || claim.Spec.Resources.Requests.Storage().String() != "40Gi" {
		t.Errorf("size is %s, %v", claim.Spec.Resources.Requests.Storage(), err)
	}
}

// Neither a ConfigMap nor a Pod's command may have what is in a Secret; only its name is known here.
func TestSettingsHavePathsAndNoSecrets(t *testing.T) {
	db := sampleDB("x", inS3)
	settings := BackupSettings(db, Config(db, Known{Authority: "CA", Operator: "OP"}))
	b := settings.Archive.Bucket
	if b.Credentials != naming.PathStore || b.CA != "" || b.S3.Endpoint != "https://minio.example:9000" || b.Prefix != "production" {
		t.Errorf("the bucket is %+v", b)
	}
	if settings.Archive.Path != "shop/x-0b5c" || !strings.HasPrefix(settings.Archive.Recipient, "age1") || settings.Keep.Days != 30 || settings.FullEvery != 5 {
		t.Errorf("the settings are %+v", settings)
	}
	if len(settings.Hosts) != 3 {
		t.Errorf("the hosts are %v", settings.Hosts)
	}
}

// Retention counts backups by their trigger, so that none that was made with a purpose is evicted by the schedule.
func TestTheJobOfABackupSaysWhyItIsMade(t *testing.T) {
	db := sampleDB("x", onVolume)
	ofApp := func(name string) *v1.DatabaseBackup {
		return &v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{naming.LabelMyApp: "shop"}}}
	}
	ofAnother := ScheduledBackup(db, time.Unix(1e9, 0))
	ofAnother.Labels[naming.LabelOwner] = "0b5d"
	for name, c := range map[string]struct {
		backup *v1.DatabaseBackup
		want   string
	}{
		"one that was due":                           {ScheduledBackup(db, time.Unix(1e9, 0)), naming.TriggerSchedule},
		"the last one":                               {FinalBackup(db), naming.TriggerFinal},
		"one before a migration":                     {ofApp(naming.MigrationBackup("shop", "0a1b2c3d")), naming.TriggerMigration},
		"one of an application for something else":   {ofApp("shop-other"), naming.TriggerRequest},
		"one that a user asks for":                   {&v1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}, naming.TriggerRequest},
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
	for name, db := range map[string]*v1.SampleDB{"on a volume": sampleDB("x", onVolume), "in S3, encrypted": sampleDB("x", inS3)} {
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
			if restore := pod.InitContainers[len(pod.InitContainers)-1]; restore.Name != naming.ContainerRestore || !mountsAny(restore, secret) {
				t.Errorf("the container %s, which restores, mounts %v", restore.Name, restore.VolumeMounts)
			}
			if len(pod.Containers) != 1 || mountsAny(pod.Containers[0], secret) {
				t.Errorf("the containers %+v run SQL and mount a Secret", pod.Containers)
			}
			for _, e := range pod.Containers[0].Env {
				if e.ValueFrom != nil || strings.HasPrefix(e.Value, naming.PathStore) {
					t.Errorf("the container that runs SQL has %s", e.Name)
				}
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
