package v1

// The types of a MyApp's conditions.
const (
	// ConditionReady is true when all wanted Pods serve, with the image and the settings of the spec.
	ConditionReady = "Ready"

	// ConditionMigrated is true when the migration for the image of the spec has succeeded. It
	// exists with `spec.migration`.
	ConditionMigrated = "Migrated"
)

// docs/reference/myapp-conditions.md is written from what follows: each reason says what
// it means, and after "To do" what the user does.

// Reasons of Ready. If Migrated keeps Ready from being true, Ready has the reason of Migrated.
const (
	// ReasonReady: all is as the spec wants it.
	// To do: nothing.
	ReasonReady = "Ready"

	// ReasonStopped: no Pod runs, because `spec.replicas` is 0.
	// To do: nothing if you want this; otherwise `kubectl scale myapp NAME --replicas=1`.
	ReasonStopped = "Stopped"

	// ReasonStarting: Pods are being started, and none serves yet.
	// To do: wait. If it stays, `kubectl get pods -l toban.dev/myapp=NAME` shows the progress.
	ReasonStarting = "Starting"

	// ReasonUpdating: Pods are being replaced by others that match the spec; the former Pods serve meanwhile.
	// To do: wait; the message shows the progress.
	ReasonUpdating = "Updating"

	// ReasonScaling: Pods are being added or removed.
	// To do: wait.
	ReasonScaling = "Scaling"

	// ReasonPodsUnready: a Pod runs, but is not ready.
	// To do: see what its readiness probe says: `kubectl describe pods -l toban.dev/myapp=NAME`, and its log.
	ReasonPodsUnready = "PodsUnready"

	// ReasonUnschedulable: a Pod fits on no node; the message quotes the scheduler.
	// To do: make room, or ask for less in `spec.resources` and `spec.pod`.
	ReasonUnschedulable = "Unschedulable"

	// ReasonImageUnusable: the image can't be pulled or run. Pods of the former version keep serving.
	// To do: correct `spec.image`, set it back, or add the registry's credentials to `spec.pod.imagePullSecrets`.
	ReasonImageUnusable = "ImageUnusable"

	// ReasonCrashing: a container ends again and again; the message has its last output. Pods of
	// the former version keep serving.
	// To do: read the cause in the message and in `kubectl logs POD --previous`; correct it, or set `spec.image` back.
	ReasonCrashing = "Crashing"

	// ReasonNameTaken: an object that does not belong to this MyApp has a name that it needs. Toban does not change it.
	// To do: rename or delete the object that the message names, or create the MyApp with another name.
	ReasonNameTaken = "NameTaken"

	// ReasonInvalidSpec: the cluster refuses an object that the spec requires, or its Pods.
	// To do: change what the message names: the spec, or the cluster's policy or quota that forbids it.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonRetrying: a request to the API server has failed. It is tried again, with growing pauses.
	// To do: wait. If it stays, see what the message names, for instance a webhook that does not answer.
	ReasonRetrying = "Retrying"

	// ReasonDeleting: the MyApp is being deleted, and its objects with it.
	// To do: wait.
	ReasonDeleting = "Deleting"
)

// Reasons of Ready and Migrated.
const (
	// ReasonConfigNotFound: a ConfigMap or Secret for the application's environment does not exist, or lacks a key.
	// Pods that already run are not affected.
	// To do: create what the message names, or remove it from the spec.
	ReasonConfigNotFound = "ConfigNotFound"

	// ReasonDatabaseNotFound: the object that `spec.database` names does not exist.
	// To do: create it, or correct `spec.database`.
	ReasonDatabaseNotFound = "DatabaseNotFound"

	// ReasonDatabaseNotReady: the first Pods or the migration wait for the database.
	// To do: wait. If it stays, see the database's own conditions, which the message names.
	ReasonDatabaseNotReady = "DatabaseNotReady"

	// ReasonBackingUp: a backup is being taken before the migration.
	// To do: wait; `kubectl get databasebackups` shows the progress.
	ReasonBackingUp = "BackingUp"

	// ReasonBackupFailed: the backup before the migration has failed, so the migration does not begin.
	// The former version keeps serving.
	// To do: correct what the message names, and set the annotation toban.dev/retry of the MyApp to another text, such
	// as the time; or set `spec.migration.backup: false`; or set `spec.image` back.
	ReasonBackupFailed = "BackupFailed"

	// ReasonMigrating: the migration's Job runs, or waits for an earlier one to end. The former version keeps serving.
	// To do: wait; `kubectl logs job/JOB` with the name in the message shows the progress.
	ReasonMigrating = "Migrating"

	// ReasonMigrationFailed: the migration has failed, was killed, or took longer than its deadline; the message has
	// its last output. The former version keeps serving.
	// To do: correct the image or `spec.migration`, which begins another attempt; or set the annotation toban.dev/retry
	// of the MyApp to another text; or set `spec.image` back, which gives up the update.
	ReasonMigrationFailed = "MigrationFailed"
)

// Reasons of Migrated.
const (
	// ReasonMigrated: the migration for the image of the spec has succeeded.
	// To do: nothing.
	ReasonMigrated = "Migrated"
)
