package sides

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/internal/operator/desired"
)

// GreenOf is what the second side of a blue/green upgrade has besides what the spec of its SampleDB says.
type GreenOf struct {
	// Position is where it begins to follow: its copy has all before (an LSN). Branch is a term of the archive's
	// branch that has it, 0 where there is one branch only.
	Position string
	Branch   int64
	// Version is the major version that it is to have: the former one, for which its copy is made, and then the new
	// one.
	Version int32
	// Image is for that version, "" for the official one.
	Image string
	// Serves says that clients are let in.
	Serves bool
	// Credentials say which password its roles have (credentials.Store).
	Credentials string
	// Have is what there is of it, nil where it is to be made: what it has begun with can't be changed any more.
	Have *v1.SampleDB
}

// Green is the SampleDB NAME-green: the second side of a blue/green upgrade. It has what of NAME's spec makes servers
// that are as good, and nothing by which a user has them do something by themselves.
func Green(db *v1.SampleDB, g GreenOf) *v1.SampleDB {
	object := desired.Meta(db, naming.Green(db.Name))
	object.Annotations = map[string]string{
		naming.AnnotationSide:     naming.SideFollows,
		naming.AnnotationManifest: greenManifest(db, g),
	}
	if g.Serves {
		object.Annotations[naming.AnnotationSide] = naming.SideServes
	}
	from := db.Spec.DeepCopy()
	green := &v1.SampleDB{ObjectMeta: object, Spec: v1.SampleDBSpec{
		Version:        g.Version,
		Instances:      from.Instances,
		Durability:     from.Durability,
		Eviction:       from.Eviction,
		ZoneSpread:     from.ZoneSpread,
		Primary:        from.Primary,
		Storage:        desired.GrownStorage(db), // that is how much data there is to copy
		Image:          g.Image,
		Update:         &v1.UpdateSpec{None: true},
		Upgrade:        greenUpgrade(db),
		Resources:      from.Resources,
		Readers:        from.Readers,
		PostgreSQL:     from.PostgreSQL,
		RestoreFrom:    greenSource(db, g),
		Init:           &v1.InitSpec{None: true},
		Backup:         greenBackup(db, g.Version),
		DeletionPolicy: greenDeletion(db, g),
		// NAME-ro leads to those of its standbys that are not late.
		Service: v1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ReadMaxLag: from.Service.ReadMaxLag},
		Network: from.Network,
		Metrics: from.Metrics,
		TLS:     v1.TLSSpec{Names: from.TLS.Names, SecretName: naming.GreenCertificate(db.Name)},
		Pod:     from.Pod,
	}}
	if p := green.Spec.Primary; p != nil && p.HandOver == v1.HandOverInWindow {
		p.HandOver = v1.HandOverOnRequest // it has no window
	}
	return green
}

// greenSource is NAME's archive up to the position. As soon as there is data it stays as it was written first: the
// API refuses any other.
func greenSource(db *v1.SampleDB, g GreenOf) *v1.RestoreSpec {
	if g.Have != nil && g.Have.Spec.RestoreFrom != nil {
		return g.Have.Spec.RestoreFrom.DeepCopy()
	}
	return &v1.RestoreSpec{
		SampleDB: db.Name,
		Target:   &v1.RestoreTarget{LSN: g.Position, Exclusive: true, Branch: g.Branch},
	}
}

// greenUpgrade has the copy upgraded at once: it is nobody else's, all that is in it is on the first side too, and
// its former data is of no use to anybody.
func greenUpgrade(db *v1.SampleDB) *v1.UpgradeSpec {
	out := &v1.UpgradeSpec{
		Backup: v1.UpgradeBackupNone, Rehearse: v1.RehearseNever, Keep: &metav1.Duration{},
	}
	if spec := db.Spec.Upgrade; spec != nil {
		out.Method = spec.Method
	}
	return out
}

// greenBackup is NAME's, in a folder of its own: ArchivePath has the UID. A second copy of the archive is not worth
// its room for a side that is there for a time.
func greenBackup(db *v1.SampleDB, version int32) *v1.BackupSpec {
	if db.Spec.Backup == nil {
		return nil
	}
	out := db.Spec.Backup.DeepCopy()
	out.SecondStore = nil
	if version < 17 {
		out.Incremental = nil // NAME's spec is of the new version already, and this is refused for the former one
	}
	return out
}

// greenDeletion is what becomes of the data when NAME-green is deleted. While it follows, all that it has is on the
// first side too, and a last backup of it would only keep an upgrade from being cancelled where the archive can't be
// reached. Once it serves, it alone has what was written since, and what NAME's spec says of its data holds for that:
// a last backup where it says nothing. That also counts while sides change back.
func greenDeletion(db *v1.SampleDB, g GreenOf) v1.DeletionPolicy {
	if g.Serves || db.Status.Upgrade.GreenServes() {
		return db.Spec.DeletionPolicy
	}
	return v1.DeletionDelete
}

// greenManifest is what a backup of NAME-green brings back: NAME, of the version that it is of. It says whose side it
// was, and whether that served: only then has it what clients have written.
func greenManifest(db *v1.SampleDB, g GreenOf) string {
	of := db.DeepCopy()
	if g.Version < 17 && of.Spec.Backup != nil {
		of.Spec.Backup.Incremental = nil
	}
	if of.Spec.Version != g.Version { // else the spec names the image, or none
		of.Spec.Version, of.Spec.Image = g.Version, g.Image
		desired.OfVersion(of)
	}
	side := naming.SideFollows
	if g.Serves || db.Status.Upgrade.GreenServes() {
		side = naming.SideServes
	}
	return string(desired.Annotated(desired.Manifest(of, g.Credentials).Raw, map[string]string{
		naming.AnnotationSide: side, naming.AnnotationSideOf: db.Name + "/" + string(db.UID),
	}))
}

// GreenNames are the names by which clients of NAME, and the other side's servers, call those of NAME-green. The
// agents there take no certificate that lacks one of their own.
func GreenNames(db *v1.SampleDB) []string {
	green := &v1.SampleDB{ObjectMeta: metav1.ObjectMeta{Name: naming.Green(db.Name), Namespace: db.Namespace}}
	names := append(desired.ServerNames(db), desired.ServerNames(green)...)
	// However many instances there are.
	return append(names, "*."+naming.ServiceHost(naming.HeadlessService(green.Name), green.Namespace))
}

// GreenCertificateSecret is NAME-green-tls: the certificate that NAME-green shows clients, with its key, and all
// authorities of NAME that are trusted, of which one has issued it. It belongs to its revision. Its servers know
// those of NAME by these authorities.
func GreenCertificateSecret(
	db *v1.SampleDB, revision *appsv1.ControllerRevision, cert, key []byte, trusted string,
) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: desired.Meta(db, naming.GreenCertificate(db.Name)),
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			naming.KeyTLSCertificate: cert, naming.KeyTLSKey: key, naming.KeyCA: []byte(trusted),
		},
	}
	secret.OwnerReferences = desired.OfRevision(revision)
	return secret
}

// GreenCertificateRevision is what NAME-green-tls belongs to with a certificate for the names that there are now, of
// NAME's authority of an epoch, and with the authorities that are trusted now.
func GreenCertificateRevision(db *v1.SampleDB, epoch int64, trusted string) *appsv1.ControllerRevision {
	content := fmt.Sprintf("%d-%s", epoch, desired.Hash([]any{GreenNames(db), trusted}))
	return desired.RevisionOfSecret(db, naming.GreenCertificate(db.Name),
		naming.GreenCertificateRevision(db.Name, content), epoch)
}
