package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FieldSampleDB is the field by which DatabaseBackups and FaultDrills can be selected: kubectl get databasebackups
// --field-selector.
const FieldSampleDB = "spec.sampleDB"

// DatabaseBackup is one base backup of a SampleDB. Creating it takes the backup.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=databasebackups,singular=databasebackup,shortName=dbb
// +kubebuilder:selectablefield:JSONPath=`.spec.sampleDB`
// +kubebuilder:printcolumn:name="SampleDB",type=string,JSONPath=`.spec.sampleDB`,description="Whose data it is"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="A summary of the conditions"
// +kubebuilder:printcolumn:name="Done",type=string,JSONPath=`.status.done`,description="How far it is"
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`,description="Whether it has everything, or what has changed"
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.size`,description="The size of the data"
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.storedSize`,description="What it takes in the archive"
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.conditions[?(@.type=='Verified')].status`,description="Whether it was restored and checked"
// +kubebuilder:printcolumn:name="Keep",type=boolean,JSONPath=`.spec.keep`,description="Whether retention leaves it alone",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 57",message="metadata.name must be at most 57 characters, because the name of its Pod is made from it"
type DatabaseBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to back up.
	// +required
	Spec DatabaseBackupSpec `json:"spec"`

	// What became of it.
	// +optional
	Status DatabaseBackupStatus `json:"status,omitempty"`
}

// DatabaseBackupSpec is what a user wants of a backup.
//
// +kubebuilder:validation:XValidation:rule="self.sampleDB == oldSelf.sampleDB",message="sampleDB can't be changed: create another DatabaseBackup"
// +kubebuilder:validation:XValidation:rule="(has(self.method) ? self.method : 'Archive') == (has(oldSelf.method) ? oldSelf.method : 'Archive')",message="method can't be changed: create another DatabaseBackup"
// +kubebuilder:validation:XValidation:rule="has(self.volumeSnapshotClassName) == has(oldSelf.volumeSnapshotClassName) && (!has(self.volumeSnapshotClassName) || self.volumeSnapshotClassName == oldSelf.volumeSnapshotClassName)",message="volumeSnapshotClassName can't be changed: create another DatabaseBackup"
// +kubebuilder:validation:XValidation:rule="has(self.method) && self.method == 'VolumeSnapshot' || !has(self.volumeSnapshotClassName)",message="volumeSnapshotClassName goes with method: VolumeSnapshot"
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method != 'VolumeSnapshot' || ![has(self.full) && self.full, has(self.verify) && self.verify, has(self.keep) && self.keep].exists(x, x)",message="full, verify and keep do not go with method: VolumeSnapshot: it has all of the volume, is proven by a SampleDB that is made of it, and stays as long as this DatabaseBackup"
type DatabaseBackupSpec struct {
	// The SampleDB, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	SampleDB string `json:"sampleDB"`

	// How: Archive copies the data into the archive. VolumeSnapshot has the storage cut a snapshot of the volume of
	// the primary, which takes seconds, in addition to the backups in the archive: it lies in the same storage as the
	// volume. It needs a CSI driver that can do it, and the archive for the WAL. It goes with this DatabaseBackup. By
	// default: Archive.
	// +optional
	Method BackupMethod `json:"method,omitempty"`

	// The VolumeSnapshotClass of a VolumeSnapshot. By default: the default one for the driver of the volume.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VolumeSnapshotClassName string `json:"volumeSnapshotClassName,omitempty"`

	// Which instance is copied: Standby is one that streams, where there is one, and the primary where there is none.
	// Primary has all that was committed when the backup ends.
	// +kubebuilder:default=Standby
	// +optional
	From BackupFrom `json:"from,omitempty"`

	// Take a full backup, though spec.backup.incremental of the SampleDB asks for one that has only what has changed.
	// +optional
	Full bool `json:"full,omitempty"`

	// Verify it when it is complete. To verify it again, set the annotation toban.dev/verify to
	// another text, such as the time.
	// +optional
	Verify bool `json:"verify,omitempty"`

	// Keep it, whatever backup.retention of the SampleDB says: it is pinned. Where no rule keeps it, it can be restored
	// as it was when it ended. It can be changed at any time; what has been removed already does not come back.
	// +optional
	Keep bool `json:"keep,omitempty"`

	// How long it may take from its creation on, for instance 90m. When that is over it has failed.
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="deadline must be from 1m to 720h"
	// +optional
	Deadline metav1.Duration `json:"deadline,omitempty"`

	// Stop it, if it has not ended yet.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// BackupMethod is how a backup is taken.
// +kubebuilder:validation:Enum=Archive;VolumeSnapshot
type BackupMethod string

// The values of BackupMethod.
const (
	MethodArchive        BackupMethod = "Archive"
	MethodVolumeSnapshot BackupMethod = "VolumeSnapshot"
)

// BySnapshot says that the backup is a snapshot of a volume, and not in the archive.
func (b *DatabaseBackup) BySnapshot() bool { return b.Spec.Method == MethodVolumeSnapshot }

// BackupFrom is which instance is copied.
// +kubebuilder:validation:Enum=Standby;Primary
type BackupFrom string

// The values of BackupFrom.
const (
	BackupFromStandby BackupFrom = "Standby"
	BackupFromPrimary BackupFrom = "Primary"
)

// BackupType is what a backup has.
type BackupType string

// The values of BackupType.
const (
	BackupFull        BackupType = "Full"
	BackupIncremental BackupType = "Incremental"
	BackupSnapshot    BackupType = "Snapshot"
)

// DatabaseBackupStatus is what became of a backup.
type DatabaseBackupStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// A summary for people: Pending, Running, Completed, Failed, Cancelled or Removed.
	// +optional
	Phase string `json:"phase,omitempty"`

	// How far it is.
	// +optional
	Progress *BackupProgress `json:"progress,omitempty"`

	// How far it is, as "42%".
	// +optional
	Done string `json:"done,omitempty"`

	// The instance it is taken from.
	// +optional
	Instance string `json:"instance,omitempty"`

	// How many times its Pod was started.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// When it began and ended.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// Full, Snapshot (of a volume), or Incremental: that has only what has changed since its parent, another backup of
	// the archive, by its id there.
	// +optional
	Type BackupType `json:"type,omitempty"`
	// +optional
	Parent string `json:"parent,omitempty"`

	// From where to where its own WAL goes: restored, it is consistent from stopLSN on.
	// +optional
	StartLSN string `json:"startLSN,omitempty"`
	// +optional
	StopLSN string `json:"stopLSN,omitempty"`

	// The version of PostgreSQL, and which database system it is.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`
	// +optional
	SystemIdentifier string `json:"systemIdentifier,omitempty"`

	// The size of the data, and what it takes in the archive.
	// +optional
	Size string `json:"size,omitempty"`
	// +optional
	StoredSize string `json:"storedSize,omitempty"`

	// Where it lies: the archive, and the backup's name in it. It is enough to restore
	// it when the SampleDB is gone.
	// +optional
	Archive *ArchiveReference `json:"archive,omitempty"`
	// +optional
	ID string `json:"id,omitempty"`

	// What it is with method: VolumeSnapshot.
	// +optional
	Snapshot *SnapshotStatus `json:"snapshot,omitempty"`

	// The manifest from which its SampleDB, or the PostgreSQL that this belonged to, can be made again when it is gone,
	// as it was when the backup began.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	Manifest *runtime.RawExtension `json:"manifest,omitempty"`

	// When it was complete: the end of the oldest backup in the archive, from which on every moment can be restored.
	// +optional
	Earliest *metav1.Time `json:"earliest,omitempty"`

	// When it was complete: what could be restored of which branch, and what its retention has not removed, why, and
	// what to do.
	// +optional
	Windows []RestoreWindow `json:"windows,omitempty"`
	// +optional
	Retention string `json:"retention,omitempty"`
	// When it was complete: the archives of former major versions, and what retention has left there.
	// +optional
	Former []FormerArchive `json:"former,omitempty"`
	// When it was complete: the keys of the archive.
	// +optional
	Keys []ArchiveKey `json:"keys,omitempty"`
	// What the store has refused to remove then, and what to do.
	// +optional
	DeletionRefused string `json:"deletionRefused,omitempty"`

	// How it was last verified.
	// +optional
	Verification *VerificationStatus `json:"verification,omitempty"`

	// What is true and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SnapshotStatus is the snapshot of a volume, and what makes a base backup of it.
type SnapshotStatus struct {
	// The VolumeSnapshot, in the same namespace.
	Name string `json:"name"`

	// Which backup it is: that of the session in which it was cut.
	ID string `json:"id"`

	// What pg_backup_stop has returned as backup_label: a server that starts with this data needs it.
	BackupLabel string `json:"backupLabel"`

	// The term and the timeline in which it was taken.
	Term int64 `json:"term"`
	// +optional
	Timeline int64 `json:"timeline,omitempty"`

	// When the session had ended.
	StoppedAt metav1.Time `json:"stoppedAt"`

	// How large a volume must be that is made of it at least, as the driver says.
	// +optional
	Size string `json:"size,omitempty"`
}

// VerificationStatus is what a verification has found.
type VerificationStatus struct {
	// Which request it was for: the value of the annotation toban.dev/verify, or spec.verify.
	// +optional
	Asked string `json:"asked,omitempty"`

	// When it began and ended.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// How long it took until the database could have been used, for instance 2.4s: what a restore would take.
	// +kubebuilder:validation:Format=duration
	// +optional
	RecoveryTime *metav1.Duration `json:"recoveryTime,omitempty"`

	// Up to which position the WAL was replayed, and when the last transaction in it was committed.
	// +optional
	LSN string `json:"lsn,omitempty"`
	// +optional
	LastTransactionAt *metav1.Time `json:"lastTransactionAt,omitempty"`

	// The steps: unpack, files, recover, amcheck, ask.
	// +optional
	Steps []VerificationStep `json:"steps,omitempty"`

	// What the database has answered to the assertions.
	// +optional
	Answers []VerificationAnswer `json:"answers,omitempty"`

	// The objects of the archive that are missing, truncated or altered.
	// +optional
	Objects []string `json:"objects,omitempty"`

	// How far the rest of the archive was read again, and what was found there.
	// +optional
	Scrub *ScrubStatus `json:"scrub,omitempty"`
}

// VerificationStep is a part of a verification.
type VerificationStep struct {
	Name string `json:"name"`
	// How long it took.
	// +kubebuilder:validation:Format=duration
	Took metav1.Duration `json:"took"`
	// Why it was not done.
	// +optional
	Skipped string `json:"skipped,omitempty"`
}

// VerificationAnswer is the answer to an assertion.
type VerificationAnswer struct {
	Name string `json:"name"`
	// The number of rows, and the first column of the first.
	Rows int64 `json:"rows"`
	// +optional
	Got string `json:"got,omitempty"`
	// What is wrong with it.
	// +optional
	Problem string `json:"problem,omitempty"`
}

// BackupProgress is how far a backup is.
type BackupProgress struct {
	// Bytes of data copied, and as far as is known how many there are.
	Bytes int64 `json:"bytes"`
	// +optional
	Total int64 `json:"total,omitempty"`
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// Bytes a second.
	// +optional
	Rate int64 `json:"rate,omitempty"`
}

// DatabaseBackupList is a list of DatabaseBackups.
//
// +kubebuilder:object:root=true
type DatabaseBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DatabaseBackup `json:"items"`
}

func init() {
	SchemeBuilder.Register(&DatabaseBackup{}, &DatabaseBackupList{})
}
