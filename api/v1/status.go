package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SampleDBStatus is what the operator saw. It summarises the conditions and the
// instances; nothing in it is an instruction.
type SampleDBStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// A summary for people: Pending, Creating, Restoring, Ready, Updating, Degraded, Unavailable, Blocked, Stopping,
	// Stopped, Starting or Deleting. The conditions say why.
	// +optional
	Phase string `json:"phase,omitempty"`

	// Ready instances and wanted instances, as "2/3".
	// +optional
	Ready string `json:"ready,omitempty"`

	// The number of Pods of instances there are.
	// +optional
	Instances int32 `json:"instances,omitempty"`

	// The number of instances that do what their role asks: the primary takes
	// writes, a standby streams and answers queries.
	// +optional
	ReadyInstances int32 `json:"readyInstances,omitempty"`

	// The label selector of the instances' Pods, for the scale subresource.
	// +optional
	Selector string `json:"selector,omitempty"`

	// The instance that takes writes. To have another one: `toban switchover NAME`, or the annotation
	// toban.dev/switchover with an instance's name or any. The operator removes it when it is done; why it can't be,
	// the annotation toban.dev/switchover-refused says.
	// +optional
	Primary string `json:"primary,omitempty"`

	// While no instance takes writes: the one that did last.
	// +optional
	LastPrimary string `json:"lastPrimary,omitempty"`

	// The term of the primary's election. It grows with each change of the primary.
	// +optional
	Term int64 `json:"term,omitempty"`

	// While no instance takes writes: why none is being promoted, in one word. The
	// condition Available has the sentence.
	// +optional
	Refusal string `json:"refusal,omitempty"`

	// The PostgreSQL version that the primary runs, for instance 17.6.
	// +optional
	Version string `json:"version,omitempty"`

	// The major version of PostgreSQL that it has begun with. The archive of that one is in the folder without a
	// suffix.
	// +optional
	FirstVersion int32 `json:"firstVersion,omitempty"`

	// What is in the image that instances are made from, looked into once a day.
	// +optional
	Image *ImageStatus `json:"image,omitempty"`

	// The update to a newer minor version that waits or is under way. It is not there while there is none.
	// +optional
	Update *UpdateStatus `json:"update,omitempty"`

	// The PostgreSQL major version of the data. It is spec.version, but while that is raised and the data is not
	// upgraded yet.
	// +optional
	Major int32 `json:"major,omitempty"`

	// How far an upgrade to another major version is, or how the last one went.
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// How far the stop is that spec.stopped asks for, or the start after it. It is not there while the database serves
	// and is to serve.
	// +optional
	Stop *StopStatus `json:"stop,omitempty"`

	// The last rehearsal of an upgrade that was asked for alone, with the annotation toban.dev/rehearse. That of an
	// upgrade is in upgrade.
	// +optional
	Rehearsal *RehearsalStatus `json:"rehearsal,omitempty"`

	// The last restart of the servers that was asked for, with the annotation toban.dev/restart.
	// +optional
	Restart *RestartStatus `json:"restart,omitempty"`

	// What is left to do in the databases after a change of the image, or was done last; also after a request by the
	// annotation toban.dev/reindex.
	// +optional
	Finish *FinishStatus `json:"finish,omitempty"`

	// The image of the primary under which texts were last seen sorted as the databases have it on record. It is not
	// there while they are not.
	// +optional
	SortedBy string `json:"sortedBy,omitempty"`

	// How the poolers of spec.pooler are.
	// +optional
	Pooler *PoolerStatus `json:"pooler,omitempty"`

	// Which agents run the operator's own program.
	// +optional
	Agents *AgentsStatus `json:"agents,omitempty"`

	// PostgreSQL's own identity of this database system, as a decimal number. Once it is known, no
	// instance may make a new, empty one.
	// +optional
	SystemIdentifier string `json:"systemIdentifier,omitempty"`

	// When the init Job had done its work. It never runs again.
	// +optional
	InitializedAt *metav1.Time `json:"initializedAt,omitempty"`

	// A digest of the authorities that ca.crt of the Secret NAME-app has for certificates of `spec.tls.secretName`.
	// +optional
	ClientAuthorities string `json:"clientAuthorities,omitempty"`

	// Of how many instances NAME-app has the hosts; 0 if an earlier release has made it.
	// +optional
	AppHosts int32 `json:"appHosts,omitempty"`

	// Which password the Secret NAME-app has. It exists after a rotation by the annotation
	// toban.dev/rotate-password, or if the SampleDB was brought back with a rotated password.
	// +optional
	Password *PasswordStatus `json:"password,omitempty"`

	// Which authorities it has. It is there where another one was asked for by the annotation
	// toban.dev/rotate-authority.
	// +optional
	Authority *AuthorityStatus `json:"authority,omitempty"`

	// The operator's root secrets that it needs, by their keys in the operator's Secret, the oldest first. None is the
	// first one, "root", alone.
	// +listType=atomic
	// +optional
	Roots []string `json:"roots,omitempty"`

	// The restore that it has begun with, or that is running. It exists if
	// spec.restoreFrom or spec.restore is or was set.
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`

	// The archive and the backups in it. It exists if there is an archive.
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`

	// The size of the volumes. It exists if they may grow by themselves, or have.
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`

	// The instances, one by one.
	// +listType=map
	// +listMapKey=name
	// +optional
	InstanceStatuses []InstanceStatus `json:"instanceStatuses,omitempty"`

	// The readers. It exists with spec.readers.
	// +optional
	Readers *ReadersStatus `json:"readers,omitempty"`

	// What is true and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// InstanceStatus is one instance as its agent describes it.
type InstanceStatus struct {
	// The name of the Pod.
	Name string `json:"name"`

	// primary, standby, or empty where it is not known.
	// +optional
	Role string `json:"role,omitempty"`

	// Whether it does what its role asks.
	Ready bool `json:"ready"`

	// Whether its acknowledgement of a commit and its vote for a primary count, as
	// the primary has recorded. A new instance counts when it has all the data.
	// +optional
	Voter bool `json:"voter,omitempty"`

	// The zone of the node that its Pod is on, or was on last, where that is known.
	// +optional
	Zone string `json:"zone,omitempty"`

	// The PostgreSQL version that it runs, for instance 17.6.
	// +optional
	Version string `json:"version,omitempty"`

	// The image that its Pod runs, by its digest, as the kubelet says.
	// +optional
	ImageID string `json:"imageID,omitempty"`

	// Why it is what it is, in one word for programs.
	// +optional
	Reason string `json:"reason,omitempty"`

	// The same for people.
	// +optional
	Message string `json:"message,omitempty"`

	// How full its volume is.
	// +optional
	Volume *VolumeStatus `json:"volume,omitempty"`

	// The same of its WAL volume.
	// +optional
	WAL string `json:"wal,omitempty"`
}

// StorageStatus is the size that the volumes of the instances are to have now.
type StorageStatus struct {
	// The size in force of each volume: that of the spec, or a larger one to which it has grown.
	Size string `json:"size"`

	// When the volumes were last enlarged by themselves.
	// +optional
	GrownAt *metav1.Time `json:"grownAt,omitempty"`
}

// VolumeStatus is how full the volume of an instance is. It is about right: it is written again when that has changed
// by some hundredths.
type VolumeStatus struct {
	// How much its file system can hold, such as 9.7Gi.
	Size string `json:"size"`

	// How much of that is used, in hundredths.
	UsedPercent int32 `json:"usedPercent"`

	// By how much it fills a day; missing while that is not known.
	// +optional
	FillsPerDay string `json:"fillsPerDay,omitempty"`

	// In how many whole days it is full at that rate; missing for more than three years.
	// +optional
	FullInDays *int32 `json:"fullInDays,omitempty"`
}
