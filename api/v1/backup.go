package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupSpec says where the archive of a SampleDB lies and when base backups are
// taken. Its WAL goes there all the time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.none) || !self.none || !(has(self.schedule) || has(self.timeZone) || has(self.spread) || has(self.encryption) || has(self.incremental) || has(self.maxLag) || [has(self.store) && has(self.store.volume), has(self.store) && has(self.store.s3), has(self.store) && has(self.store.gcs), has(self.store) && has(self.store.azure)].exists(x, x))",message="backup.none: true means no archive and no backups: remove the other fields of backup, or none"
// +kubebuilder:validation:XValidation:rule="has(self.timeZone) ? has(self.schedule) : true",message="backup.timeZone is that of backup.schedule, which is missing"
type BackupSpec struct {
	// Do without an archive and without backups: what is lost with the volumes, or by mistake, is lost for good.
	// +optional
	None bool `json:"none,omitempty"`

	// Where the archive is kept. Where it is not given: a volume of its own in the cluster.
	// +optional
	Store StoreSpec `json:"store,omitempty"`

	// The key to encrypt everything with before it leaves the Pod.
	// +optional
	Encryption *EncryptionSpec `json:"encryption,omitempty"`

	// When base backups are taken, as in cron: minute, hour, day of the month, month,
	// day of the week; or @hourly, @daily, @weekly. The first one is taken as soon as there is an
	// archive. Where it is not given: once a day, at a minute of the SampleDB's own, so that not all are taken at
	// once; the condition Scheduled says which. With none: only the first, and those asked for by a DatabaseBackup.
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// The time zone of the schedule, for instance Asia/Tokyo. UTC by default.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// How much later than their schedules say backups and verifications may begin, so that those of SampleDBs with the
	// same schedule do not all begin at once. Each SampleDB has a fixed share of this time, and no run begins later
	// than the next one is due. With 0s they begin exactly when the schedules say. It does not apply to a schedule that
	// is not given, which is at a minute of the SampleDB's own. Where it is not given: a tenth of the time until the
	// next run, and at most 15m.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="backup.spread must be from 0s to 24h"
	// +optional
	Spread *metav1.Duration `json:"spread,omitempty"`

	// Which backups have only what has changed since the one before. It needs PostgreSQL 17 or newer. Where it is not
	// given every backup has everything.
	// +optional
	Incremental *IncrementalSpec `json:"incremental,omitempty"`

	// For how long a commit may wait for the archive, while the store takes what it is given: what a SampleDB may lose
	// that loses all its volumes at once. Less costs more requests to the store. With 0s everything is archived every
	// half second, what the server writes by itself too. Where it is not given: 10s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="backup.maxLag must be from 0s to 1h"
	// +optional
	MaxLag *metav1.Duration `json:"maxLag,omitempty"`

	// What is kept.
	// +optional
	Retention RetentionSpec `json:"retention,omitempty"`

	// How backups are proven: each is restored into a scratch volume, checked, and asked questions.
	// +optional
	Verification VerificationSpec `json:"verification,omitempty"`
}

// IncrementalSpec is which backups have only what has changed since the one before. The others are full ones: the
// first, the last of a SampleDB that is deleted, and where the server can't tell what has changed. To restore one, it
// is put together with those before it, back to a full one, for which there must be room twice.
type IncrementalSpec struct {
	// Of how many backups one is a full one: with 7 it is followed by six that have only what has changed.
	// +kubebuilder:default=7
	// +kubebuilder:validation:XValidation:rule="self >= 2 && self <= 100",message="backup.incremental.fullEvery must be from 2 to 100"
	// +optional
	FullEvery int32 `json:"fullEvery,omitempty"`
}

// VerificationSpec is how backups are proven.
type VerificationSpec struct {
	// Verify every backup of the schedule when it is complete.
	// +optional
	AfterBackup bool `json:"afterBackup,omitempty"`

	// When the last backup is verified, with all WAL up to then: as backup.schedule, in the same time zone.
	// Where it is not given: once a week, at a minute of the SampleDB's own, and never where afterBackup
	// verifies each. With none: never.
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Questions to the restored database. Each must succeed, and give what is wanted.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Assertions []Assertion `json:"assertions,omitempty"`

	// The size of the scratch volume. Where it is not given: that of storage.size, and twice that
	// with backup.incremental.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!self.matches('[eE].*[0-9]{3}') && isQuantity(self)",message="backup.verification.size must be a quantity such as 20Gi"
	// +optional
	Size string `json:"size,omitempty"`

	// Its StorageClass; that of storage if not given.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// How the rest of the archive is read again, older backups and all WAL: each verification continues where the last
	// has stopped.
	// +optional
	Scrub *ScrubSpec `json:"scrub,omitempty"`
}

// ScrubSpec is how an archive is read again, so that an object which has rotted or is lost is found before it is
// needed.
type ScrubSpec struct {
	// Do without: a verification reads no more than the backup that it restores, and the WAL from that on.
	// +optional
	None bool `json:"none,omitempty"`

	// Within how many days every object is read, where there is a verification at least twice as often. Where it is not
	// given: 30. With one verification a week that is a quarter of the archive each time.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 3650",message="backup.verification.scrub.days must be from 1 to 3650"
	// +optional
	Days int32 `json:"days,omitempty"`

	// How much a verification reads at most for that, such as 50Gi: what it costs. All of the archive then takes
	// longer, where it does not suffice. Where it is not given: as much as the days ask for.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!self.matches('[eE].*[0-9]{3}') && isQuantity(self)",message="backup.verification.scrub.budget must be a quantity such as 50Gi"
	// +optional
	Budget string `json:"budget,omitempty"`
}

// Assertion is a question to a restored database.
type Assertion struct {
	// Its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// The database for the query; init.database by default.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Database string `json:"database,omitempty"`

	// The question, in SQL. It is asked in a copy that is thrown away, by a role that can read every table and do
	// nothing else, with the search_path pg_catalog, public: name the schema of what is elsewhere.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	SQL string `json:"sql"`

	// What the first column of the first row must be, as text. Where it is not given, any answer
	// will do that is no error.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Want *string `json:"want,omitempty"`
}

// StoreSpec is where archives are kept: one of its fields.
//
// +kubebuilder:validation:XValidation:rule="[has(self.volume), has(self.s3), has(self.gcs), has(self.azure)].filter(x, x).size() <= 1",message="backup.store must have only one of volume, s3, gcs and azure"
type StoreSpec struct {
	// A PersistentVolumeClaim with a small server before it: NAME-archive.
	// +optional
	Volume *VolumeStore `json:"volume,omitempty"`

	// Amazon S3, or what speaks its protocol.
	// +optional
	S3 *S3Store `json:"s3,omitempty"`

	// Google Cloud Storage.
	// +optional
	GCS *GCSStore `json:"gcs,omitempty"`

	// Azure Blob Storage.
	// +optional
	Azure *AzureStore `json:"azure,omitempty"`
}

// VolumeStore is a volume that the operator makes. It outlives the SampleDB, whatever
// deletionPolicy says: the operator never deletes it.
type VolumeStore struct {
	// The size of the volume. By default twice storage.size, and at least 10Gi. It can grow but not shrink.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!self.matches('[eE].*[0-9]{3}') && isQuantity(self)",message="backup.store.volume.size must be a quantity such as 20Gi"
	// +optional
	Size string `json:"size,omitempty"`

	// Its StorageClass; the cluster's default class if not given.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// S3Store is a bucket of S3.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deletionCredentials) || !has(self.credentials) || self.deletionCredentials.name != self.credentials.name",message="backup.store.s3.deletionCredentials must name another Secret than backup.store.s3.credentials, which the instances have"
type S3Store struct {
	// The bucket. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	Bucket string `json:"bucket"`

	// A folder in the bucket under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// The server's address with its protocol, such as https://minio.example.com:9000. Amazon's by default.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^https?://[^/]+/?$`
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// The region.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Region string `json:"region,omitempty"`

	// Put the bucket's name into the path and not into the host's name, as most servers other than Amazon's want it.
	// +optional
	PathStyle bool `json:"pathStyle,omitempty"`

	// A Secret with accessKeyID, secretAccessKey and, if there is one, sessionToken. Where
	// it is not given, the Pods' own identity is used, as the cloud gives it to their ServiceAccount.
	// +optional
	Credentials *SecretReference `json:"credentials,omitempty"`

	// A Secret of the same form, for credentials that may list, read and delete. Only the Pods of NAME-retention get
	// it, which remove after each backup what retention does not keep. All other Pods then remove nothing, so the
	// other credentials need only list, read and create: an attacker in an instance can't remove backups. Without it,
	// the other credentials are used for everything.
	// +optional
	DeletionCredentials *SecretReference `json:"deletionCredentials,omitempty"`

	// A Secret with ca.crt: the authority of the server's certificate, if it is not a public one.
	// +optional
	CA *SecretReference `json:"ca,omitempty"`
}

// GCSStore is a bucket of Google Cloud Storage.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deletionCredentials) || !has(self.credentials) || self.deletionCredentials.name != self.credentials.name",message="backup.store.gcs.deletionCredentials must name another Secret than backup.store.gcs.credentials, which the instances have"
type GCSStore struct {
	// The bucket. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=222
	// +required
	Bucket string `json:"bucket"`

	// A folder in the bucket under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// A Secret with credentials.json: a service account's key. Where it is not given, the Pods' own identity is used.
	// +optional
	Credentials *SecretReference `json:"credentials,omitempty"`

	// A Secret of the same form, for credentials that may list, read and delete. Only the Pods of NAME-retention get
	// it, which remove after each backup what retention does not keep. All other Pods then remove nothing, so the
	// other credentials need only list, read and create: an attacker in an instance can't remove backups. Without it,
	// the other credentials are used for everything.
	// +optional
	DeletionCredentials *SecretReference `json:"deletionCredentials,omitempty"`
}

// AzureStore is a container of Azure Blob Storage.
//
// +kubebuilder:validation:XValidation:rule="!has(self.deletionCredentials) || !has(self.credentials) || self.deletionCredentials.name != self.credentials.name",message="backup.store.azure.deletionCredentials must name another Secret than backup.store.azure.credentials, which the instances have"
type AzureStore struct {
	// The storage account.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=24
	// +required
	Account string `json:"account"`

	// The container. It must exist.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +required
	Container string `json:"container"`

	// A folder in the container under which archives lie.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_./-]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// The server's address, if it is not Azure's own, such as https://azurite.example.com:10000/account.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// A Secret with accountKey or sasToken. Where it is not given, the Pods' own identity is used.
	// +optional
	Credentials *SecretReference `json:"credentials,omitempty"`

	// A Secret of the same form, for credentials that may list, read and delete. Only the Pods of NAME-retention get
	// it, which remove after each backup what retention does not keep. All other Pods then remove nothing, so the
	// other credentials need only list, read and create: an attacker in an instance can't remove backups. Without it,
	// the other credentials are used for everything.
	// +optional
	DeletionCredentials *SecretReference `json:"deletionCredentials,omitempty"`
}

// SecretReference names a Secret of the same namespace.
type SecretReference struct {
	// Its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// EncryptionSpec is how an archive is encrypted.
type EncryptionSpec struct {
	// The public half of the key, age1…, as `age-keygen` shows it. The instances
	// encrypt with it, and can't read what they have written. Another one is taken at once, without a restart: put its
	// private half into the Secret before.
	// +kubebuilder:validation:Pattern=`^age1[0-9a-z]{58}$`
	// +required
	Recipient string `json:"recipient"`

	// A Secret with age.key: what `age-keygen` writes, of each key that the archive needs, one below the other. Only
	// containers that restore, verify, take an incremental backup, or see which keys there are, get it. Keep
	// a copy outside the cluster: without it the archive is of no use.
	// +required
	Key SecretReference `json:"key"`
}

// RetentionSpec is what of an archive is kept: what count or days asks for. The last good backup is always kept, and so
// is the WAL that leads on from any kept backup.
type RetentionSpec struct {
	// How many base backups are kept of each kind: those of the schedule, those asked for, those before a migration of
	// a MyApp, and the last one of a SampleDB that is deleted. Only those count that can be restored, before a gap and
	// on a branch that a restore in place has left too.
	// +kubebuilder:default=7
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="backup.retention.count must be from 1 to 10000"
	// +optional
	Count int32 `json:"count,omitempty"`

	// For how many days every moment can be restored, except those in a gap.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 36500",message="backup.retention.days must be from 1 to 36500"
	// +optional
	Days int32 `json:"days,omitempty"`
}

// ArchiveReference is an archive by its place.
type ArchiveReference struct {
	// Where it is kept.
	// +required
	Store StoreSpec `json:"store"`

	// For a volume: the PersistentVolumeClaim, as NAME-archive. Nobody else may use it meanwhile.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Claim string `json:"claim,omitempty"`

	// Its folder there, as the status of its SampleDB and of its DatabaseBackups shows it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Path string `json:"path"`

	// The key it was encrypted with.
	// +optional
	Encryption *EncryptionSpec `json:"encryption,omitempty"`
}

// ArchiveKey is a key of an archive: what needs it, and whether the Secret has it.
type ArchiveKey struct {
	// Its public half. It is not given for what a former version has written without noting the key.
	// +optional
	Recipient string `json:"recipient,omitempty"`
	// How many backups need it, and how many objects of WAL. WAL from the time of a change counts for both keys.
	// +optional
	Backups int32 `json:"backups,omitempty"`
	// +optional
	WAL int32 `json:"wal,omitempty"`
	// Whether the Secret has its private half.
	// +optional
	Held bool `json:"held,omitempty"`
}

// RestoreWindow is a time of which every moment can be restored.
type RestoreWindow struct {
	// The branch: the number of the term that it begins with. Each restore in place leaves one and begins another.
	Branch int64 `json:"branch"`

	// From when, and from which position in the WAL.
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`
	// +optional
	EarliestLSN string `json:"earliestLSN,omitempty"`

	// Up to when, and up to which position. The branch that continues has neither.
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`
	// +optional
	LatestLSN string `json:"latestLSN,omitempty"`
}

// FormerArchive is the archive of a major version of PostgreSQL that a SampleDB has run before an upgrade. Nothing is
// written there any more, and retention goes on until it is empty.
type FormerArchive struct {
	// Its folder in the store, below the store's prefix.
	Path string `json:"path"`

	// The major version.
	Version int32 `json:"version"`

	// Since when the SampleDB has run that version, and until when.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// What can be restored of which branch, with that version, as it was when retention last looked: the newest branch
	// first, of each the latest first.
	// +optional
	Windows []RestoreWindow `json:"windows,omitempty"`

	// Whether nothing is left there. Then the SampleDB forgets it.
	// +optional
	Empty bool `json:"empty,omitempty"`

	// What retention has kept there although its rules would remove it, or what the store has refused to remove, and
	// what to do.
	// +optional
	Retention string `json:"retention,omitempty"`
}

// ScrubStatus is how far an archive was read again, and what was found.
type ScrubStatus struct {
	// When it was last read on.
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// From where on the next verification reads, in the order of the hashes of names.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Position string `json:"position,omitempty"`

	// When the round began that is under way, and how much of it is done.
	// +optional
	RoundStartedAt *metav1.Time `json:"roundStartedAt,omitempty"`
	// +optional
	Percent int32 `json:"percent,omitempty"`

	// When the last round began that has ended: every object from before then has been read since.
	// +optional
	WholeSince *metav1.Time `json:"wholeSince,omitempty"`

	// How many objects and bytes were read the last time, and how many bytes there are in all.
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// +optional
	TotalBytes int64 `json:"totalBytes,omitempty"`

	// The objects that are broken or lost, of many the first, and how many there are besides. They are read again each
	// time.
	// +optional
	Broken []BrokenObject `json:"broken,omitempty"`
	// +optional
	More int64 `json:"more,omitempty"`

	// Why the archive could not be read, the last time. What is said above is as it was before.
	// +optional
	Error string `json:"error,omitempty"`
}

// BrokenObject is an object of an archive that is not what was written there, or is not there.
type BrokenObject struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
	// Without it the newest backup can't be restored, or not to the end of the archive.
	// +optional
	Newest bool `json:"newest,omitempty"`
}

// BackupStatus is how the archive of a SampleDB is, and its base backups.
type BackupStatus struct {
	// The archive's folder in the store, below the store's prefix.
	// +optional
	Archive string `json:"archive,omitempty"`

	// The major version of PostgreSQL whose WAL and backups are there.
	// +optional
	Version int32 `json:"version,omitempty"`

	// The archives of former major versions that still have something, the newest first.
	// +optional
	Former []FormerArchive `json:"former,omitempty"`

	// Up to where the WAL is in the archive. While all goes well this, the lag and latest are renewed every ten
	// minutes; the operator's metrics have the lag at any time.
	// +optional
	ArchivedLSN string `json:"archivedLSN,omitempty"`
	// How much of the primary's WAL is not there yet, in bytes, and for how long, in whole seconds.
	// +optional
	LagBytes int64 `json:"lagBytes,omitempty"`
	// +optional
	LagSeconds int64 `json:"lagSeconds,omitempty"`

	// The moments that can be restored: from the end of the oldest backup that is kept,
	// to when the operator last saw the archive go on.
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`
	// +optional
	Latest *metav1.Time `json:"latest,omitempty"`

	// What can be restored of which branch, as it was when the last backup ended: the newest branch first, of each the
	// latest first.
	// +optional
	Windows []RestoreWindow `json:"windows,omitempty"`

	// What retention has kept at the last backup although its rules would remove it, why, and what to do. Empty if it
	// has kept nothing of that kind.
	// +optional
	Retention string `json:"retention,omitempty"`
	// What the store has refused to remove then, and what to do.
	// +optional
	DeletionRefused string `json:"deletionRefused,omitempty"`
	// The keys of the archive, as the last backup saw them: what needs them, and whether the Secret has them.
	// +optional
	Keys []ArchiveKey `json:"keys,omitempty"`
	// When the last Job NAME-retention was created, which removes what retention does not keep. It exists if such a Job
	// was needed: with deletionCredentials in the store, or because the store was full.
	// +optional
	LastRetentionAt *metav1.Time `json:"lastRetentionAt,omitempty"`

	// The last DatabaseBackup that is complete, and when it ended.
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`
	// +optional
	LastBackupAt *metav1.Time `json:"lastBackupAt,omitempty"`

	// The last DatabaseBackup that was verified, and when.
	// +optional
	LastVerified string `json:"lastVerified,omitempty"`
	// +optional
	LastVerifiedAt *metav1.Time `json:"lastVerifiedAt,omitempty"`

	// How far the archive was read again, and what was found.
	// +optional
	Scrub *ScrubStatus `json:"scrub,omitempty"`

	// When the next one is due by the schedule.
	// +optional
	NextBackupAt *metav1.Time `json:"nextBackupAt,omitempty"`
}
