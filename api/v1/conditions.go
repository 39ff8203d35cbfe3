package v1

// The types of a SampleDB's conditions.
const (
	// ConditionReady is true when the primary takes writes and every wanted
	// instance does what its role asks with the spec as it is.
	ConditionReady = "Ready"

	// ConditionAvailable is true when the primary takes writes.
	ConditionAvailable = "Available"

	// ConditionInitialized is true when the init Job has done its work.
	ConditionInitialized = "Initialized"

	// ConditionConfigurationApplied is true when every instance runs with the
	// parameters of the spec.
	ConditionConfigurationApplied = "ConfigurationApplied"

	// ConditionDurable is true when each acknowledged commit is on at least two
	// instances: losing one of them now would lose nothing. A lone instance can't be, and is
	// Ready all the same; so is a SampleDB that does without by `spec.durability: async`.
	ConditionDurable = "Durable"

	// ConditionStorageReady is true when every volume has the size of the spec.
	ConditionStorageReady = "StorageReady"
	// ConditionPasswordRotated is true when the Secret NAME-app and the server have the password that was asked for
	// last by `toban.dev/rotate-password`. It is there when one was.
	ConditionPasswordRotated = "PasswordRotated"
	// ConditionArchiving is true when the WAL reaches the archive as it is written. The database does not wait for it,
	// and neither does Ready.
	ConditionArchiving = "Archiving"
	// ConditionRetentionApplied is true when what `spec.backup.retention` does not keep was removed the last time that
	// was tried. It is there when a backup has been taken. Archiving and backups go on without it.
	ConditionRetentionApplied = "RetentionApplied"
	// ConditionKeysHeld is true when the Secret of `spec.backup.encryption.key` had, when the last backup looked, the
	// private half of every key that the archive needs. Its message says which former keys have to stay, and which
	// nothing needs any more. It is there with encryption, when a backup has looked.
	ConditionKeysHeld = "KeysHeld"
	// ConditionScheduled is true when backups are taken by `spec.backup.schedule`, or by the default one. It is
	// there where one of them is.
	ConditionScheduled = "Scheduled"
	// ConditionIntact is true when no object of the archive was found broken or lost, by the verifications that read it
	// again over time. It is there when one has.
	ConditionIntact = "Intact"
	// ConditionRestored is true when the data of `spec.restoreFrom` or `spec.restore` is there. Until that of the
	// former is, there is no instance. It is there where one of them is, or was.
	ConditionRestored = "Restored"
	// ConditionComplete is true when the backup is in the archive, with the WAL that it needs. It belongs to a
	// DatabaseBackup. While it is false, the reason says whether the backup is still running or has ended.
	ConditionComplete = "Complete"
	// ConditionVerified is true when the backup was restored into a scratch volume, brought to the end of the WAL,
	// checked file by file and page by page, and gave the wanted answers. It belongs to a DatabaseBackup that is to be
	// verified.
	ConditionVerified = "Verified"
)

// docs/reference/conditions.md is written from what follows: each reason says what
// it means, and after "To do" what the user does.

// Reasons of Ready. Where another condition keeps Ready from being true, Ready has
// that one's reason.
const (
	// ReasonReady: all is as the spec wants it.
	// To do: nothing.
	ReasonReady = "Ready"

	// ReasonInstancesUnready: some instance does not do what its role asks; the primary takes writes.
	// To do: wait a minute, as a Pod that comes back needs. If it stays, see what the message says of
	// the instance, and `kubectl logs NAME-0` with its number.
	ReasonInstancesUnready = "InstancesUnready"

	// ReasonUpdating: a change of the spec is being applied, one instance after the other.
	// To do: wait; the message says which instance is next, or what it waits for.
	ReasonUpdating = "Updating"

	// ReasonScaling: instances are being added or removed.
	// To do: wait; a new instance copies the data first, and one that goes must first neither be
	// the primary nor count for commits and votes. The message says what it waits for.
	ReasonScaling = "Scaling"

	// ReasonNotVoting: some instance is ready, but its acknowledgements and its vote do not count yet.
	// To do: wait; the primary admits one instance after the other, each when it has all the data. If it
	// stays, `kubectl logs NAME-0` with the primary's number says why.
	ReasonNotVoting = "NotVoting"
)

// Reasons of Available.
const (
	// ReasonPrimaryReady: the primary takes writes.
	// To do: nothing.
	ReasonPrimaryReady = "PrimaryReady"
)

// Reasons of Ready and Available.
const (
	// ReasonCreating: the first start, or an object is being made anew; not there yet.
	// To do: wait. If it stays, `kubectl get pods -l toban.dev/sampledb=NAME` shows how far it is.
	ReasonCreating = "Creating"

	// ReasonNoPrimary: no instance takes writes, although one did before.
	// To do: wait; another instance takes over within seconds. If none does, the message says why; see
	// `kubectl describe pods -l toban.dev/sampledb=NAME` and whether their nodes are there.
	ReasonNoPrimary = "NoPrimary"

	// ReasonNotPublished: the primary takes writes, but its Pod does not have the label by which the Service finds it.
	// To do: wait; the agent sets it as soon as the API server answers it. If it stays, see
	// `kubectl logs NAME-N` and whether the Pod's ServiceAccount may patch its Pod.
	ReasonNotPublished = "NotPublished"

	// ReasonUnschedulable: no node takes a Pod; the message has the scheduler's words.
	// To do: make room, or ask for less in `spec.resources` and `spec.pod`.
	ReasonUnschedulable = "Unschedulable"

	// ReasonPodRefused: the cluster does not let a Pod be made: a quota, a limit range or a policy refuses it, in the
	// words of the message.
	// To do: raise the quota, or fit `spec.resources` and `spec.pod` to what is allowed. It is tried again by itself,
	// after up to a quarter of an hour; `kubectl annotate statefulset NAME tried=again` has it tried at once.
	ReasonPodRefused = "PodRefused"

	// ReasonImageUnusable: the image can't be pulled or run, or has no PostgreSQL of the wanted version in it.
	// To do: mend `spec.image`, or add what the registry asks for to `spec.pod.imagePullSecrets`.
	ReasonImageUnusable = "ImageUnusable"

	// ReasonNameTaken: an object that is not this SampleDB's has a name that it needs.
	// To do: rename or delete the object that the message names, or create the SampleDB with another name.
	ReasonNameTaken = "NameTaken"

	// ReasonInvalidSpec: the cluster refuses an object made from the spec, or a container of a Pod.
	// To do: change what the message names: the spec, or the cluster's policy or quota that forbids it.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonCrashing: a container of an instance ends again and again.
	// To do: read why in the message, and in `kubectl logs NAME-0 --previous` with the instance's number.
	ReasonCrashing = "Crashing"

	// ReasonDeleting: the SampleDB is being deleted.
	// To do: wait; the message says for what. It ends by itself.
	ReasonDeleting = "Deleting"

	// ReasonUnknown: the agents could not be asked, which says nothing about the database. Also of
	// ConfigurationApplied and Durable.
	// To do: see whether a network policy keeps the operator from port 8443 of the Pods, and
	// `kubectl -n toban-system logs deployment/toban-operator`.
	ReasonUnknown = "Unknown"
)

// Reasons of Initialized. Those that keep it from being true are reasons of Ready too.
const (
	// ReasonInitialized: the init Job has done its work.
	// To do: nothing.
	ReasonInitialized = "Initialized"

	// ReasonInitRunning: the init Job waits for the primary, or works.
	// To do: wait. `kubectl get jobs -l toban.dev/sampledb=NAME` shows the Job; its log says what it does.
	ReasonInitRunning = "InitRunning"

	// ReasonInitFailed: a step of the init Job failed; the message says which, in PostgreSQL's words.
	// To do: mend `spec.init` or the SQL that it names: the change makes a new Job, which goes on after
	// the sources that have run.
	ReasonInitFailed = "InitFailed"

	// ReasonConfigMapNotFound: `spec.init` names a ConfigMap or a key that is not there.
	// To do: create the ConfigMap or add the key that the message names, or mend `spec.init`.
	ReasonConfigMapNotFound = "ConfigMapNotFound"

	// ReasonSecretNotFound: `spec.init` names a Secret or a key that is not there.
	// To do: create the Secret or add the key that the message names, or mend `spec.init`. The Job is
	// tried again within minutes.
	ReasonSecretNotFound = "SecretNotFound"
)

// Reasons of ConfigurationApplied. Those that keep it from being true are reasons of Ready too.
const (
	// ReasonApplied: every instance runs with the parameters of the spec.
	// To do: nothing.
	ReasonApplied = "Applied"

	// ReasonApplying: the configuration is on its way to the instances that the message names.
	// To do: wait; an instance that does not run yet takes it when it starts.
	ReasonApplying = "Applying"

	// ReasonRestarting: a parameter needs a restart; instances restart one by one, the primary last.
	// To do: wait. If it stays, Ready says which instance has to be ready first.
	ReasonRestarting = "Restarting"

	// ReasonParameterRejected: PostgreSQL refuses a value, and the message has its words; the servers run as before.
	// To do: mend `spec.postgresql`: `kubectl edit sampledb NAME`.
	ReasonParameterRejected = "ParameterRejected"
)

// Reasons of Durable. Of these only Weakened keeps Ready from being true.
const (
	// ReasonDurable: each acknowledged commit is on as many instances as the message says, at least two.
	// To do: nothing.
	ReasonDurable = "Durable"

	// ReasonWeakened: the primary goes on alone, because no other instance has all the data; what is
	// written now is on one disk.
	// To do: get the other instances back: Ready and `kubectl get pods -l toban.dev/sampledb=NAME` say what they lack.
	ReasonWeakened = "Weakened"

	// ReasonSingleInstance: there is one instance by the spec, and with its volume the data would be lost.
	// To do: nothing if that is meant; else raise `spec.instances`.
	ReasonSingleInstance = "SingleInstance"

	// ReasonAsynchronous: by `spec.durability: async` commits wait for the primary's disk only; with it the
	// last ones would be lost.
	// To do: nothing if that is meant; else set `spec.durability: quorum`.
	ReasonAsynchronous = "Asynchronous"
)

// Reasons of StorageReady. Those that keep it from being true are reasons of Ready too.
const (
	// ReasonBound: every volume is there with its size.
	// To do: nothing.
	ReasonBound = "Bound"

	// ReasonProvisioning: a volume is being made.
	// To do: wait. If it stays, see `kubectl describe pvc data-NAME-0`: the storage's own provisioner says why.
	ReasonProvisioning = "Provisioning"

	// ReasonResizing: a volume is growing; the database goes on.
	// To do: wait. If it stays, see `kubectl describe pvc data-NAME-0`.
	ReasonResizing = "Resizing"

	// ReasonResizeRefused: the volumes can't grow; the message says why. The database goes on with the old size.
	// To do: set `allowVolumeExpansion: true` in the StorageClass if its storage can do it; else create
	// another SampleDB and move the data with pg_dump, because a size can't go back.
	ReasonResizeRefused = "ResizeRefused"

	// ReasonStorageClassNotFound: the StorageClass does not exist, or the cluster has no default one. Before the first
	// start also of Available.
	// To do: create it or mark one as the default, or create the SampleDB anew with another
	// `spec.storage.storageClassName`; `kubectl get storageclass` lists them.
	ReasonStorageClassNotFound = "StorageClassNotFound"
)

// Reasons of PasswordRotated. None of them keeps Ready from being true.
const (
	// ReasonRotated: the Secret NAME-app and the server have the new password.
	// To do: restart the applications that read the Secret only when they start.
	ReasonRotated = "Rotated"

	// ReasonRotationWaits: another password was asked for, and can't be given now; the message says why. All is as
	// before.
	// To do: what the message says. To take the request back: `kubectl annotate sampledb NAME
	// toban.dev/rotate-password-`.
	ReasonRotationWaits = "RotationWaits"

	// ReasonWritingSecret: the former Secret NAME-app has to go before the new one is there. The server has the
	// former password still.
	// To do: wait some seconds. If it stays, delete the Secret: one that an earlier release or somebody else
	// has made the operator can't replace.
	ReasonWritingSecret = "WritingSecret"

	// ReasonSettingPassword: the Secret NAME-app has the new password, and the server does not have it yet.
	// To do: wait until the primary takes it; the message says what it waits for.
	ReasonSettingPassword = "SettingPassword"
)

// Reasons of Archiving. None of them keeps Ready from being true.
const (
	// ReasonArchiving: no commit waits for the archive for much longer than `spec.backup.maxLag`.
	// To do: nothing.
	ReasonArchiving = "Archiving"

	// ReasonArchiveStarting: the primary has not said yet how its archive is.
	// To do: wait. If it stays, `kubectl logs NAME-0` with the primary's number says why.
	ReasonArchiveStarting = "ArchiveStarting"

	// ReasonArchiveBehind: WAL waits for the archive for longer than the message says.
	// To do: see whether the store is slow or far away; while writes go on faster than it takes them, the lag grows.
	ReasonArchiveBehind = "ArchiveBehind"

	// ReasonArchiveGap: WAL was lost before it was archived; no moment across the gap can be restored.
	// To do: wait: a new base backup is taken by itself, and the window begins anew with it.
	ReasonArchiveGap = "ArchiveGap"

	// ReasonArchiveFailing: the store does not take the WAL; the message has its words. The database goes on.
	// To do: mend `spec.backup.store`, the Secret it names, or the store. WAL waits up to a quarter of the
	// volume, then there is a gap.
	ReasonArchiveFailing = "ArchiveFailing"

	// ReasonArchiveAhead: the archive has WAL of this leader that its server does not have: a volume has gone back in
	// time. Nothing is archived, so that nothing there is lost, and no backup is begun.
	// To do: to have back what the volume has lost, restore in place without a target (`spec.restore`): what was
	// written since then is gone. Or give `spec.backup.store` another prefix, to go on with what there is; what was
	// lost can be restored from the old one into a new SampleDB.
	ReasonArchiveAhead = "ArchiveAhead"

	// ReasonArchiveFull: the store has no room. What `spec.backup.retention` does not keep is removed at once, and
	// again every ten minutes; no backup begins before there is room. The database goes on.
	// To do: enlarge `spec.backup.store.volume.size`, or the store, or keep less by `spec.backup.retention`. WAL waits
	// up to a quarter of the volume, then there is a gap.
	ReasonArchiveFull = "ArchiveFull"

	// ReasonArchiveTaken: the archive's folder belongs to another SampleDB, and nothing is written to it.
	// To do: give `spec.backup.store` another prefix.
	ReasonArchiveTaken = "ArchiveTaken"

	// ReasonNoArchive: by `spec.backup.none` there is neither an archive nor a backup: what is lost with the
	// volumes, or changed by mistake, is lost for good. A SampleDB that is deleted leaves its volumes, unless
	// `deletionPolicy` says Delete.
	// To do: nothing if that is meant; else remove `spec.backup.none`.
	ReasonNoArchive = "NoArchive"

	// ReasonArchiveStoreUnfit: the store replaces objects that it is told to leave, so that two writers could spoil an
	// archive. Nothing is written to it.
	// To do: take another store for `spec.backup.store`, or a version of this one that honours conditional writes (in
	// S3: `If-None-Match: *`).
	ReasonArchiveStoreUnfit = "ArchiveStoreUnfit"
)

// Reasons of RetentionApplied. None of them keeps Ready from being true.
const (
	// ReasonRetentionApplied: there is nothing in the archive that is not to be kept.
	// To do: nothing.
	ReasonRetentionApplied = "RetentionApplied"

	// ReasonRetentionHeld: retention has left what its rules would have removed, because something else needs it or
	// because it is rather a mistake; the message says what, and why.
	// To do: what the message says.
	ReasonRetentionHeld = "RetentionHeld"

	// ReasonDeletionRefused: the store does not let something be removed that is not to be kept; the message has its
	// words. Archiving and backups go on, and the rest is removed.
	// To do: nothing where the store is to keep it for a time (object lock, a retention policy). Else let the
	// credentials of `spec.backup.store` delete, or name some that may as its `deletionCredentials`. A store that never
	// lets anything go grows: have it remove what is old by a rule of its own.
	ReasonDeletionRefused = "DeletionRefused"

	// ReasonRetentionFailing: the Job NAME-retention could not remove what is not to be kept; the message has its
	// words. It is tried again every ten minutes.
	// To do: mend what the message names, mostly the Secret of `deletionCredentials` in `spec.backup.store`.
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

	// ReasonScheduleInvalid: `spec.backup.schedule` or its time zone can't be understood; WAL is
	// archived, but no backup is due.
	// To do: mend what the message names.
	ReasonScheduleInvalid = "ScheduleInvalid"
)

// Reasons of Restored. Those that keep it from being true are reasons of Ready too, but while a restore in place is
// prepared, and when that has failed: the database serves then as before.
const (
	// ReasonRestored: the data is there; the message says up to which moment.
	// To do: nothing. `spec.restoreFrom` or `spec.restore` may be removed.
	ReasonRestored = "Restored"

	// ReasonRestoring: a Pod brings the data back; the message and `status.restore.progress` say how far it is.
	// To do: wait.
	ReasonRestoring = "Restoring"

	// ReasonRestoreFailed: it did not come to its end; the message has the last Pod's words. Nothing of
	// the archive was changed.
	// To do: mend `spec.restoreFrom` or `spec.restore` or what the message names. It is tried again after minutes, and
	// after longer each time; then the message says when. It is tried at once when the spec changes, or the Job is
	// deleted.
	ReasonRestoreFailed = "RestoreFailed"

	// ReasonRestoreSourceNotFound: what `spec.restoreFrom` or `spec.restore` names is not there, or has no archive, or
	// is no complete backup of it.
	// To do: mend it, or create what it names.
	ReasonRestoreSourceNotFound = "RestoreSourceNotFound"
)

// Reasons of Intact.
const (
	// ReasonIntact: what was read again is what was written. The message says since when all of it was.
	// To do: nothing.
	ReasonIntact = "Intact"

	// ReasonObjectsBroken: objects of the archive are not what was written, or are lost: the message names them. What
	// needs them can't be restored. Where the newest backup does, a full one is taken at once; what is older stays as
	// it is until retention removes it.
	// To do: put the objects back from a copy or a former version, if the store has one, and find out what has changed
	// them. They are read again by each verification: `kubectl annotate databasebackup NAME toban.dev/verify=again
	// --overwrite` asks for one.
	ReasonObjectsBroken = "ObjectsBroken"
)

// Reasons of Complete. They are those of a DatabaseBackup.
const (
	// ReasonCompleted: the backup is in the archive.
	// To do: nothing.
	ReasonCompleted = "Completed"

	// ReasonWaiting: another backup of the SampleDB is under way, or has been asked for before.
	// To do: wait; one is taken after the other.
	ReasonWaiting = "Waiting"

	// ReasonArchiveNotReady: the SampleDB has no archive, or it does not work.
	// To do: set `spec.backup` of the SampleDB, or see its condition Archiving. The backup begins by itself.
	ReasonArchiveNotReady = "ArchiveNotReady"

	// ReasonSampleDBNotFound: there is no SampleDB of that name.
	// To do: create it, or delete the DatabaseBackup.
	ReasonSampleDBNotFound = "SampleDBNotFound"

	// ReasonBackupNameTaken: a Job that is not this backup's has its name.
	// To do: delete or rename that Job, or create the DatabaseBackup with another name.
	ReasonBackupNameTaken = "BackupNameTaken"

	// ReasonRunning: its Pod is being started or copies the data.
	// To do: wait. The message and `kubectl logs job/NAME` say how far it is.
	ReasonRunning = "Running"

	// ReasonFailed: it has ended without a backup; the message has the last Pod's words.
	// To do: mend what the message names, and create another DatabaseBackup.
	ReasonFailed = "Failed"

	// ReasonDeadlineExceeded: it took longer than `spec.deadline`, and was stopped.
	// To do: see what it waited for in the message, and create another one with a longer deadline.
	ReasonDeadlineExceeded = "DeadlineExceeded"

	// ReasonRemoved: it was complete, and `spec.backup.retention` has removed its data from the archive since.
	// To do: nothing; the DatabaseBackup may be deleted.
	ReasonRemoved = "Removed"

	// ReasonCancelled: it was stopped by `spec.cancel`.
	// To do: nothing.
	ReasonCancelled = "Cancelled"
)

// Reasons of Verified. They are those of a DatabaseBackup.
const (
	// ReasonVerified: the backup can be restored; `status.verification` says how long that takes
	// and up to where it leads.
	// To do: nothing.
	ReasonVerified = "Verified"

	// ReasonVerifying: its Pod is being started, or restores and checks.
	// To do: wait. The message and `kubectl logs` of the Job that it names say how far it is.
	ReasonVerifying = "Verifying"

	// ReasonVerificationFailed: the backup can't be restored, or does not have what it should; the message names
	// the object or the question.
	// To do: take another backup at once (`kubectl toban backup NAME`), and find out what has changed
	// the object, or the data.
	ReasonVerificationFailed = "VerificationFailed"
)
