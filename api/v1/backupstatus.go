package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// The archive's folder, below the store's prefix.
	// +optional
	Archive string `json:"archive,omitempty"`

	// The store.
	// +optional
	Store string `json:"store,omitempty"`

	// Since when, after another one.
	// +optional
	StoreSince *metav1.Time `json:"storeSince,omitempty"`

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
	// When the last Job NAME-retention was created, which removes what retention does not keep: with
	// deletionCredentials in the store, or because the store was full.
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

	// The copy in spec.backup.secondStore.
	// +optional
	Copy *CopyStatus `json:"copy,omitempty"`

	// When the next one is due by the schedule.
	// +optional
	NextBackupAt *metav1.Time `json:"nextBackupAt,omitempty"`
}

// CopyStatus is how far the second store has what the archive has.
type CopyStatus struct {
	// Where it is.
	// +optional
	Place string `json:"place,omitempty"`

	// Everything that the archive had at this moment is in the copy, and can be restored up to this position.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// +optional
	LSN string `json:"lsn,omitempty"`

	// When a Job has last compared both stores, and how many objects and bytes it has copied.
	// +optional
	CheckedAt *metav1.Time `json:"checkedAt,omitempty"`
	// +optional
	Objects int64 `json:"objects,omitempty"`
	// +optional
	Bytes int64 `json:"bytes,omitempty"`

	// Backups that only the copy has, though retention keeps them: the archive has lost them. Of many the first.
	// +optional
	Alone []string `json:"alone,omitempty"`

	// What could not be copied or removed the last time, and why.
	// +optional
	Problem string `json:"problem,omitempty"`
}
