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
	// instances: losing one of them now would lose nothing. It is always false with one instance or with
	// `spec.durability: async`, and does not keep Ready from being true then.
	ConditionDurable = "Durable"

	// ConditionStorageReady is true when every volume has the size of the spec, or the larger one to which it has grown
	// by itself.
	ConditionStorageReady = "StorageReady"
	// ConditionHasRoom is true when no volume of an instance is nearly full, or will be within a week at the rate at
	// which it fills, and volumes that are to grow by themselves can. It is there once an agent has said how full its
	// volume is. Nothing waits for it.
	ConditionHasRoom = "HasRoom"
	// ConditionPasswordRotated is true when the Secret NAME-app and the server have the password that was asked for
	// last by `toban.dev/rotate-password`. It exists after the first such request.
	ConditionPasswordRotated = "PasswordRotated"
	// ConditionCertificateServed is true when every instance shows clients the certificate of `spec.tls.secretName`.
	// It is there where one is given. Ready does not wait for it: until then a certificate of the SampleDB's own
	// authority is shown, or the former one.
	ConditionCertificateServed = "CertificateServed"
	// ConditionAuthorityRotated is true when the authority that was asked for last by `toban.dev/rotate-authority` is
	// the only one that anything of the SampleDB uses and trusts. It is there when one was.
	ConditionAuthorityRotated = "AuthorityRotated"
	// ConditionRootReplaced is true when nothing of the SampleDB needs a former root secret of the operator. It is
	// there as long as the operator has more than one.
	ConditionRootReplaced = "RootReplaced"
	// ConditionArchiving is true when the WAL reaches the archive as it is written. The database does not wait for it,
	// and neither does Ready.
	ConditionArchiving = "Archiving"
	// ConditionRetentionApplied is true when the last attempt has removed all that `spec.backup.retention` does not
	// keep. It exists after the first backup. While it is false, archiving and backups continue.
	ConditionRetentionApplied = "RetentionApplied"
	// ConditionKeysHeld is true when the Secret of `spec.backup.encryption.key` had, when the last backup looked, the
	// private half of every key that the archive needs. Its message says which former keys have to stay, and which
	// nothing needs any more. It is there with encryption, when a backup has looked.
	ConditionKeysHeld = "KeysHeld"
	// ConditionScheduled is true when backups are taken by `spec.backup.schedule`, or by the default schedule, and the
	// last complete one is as new as it should be by that. It exists if there is a schedule.
	ConditionScheduled = "Scheduled"
	// ConditionIntact is true when the verifications, which read the archive again part by part, have found no broken
	// or lost object. It exists after the first of them.
	ConditionIntact = "Intact"
	// ConditionCopied is true when `spec.backup.secondStore` has everything that the archive had an hour ago, and
	// nothing stands in the way. It is there with a second store. Neither the database nor Ready waits for it.
	ConditionCopied = "Copied"
	// ConditionRestored is true when the data of `spec.restoreFrom` or `spec.restore` is restored. With
	// `spec.restoreFrom` there is no instance before that. It exists if one of the two fields is or was set.
	ConditionRestored = "Restored"
	// ConditionUpToDate is true when every instance runs the PostgreSQL version that the image has now, and the major
	// version still gets fixes. The image is looked into once a day. Nothing waits for this condition.
	ConditionUpToDate = "UpToDate"
	// ConditionSideClosed is of the second side of a blue/green upgrade: it is true while no client is let in there,
	// and none is there.
	ConditionSideClosed = "SideClosed"

	// ConditionUpgraded is true when the data has the major version of the spec, after an upgrade. It is there while an
	// upgrade is wanted or under way, and after one.
	ConditionUpgraded = "Upgraded"
	// ConditionCollationsCurrent is true when no index depends on an order of texts that a library has changed since:
	// the versions of sort orders that are on record in every database are those of the image that runs. Nothing waits
	// for this condition, but while it is false, queries may not find rows, and unique constraints may not hold.
	ConditionCollationsCurrent = "CollationsCurrent"
	// ConditionDrillsPassed is true when the last FaultDrill of this SampleDB has passed. It is only there where
	// `spec.drills` is given or there was a drill.
	ConditionDrillsPassed = "DrillsPassed"

	// ConditionQueriesAnswered is true when all of `spec.metrics.queries` were answered when somebody read the
	// primary's metrics last. It is there with such queries. Nothing waits for it.
	ConditionQueriesAnswered = "QueriesAnswered"
	// ConditionComplete is true when the backup is in the archive, with the WAL that it needs. It belongs to a
	// DatabaseBackup. While it is false, the reason says whether the backup is still running or has ended.
	ConditionComplete = "Complete"
	// ConditionVerified is true when the backup was restored into a scratch volume, brought to the end of the WAL,
	// checked file by file and page by page, and gave the wanted answers. It belongs to a DatabaseBackup for which a
	// verification was asked for or is due.
	ConditionVerified = "Verified"
)

// docs/reference/conditions.md is written from what follows: each reason says what
// it means, and after "To do" what the user does.

// Reasons of Ready. If another condition keeps Ready from being true, Ready has
// the reason of that condition.
const (
	// ReasonReady: all is as the spec wants it.
	// To do: nothing.
	ReasonReady = "Ready"

	// ReasonInstancesUnready: the primary takes writes, but at least one instance does not do what its role asks.
	// To do: wait a minute: a Pod that comes back needs that long. If it stays, see what the message says about
	// the instance, and `kubectl logs NAME-0` with its number.
	ReasonInstancesUnready = "InstancesUnready"

	// ReasonUpdating: a change of the spec is being applied, one instance after the other.
	// To do: wait; the message says which instance is next, or what it waits for.
	ReasonUpdating = "Updating"

	// ReasonScaling: instances are being added or removed.
	// To do: wait; a new instance copies the data first. An instance is removed only when it is not the primary
	// and does not count for commits and votes. The message says what it waits for.
	ReasonScaling = "Scaling"

	// ReasonNotVoting: an instance is ready, but its acknowledgements and its vote do not count yet.
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
	// ReasonCreating: the SampleDB is being started for the first time, or an object is being created again.
	// To do: wait. If it stays, `kubectl get pods -l toban.dev/sampledb=NAME` shows the progress.
	ReasonCreating = "Creating"

	// ReasonNoPrimary: no instance takes writes, although one did before.
	// To do: wait; another instance takes over within seconds. If none does, the message says why; see
	// `kubectl describe pods -l toban.dev/sampledb=NAME`, and check that their nodes run.
	ReasonNoPrimary = "NoPrimary"

	// ReasonElectionsInVain: no instance takes writes, and none is elected though instances campaign. The message says
	// whether their machines are busy. Elections do not feed on each other: pauses between campaigns grow
	// (docs/busy.md).
	// To do: wait a minute. If it stays, and the message says that machines are busy, do what it says; else
	// `kubectl toban logs NAME` says which votes are refused, and why.
	ReasonElectionsInVain = "ElectionsInVain"

	// ReasonDataLost: no volume has the data of this SampleDB any more: every instance answers that its volume is a new
	// one, or that its data directory is gone. The message says how far the archive reaches, and what is missing.
	// To do: if a former PersistentVolume is still there (`kubectl get pv`), keep it: it has everything. Else bring
	// back what the archive has: `kubectl toban restore NAME --to latest`. With `spec.backup.whenDataIsLost: Restore`
	// that is done by itself for new volumes.
	ReasonDataLost = "DataLost"

	// ReasonNotPublished: the primary takes writes, but its Pod does not have the label by which the Service finds it.
	// To do: wait; the agent sets it as soon as the API server answers. If it stays, see
	// `kubectl logs NAME-0` with the primary's number, and check that the Pod's ServiceAccount may patch its Pod.
	ReasonNotPublished = "NotPublished"

	// ReasonUnschedulable: a Pod fits on no node; the message quotes the scheduler.
	// To do: make room, or ask for less in `spec.resources` and `spec.pod`.
	ReasonUnschedulable = "Unschedulable"

	// ReasonPodRefused: the cluster refuses to create a Pod, or to give other resources to one that runs, because of a
	// quota, a limit range, a policy, or a node that is too small; the message quotes it.
	// To do: raise the quota, or adapt `spec.resources` and `spec.pod` to what is allowed. Kubernetes tries again
	// within a quarter of an hour; `kubectl annotate statefulset NAME tried=again` makes it try at once.
	ReasonPodRefused = "PodRefused"

	// ReasonImageUnusable: the image can't be pulled or run, or does not contain PostgreSQL in the wanted version.
	// To do: correct `spec.image`, or add the registry's credentials to `spec.pod.imagePullSecrets`.
	ReasonImageUnusable = "ImageUnusable"

	// ReasonNameTaken: an object that does not belong to this SampleDB has a name that it needs.
	// To do: rename or delete the object that the message names, or create the SampleDB with another name.
	ReasonNameTaken = "NameTaken"

	// ReasonInvalidSpec: the cluster refuses an object that the spec requires, or a container of a Pod.
	// To do: change what the message names: the spec, or the cluster's policy or quota that forbids it.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonCrashing: a container of an instance ends again and again.
	// To do: read the cause in the message, and in `kubectl logs NAME-0 --previous` with the instance's number.
	ReasonCrashing = "Crashing"

	// ReasonDeleting: the SampleDB is being deleted.
	// To do: wait; the message says what it waits for.
	ReasonDeleting = "Deleting"

	// ReasonUnknown: the operator could not reach the agents. The database itself may be well. It is also a reason of
	// ConfigurationApplied and Durable.
	// To do: check that no network policy keeps the operator from port 8443 of the Pods, and see
	// `kubectl -n toban-system logs deployment/toban-operator`.
	ReasonUnknown = "Unknown"
)

// Reasons of Initialized. While it is not true, its reason is also the reason of Ready.
const (
	// ReasonInitialized: the init Job has done its work.
	// To do: nothing.
	ReasonInitialized = "Initialized"

	// ReasonInitRunning: the init Job waits for the primary, or is running.
	// To do: wait. `kubectl get jobs -l toban.dev/sampledb=NAME` shows the Job; its log says what it does.
	ReasonInitRunning = "InitRunning"

	// ReasonInitFailed: a step of the init Job failed; the message names it and quotes PostgreSQL.
	// To do: correct `spec.init` or the SQL that it names. A new Job then continues after the sources that have run.
	ReasonInitFailed = "InitFailed"

	// ReasonConfigMapNotFound: `spec.init` names a ConfigMap or a key that does not exist.
	// To do: create the ConfigMap or add the key that the message names, or correct `spec.init`.
	ReasonConfigMapNotFound = "ConfigMapNotFound"

	// ReasonSecretNotFound: `spec.init` names a Secret or a key that does not exist.
	// To do: create the Secret or add the key that the message names, or correct `spec.init`. The Job is
	// tried again within minutes.
	ReasonSecretNotFound = "SecretNotFound"
)

// Reasons of ConfigurationApplied. While it is not true, its reason is also the reason of Ready.
const (
	// ReasonApplied: every instance runs with the parameters of the spec.
	// To do: nothing.
	ReasonApplied = "Applied"

	// ReasonApplying: the instances that the message names do not have the configuration yet.
	// To do: wait; an instance that does not run yet gets it when it starts.
	ReasonApplying = "Applying"

	// ReasonRestarting: a parameter needs a restart; instances restart one by one, the primary last.
	// To do: wait. If it stays, Ready says which instance must become ready first.
	ReasonRestarting = "Restarting"

	// ReasonParameterRejected: PostgreSQL refuses a value; the message quotes it. The servers run as before.
	// To do: correct `spec.postgresql`: `kubectl edit sampledb NAME`.
	ReasonParameterRejected = "ParameterRejected"
)

// Reasons of Durable. Of these only Weakened keeps Ready from being true.
const (
	// ReasonDurable: each acknowledged commit is on as many instances as the message says, at least two.
	// To do: nothing.
	ReasonDurable = "Durable"

	// ReasonWeakened: the primary continues alone, because no other instance has all the data. New commits are on
	// one disk only.
	// To do: bring the other instances back: Ready and `kubectl get pods -l toban.dev/sampledb=NAME` say what they
	// lack.
	ReasonWeakened = "Weakened"

	// ReasonSingleInstance: the spec asks for one instance. If its volume is lost, its data is lost.
	// To do: nothing if you want this; otherwise raise `spec.instances`.
	ReasonSingleInstance = "SingleInstance"

	// ReasonAsynchronous: with `spec.durability: async`, or by `synchronous_commit`, commits wait for the primary's
	// disk only. If the primary is lost, the last commits are lost.
	// To do: nothing if you want this; otherwise set `spec.durability: quorum`, and `synchronous_commit` to `on`.
	ReasonAsynchronous = "Asynchronous"
)

// Reasons of StorageReady. While it is not true, its reason is also the reason of Ready.
const (
	// ReasonBound: every volume exists and has its size.
	// To do: nothing.
	ReasonBound = "Bound"

	// ReasonProvisioning: a volume is being created.
	// To do: wait. If it stays, see `kubectl describe pvc data-NAME-0`: the storage's provisioner says why.
	ReasonProvisioning = "Provisioning"

	// ReasonResizing: a volume is growing; the database keeps running.
	// To do: wait. If it stays, see `kubectl describe pvc data-NAME-0`.
	ReasonResizing = "Resizing"

	// ReasonResizeRefused: the volumes can't grow; the message says why. The database keeps running with the old size.
	// To do: set `allowVolumeExpansion: true` in the StorageClass if its storage supports that; otherwise write another
	// `spec.storage.storageClassName`, or the former size.
	ReasonResizeRefused = "ResizeRefused"

	// ReasonStorageClassNotFound: the StorageClass does not exist, or the cluster has no default one. Before the first
	// start it is also a reason of Available.
	// To do: create it, or mark one as the default, or write another `spec.storage.storageClassName`; `kubectl get
	// storageclass` lists them.
	ReasonStorageClassNotFound = "StorageClassNotFound"
)

// Reasons of PasswordRotated. None of them keeps Ready from being true.
const (
	// ReasonRotated: the Secret NAME-app and the server have the new password.
	// To do: restart the applications that read the Secret only when they start.
	ReasonRotated = "Rotated"

	// ReasonRotationWaits: another password was asked for, but can't be set now; the message says why. The former
	// password stays valid.
	// To do: what the message says. To withdraw the request: `kubectl annotate sampledb NAME
	// toban.dev/rotate-password-`.
	ReasonRotationWaits = "RotationWaits"

	// ReasonWritingSecret: the former Secret NAME-app is being replaced by a new one. The server still has the
	// former password.
	// To do: wait some seconds. If it stays, delete the Secret: the operator can't replace a Secret that an earlier
	// release or somebody else has created.
	ReasonWritingSecret = "WritingSecret"

	// ReasonSettingPassword: the Secret NAME-app has the new password, and the server does not have it yet.
	// To do: wait until the primary has set it; the message says what it waits for.
	ReasonSettingPassword = "SettingPassword"
)

// Reasons of CertificateServed. None of them keeps Ready from being true.
const (
	// ReasonCertificateServed: every instance shows the certificate; the message says until when it is valid.
	// To do: nothing. It has to be renewed before that, as cert-manager does.
	ReasonCertificateServed = "CertificateServed"

	// ReasonCertificatePending: it is not shown yet: the Pods are being replaced, or applications are given time to
	// read its authority in `ca.crt` of their Secret.
	// To do: wait three minutes. If it stays, the message says for what it waits.
	ReasonCertificatePending = "CertificatePending"

	// ReasonCertificateRefused: what is in the Secret can't be shown; the message says why. Clients see the certificate
	// that the message names.
	// To do: mend the Secret, or the Certificate of cert-manager that makes it. It is taken within two minutes.
	ReasonCertificateRefused = "CertificateRefused"
)

// Reasons of AuthorityRotated, in the order of the steps. None of them keeps Ready from being true.
const (
	// ReasonAuthorityReplaced: the new authority is used everywhere, and no former one is trusted any more.
	// To do: nothing.
	ReasonAuthorityReplaced = "AuthorityReplaced"

	// ReasonAuthorityWaits: another authority was asked for, and can't be given now; the message says why. All is as
	// before.
	// To do: what the message says. To take the request back: `kubectl annotate sampledb NAME
	// toban.dev/rotate-authority-`.
	ReasonAuthorityWaits = "AuthorityWaits"

	// ReasonTrustingBoth: both authorities are being trusted everywhere; every certificate is still of the former one.
	// To do: restart, before the time in the message, the applications that verify the server by `ca.crt` of NAME-app
	// and read it only when they start. Where the message names an instance that stays away, bring it back.
	ReasonTrustingBoth = "TrustingBoth"

	// ReasonWritingAuthority: the former Secret NAME-ca has to go before the new one is there.
	// To do: wait some seconds. If it stays, delete the Secret: one that an earlier release or somebody else
	// has made the operator can't replace.
	ReasonWritingAuthority = "WritingAuthority"

	// ReasonReissuing: the instances issue themselves certificates of the new authority. Both are trusted.
	// To do: wait; the message says for which instance, or until when. The kubelet brings a changed Secret to a Pod
	// within 90 seconds.
	ReasonReissuing = "Reissuing"

	// ReasonDroppingFormer: the former authority is being taken from what is trusted.
	// To do: wait; the message says for which instance.
	ReasonDroppingFormer = "DroppingFormer"
)

// Reasons of RootReplaced. None of them keeps Ready from being true.
const (
	// ReasonNewestRoot: the password and the authority are derived from the newest root secret of the operator, and
	// every instance knows the operator by it.
	// To do: nothing. When it is so for every SampleDB, take the former root out of the operator's Secret
	// (docs/rotation.md, "The operator's root secret").
	ReasonNewestRoot = "NewestRoot"

	// ReasonFormerRoot: something still needs a former root secret of the operator; the message says what. All works as
	// before, for as long as that root is in the operator's Secret.
	// To do: rotate what the message names, and bring back an instance that it names.
	ReasonFormerRoot = "FormerRoot"
)
