// Package naming has every name, label, port and path that two places must
// agree on. It depends on nothing, so that everything may use it.
package naming

import (
	"fmt"
	"strings"
)

// MaxName is the length of the longest legal SampleDB name. The CRD refuses
// longer ones, so that every name below stays within the 63 characters of a DNS
// label and a StatefulSet's revision label.
const MaxName = 40

// Labels and annotations. Those under toban.dev are the operator's alone.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelSampleDB  = "toban.dev/sampledb"
	LabelComponent = "toban.dev/component"
	// LabelArgo, AnnotationArgo and, by default, LabelInstance are where Argo CD notes of which application an object
	// is.
	LabelArgo      = "argocd.argoproj.io/instance"
	AnnotationArgo = "argocd.argoproj.io/tracking-id"
	// LabelRole is set on an instance's Pod by its own agent, and only while it
	// does what the role asks.
	LabelRole = "toban.dev/role"
	// LabelRelay on an instance's Pod, with the value Relays, says that its agent passes clients on to the primary and
	// is heard by that. The primary's agent sets it on all Pods; the Service NAME selects by it where
	// spec.service.route is Relay.
	LabelRelay = "toban.dev/relay"
	Relays     = "true"
	// LabelMetrics on a namespace, ReadsMetrics its value, lets its Pods read the metrics of every SampleDB that
	// does not say by spec.metrics.from who may.
	LabelMetrics = "toban.dev/metrics"
	ReadsMetrics = "read"
	// AnnotationApplied is the hash of the object as the operator last wanted it.
	AnnotationApplied = "toban.dev/applied"
	// AnnotationFacets says with which facets of the spec a Pod was made.
	AnnotationFacets = "toban.dev/facets"
	// AnnotationRole on an instance's Pod says in which term the label of its role was written last, by which write:
	// "8.K3F9ZA". A write from before does not find the Pod as it was, and changes nothing.
	AnnotationRole = "toban.dev/role-written"
	// AnnotationRoom on an instance's Pod says that its volume gets full: RoomShort, or RoomReadOnly where it is a
	// primary that takes no writes for it. The agent writes it, so that the operator looks at once.
	AnnotationRoom = "toban.dev/room"
	RoomShort      = "short"
	RoomReadOnly   = "read-only"
	// AnnotationPulls on the Job of a pull is the image that a node pulls.
	AnnotationPulls = "toban.dev/pulls"
	// AnnotationSources is the hash of the SQL that an init Job was made for.
	AnnotationSources = "toban.dev/sources"
	// AnnotationSwitchover on a SampleDB asks for another primary: the name of an
	// instance, or SwitchoverAny. The operator removes it when it is done or refused.
	AnnotationSwitchover = "toban.dev/switchover"
	// AnnotationSwitchoverFrom is the primary that was asked to hand over, and its term.
	AnnotationSwitchoverFrom = "toban.dev/switchover-from"
	// AnnotationSwitchoverAt is when a switchover was asked for last, where spec.primary is given: a preferred instance
	// is not handed to again for an hour.
	AnnotationSwitchoverAt = "toban.dev/switchover-at"
	// AnnotationSwitchoverRefused says why the last switchover was refused.
	AnnotationSwitchoverRefused = "toban.dev/switchover-refused"
	// AnnotationRestart on a SampleDB asks for a restart of the servers, one after the other: RestartAll, or the name
	// of an instance. The operator removes it when that is done or refused.
	AnnotationRestart = "toban.dev/restart"
	// AnnotationRolloutRestart on a template of Pods is when kubectl rollout restart was asked for. The operator takes
	// it off a StatefulSet when it has taken the request, or refused it.
	AnnotationRolloutRestart = "kubectl.kubernetes.io/restartedAt"
	// AnnotationRotatePassword on a SampleDB asks for a new password in the Secret NAME-app, by any value. The operator
	// removes it when it has begun.
	AnnotationRotatePassword = "toban.dev/rotate-password" //nolint:gosec // the name of an annotation
	// AnnotationLookForUpdates on a SampleDB asks for a look into its image now, by any value. The operator removes it
	// when that is done.
	AnnotationLookForUpdates = "toban.dev/look-for-updates"
	// AnnotationUpdate on a SampleDB asks for its update to a newer minor version: UpdateInWindow when the window opens
	// next, any other value now. The operator removes it when instances are being replaced, or it is refused.
	AnnotationUpdate = "toban.dev/update"
	// AnnotationStarted on a SampleDB is a moment (RFC 3339): spec.stopWindows that opened before it do not count.
	AnnotationStarted = "toban.dev/started"
	// AnnotationReindex on a SampleDB asks for the indexes to be rebuilt that another sort order leaves out of order:
	// UpdateInWindow when the window opens next, any other value now. The operator removes it when that is done.
	AnnotationReindex = "toban.dev/reindex"
	// AnnotationReplaceAgents on a SampleDB asks for its agents to go on as the operator's program: UpdateInWindow when
	// the window opens next, any other value now. The operator removes it when all do that can, or one has failed.
	AnnotationReplaceAgents = "toban.dev/replace-agents"
	// AnnotationFinish on the Job NAME-finish are the parts that it does.
	AnnotationFinish = "toban.dev/finish"
	// AnnotationRotateAuthority on a SampleDB asks for a new authority. The value is for how long the new and the
	// former one are trusted, before the instances use the new one and again after. The operator removes it when it
	// has begun.
	AnnotationRotateAuthority = "toban.dev/rotate-authority"
	// AnnotationAuthority on a SampleDB whose authority was rotated says which of its authorities count
	// (credentials.Store).
	AnnotationAuthority = "toban.dev/authority"
	// AnnotationDefaultContainer makes kubectl exec and logs choose PostgreSQL.
	AnnotationDefaultContainer = "kubectl.kubernetes.io/default-container"
	// AnnotationElection is what the Lease of a SampleDB has on record as the witness
	// of its instances; the agents write it.
	AnnotationElection = "toban.dev/election"
	// AnnotationSetAside on a claim is the id of a restore in place whose replaced data is on the volume.
	AnnotationSetAside = "toban.dev/set-aside"
	// AnnotationStorage on a claim is for which SampleDB, and which size and class of spec.storage, its volume is.
	AnnotationStorage = "toban.dev/storage"

	// AnnotationMadeOf on the claim of a first instance is the VolumeSnapshot that it was made of, until the data on it
	// is a database.
	AnnotationMadeOf = "toban.dev/made-of"

	// AnnotationDue on a DatabaseBackup is when the schedule asked for it, and on the Job of a retention when it was
	// made (RFC 3339).
	AnnotationDue = "toban.dev/due"
	// AnnotationVerify on a DatabaseBackup asks for its verification, once for each value.
	AnnotationVerify = "toban.dev/verify"
	// LabelOwner is the UID of the SampleDB that a DatabaseBackup was made for by its schedule: another
	// SampleDB of the same name has backups of its own.
	LabelOwner = "toban.dev/owner"

	// AnnotationCredentials on a SampleDB whose password was rotated, or that was brought back, says which
	// password it has (credentials.Store).
	AnnotationCredentials = "toban.dev/credentials" //nolint:gosec // the name of an annotation
	// AnnotationManifest on a SampleDB is the manifest of the object that it was made for, where that is another kind.
	AnnotationManifest = "toban.dev/manifest"

	// AnnotationRehearse asks for a rehearsal of an upgrade, and for nothing else: to a major version, and with a space
	// after it to an image. The operator removes it when that has ended.
	AnnotationRehearse = "toban.dev/rehearse"

	// AnnotationAgentTried on a Pod is the program (SHA-256) that its agent was last given to go on as, when, and the
	// container that it ran in. It is there until the agent runs that program.
	AnnotationAgentTried = "toban.dev/agent-tried"

	// AnnotationUpgradeBack on a SampleDB asks for the way back of a blue/green upgrade, by any value. The operator
	// removes it when the former side serves, or there is no way back.
	AnnotationUpgradeBack = "toban.dev/upgrade-back"
	// AnnotationSide on the SampleDB of a second side is what the instances there are to do: SideFollows, or
	// SideServes.
	AnnotationSide = "toban.dev/side"
	SideFollows    = "follows"
	SideServes     = "serves"
	// AnnotationSideOf in the manifest of a backup of a second side is the SampleDB whose it is: its name, a slash and
	// its UID. AnnotationSide there says what the side did when the backup was taken.
	AnnotationSideOf = "toban.dev/side-of"

	// AnnotationAcceptUpgrade says that the data of the former major version is not needed any more.
	AnnotationAcceptUpgrade = "toban.dev/accept-upgrade"
	// UpdateInWindow is a value of AnnotationUpdate, AnnotationReindex and AnnotationReplaceAgents.
	UpdateInWindow = "in-window"

	// SwitchoverAny leaves it to the instances which of them takes over.
	SwitchoverAny = "any"
	// RestartAll has the servers of all instances restart.
	RestartAll = "all"

	ManagedBy         = "toban"
	Application       = "postgresql"
	ComponentInstance = "instance"
	ComponentReader   = "reader"
	ComponentInit     = "init"
	ComponentBackup   = "backup"
	ComponentArchive  = "archive"
	ComponentRestore  = "restore"
	ComponentVerify   = "verify"
	ComponentImage    = "image"
	ComponentUpgrade  = "upgrade"
	ComponentSides    = "sides"
	ComponentRehearse = "rehearse"
	ComponentFinish   = "finish"
	ComponentBring    = "bring"
	ComponentSecond   = "second"
	ComponentFind     = "find"
	ComponentPooler   = "pooler"
	ComponentReadPool = "pooler-ro"

	// Why a base backup was made, as its backup.json says: by the schedule, because a user asked for it, before a
	// MyApp's migration, or as the last one of a SampleDB that is deleted.
	TriggerSchedule  = "schedule"
	TriggerRequest   = "request"
	TriggerMigration = "migration"
	TriggerFinal     = "final"

	// Finalizer keeps a deleted SampleDB until what has no owner reference is gone.
	Finalizer = "toban.dev/cleanup"
	// DefinitionSampleDB and DefinitionPostgreSQL are the names of the CustomResourceDefinitions
	// of kinds that have data.
	DefinitionSampleDB   = "sampledbs.toban.dev"
	DefinitionPostgreSQL = "postgresqls.exp.wheel.jp"
	// FieldOwner is the operator's name in server-side apply.
	FieldOwner = "toban"
)

// Containers and their paths.
const (
	ContainerPostgreSQL = "postgresql"
	ContainerInstall    = "install"
	ContainerInit       = "init"
	ContainerBackup     = "backup"
	ContainerKeys       = "keys" // of a backup: it sees which keys there are
	ContainerFind       = "find" // of an undelete: it looks for backups in a store
	ContainerArchive    = "archive"
	ContainerRestore    = "restore"
	ContainerVerify     = "verify"
	ContainerImage      = "image"
	ContainerCollect    = "collect" // of an upgrade: it brings the former version's programs along
	ContainerUpgrade    = "upgrade"
	ContainerSides      = "sides"
	ContainerFinish     = "finish"
	ContainerCopy       = "copy" // of a DatabaseRestore: it runs the restored copy
	ContainerBring      = "bring"
	ContainerSecond     = "second" // it copies an archive into the second store
	ContainerPooler     = "pooler"

	VolumeData = "data"
	PathVolume = "/pgdata"       // the persistent volume
	PathData   = "/pgdata/data"  // PGDATA
	PathState  = "/pgdata/toban" // the agent's own durable state
	// VolumeWAL is the volume of the WAL, where it has one of its own, FlagWALVolume how a process is told where it is.
	VolumeWAL     = "wal"
	PathWAL       = "/pgwal"
	FlagWALVolume = "wal-volume"
	// FlagSnapshot has the Pod of a backup wait for a snapshot of the volume.
	FlagSnapshot = "snapshot"
	// FlagAsked tells a Pod that removes parts of an archive when its Job was made.
	FlagAsked = "asked-at"
	// FlagWithin tells it after how long Kubernetes ends the Job, and so how long it may have waited at most.
	FlagWithin = "ended-after"
	// FileVerified on the scratch volume is what a verification has found before SQL is run: for
	// the container that runs it.
	FileVerified = "verified.json"
	// VerbWork is its verb for work in Pods of their own.
	VerbWork = "work"
	// PathImageBinary is our binary in the operator's own image.
	PathImageBinary = "/toban"
	PathProgram     = "/opt/toban"             // an emptyDir, filled by the install container
	PathBinary      = "/opt/toban/toban"       // the agent's binary in it
	PathConfig      = "/etc/toban/config"      // the ConfigMap
	PathAuthority   = "/etc/toban/ca"          // the Secret NAME-ca
	PathCertificate = "/etc/toban/certificate" // the user's Secret with what clients are shown, in a folder of its name
	PathApp         = "/etc/toban/app"         // the Secret NAME-app, in the init Job
	PathSQL         = "/etc/toban/sql"         // user's SQL, one folder a source: 00, 01, …
	PathBackup      = "/etc/toban/backup"      // the ConfigMap NAME-backup, in the backup's Pod
	PathStore       = "/etc/toban/store"       // the Secret with the credentials of the archive's store
	PathStoreCA     = "/etc/toban/store-ca"    // the Secret with ca.crt of the archive's store
	PathSecond      = "/etc/toban/second"      // the Secret with the credentials of the second store, in NAME-copy
	PathSecondCA    = "/etc/toban/second-ca"   // the Secret with ca.crt of the second store
	PathArchive     = "/archive"               // the volume NAME-archive, in its server's Pod
	PathRestore     = "/etc/toban/restore"     // the ConfigMap NAME-restore, in the restore's Pod
	PathSource      = "/etc/toban/source"      // the Secret NAME-ca of the SampleDB whose volume is restored from
	PathKey         = "/etc/toban/key"         // the Secret with the key of an encrypted archive
	PathPool        = "/etc/toban/pool"        // the ConfigMap NAME-pool, in a pooler's Pod
	PathPoolKey     = "/etc/toban/pool-key"    // the Secret NAME-pool, in a pooler's Pod
	PathRun         = "/var/run/postgresql"    // the Unix socket, where the official image has it
	PathCopy        = "/var/run/copy"          // the Unix socket of a restored copy, in the Pod of a DatabaseRestore
)

// Keys of ConfigMaps and Secrets.
const (
	KeyConfig  = "config.json"  // ConfigMap NAME-config: protocol.Config
	KeyInit    = "init.json"    // ConfigMap NAME-config: what the init Job does
	KeyBackup  = "backup.json"  // ConfigMap NAME-backup: protocol.BackupSettings
	KeyRestore = "restore.json" // ConfigMap NAME-restore: protocol.RestoreSettings
	KeyBring   = "bring.json"   // ConfigMap NAME-bring of a DatabaseRestore: protocol.BringSettings
	KeyPool    = "pool.json"    // ConfigMap NAME-pool: protocol.PoolSettings
	KeyAge     = "age.key"      // the user's Secret with the key of an archive
	KeyCA      = "ca.crt"
	// KeyTLSCertificate and KeyTLSKey are in Secrets of the type kubernetes.io/tls.
	KeyTLSCertificate = "tls.crt"
	KeyTLSKey         = "tls.key"
	KeyCAKey          = "ca.key"
	// KeyTrusted has the authorities that are trusted, in the ConfigMap NAME-config: two during a rotation.
	KeyTrusted  = "trusted.crt"
	KeyUsername = "username"
	KeyPassword = "password"
	KeyDatabase = "database"
	KeyHost     = "host"
	KeyPort     = "port"
	KeyURI      = "uri"
	KeyJDBC     = "jdbc-uri"
	KeyPgpass   = "pgpass"
	// Those with the hosts of all instances, and for reading only.
	KeyHostsURI  = "hosts-uri"
	KeyHostsJDBC = "hosts-jdbc-uri"
	KeyReadURI   = "ro-uri"
	KeyReadJDBC  = "ro-jdbc-uri"
	// Those of the pooler, where there is one.
	KeyPoolHost = "pool-host"
	KeyPoolURI  = "pool-uri"
	KeyPoolJDBC = "pool-jdbc-uri"

	KeyReadPoolURI  = "pool-ro-uri"
	KeyReadPoolJDBC = "pool-ro-jdbc-uri"
)

// ExitRefused is the exit code of a restore that would fail again in the same way.
const ExitRefused = 65 // EX_DATAERR of sysexits.h

// ExitImageUnusable is the exit code of an agent that finds no PostgreSQL of the
// wanted version in the image; its termination message says so. It is EX_CONFIG of sysexits.h.
const ExitImageUnusable = 78

// ExitFaultDrill is the exit code of an agent that a FaultDrill has ended.
const ExitFaultDrill = 86

// The operator's own objects.
const (
	// OperatorSecret has the root secrets, in the operator's namespace: the first one as KeyRoot, and each later one as
	// KeyRoot, "-" and the time at which it was made, in seconds (credentials.FromSecret).
	OperatorSecret = "toban-operator"
	KeyRoot        = "root"
)

// IsOwn says that the key of a label or an annotation is one of those above that we set.
func IsOwn(key string) bool {
	return strings.HasPrefix(key, "toban.dev/") || strings.HasPrefix(key, "app.kubernetes.io/")
}

// OperatorLease is the lease that an operator holds which acts: that of its shard.
func OperatorLease(shard int) string {
	if shard == 0 {
		return "toban-operator"
	}
	return fmt.Sprintf("toban-operator-%d", shard)
}

// Common names of the certificates that a SampleDB's authority issues;
// pg_ident.conf maps them to roles.
const (
	IdentityInstance = "toban:instance"
	IdentityInit     = "toban:init"
	IdentityOperator = "toban:operator"
	IdentityBackup   = "toban:backup"
	IdentityArchive  = "toban:archive"
	IdentityRestore  = "toban:restore"
	IdentityPooler   = "toban:pooler"
)

// Roles in PostgreSQL that are ours.
const (
	RoleSuperuser   = "postgres"
	RoleReplication = "toban_replication"
	RoleBackup      = "toban_backup"
	RoleLink        = "toban_link"
	RolePooler      = "toban_pooler"
	RoleVerify      = "toban_verify" // with something unique behind: in a restored copy, to ask the assertions
)
