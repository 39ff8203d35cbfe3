package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseRestore brings tables, schemas or a database of a SampleDB back, as they were at an earlier moment, while the
// SampleDB serves. Creating it does that, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=databaserestores,singular=databaserestore,shortName=dbr
// +kubebuilder:printcolumn:name="SampleDB",type=string,JSONPath=`.spec.sampleDB`,description="Whose data it is"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="A summary of the condition"
// +kubebuilder:printcolumn:name="Brought",type=string,JSONPath=`.status.objects[*].as`,description="What is there now"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=='Complete')].message`,description="How far it is, or why it has failed",priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 51",message="metadata.name must be at most 51 characters, because the name of its Pod is made from it"
type DatabaseRestore struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What to bring back.
	// +required
	Spec DatabaseRestoreSpec `json:"spec"`

	// What became of it.
	// +optional
	Status DatabaseRestoreStatus `json:"status,omitempty"`
}

// DatabaseRestoreSpec is what a user wants back.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.tables) && has(self.schemas))",message="give tables, or schemas, or neither for the whole database"
// +kubebuilder:validation:XValidation:rule="has(self.target) || has(self.backup)",message="say of which moment: target, or backup for what a backup had when it ended, or both"
// +kubebuilder:validation:XValidation:rule="self.sampleDB == oldSelf.sampleDB && has(self.database) == has(oldSelf.database) && (!has(self.database) || self.database == oldSelf.database) && has(self.tables) == has(oldSelf.tables) && (!has(self.tables) || self.tables == oldSelf.tables) && has(self.schemas) == has(oldSelf.schemas) && (!has(self.schemas) || self.schemas == oldSelf.schemas) && has(self.target) == has(oldSelf.target) && (!has(self.target) || self.target == oldSelf.target) && has(self.backup) == has(oldSelf.backup) && (!has(self.backup) || self.backup == oldSelf.backup) && self.mode == oldSelf.mode",message="only cancel and deadline can be changed: create another DatabaseRestore"
type DatabaseRestoreSpec struct {
	// The SampleDB, in the same namespace. It must have an archive.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	SampleDB string `json:"sampleDB"`

	// The database that the tables or schemas are in, or that comes back as a whole. By default that of the application
	// (spec.init.database of the SampleDB).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Database string `json:"database,omitempty"`

	// The tables, each as SCHEMA.TABLE, or TABLE for one in the schema public. A name is as PostgreSQL has it in its
	// catalogs, in the same case; one that has a dot in it stands in double quotes.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=127
	// +listType=set
	// +optional
	Tables []string `json:"tables,omitempty"`

	// The schemas, with all that is in them.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Schemas []string `json:"schemas,omitempty"`

	// Of which moment. By default: what the backup had when it ended.
	// +optional
	Target *RestoreTarget `json:"target,omitempty"`

	// The name of a DatabaseBackup of the SampleDB to begin with. Without it, it is the latest before the target.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=57
	// +optional
	Backup string `json:"backup,omitempty"`

	// Beside brings them to the database under other names, which end in _restored_ and the moment, and changes nothing
	// that is there. Replace does that too, and then gives their rows the place of the present ones, which are kept
	// under a name with _before_.
	// +kubebuilder:default=Beside
	// +optional
	Mode DatabaseRestoreMode `json:"mode,omitempty"`

	// How long it may take from its creation on, for instance 90m. When that is over it has failed.
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=duration
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="deadline must be from 1m to 720h"
	// +optional
	Deadline metav1.Duration `json:"deadline,omitempty"`

	// Stop it, if it has not ended yet.
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// DatabaseRestoreMode is where what is brought back goes.
// +kubebuilder:validation:Enum=Beside;Replace
type DatabaseRestoreMode string

// The values of DatabaseRestoreMode.
const (
	RestoreBeside  DatabaseRestoreMode = "Beside"
	RestoreReplace DatabaseRestoreMode = "Replace"
)

// DatabaseRestoreStatus is what became of a DatabaseRestore.
type DatabaseRestoreStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// A summary for people: Pending, Running, Completed, Failed or Cancelled.
	// +optional
	Phase string `json:"phase,omitempty"`

	// How far it is.
	// +optional
	Progress *BackupProgress `json:"progress,omitempty"`

	// How many times its Pod was started.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// When it began and ended.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`

	// The base backup with which it began, by its id in the archive.
	// +optional
	Backup string `json:"backup,omitempty"`

	// Up to which position the WAL was replayed, and when the last transaction in it was committed.
	// +optional
	LSN string `json:"lsn,omitempty"`
	// +optional
	LastTransactionAt *metav1.Time `json:"lastTransactionAt,omitempty"`

	// What was brought back, and how it differs from what is there.
	// +optional
	Objects []RestoredObject `json:"objects,omitempty"`

	// What is true and why.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RestoredObject is a table, a schema or a database that was brought back.
type RestoredObject struct {
	// Its name, and the name under which it is there now.
	Name string `json:"name"`
	// +optional
	As string `json:"as,omitempty"`
	// Where that is which had the name before, after Replace.
	// +optional
	Kept string `json:"kept,omitempty"`
	// The rows that it has, and those that the present one had.
	// +optional
	Rows int64 `json:"rows,omitempty"`
	// +optional
	Present int64 `json:"present,omitempty"`
	// How the two differ, where compared is true: rows that only the restored one has, that only the present one had,
	// and that have the same key and another content.
	// +optional
	Compared bool `json:"compared,omitempty"`
	// +optional
	OnlyRestored int64 `json:"onlyRestored,omitempty"`
	// +optional
	OnlyPresent int64 `json:"onlyPresent,omitempty"`
	// +optional
	Different int64 `json:"different,omitempty"`
	// What there is to know besides, as why it could not be compared.
	// +optional
	Message string `json:"message,omitempty"`
}

// DatabaseRestoreList is a list of DatabaseRestores.
//
// +kubebuilder:object:root=true
type DatabaseRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DatabaseRestore `json:"items"`
}

func init() {
	SchemeBuilder.Register(&DatabaseRestore{}, &DatabaseRestoreList{})
}
