package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RestoreSpec is what a new SampleDB begins with instead of an empty database: a
// backup, or an archive up to a moment. What it is restored from is only read.
//
// +kubebuilder:validation:XValidation:rule="[has(self.backup), has(self.sampleDB), has(self.archive)].filter(x, x).size() == 1",message="restoreFrom must have exactly one of backup, sampleDB and archive"
type RestoreSpec struct {
	// The name of a DatabaseBackup in the same namespace. Without a target the database is as it was when that
	// backup ended; with one it begins with that backup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=57
	// +optional
	Backup string `json:"backup,omitempty"`

	// The name of another SampleDB in the same namespace, which has an archive. It may run on meanwhile.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	SampleDB string `json:"sampleDB,omitempty"`

	// An archive by its place, as the status of a DatabaseBackup shows it: for one of another
	// namespace or cluster.
	// +optional
	Archive *ArchiveReference `json:"archive,omitempty"`

	// Up to which moment. By default: to the end of the archive, or of the backup.
	// +optional
	Target *RestoreTarget `json:"target,omitempty"`
}

// RestoreTarget is where a restore ends.
//
// +kubebuilder:validation:XValidation:rule="[has(self.time), has(self.lsn), has(self.transaction), has(self.name)].filter(x, x).size() == 1 || has(self.branch) && ![has(self.time), has(self.lsn), has(self.transaction), has(self.name)].exists(x, x)",message="restoreFrom.target must have exactly one of time, lsn, transaction and name, or branch alone for the end of that branch"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || !self.exclusive || has(self.time) || has(self.lsn) || has(self.transaction) || has(self.name)",message="restoreFrom.target.exclusive goes with time, lsn or transaction"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || !self.exclusive || !has(self.name)",message="restoreFrom.target.exclusive does not go with name: a named point lies between transactions"
type RestoreTarget struct {
	// A moment, such as 2026-11-20T03:15:00+09:00. What was committed until then is restored.
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:MaxLength=35
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9]+T[0-9:.]+(Z|[-+][0-9:]+)$')",message="target.time must be a moment with its time zone, such as 2026-11-20T03:15:00+09:00"
	// +optional
	Time string `json:"time,omitempty"`

	// A position in the WAL, such as 0/3000060.
	// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$`
	// +optional
	LSN string `json:"lsn,omitempty"`

	// The number of a transaction, as pg_current_xact_id() shows it.
	// +kubebuilder:validation:Pattern=`^[0-9]{1,20}$`
	// +optional
	Transaction string `json:"transaction,omitempty"`

	// The name of a point that was made with pg_create_restore_point.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Name string `json:"name,omitempty"`

	// End right before the time, the position or the transaction, not after it.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`

	// Of which branch, by its number in status.backup.windows, or that of any term on it. Each restore in place begins
	// another. It is needed where more than one has that moment; alone it is the end of that branch.
	// +kubebuilder:validation:XValidation:rule="self >= 1",message="target.branch must be a number from status.backup.windows"
	// +optional
	Branch int64 `json:"branch,omitempty"`
}

// What becomes of the data that a restore in place has replaced.
const (
	BeforeKeep   = "Keep"
	BeforeDelete = "Delete"
)

// InPlaceRestore brings an earlier state back from the SampleDB's own archive, in the place of what it has now.
//
// +kubebuilder:validation:XValidation:rule="[has(self.backup) || has(self.target), has(self.latest) && self.latest, has(self.survivor) && self.survivor].exists_one(x, x)",message="restore must have one of these: a target, or a backup, or both; latest: true for the end of the archive; survivor: true"
type InPlaceRestore struct {
	// A name for this restore. Each is done once: for another one, give it another.
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=40
	ID string `json:"id"`

	// The name of the SampleDB, to confirm that what was written since is not to be in the database any more.
	// +kubebuilder:validation:MaxLength=40
	Confirm string `json:"confirm"`

	// The name of a DatabaseBackup of this SampleDB to begin with. Without it, it is the latest before the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=57
	// +optional
	Backup string `json:"backup,omitempty"`

	// Up to which moment. By default: to the end of the backup.
	// +optional
	Target *RestoreTarget `json:"target,omitempty"`

	// To the end of the archive: where volumes lack what it has, or the data is lost.
	// +optional
	Latest bool `json:"latest,omitempty"`

	// Where too few have data to elect one, promote the instance with the most. What others had is lost.
	// +optional
	Survivor bool `json:"survivor,omitempty"`

	// What becomes of the data that is replaced: Keep leaves it on the volume of the instance that was the primary,
	// until it is changed to Delete.
	// +kubebuilder:validation:Enum=Keep;Delete
	// +kubebuilder:default=Keep
	// +optional
	Before string `json:"before,omitempty"`
}

// The causes of what is no restore of spec.restore from an archive: CauseDataLost is that of a restore which the
// operator has begun because no volume has the data any more, CauseSurvivor that of an instance which went on with the
// data that it had, by spec.restore.survivor.
const (
	CauseDataLost = "DataLost"
	CauseSurvivor = "Survivor"
)

// RestoreStatus is what a SampleDB has begun with, or was restored to in its place, or how far that is.
type RestoreStatus struct {
	// The id of a restore in place, and the instance on whose volume it is made.
	// +optional
	ID string `json:"id,omitempty"`
	// +optional
	Instance string `json:"instance,omitempty"`

	// DataLost (spec.backup.whenDataIsLost) or Survivor (spec.restore). archiveEnd and archiveEndAt are how far the
	// archive had reached: what was committed later is missing, or may be.
	// +optional
	Cause string `json:"cause,omitempty"`
	// +optional
	ArchiveEnd string `json:"archiveEnd,omitempty"`
	// +optional
	ArchiveEndAt *metav1.Time `json:"archiveEndAt,omitempty"`

	// The archive that is read, and the base backup in it.
	// +optional
	Archive string `json:"archive,omitempty"`
	// +optional
	Backup string `json:"backup,omitempty"`

	// The branch of the archive that it goes along.
	// +optional
	Branch int64 `json:"branch,omitempty"`

	// The Job that does it, how often that has failed, and when it did last. The pause before it is tried again doubles
	// each time.
	// +optional
	Job string `json:"job,omitempty"`
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// +optional
	FailedAt *metav1.Time `json:"failedAt,omitempty"`

	// How far it is.
	// +optional
	Progress *BackupProgress `json:"progress,omitempty"`

	// Up to which position the WAL was replayed, and when the last transaction in it was committed.
	// +optional
	LSN string `json:"lsn,omitempty"`
	// +optional
	LastTransactionAt *metav1.Time `json:"lastTransactionAt,omitempty"`

	// When it began, when the data of a restore in place was ready to be put into its place, and when all was done.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	PreparedAt *metav1.Time `json:"preparedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}
