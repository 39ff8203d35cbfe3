package v1

// The types of a MyApp's conditions.
const (
	// ConditionReady is true when all wanted Pods serve, and are of the image and with the settings of the spec.
	ConditionReady = "Ready"

	// ConditionMigrated is true when the database's schema is that of the image of the spec. It is
	// there with `spec.migration`.
	ConditionMigrated = "Migrated"
)

// docs/reference/myapp-conditions.md is written from what follows: each reason says what
// it means, and after "To do" what the user does.

// Reasons of Ready. Where Migrated keeps Ready from being true, Ready has that one's reason.
const (
	// ReasonReady: all is as the spec wants it.
	// To do: nothing.
	ReasonReady = "Ready"

	// ReasonStopped: no Pod runs, because `spec.replicas` is 0.
	// To do: nothing if that is meant; else `kubectl scale myapp NAME --replicas=1`.
	ReasonStopped = "Stopped"

	// ReasonStarting: the first Pods, or the first after none served, are being started.
	// To do: wait. If it stays, `kubectl get pods -l toban.dev/myapp=NAME` shows how far they are.
	ReasonStarting = "Starting"

	// ReasonUpdating: Pods are being replaced by others that are as the spec wants them; meanwhile
	// those that are there serve.
	// To do: wait; the message says how far it is.
	ReasonUpdating = "Updating"

	// ReasonScaling: Pods are being added or removed.
	// To do: wait.
	ReasonScaling = "Scaling"

	// ReasonPodsUnready: some Pod runs, but is not ready.
	// To do: see what its readiness probe says: `kubectl describe pods -l toban.dev/myapp=NAME`, and its log.
	ReasonPodsUnready = "PodsUnready"

	// ReasonUnschedulable: no node takes a Pod; the message has the scheduler's words.
	// To do: make room, or ask for less in `spec.resources` and `spec.pod`.
	ReasonUnschedulable = "Unschedulable"

	// ReasonImageUnusable: the image can't be pulled or run. Pods of the version before go on.
	// To do: mend `spec.image`, set it back, or add what the registry asks for to `spec.pod.imagePullSecrets`.
	ReasonImageUnusable = "ImageUnusable"

	// ReasonCrashing: a container ends again and again; the message has its last words. Pods of
	// the version before go on.
	// To do: read why in the message and in `kubectl logs POD --previous`; mend it, or set `spec.image` back.
	ReasonCrashing = "Crashing"

	// ReasonNameTaken: an object that is not this MyApp's has a name that it needs. It is left as it is.
	// To do: rename or delete the object that the message names, or create the MyApp with another name.
	ReasonNameTaken = "NameTaken"

	// ReasonInvalidSpec: the cluster refuses an object made from the spec, or its Pods.
	// To do: change what the message names: the spec, or the cluster's policy or quota that forbids it.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonRetrying: the cluster could not be asked or written to. It is tried again, with pauses that grow.
	// To do: wait. If it stays, see what the message names, for instance a webhook that does not answer.
	ReasonRetrying = "Retrying"

	// ReasonDeleting: the MyApp is being deleted, and its objects with it.
	// To do: wait.
	ReasonDeleting = "Deleting"
)

// Reasons of Ready and Migrated.
const (
	// ReasonConfigNotFound: a ConfigMap or Secret that the application has its environment from is not there, or a key
	// of it. What ran before goes on as it is.
	// To do: create what the message names, or take it off the spec.
	ReasonConfigNotFound = "ConfigNotFound"

	// ReasonDatabaseNotFound: what `spec.database` names is not there.
	// To do: create it, or mend `spec.database`.
	ReasonDatabaseNotFound = "DatabaseNotFound"

	// ReasonDatabaseNotReady: the first Pods or the migration wait for the database.
	// To do: wait. If it stays, see the database's own conditions, which the message names.
	ReasonDatabaseNotReady = "DatabaseNotReady"

	// ReasonBackingUp: a backup is being taken before the migration.
	// To do: wait; `kubectl get databasebackups` shows how far it is.
	ReasonBackingUp = "BackingUp"

	// ReasonBackupFailed: there is no backup from before the migration, and so it does not begin.
	// The version before goes on.
	// To do: mend what the message names, and set the annotation toban.dev/retry of the MyApp to another text, such as
	// the time; or set `spec.migration.backup: false`, or `spec.image` back.
	ReasonBackupFailed = "BackupFailed"

	// ReasonMigrating: the migration's Job runs, or waits for one before it to end. The version before goes on.
	// To do: wait; `kubectl logs job/JOB` with the name in the message says how far it is.
	ReasonMigrating = "Migrating"

	// ReasonMigrationFailed: the migration has failed, was killed, or took longer than its deadline; the message has
	// its last words. The version before goes on.
	// To do: mend the image or `spec.migration`, which begins another attempt; or set the annotation toban.dev/retry of
	// the MyApp to another text; or set `spec.image` back, which ends the matter.
	ReasonMigrationFailed = "MigrationFailed"
)

// Reasons of Migrated.
const (
	// ReasonMigrated: the migration for the image of the spec has succeeded.
	// To do: nothing.
	ReasonMigrated = "Migrated"
)
