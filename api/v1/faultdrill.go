package v1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FaultDrill breaks instances of a SampleDB on purpose, while clients write, and says what became of the writes.
// Creating it does that, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=faultdrills,singular=faultdrill,shortName=fd
// +kubebuilder:selectablefield:JSONPath=`.spec.sampleDB`
// +kubebuilder:printcolumn:name="SampleDB",type=string,JSONPath=`.spec.sampleDB`,description="What is broken"
// +kubebuilder:printcolumn:name="Fault",type=string,JSONPath=`.spec.fault`,description="How it is broken"
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.status.instance`,description="Which instance it was"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="A summary of the conditions"
// +kubebuilder:printcolumn:name="Outage",type=string,JSONPath=`.status.outage`,description="The longest time without an acknowledged write, of all clients"
// +kubebuilder:printcolumn:name="Lost",type=integer,JSONPath=`.status.lost`,description="Acknowledged writes that are not there"
// +kubebuilder:printcolumn:name="Passed",type=string,JSONPath=`.status.conditions[?(@.type=='Passed')].status`,description="Whether all objectives were met"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=='Complete')].message`,description="How far it is, or what came of it",priority=1
// +kubebuilder:printcolumn:name="Meanwhile",type=string,JSONPath=`.spec.meanwhile`,description="Further faults at the same time",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 51",message="metadata.name must be at most 51 characters, because the name of its Pod is made from it"
type FaultDrill struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to break, and what is expected.
	// +required
	Spec FaultDrillSpec `json:"spec"`

	// What became of it.
	// +optional
	Status FaultDrillStatus `json:"status,omitempty"`
}

// FaultDrillSpec is what a user wants broken.
//
// +kubebuilder:validation:XValidation:rule="self.sampleDB == oldSelf.sampleDB && self.fault == oldSelf.fault && self.instance == oldSelf.instance && has(self.zone) == has(oldSelf.zone) && (!has(self.zone) || self.zone == oldSelf.zone) && has(self.meanwhile) == has(oldSelf.meanwhile) && (!has(self.meanwhile) || self.meanwhile == oldSelf.meanwhile) && duration(self.duration) == duration(oldSelf.duration) && duration(self.observe) == duration(oldSelf.observe) && duration(self.abortAfter) == duration(oldSelf.abortAfter) && has(self.abortWhen) == has(oldSelf.abortWhen) && (!has(self.abortWhen) || self.abortWhen == oldSelf.abortWhen) && self.objectives == oldSelf.objectives",message="only cancel, deadline, backupWithin and atOnce can be changed: create another FaultDrill"
// +kubebuilder:validation:XValidation:rule="!(self.fault in ['ServerHung', 'DiskFull', 'ReplayPaused', 'APIAway', 'ArchiveAway'] || has(self.meanwhile) && self.meanwhile.exists(m, m.fault in ['ServerHung', 'DiskFull', 'ReplayPaused', 'APIAway', 'ArchiveAway'])) || duration(self.observe) >= duration(self.duration) + duration('15s')",message="observe must be at least 15s longer than duration: what happens after the fault is part of the drill"
// +kubebuilder:validation:XValidation:rule="!(self.fault == 'DiskFull' && self.instance == 'Primary' || has(self.meanwhile) && self.meanwhile.exists(m, m.fault == 'DiskFull' && m.instance == 'Primary')) || duration(self.abortAfter) >= duration(self.duration) + duration('10s')",message="abortAfter must be at least 10s longer than duration: a primary takes no writes while its volume is full"
// +kubebuilder:validation:XValidation:rule="!(self.instance in ['All', 'Zone']) || self.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled', 'APIAway', 'ArchiveAway']",message="instance: All and Zone are for ServerKilled, ServerHung, AgentKilled, PodDeleted, PodKilled, APIAway and ArchiveAway: choose one of these, or instance: Primary or Standby"
// +kubebuilder:validation:XValidation:rule="self.fault != 'ReplayPaused' || self.instance == 'Standby'",message="ReplayPaused is for a standby, since a primary replays nothing: give instance: Standby"
// +kubebuilder:validation:XValidation:rule="(self.instance == 'Zone' || has(self.meanwhile) && self.meanwhile.exists(m, m.instance == 'Zone')) == has(self.zone)",message="zone goes with instance: Zone, and that with zone: give both or none"
// +kubebuilder:validation:XValidation:rule="!has(self.meanwhile) || [[self.fault in ['PoolersKilled', 'VolumeLost', 'LeaderKilled'] ? self.fault : self.fault + self.instance] + self.meanwhile.map(m, m.fault in ['PoolersKilled', 'VolumeLost', 'LeaderKilled'] ? m.fault : m.fault + m.instance)].all(parts, parts.all(a, parts.exists_one(b, a == b)))",message="meanwhile has a fault of an instance that is there already: leave one of them out"
// +kubebuilder:validation:XValidation:rule="!has(self.meanwhile) || [(self.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled'] ? [self.instance] : []) + self.meanwhile.filter(m, m.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled']).map(m, m.instance)].all(ended, ended.size() < 2 || ended.size() == 2 && 'Primary' in ended && 'Standby' in ended)",message="an instance is ended once: of ServerKilled, ServerHung, AgentKilled, PodDeleted and PodKilled give one for Primary and one for Standby at most, or one for All or Zone"
// +kubebuilder:validation:XValidation:rule="!has(self.meanwhile) || [[self.fault] + self.meanwhile.map(m, m.fault)].all(faults, !('VolumeLost' in faults) || faults.all(f, f in ['VolumeLost', 'APIAway', 'ArchiveAway', 'PoolersKilled', 'LeaderKilled']))",message="VolumeLost goes with APIAway, ArchiveAway, PoolersKilled and LeaderKilled alone: while a volume is copied, two other instances must have all commits"
// +kubebuilder:validation:XValidation:rule="!has(self.meanwhile) || [[self.fault] + self.meanwhile.map(m, m.fault)].all(faults, !('ReplayPaused' in faults)) || !(self.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled'] && self.instance in ['Standby', 'All'] || self.meanwhile.exists(m, m.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled'] && m.instance in ['Standby', 'All']))",message="ReplayPaused is over when the server of that standby ends, and can't be ordered while it hangs: give the other fault instance: Primary"
// +kubebuilder:validation:XValidation:rule="!has(self.meanwhile) || [[self.fault] + self.meanwhile.map(m, m.fault)].all(faults, !('APIAway' in faults)) || !(self.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled'] && self.instance != 'Standby' || self.meanwhile.exists(m, m.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled'] && m.instance != 'Standby')) || duration(self.abortAfter) >= duration(self.duration) + duration('10s')",message="abortAfter must be at least 10s longer than duration: while the Kubernetes API is away, the Service does not lead to another primary"
type FaultDrillSpec struct {
	// The SampleDB, in the same namespace. It must have the annotation toban.dev/fault-drills: allowed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	SampleDB string `json:"sampleDB"`

	// What happens to the instance. ServerKilled kills the PostgreSQL server (SIGKILL). ServerHung stops all of its
	// processes for as long as duration says (SIGSTOP, SIGCONT). AgentKilled ends the agent, and the container with
	// it. PodDeleted deletes the Pod, which then stops in order, as a drain of its node does. PodKilled deletes the
	// Pod without a grace period. PoolersKilled deletes all Pods behind NAME-pool so; instance does not matter then.
	// VolumeLost deletes the volume claim of a standby, and kills its Pod: it copies all data anew, onto a new
	// volume. It is always a standby, and takes three instances that vote. DiskFull fills the volume by a file, for
	// as long as duration says, until less is free than a primary needs to take writes. Volumes do not grow for it
	// (storage.grow). ReplayPaused has a standby replay no WAL, for as long as duration says: what is read there gets
	// old. It goes with instance: Standby. APIAway has the agent not reach the Kubernetes API, for as long as duration
	// says, whatever it asks. ArchiveAway does the same with the store of the archive: WAL waits on the volume. It
	// takes a SampleDB with an archive. LeaderKilled deletes the Pod that leads each MyApp on this SampleDB, without
	// a grace period; instance does not matter then. It takes a MyApp with spec.leader and the same annotation. ByHand
	// breaks nothing: you do, with rights of your own, such as a drain of a node or a cut network, as soon as the
	// condition Complete says that the clients write. Give observe the time that this takes.
	// +kubebuilder:validation:Enum=ServerKilled;ServerHung;AgentKilled;PodDeleted;PodKilled;PoolersKilled;VolumeLost;DiskFull;ReplayPaused;APIAway;ArchiveAway;LeaderKilled;ByHand
	// +required
	Fault FaultDrillFault `json:"fault"`

	// Which instance: Primary, or Standby for one of the standbys that vote. All are all instances at once, but for
	// readers, and Zone all that are in the zone that zone names; these two are for faults of servers, agents and
	// Pods, and for APIAway and ArchiveAway.
	// +kubebuilder:validation:Enum=Primary;Standby;All;Zone
	// +kubebuilder:default=Primary
	// +optional
	Instance FaultDrillInstance `json:"instance,omitempty"`

	// The zone whose instances are broken, for instance: Zone. status.instanceStatuses of the SampleDB has the zone
	// of each, which is the label topology.kubernetes.io/zone of its node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Zone string `json:"zone,omitempty"`

	// Further faults at the same time. What lasts begins first, then come the others, and all is undone together. An
	// instance is ended once only: of ServerKilled, ServerHung, AgentKilled, PodDeleted and PodKilled there may be one
	// for Primary and one for Standby, or one for All or Zone. Standby is the same one for all faults.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +optional
	Meanwhile []FaultDrillPart `json:"meanwhile,omitempty"`

	// For how long a ServerHung, a DiskFull, a ReplayPaused, an APIAway or an ArchiveAway lasts. A server that hangs
	// may be ended by its agent before.
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('5m')",message="duration must be from 1s to 5m"
	// +optional
	Duration metav1.Duration `json:"duration,omitempty"`

	// For how long the clients write, from when they do so without an error. The fault comes a moment after that. They
	// go on until their writes are acknowledged again.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('15s') && duration(self) <= duration('15m')",message="observe must be from 15s to 15m"
	// +optional
	Observe metav1.Duration `json:"observe,omitempty"`

	// The drill is given up when a client had no write acknowledged for so long: the fault is undone, where it can be,
	// and the drill has not passed.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('15m')",message="abortAfter must be from 1s to 15m"
	// +optional
	AbortAfter metav1.Duration `json:"abortAfter,omitempty"`

	// A query that says when to give the drill up: it is asked once a second while the clients write, and is over when
	// the value of its one column is true. It runs as the application's role in its database, in a transaction that
	// can't write, and has two seconds. Names need their schema. For instance SELECT count(*) > 100 FROM shop.failures.
	// +kubebuilder:validation:MaxLength=2000
	// +optional
	AbortWhen string `json:"abortWhen,omitempty"`

	// What must be true for the drill to pass. That no acknowledged write is lost is always one of them.
	// With ArchiveAway the SampleDB is whole again when its archive has caught up, too, with LeaderKilled when another
	// Pod leads.
	// +kubebuilder:default={}
	// +optional
	Objectives FaultDrillObjectives `json:"objectives,omitempty"`

	// How long it may take from its creation on, for instance 1h, the wait for the SampleDB included.
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="deadline must be from 1m to 720h"
	// +optional
	Deadline metav1.Duration `json:"deadline,omitempty"`

	// Break nothing unless a backup of the SampleDB is complete that is not older than this, for instance 24h. Without
	// it that does not matter.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="backupWithin must be from 1m to 8760h"
	// +optional
	BackupWithin *metav1.Duration `json:"backupWithin,omitempty"`

	// Begin only while at most so many FaultDrills of the namespace are under way, this one among them. Without it
	// there is no limit, but that those of one SampleDB go one after the other.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AtOnce int32 `json:"atOnce,omitempty"`

	// Stop it, if it has not ended yet. A fault that lasts is undone.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// FaultDrillPart is one of several faults of a drill.
//
// +kubebuilder:validation:XValidation:rule="!(self.instance in ['All', 'Zone']) || self.fault in ['ServerKilled', 'ServerHung', 'AgentKilled', 'PodDeleted', 'PodKilled', 'APIAway', 'ArchiveAway']",message="instance: All and Zone are for ServerKilled, ServerHung, AgentKilled, PodDeleted, PodKilled, APIAway and ArchiveAway: choose one of these, or instance: Primary or Standby"
// +kubebuilder:validation:XValidation:rule="self.fault != 'ReplayPaused' || self.instance == 'Standby'",message="ReplayPaused is for a standby, since a primary replays nothing: give instance: Standby"
type FaultDrillPart struct {
	// What happens, as in spec.fault.
	// +kubebuilder:validation:Enum=ServerKilled;ServerHung;AgentKilled;PodDeleted;PodKilled;PoolersKilled;VolumeLost;DiskFull;ReplayPaused;APIAway;ArchiveAway;LeaderKilled;ByHand
	// +required
	Fault FaultDrillFault `json:"fault"`
	// To which instance, as in spec.instance. Zone is the one of spec.zone.
	// +kubebuilder:validation:Enum=Primary;Standby;All;Zone
	// +required
	Instance FaultDrillInstance `json:"instance"`
}

// Parts are all faults of a drill, spec.fault first.
func (s *FaultDrillSpec) Parts() []FaultDrillPart {
	return append([]FaultDrillPart{{Fault: s.Fault, Instance: s.Instance}}, s.Meanwhile...)
}

// Has says whether a fault is one of the drill's.
func (s *FaultDrillSpec) Has(fault FaultDrillFault) bool {
	return slices.ContainsFunc(s.Parts(), func(p FaultDrillPart) bool { return p.Fault == fault })
}

// FaultDrillObjectives are what must be true for a drill to pass.
type FaultDrillObjectives struct {
	// The longest time that any client may be without an acknowledged write.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('15m')",message="maxOutage must be from 0s to 15m"
	// +optional
	MaxOutage metav1.Duration `json:"maxOutage,omitempty"`

	// How long after the fault the SampleDB may take to be whole again: Ready and Durable.
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="wholeWithin must be from 1s to 24h"
	// +optional
	WholeWithin metav1.Duration `json:"wholeWithin,omitempty"`
}

// FaultDrillFault is what happens to an instance.
type FaultDrillFault string

// The values of FaultDrillFault.
const (
	FaultServerKilled  FaultDrillFault = "ServerKilled"
	FaultServerHung    FaultDrillFault = "ServerHung"
	FaultAgentKilled   FaultDrillFault = "AgentKilled"
	FaultPodDeleted    FaultDrillFault = "PodDeleted"
	FaultPodKilled     FaultDrillFault = "PodKilled"
	FaultPoolersKilled FaultDrillFault = "PoolersKilled"
	FaultVolumeLost    FaultDrillFault = "VolumeLost"
	FaultDiskFull      FaultDrillFault = "DiskFull"
	FaultReplayPaused  FaultDrillFault = "ReplayPaused"
	FaultAPIAway       FaultDrillFault = "APIAway"
	FaultArchiveAway   FaultDrillFault = "ArchiveAway"
	FaultLeaderKilled  FaultDrillFault = "LeaderKilled"
	FaultByHand        FaultDrillFault = "ByHand"
)

// FaultDrillInstance is which instance is broken.
type FaultDrillInstance string

// The values of FaultDrillInstance.
const (
	DrillPrimary FaultDrillInstance = "Primary"
	DrillStandby FaultDrillInstance = "Standby"
	DrillAll     FaultDrillInstance = "All"
	DrillZone    FaultDrillInstance = "Zone"
)

// FaultDrillStatus is what became of a FaultDrill.
type FaultDrillStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// A summary for people: Pending, Running, Completed, Failed or Cancelled.
	// +optional
	Phase string `json:"phase,omitempty"`

	// When it began and ended.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// The instance that was chosen, or the instances with a comma between them, and when the fault was ordered and
	// done.
	// +optional
	Instance string `json:"instance,omitempty"`
	// The same for each fault of spec.meanwhile, in its order.
	// +listType=atomic
	// +optional
	Meanwhile []string `json:"meanwhile,omitempty"`
	// +optional
	OrderedAt *metav1.Time `json:"orderedAt,omitempty"`
	// +optional
	StruckAt *metav1.Time `json:"struckAt,omitempty"`

	// Up to where the primary's WAL went when an ArchiveAway was over. The archive has caught up when it has that.
	// +optional
	WALAtEnd string `json:"walAtEnd,omitempty"`

	// Since when the SampleDB has been Ready and Durable again, and what else the faults of the drill ask for.
	// +optional
	WholeAt *metav1.Time `json:"wholeAt,omitempty"`

	// What each client has seen.
	// +listType=map
	// +listMapKey=way
	// +optional
	Clients []FaultDrillClient `json:"clients,omitempty"`

	// The longest time without an acknowledged write, of all clients, such as 1.234s.
	// +optional
	Outage string `json:"outage,omitempty"`
	// Acknowledged writes that are not in the database, of all clients.
	// +optional
	Lost *int64 `json:"lost,omitempty"`

	// What is true and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Chosen are the instances that were chosen for each of the spec's Parts, as texts; none before that.
func (s *FaultDrillStatus) Chosen() []string {
	if s.Instance == "" {
		return nil
	}
	return append([]string{s.Instance}, s.Meanwhile...)
}

// Faults are the names of all faults of a drill, for people.
func (d *FaultDrill) Faults() string {
	var names []string
	for _, p := range d.Spec.Parts() {
		names = append(names, string(p.Fault))
	}
	return strings.Join(names, " + ")
}

// Instances are what each of the faults was done to, for people.
func (d *FaultDrill) Instances() string { return strings.Join(d.Status.Chosen(), " + ") }

// FaultDrillClient is what a client has seen.
type FaultDrillClient struct {
	// How it connects: Service by the name of the SampleDB's Service, Hosts by a list of the instances' names with
	// target_session_attrs=primary, Pooler by the SampleDB's pooler. Standbys are those together who only read, from
	// each standby; they are there with the fault ReplayPaused.
	Way string `json:"way"`
	// The longest time without an acknowledged write.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	Outage metav1.Duration `json:"outage"`
	// Writes that were acknowledged, those of them that are not in the database, and writes and connections that
	// failed.
	Acknowledged int64 `json:"acknowledged"`
	Lost         int64 `json:"lost"`
	Errors       int64 `json:"errors"`
	// Reads over another connection that were answered, and those of them that lacked a write which the client knew to
	// be acknowledged when it asked: from a former primary that does not know yet that it is one.
	// +optional
	Reads int64 `json:"reads,omitempty"`
	// +optional
	StaleReads int64 `json:"staleReads,omitempty"`
	// How old the oldest answer of a standby was: for how long it had lacked an acknowledged write.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Staleness *metav1.Duration `json:"staleness,omitempty"`
	// The first error, in PostgreSQL's or the network's words.
	// +optional
	FirstError string `json:"firstError,omitempty"`
}

// FaultDrillList is a list of FaultDrills.
//
// +kubebuilder:object:root=true
type FaultDrillList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []FaultDrill `json:"items"`
}

func init() {
	SchemeBuilder.Register(&FaultDrill{}, &FaultDrillList{})
}
