package v1

// Reasons of Archiving. None of them keeps Ready from being true.
const (
	// ReasonArchiving: commits reach the archive within about `spec.backup.maxLag`.
	// To do: nothing.
	ReasonArchiving = "Archiving"

	// ReasonArchiveStarting: the primary has not reported the state of its archive yet.
	// To do: wait. If it stays, `kubectl logs NAME-0` with the primary's number says why.
	ReasonArchiveStarting = "ArchiveStarting"

	// ReasonArchiveBehind: WAL waits for the archive for longer than the message says.
	// To do: check whether the store is slow or far away. While the database writes faster than the store, the lag
	// grows.
	ReasonArchiveBehind = "ArchiveBehind"

	// ReasonArchiveGap: WAL was lost before it was archived, so no restore can cross this gap.
	// To do: wait: a new base backup is taken without your help, and a new window begins with it.
	ReasonArchiveGap = "ArchiveGap"

	// ReasonArchiveFailing: the store does not accept the WAL; the message quotes it. The database keeps running.
	// To do: correct `spec.backup.store`, the Secret that it names, or the store. Up to a quarter of the volume can be
	// waiting WAL; after that there is a gap.
	ReasonArchiveFailing = "ArchiveFailing"

	// ReasonArchiveAhead: the archive has WAL of this leader that its server does not have: a volume has gone back in
	// time. Nothing is archived, so that nothing there is lost, and no backup begins.
	// To do: choose one of two. To get back what the volume has lost, restore in place to the end of the archive
	// (`kubectl toban restore NAME --to latest`); what was written since then is lost. Or give `spec.backup.store`
	// another prefix to continue with the present data; what was lost can be restored from the old archive into a new
	// SampleDB.
	ReasonArchiveAhead = "ArchiveAhead"

	// ReasonArchiveFull: the store has no room. What `spec.backup.retention` does not keep is removed at once, and
	// again every ten minutes; no backup begins before there is room. The database keeps running.
	// To do: enlarge `spec.backup.store.volume.size`, or the store, or keep less with `spec.backup.retention`. Up to a
	// quarter of the instance's volume can be waiting WAL; after that there is a gap.
	ReasonArchiveFull = "ArchiveFull"

	// ReasonArchiveTaken: the archive's folder belongs to another SampleDB, and nothing is written to it.
	// To do: give `spec.backup.store` another prefix.
	ReasonArchiveTaken = "ArchiveTaken"

	// ReasonNoArchive: `spec.backup.none` turns off archive and backups. Data that is lost with the volumes, or changed
	// by mistake, can't be restored. If the SampleDB is deleted, its volumes stay, unless `deletionPolicy` says Delete.
	// To do: nothing if you want this; otherwise remove `spec.backup.none`.
	ReasonNoArchive = "NoArchive"

	// ReasonArchiveStoreUnfit: the store ignores conditional writes and replaces existing objects, so two writers could
	// damage an archive. Nothing is written to it.
	// To do: use another store in `spec.backup.store`, or a version of this one that supports conditional writes (in
	// S3: `If-None-Match: *`).
	ReasonArchiveStoreUnfit = "ArchiveStoreUnfit"
)

// Reasons of RetentionApplied. None of them keeps Ready from being true.
const (
	// ReasonRetentionApplied: everything that should be removed from the archive is removed.
	// To do: nothing.
	ReasonRetentionApplied = "RetentionApplied"

	// ReasonRetentionHeld: retention has not removed what its rules would remove, because something else needs it or
	// because the rules are probably a mistake; the message says what it has kept, and why.
	// To do: what the message says.
	ReasonRetentionHeld = "RetentionHeld"

	// ReasonDeletionRefused: the store refuses to delete something that should be removed; the message quotes it.
	// Archiving and backups continue, and the rest is removed.
	// To do: nothing if the store must keep it for a time (object lock, a retention policy). Otherwise give the
	// credentials of `spec.backup.store` the right to delete, or name credentials with that right as its
	// `deletionCredentials`. If the store never allows deletion, let a rule of the store remove old objects.
	ReasonDeletionRefused = "DeletionRefused"

	// ReasonRetentionFailing: the Job NAME-retention could not remove what should be removed; the message quotes it.
	// It is tried again every ten minutes.
	// To do: correct what the message names, usually the Secret of `deletionCredentials` in `spec.backup.store`.
	ReasonRetentionFailing = "RetentionFailing"
)

// Reasons of KeysHeld. None of them keeps Ready from being true.
const (
	// ReasonKeysHeld: the Secret has every key that the archive needs.
	// To do: nothing. A former key that the message names as needed by nothing may be taken out of the Secret.
	ReasonKeysHeld = "KeysHeld"

	// ReasonKeyMissing: the Secret lacks a key that something in the archive needs, or that everything is encrypted
	// for from now on. What needs it can't be restored. Archiving and backups go on.
	// To do: put the key that the message names back into `age.key` of the Secret, from your copy, below the others.
	// The next backup looks again: `kubectl toban backup NAME`.
	ReasonKeyMissing = "KeyMissing"

	// ReasonKeyNotTried: `spec.backup.encryption.recipient` was changed, and no backup has looked yet whether the
	// Secret has its private half. One is taken at once.
	// To do: wait for that backup.
	ReasonKeyNotTried = "KeyNotTried"
)

// Reasons of Scheduled. None of them keeps Ready from being true.
const (
	// ReasonScheduled: a backup is taken whenever the schedule asks for one;
	// `status.backup.nextBackupAt` says when that is.
	// To do: nothing.
	ReasonScheduled = "Scheduled"

	// ReasonScheduleInvalid: `spec.backup.schedule` or its time zone is not valid, or names a day that never comes. WAL
	// is archived, but no backups are taken, or only the first one. With `spec.drills.schedule` it is also a reason of
	// DrillsPassed.
	// To do: correct what the message names.
	ReasonScheduleInvalid = "ScheduleInvalid"

	// ReasonBackupOverdue: the schedule has asked for a backup, and neither that one nor a later one was complete in
	// time: in twice the time until the next run, at least an hour and at most a day. WAL is archived as before; a
	// restore from an older backup takes longer.
	// To do: see what the message says of the last attempt, and mend that. The next run tries again;
	// `kubectl toban backup NAME` does so at once. If backups take longer than that, use a schedule with fewer runs.
	ReasonBackupOverdue = "BackupOverdue"
)

// Reasons of Restored. While it is not true, its reason is also the reason of Ready. The exception is a restore in
// place that is being prepared or has failed: the database then serves as before.
const (
	// ReasonRestored: the data is restored; the message says up to which moment.
	// To do: nothing. You may remove `spec.restoreFrom` or `spec.restore`.
	ReasonRestored = "Restored"

	// ReasonRestoring: a Pod restores the data; the message and `status.restore.progress` show the progress.
	// To do: wait.
	ReasonRestoring = "Restoring"

	// ReasonRestoreFailed: the restore has failed; the message quotes the last Pod. Nothing in the archive was changed.
	// To do: correct `spec.restoreFrom`, `spec.restore` or what the message names. The restore is tried again after
	// five minutes, and then after growing pauses; the message says when. It is tried at once if the spec changes or
	// the Job is deleted.
	ReasonRestoreFailed = "RestoreFailed"

	// ReasonRestoreSourceNotFound: what `spec.restoreFrom` or `spec.restore` names does not exist, has no archive, or
	// is not a complete backup. It is a reason of Complete too, of a DatabaseRestore.
	// To do: correct the field, or create what it names.
	ReasonRestoreSourceNotFound = "RestoreSourceNotFound"
)

// Reasons of Intact.
const (
	// ReasonIntact: all objects that were read again are as they were written. The message says since when that is so
	// for the whole archive.
	// To do: nothing.
	ReasonIntact = "Intact"

	// ReasonObjectsBroken: objects of the archive are lost, or are not as they were written: the message names them.
	// Backups that need them can't be restored. If the newest backup needs them, a full one is taken at once. Older
	// backups stay until retention removes them.
	// To do: put the objects back from a copy, or from a former version if the store has one, and find out what has
	// changed them. Each verification reads them again: `kubectl annotate databasebackup NAME toban.dev/verify=again
	// --overwrite` asks for one.
	ReasonObjectsBroken = "ObjectsBroken"
)

// Reasons of Copied. None of them keeps Ready from being true.
const (
	// ReasonCopied: everything that the archive had at most an hour ago is in the second store, and can be restored
	// from there. `status.backup.copy` has the moment.
	// To do: nothing.
	ReasonCopied = "Copied"

	// ReasonCopyStarting: the first copy is under way, or the archive has no complete backup yet.
	// To do: wait. `kubectl logs -l toban.dev/sampledb=NAME,toban.dev/component=second` shows how much was copied.
	ReasonCopyStarting = "CopyStarting"

	// ReasonCopyBehind: the copy lacks what the archive had at the moment in the message, more than an hour ago. The
	// archive itself is not concerned.
	// To do: see whether the Job NAME-copy-HASH runs, and how fast the stores are. If many SampleDBs wait for their
	// turn, raise `--copies-at-once` of the operator.
	ReasonCopyBehind = "CopyBehind"

	// ReasonCopyFailing: a store refuses, or something could not be copied or removed; the message says what. It is
	// tried again ten minutes after each run. The archive itself is not concerned.
	// To do: correct what the message names: `spec.backup.secondStore`, its Secret, the rights of its credentials, or
	// the store. What is broken in the first store may be whole in the copy, or in another copy of yours.
	ReasonCopyFailing = "CopyFailing"

	// ReasonCopyStopped: the database is stopped (`spec.stopped`), and so is the copying. `status.backup.copy.until`
	// says what the copy has: the last minutes before the stop may be in the archive alone.
	// To do: nothing; the copy goes on when the database starts.
	ReasonCopyStopped = "CopyStopped"

	// ReasonCopyAlone: the archive has lost backups that `spec.backup.retention` keeps; the message names them. The
	// copy still has them, and keeps them for as long as these rules ask for.
	// To do: find out who has removed them, and change the credentials of `spec.backup.store` if it was nobody of
	// yours. To use them, restore from the copy ("From the second store" in docs/store.md). If they were removed on
	// purpose, remove them from the second store too.
	ReasonCopyAlone = "CopyAlone"
)

// Reasons of Complete and Verified. They are those of a DatabaseBackup.
const (
	// ReasonQueued: as many backups, or verifications, run in all namespaces as the operator allows at once.
	// To do: wait; the oldest begins first, and what somebody has asked for goes before what a schedule has. If many
	// wait for long, see "How many at once" in docs/backup.md.
	ReasonQueued = "Queued"
)

// Reasons of Complete. They are those of a DatabaseBackup, of a DatabaseRestore, and of a FaultDrill.
const (
	// ReasonCompleted: the backup is in the archive; what a DatabaseRestore brings back is in the database; a
	// FaultDrill has a result, which its condition Passed judges.
	// To do: nothing.
	ReasonCompleted = "Completed"

	// ReasonWaiting: another backup of the SampleDB is running, or was asked for earlier; or its Job is being removed.
	// To do: wait; backups are taken one after the other.
	ReasonWaiting = "Waiting"

	// ReasonArchiveNotReady: the SampleDB has no archive, or the archive does not work.
	// To do: set `spec.backup` of the SampleDB, or see its condition Archiving. It begins when the archive works.
	ReasonArchiveNotReady = "ArchiveNotReady"

	// ReasonSnapshotAPIMissing: `spec.method` is VolumeSnapshot, and the cluster has no VolumeSnapshots.
	// To do: install the CRDs and the controller of external-snapshotter, and a CSI driver that has snapshots; it
	// begins then. Or take a backup without `method`.
	ReasonSnapshotAPIMissing = "SnapshotAPIMissing"

	// ReasonSampleDBNotFound: there is no SampleDB of that name.
	// To do: create it, or delete the DatabaseBackup, the DatabaseRestore or the FaultDrill.
	ReasonSampleDBNotFound = "SampleDBNotFound"

	// ReasonBackupNameTaken: a Job of this name exists and does not belong to this backup, restore or drill.
	// To do: delete or rename that Job, or create the DatabaseBackup, the DatabaseRestore or the FaultDrill with
	// another name.
	ReasonBackupNameTaken = "BackupNameTaken"

	// ReasonRunning: its Pod is being started, or copies or restores the data, or writes while a FaultDrill breaks
	// something.
	// To do: wait. The message and `kubectl logs job/NAME` show the progress.
	ReasonRunning = "Running"

	// ReasonFailed: the backup, the restore or the drill has failed; the message quotes the last Pod, or says why a
	// drill has no result.
	// To do: correct what the message names, and create another one.
	ReasonFailed = "Failed"

	// ReasonDeadlineExceeded: it took longer than `spec.deadline`, and was stopped.
	// To do: see in the message what it waited for, and create another one with a longer deadline.
	ReasonDeadlineExceeded = "DeadlineExceeded"

	// ReasonRemoved: the backup was complete; since then retention has removed its data from the archive.
	// To do: nothing; the DatabaseBackup may be deleted.
	ReasonRemoved = "Removed"

	// ReasonCancelled: `spec.cancel` has stopped it.
	// To do: nothing.
	ReasonCancelled = "Cancelled"
)

// Reasons of Verified. They are those of a DatabaseBackup.
const (
	// ReasonVerified: the backup can be restored; `status.verification` says how long that takes
	// and up to which moment.
	// To do: nothing.
	ReasonVerified = "Verified"

	// ReasonVerifying: its Pod is being started, or restores and checks.
	// To do: wait. The message and `kubectl logs` of the Job that it names show the progress.
	ReasonVerifying = "Verifying"

	// ReasonVerificationFailed: the backup can't be restored, or an assertion has failed; the message names
	// the object or the assertion.
	// To do: take another backup at once (`kubectl toban backup NAME`), and find out what has changed
	// the object or the data.
	ReasonVerificationFailed = "VerificationFailed"
)
