package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SampleDB is a PostgreSQL server with its copies: one primary that takes
// writes, and standbys that follow it by streaming replication. The operator
// sets it up, applies every change of the spec and cleans up after it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.instances,statuspath=.status.instances,selectorpath=.status.selector
// +kubebuilder:resource:path=sampledbs,singular=sampledb,shortName=sdb
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.ready`,description="Instances that do what their role asks, of those wanted"
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.primary`,description="The instance that takes writes"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,description="The PostgreSQL version that runs"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="A summary of the conditions"
// +kubebuilder:printcolumn:name="Last backup",type=date,JSONPath=`.status.backup.lastBackupAt`,description="When the last complete backup ended"
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.update.begins`
// +kubebuilder:printcolumn:name="Up to date",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="UpToDate")].reason`,description="Whether what runs is old, and how"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name must be at most 40 characters, because the names of Pods, Services and Jobs are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and have only lower-case letters, digits and '-', because a Service bears the same name"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.initializedAt) || (has(self.spec.init) == has(oldSelf.spec.init) && (!has(self.spec.init) || self.spec.init == oldSelf.spec.init))",message="spec.init has run and runs only once: change the database with SQL instead"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.restore) || self.spec.restore.confirm == self.metadata.name",message="spec.restore.confirm must be the name of the SampleDB: what was written since the target will not be in the database any more"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.restoreFrom) || (has(oldSelf.spec.restoreFrom) && self.spec.restoreFrom == oldSelf.spec.restoreFrom) || !has(oldSelf.status) || (!has(oldSelf.status.systemIdentifier) && !(has(oldSelf.status.restore) && has(oldSelf.status.restore.completedAt)))",message="spec.restoreFrom says what a new SampleDB begins with, and this one has its data already: create another SampleDB with it"
// +kubebuilder:validation:XValidation:rule="self.spec.version >= (has(oldSelf.status) && has(oldSelf.status.major) ? oldSelf.status.major : oldSelf.spec.version)",message="spec.version can't go below the major version of the data (status.major): PostgreSQL can't read data of a newer one. Restore a backup of the former version into a new SampleDB instead"
type SampleDB struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the database should be. Only version and storage.size have to be given.
	// +required
	Spec SampleDBSpec `json:"spec"`

	// What the operator last saw. It is never read as an instruction.
	// +optional
	Status SampleDBStatus `json:"status,omitempty"`
}

// SampleDBSpec is what a user wants a SampleDB to be.
//
// +kubebuilder:validation:XValidation:rule="!has(self.restore) || has(self.restore.survivor) && self.restore.survivor || !has(self.backup) || !has(self.backup.none) || !self.backup.none",message="spec.restore brings a state back from the SampleDB's own archive, which backup.none: true does without"
// +kubebuilder:validation:XValidation:rule="!has(self.backup) || !has(self.backup.incremental) || self.version >= 17",message="backup.incremental needs PostgreSQL 17 or newer: leave it out"
// +kubebuilder:validation:XValidation:rule="!has(self.deletionPolicy) || self.deletionPolicy != 'Snapshot' || !has(self.backup) || !has(self.backup.none) || !self.backup.none",message="deletionPolicy: Snapshot takes a last backup, and backup.none: true leaves no place for one: choose Retain or Delete, or remove backup.none"
// +kubebuilder:validation:XValidation:rule="!has(self.primary) || !has(self.primary.handOver) || self.primary.handOver != 'InWindow' || has(self.update) && has(self.update.window)",message="primary.handOver: InWindow needs update.window, in which the primary may hand over: give that, or another value"
// +kubebuilder:validation:XValidation:rule="!has(self.readers) || !has(self.readers.autoscale) || (has(self.resources) && ((has(self.resources.requests) && 'cpu' in self.resources.requests) || (has(self.resources.limits) && 'cpu' in self.resources.limits)))",message="readers.autoscale compares the use of the CPU with resources.requests.cpu: set that"
// +kubebuilder:validation:XValidation:rule="!has(self.sleepAfter) || has(self.pooler) && duration(self.sleepAfter) >= duration('1m')",message="sleepAfter needs pooler, and at least 1m"
type SampleDBSpec struct {
	// The PostgreSQL major version: 15, 16, 17, 18 or 19. When it is raised, the data is upgraded as upgrade.strategy
	// says. It can't be lowered below the version of the data.
	// +kubebuilder:validation:XValidation:rule="self >= 15 && self <= 19",message="version must be a PostgreSQL major version that is supported: 15, 16, 17, 18 or 19"
	// +required
	Version int32 `json:"version"`

	// How many instances to run: one primary, the others standbys with a full copy
	// of the data each. Can be changed at any time; one that is removed loses its
	// Pod, and its volume as storage.whenScaled says.
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9",message="instances must be from 1 to 9: one primary and up to eight standbys"
	// +optional
	Instances int32 `json:"instances"`

	// Further standbys that only serve reads. They never vote, no commit waits for them, and they never become primary:
	// they may come and go at any time, also by a HorizontalPodAutoscaler.
	// +optional
	Readers *ReadersSpec `json:"readers,omitempty"`

	// What an acknowledged COMMIT promises: with quorum it is on the disks of a majority of the instances, so that
	// losing any one loses nothing; with async on the primary's alone. Of two instances, quorum means both; if one is
	// lost, the other continues alone once it has recorded that in the Kubernetes API. A change restarts nothing.
	// +kubebuilder:default=quorum
	// +optional
	Durability Durability `json:"durability,omitempty"`

	// Whether a lone instance may be evicted, as when its node is drained. With Protect the drain is refused. With
	// Allow it stops until its Pod runs on another node. Of several, one at a time always may.
	// +kubebuilder:default=Protect
	// +optional
	Eviction Eviction `json:"eviction,omitempty"`

	// How the instances are spread over zones (the node label topology.kubernetes.io/zone): with Preferred as far as
	// possible, unless pod.affinity is given; with Required always: else a Pod waits for a node.
	// +kubebuilder:default=Preferred
	// +optional
	ZoneSpread ZoneSpread `json:"zoneSpread,omitempty"`

	// Which instances should be the primary. A change restarts nothing.
	// +optional
	Primary *PrimarySpec `json:"primary,omitempty"`

	// Where the data is. Each instance has a volume of its own.
	// +required
	Storage StorageSpec `json:"storage"`

	// The image with PostgreSQL's programs, in place of the official postgres:VERSION: of the same major version,
	// with a user with the id 999, and the programs in /usr/lib/postgresql/VERSION/bin or on the PATH. All instances
	// run what a tag first was, until it is updated (status.image.runs); one named by its digest never is.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// When the instances move on to a newer minor version of the image: by default in a quiet hour once a week.
	// An image by its digest is never updated.
	// +optional
	Update *UpdateSpec `json:"update,omitempty"`

	// How the data is upgraded when version is raised.
	// +optional
	Upgrade *UpgradeSpec `json:"upgrade,omitempty"`

	// The processor time and memory of each instance. A change restarts the
	// instances, standbys first.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Settings of the PostgreSQL servers.
	// +optional
	PostgreSQL PostgreSQLSpec `json:"postgresql,omitempty"`

	// What a new SampleDB begins with instead of an empty database: a backup, or the archive of another up to a
	// moment. It can be mended as long as it fails; once it is done, only be removed, which changes nothing.
	// +optional
	RestoreFrom *RestoreSpec `json:"restoreFrom,omitempty"`

	// An earlier state of this very SampleDB, to bring back in its place from its archive.
	// +optional
	Restore *InPlaceRestore `json:"restore,omitempty"`

	// What to do once in the new database: its name, owner, extensions and first
	// SQL. It can be mended as long as it fails; after it has run it can't be changed.
	// +optional
	Init *InitSpec `json:"init,omitempty"`

	// Where the archive of WAL and base backups is, and when backups are taken. By default: a volume of its
	// own, a backup a day, seven kept, and one restored a week to prove it. `none: true` does without. To set or change
	// the store's credentials or ca restarts the instances one by one.
	// +optional
	Backup *BackupSpec `json:"backup,omitempty"`

	// Has the database broken on purpose by a schedule, to prove that it comes back. It takes the annotation
	// toban.dev/fault-drills: allowed as well.
	// +optional
	Drills *DrillsSpec `json:"drills,omitempty"`

	// What becomes of the data when the SampleDB is deleted. Snapshot takes a last backup, the DatabaseBackup
	// NAME-final-…, and then removes the volumes. Retain keeps them for a SampleDB with the same name. Delete removes
	// them with the data. By default: Snapshot, and Retain with backup.none. It can still be changed while the
	// SampleDB is being deleted.
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// The Service through which applications connect.
	// +optional
	Service ServiceSpec `json:"service,omitempty"`

	// A pooler (PgBouncer) in front of the servers, with the Service NAME-pool: clients wait there while the primary is
	// changed, and many clients share few connections.
	// +optional
	Pooler *PoolerSpec `json:"pooler,omitempty"`

	// Which clients reach the servers over the network. A change restarts nothing.
	// +optional
	Network NetworkSpec `json:"network,omitempty"`

	// Which metrics the instances serve for Prometheus, and who may read them. By default those of PostgreSQL and of
	// the instance, for the namespaces with the label toban.dev/metrics. A change restarts nothing.
	// +optional
	Metrics *MetricsSpec `json:"metrics,omitempty"`

	// By which certificate clients know the servers.
	// +optional
	TLS TLSSpec `json:"tls,omitempty"`

	// The usual fields of the instances' Pods.
	// +optional
	Pod PodSpec `json:"pod,omitempty"`

	// Whether the database is stopped: it has no Pods then; volumes, Secrets, Services and the archive stay. Before,
	// clients are sent away, and the standbys and the archive get the last WAL. A stop waits for backups, restores
	// and upgrades.
	// +optional
	Stopped bool `json:"stopped,omitempty"`

	// When the database is stopped by itself, and started again: as with stopped, while one of these windows is open.
	// Windows one after the other are one. What opened before the SampleDB was created, or before kubectl toban start,
	// does not count.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=14
	// +optional
	StopWindows []Window `json:"stopWindows,omitempty"`

	// It sleeps when no client did anything for so long.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	SleepAfter string `json:"sleepAfter,omitempty"`
}

// StorageSpec says where an instance keeps its data.
//
// +kubebuilder:validation:XValidation:rule="!has(self.grow) || self.size.matches('[eE].*[0-9]{3}') || self.grow.limit.matches('[eE].*[0-9]{3}') || !isQuantity(self.size) || !isQuantity(self.grow.limit) || !quantity(self.grow.limit).isLessThan(quantity(self.size))",message="storage.grow.limit can't be less than storage.size: the volumes have that size from the beginning. Raise the limit, or leave storage.grow out"
// +kubebuilder:validation:XValidation:rule="has(self.wal) != has(oldSelf.wal) ? false : !has(self.wal) || !(quantity(self.wal.size).isLessThan(quantity(oldSelf.wal.size)) || (has(self.wal.storageClassName) ? !has(oldSelf.wal.storageClassName) || self.wal.storageClassName != oldSelf.wal.storageClassName : has(oldSelf.wal.storageClassName)))",message="storage.wal can only grow. For another one, make a new SampleDB with restoreFrom"
type StorageSpec struct {
	// The size of each instance's volume, such as 10Gi. For a smaller one the instances are copied in turn, where the
	// data fits.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!self.matches('[eE].*[0-9]{3}') && isQuantity(self)",message="storage.size must be a quantity such as 10Gi"
	// +kubebuilder:validation:XValidation:rule="self.matches('[eE].*[0-9]{3}') || !isQuantity(self) || !quantity(self).isLessThan(quantity('256Mi'))",message="storage.size must be at least 256Mi: an empty PostgreSQL with its first WAL needs nearly that much"
	// +required
	Size string `json:"size"`

	// The StorageClass of the volumes, by default the cluster's. For another one the instances are copied in turn.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`

	// What becomes of the volumes of an instance that spec.instances does without: Retain keeps them; Delete removes
	// them, once they have nothing that the primary has not.
	// +kubebuilder:default=Retain
	// +optional
	WhenScaled ScalePolicy `json:"whenScaled,omitempty"`

	// Enlarges the volumes by themselves when one gets short of room. status.storage.size is their size then.
	// +optional
	Grow *GrowSpec `json:"grow,omitempty"`

	// A volume of its own for the WAL of each instance, for good.
	// +optional
	WAL *WALSpec `json:"wal,omitempty"`
}

// WALSpec says where pg_wal is.
type WALSpec struct {
	// Its size, such as 10Gi. It can only grow.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!(self.matches('[eE].*[0-9]{3}') || !isQuantity(self) || quantity(self).isLessThan(quantity('512Mi')))",message="storage.wal.size must be a quantity of at least 512Mi"
	// +required
	Size string `json:"size"`

	// Its StorageClass; that of the data if not given.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// GrowSpec says how far volumes grow by themselves.
type GrowSpec struct {
	// The size up to which each volume grows, such as 100Gi. What has grown beyond a lower one stays.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!self.matches('[eE].*[0-9]{3}') && isQuantity(self)",message="storage.grow.limit must be a quantity such as 100Gi"
	// +required
	Limit string `json:"limit"`
}

// ScalePolicy is what becomes of the volume of a removed instance.
// +kubebuilder:validation:Enum=Retain;Delete
type ScalePolicy string

// The values of ScalePolicy.
const (
	ScaleRetain ScalePolicy = "Retain"
	ScaleDelete ScalePolicy = "Delete"
)

// Durability is what an acknowledged COMMIT promises.
// +kubebuilder:validation:Enum=quorum;async
type Durability string

// The values of Durability.
const (
	DurabilityQuorum Durability = "quorum"
	DurabilityAsync  Durability = "async"
)

// Eviction says whether a lone instance may be evicted.
// +kubebuilder:validation:Enum=Protect;Allow
type Eviction string

// The values of Eviction.
const (
	EvictionProtect Eviction = "Protect"
	EvictionAllow   Eviction = "Allow"
)

// DeletionPolicy is what becomes of the data of a deleted SampleDB.
// +kubebuilder:validation:Enum=Snapshot;Retain;Delete
type DeletionPolicy string

// The values of DeletionPolicy.
const (
	DeletionSnapshot DeletionPolicy = "Snapshot"
	DeletionRetain   DeletionPolicy = "Retain"
	DeletionDelete   DeletionPolicy = "Delete"
)

// PostgreSQLSpec is what a user sets in PostgreSQL's own configuration.
type PostgreSQLSpec struct {
	// Parameters of postgresql.conf by name, with the values as PostgreSQL writes them, for instance work_mem: 16MB. A
	// change is reloaded where PostgreSQL can, and otherwise restarts the instances one by one. A value that PostgreSQL
	// refuses changes nothing: ConfigurationApplied tells.
	// +kubebuilder:validation:MaxProperties=150
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)?$'))",message="a parameter name must be one of PostgreSQL's: letters, digits and '_', and a '.' after an extension's prefix"
	// +kubebuilder:validation:XValidation:rule="self.all(name, !self[name].contains('\\n') && !self[name].contains('\\r'))",message="a parameter value must be one line"
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name.lowerAscii() in ['allow_system_table_mods','cluster_name','config_file','data_directory','data_sync_retry','db_user_namespace','event_source','external_pid_file','fsync','full_page_writes','hba_file','hot_standby','ident_file','ignore_checksum_failure','ignore_invalid_pages','ignore_system_indexes','lc_messages','listen_addresses','log_destination','logging_collector','port','post_auth_delay','pre_auth_delay','primary_conninfo','primary_slot_name','promote_trigger_file','recovery_end_command','recovery_init_sync_method','recovery_min_apply_delay','restart_after_crash','restore_command','standby_mode','synchronous_standby_names','unix_socket_directories','unix_socket_group','unix_socket_permissions','wal_level','wal_log_hints','zero_damaged_pages'] || name.lowerAscii().startsWith('ssl') || name.lowerAscii().startsWith('recovery_target') || name.lowerAscii().startsWith('archive_') || name.lowerAscii().startsWith('include'))",message="a parameter in postgresql.parameters belongs to the operator, which sets it itself (docs/parameters.md lists them): leave it out"
	// +optional
	Parameters map[string]ParameterValue `json:"parameters,omitempty"`

	// Lines of pg_hba.conf, each "TYPE DATABASE USER ADDRESS METHOD", after the operator's own and before the last one,
	// which lets every role in with its password over TLS. A line with host lets clients without TLS in.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.all(line, !line.contains('\\n') && !line.contains('\\r'))",message="each item of postgresql.hba must be one line"
	// +kubebuilder:validation:XValidation:rule="self.all(line, line.matches('^(local|host|hostssl|hostnossl|hostgssenc|hostnogssenc)[ \\t]'))",message="each line of postgresql.hba must start with local, host, hostssl, hostnossl, hostgssenc or hostnogssenc"
	// +optional
	HBA []string `json:"hba,omitempty"`
}

// ParameterValue is the value of a PostgreSQL parameter as postgresql.conf has it.
// +kubebuilder:validation:MaxLength=1024
type ParameterValue string

// InitSpec is what the init Job does once in a new SampleDB.
//
// +kubebuilder:validation:XValidation:rule="!has(self.none) || !self.none || (!has(self.extensions) && !has(self.sql))",message="init.none makes no database, so there is none for init.extensions and init.sql"
type InitSpec struct {
	// Make nothing: no database, no role and no Secret NAME-app. It is for a server whose databases are made in
	// another way, for instance as PostgreSQL objects.
	// +optional
	None bool `json:"none,omitempty"`

	// The database that is made for the application. Its connection details are in
	// the Secret NAME-app.
	// +kubebuilder:default=app
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!(self in ['postgres','template0','template1'])",message="init.database must be a name of its own: postgres, template0 and template1 are PostgreSQL's"
	// +optional
	Database string `json:"database,omitempty"`

	// The role that owns the database and that applications log in with. It is no
	// superuser.
	// +kubebuilder:default=app
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'postgres' && self != 'public' && self != 'none' && !self.startsWith('pg_') && !self.startsWith('toban_')",message="init.owner must be a name of its own: postgres, public, none, pg_… and toban_… are reserved"
	// +optional
	Owner string `json:"owner,omitempty"`

	// Extensions to create in the database.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// SQL to run in the database as its owner, in this order, each source in one
	// transaction, exactly once.
	// +kubebuilder:validation:MaxItems=50
	// +optional
	SQL []SQLSource `json:"sql,omitempty"`
}

// SQLSource names SQL in a ConfigMap or a Secret of the same namespace.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMap) != has(self.secret)",message="each item of init.sql must have either configMap or secret"
type SQLSource struct {
	// A key of a ConfigMap.
	// +optional
	ConfigMap *KeySelector `json:"configMap,omitempty"`

	// A key of a Secret.
	// +optional
	Secret *KeySelector `json:"secret,omitempty"`
}

// KeySelector is a key of a ConfigMap or a Secret in the same namespace.
type KeySelector struct {
	// The object's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// The key in its data.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +required
	Key string `json:"key"`
}

// ServiceSpec is how the read-write Service is published.
type ServiceSpec struct {
	// The type of the Service NAME: ClusterIP, NodePort or LoadBalancer.
	// +kubebuilder:default=ClusterIP
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// Annotations of the Service, for instance for a cloud's load balancer.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Where the Service leads: to the Primary, or to all instances, which pass clients on to it (Relay).
	// +kubebuilder:default=Primary
	// +optional
	Route Route `json:"route,omitempty"`

	// Whether NAME-ro leads a client to standbys of its own zone, while one is ready.
	// +optional
	ReadNearest bool `json:"readNearest,omitempty"`

	// How late a standby may be that clients read: where WAL waits longer to be replayed, NAME-ro and NAME-pool-ro do
	// not lead.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="service.readMaxLag must be from 1s to 1h"
	// +optional
	ReadMaxLag *metav1.Duration `json:"readMaxLag,omitempty"`
}

// Route is where the Service NAME leads.
// +kubebuilder:validation:Enum=Primary;Relay
type Route string

// The routes.
const (
	RoutePrimary Route = "Primary"
	RouteRelay   Route = "Relay"
)

// PodSpec has the usual fields of a Pod that a user may set on the instances.
type PodSpec struct {
	// Labels to add to the Pods.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="!self.exists(key, key.startsWith('toban.dev/') || key.startsWith('app.kubernetes.io/'))",message="pod.labels must not begin with toban.dev/ or app.kubernetes.io/: those are the operator's"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Annotations to add to the Pods.
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`

	// Labels that a node must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Taints that the Pods bear with.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Rules for the choice of nodes, as in a Pod. Where it is not given, the
	// instances are spread over the nodes as far as possible.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// The PriorityClass of the Pods.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// Secrets to pull the image with.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// SampleDBList is a list of SampleDBs.
//
// +kubebuilder:object:root=true
type SampleDBList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SampleDB `json:"items"`
}

func init() {
	SchemeBuilder.Register(&SampleDB{}, &SampleDBList{})
}
