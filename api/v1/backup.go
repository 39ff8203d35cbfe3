package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What to do when no volume has the data any more.
const (
	DataLostWait    = "Wait"
	DataLostRestore = "Restore"
)

// BackupSpec says where the archive of a SampleDB lies and when base backups are
// taken. Its WAL goes there all the time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.none) || !self.none || !(has(self.schedule) || has(self.timeZone) || has(self.spread) || has(self.secondStore) || has(self.encryption) || has(self.incremental) || has(self.maxLag) || has(self.whenDataIsLost) || [has(self.store) && has(self.store.volume), has(self.store) && has(self.store.s3), has(self.store) && has(self.store.gcs), has(self.store) && has(self.store.azure)].exists(x, x))",message="backup.none: true means no archive and no backups: remove the other fields of backup, or none"
// +kubebuilder:validation:XValidation:rule="!has(self.store) || !has(self.secondStore) || [!has(self.store.s3) || !has(self.secondStore.s3) || [self.store.s3.bucket != self.secondStore.s3.bucket || has(self.store.s3.endpoint) != has(self.secondStore.s3.endpoint) || (has(self.store.s3.endpoint) ? self.store.s3.endpoint != self.secondStore.s3.endpoint : false), !has(self.store.s3.credentials) || self.store.s3.credentials.name != self.secondStore.s3.credentials.name].all(x, x), !has(self.store.gcs) || !has(self.secondStore.gcs) || [self.store.gcs.bucket != self.secondStore.gcs.bucket, !has(self.store.gcs.credentials) || self.store.gcs.credentials.name != self.secondStore.gcs.credentials.name].all(x, x), !has(self.store.azure) || !has(self.secondStore.azure) || [self.store.azure.account != self.secondStore.azure.account || self.store.azure.container != self.secondStore.azure.container, !has(self.store.azure.credentials) || self.store.azure.credentials.name != self.secondStore.azure.credentials.name].all(x, x)].all(x, x)",message="backup.secondStore must be another bucket than backup.store, and its credentials another Secret: the instances have that of backup.store"
// +kubebuilder:validation:XValidation:rule="has(self.timeZone) ? has(self.schedule) : true",message="backup.timeZone is that of backup.schedule, which is missing"
type BackupSpec struct {
	// Do without an archive and without backups: what is lost with the volumes, or by mistake, is lost for good.
	// +optional
	None bool `json:"none,omitempty"`

	// Where the archive is kept. By default: a volume of its own in the cluster.
	// +optional
	Store StoreSpec `json:"store,omitempty"`

	// Where a copy of the archive is kept, in another region or with another provider. A Job copies what is new, about
	// every ten minutes; the instances have no access to it.
	// +optional
	SecondStore *SecondStoreSpec `json:"secondStore,omitempty"`

	// The key to encrypt everything with before it leaves the Pod.
	// +optional
	Encryption *EncryptionSpec `json:"encryption,omitempty"`

	// When base backups are taken, as in cron (minute, hour, day, month, weekday), or @hourly, @daily, @weekly. The
	// first one is taken as soon as there is an archive. By default: once a day, at a minute of the SampleDB's own,
	// as Scheduled says. With none: only the first, and those asked for by a DatabaseBackup.
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// The time zone of the schedule, for instance Asia/Tokyo. UTC by default.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// How much later than their schedules say backups and verifications may begin: each SampleDB has a fixed share of
	// this time, so that not all begin at once. By default: a tenth of the time until the next run, at most 15m. It
	// does not apply to a schedule that is not given.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="backup.spread must be from 0s to 24h"
	// +optional
	Spread *metav1.Duration `json:"spread,omitempty"`

	// Which backups have only what has changed since the one before. It needs PostgreSQL 17. Where it is not
	// given every backup has everything.
	// +optional
	Incremental *IncrementalSpec `json:"incremental,omitempty"`

	// For how long a commit may wait for the archive, while the store takes what it is given: what is lost if all
	// volumes are lost at once. Less costs more requests to the store. With 0s everything is archived every half
	// second. By default: 10s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="backup.maxLag must be from 0s to 1h"
	// +optional
	MaxLag *metav1.Duration `json:"maxLag,omitempty"`

	// What to do when no volume has the data any more. Wait: it stays down, and Available says how to bring it back.
	// Restore: once every instance answers that its volume is new, it begins again with what the archive has, without
	// what was committed since. By default: Wait.
	// +kubebuilder:validation:Enum=Wait;Restore
	// +optional
	WhenDataIsLost string `json:"whenDataIsLost,omitempty"`

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

	// When the last backup is verified, with all WAL up to then: as backup.schedule. By default: once a week, at a
	// minute of the SampleDB's own, and never where afterBackup verifies each. With none: never.
	// +kubebuilder:validation:MaxLength=100
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Questions to the restored database. Each must succeed, and give what is wanted.
	// +kubebuilder:validation:MaxItems=50
	// +listType=map
	// +listMapKey=name
	// +optional
	Assertions []Assertion `json:"assertions,omitempty"`

	// The size of the scratch volume. By default: that of storage.size, and twice that with backup.incremental.
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

	// Within how many days every object is read, where there is a verification at least twice as often. By default:
	// 30.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 3650",message="backup.verification.scrub.days must be from 1 to 3650"
	// +optional
	Days int32 `json:"days,omitempty"`

	// How much a verification reads at most for that, such as 50Gi. All of the archive may then take longer. By
	// default: as much as the days ask for.
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

// EncryptionSpec is how an archive is encrypted.
type EncryptionSpec struct {
	// The public half of the key, age1…, as `age-keygen` shows it. The instances encrypt with it. Another one is taken
	// at once, without a restart: put its private half into the Secret before.
	// +kubebuilder:validation:Pattern=`^age1[0-9a-z]{58}$`
	// +required
	Recipient string `json:"recipient"`

	// A Secret with age.key: what `age-keygen` writes, of each key that is needed. Only containers that read
	// the archive get it. Keep a copy outside the cluster: without it the archive is of no use.
	// +required
	Key SecretReference `json:"key"`
}

// RetentionSpec says which part of an archive is kept: the one that count or days asks for. The last good backup is
// always kept, and so is the WAL that leads on from any kept backup.
type RetentionSpec struct {
	// How many base backups are kept of each kind: of the schedule, asked for, before a migration of a MyApp, and the
	// last one of a SampleDB that is deleted. Only those count that can be restored, also those before a gap or on a
	// branch that a restore in place has left.
	// +kubebuilder:default=7
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 10000",message="backup.retention.count must be from 1 to 10000"
	// +optional
	Count int32 `json:"count,omitempty"`

	// For how many days every moment can be restored, except those in a gap.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 36500",message="backup.retention.days must be from 1 to 36500"
	// +optional
	Days int32 `json:"days,omitempty"`
}
