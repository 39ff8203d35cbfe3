package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	toban "toban.dev/api/v1"
)

// PostgreSQL is a database with the user that owns it, on a server of its own, which is created for it, or on
// an existing SampleDB.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=postgresqls,singular=postgresql,shortName=pg
// +kubebuilder:printcolumn:name="Database",type=string,JSONPath=`.spec.db`
// +kubebuilder:printcolumn:name="User",type=string,JSONPath=`.spec.user`,description="The role that owns the database"
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.status.server.name`,description="The SampleDB that it lies on"
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`,description="A summary of the condition Ready"
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40",message="metadata.name must be at most 40 characters, because the names of Pods, Services and Jobs are made from it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must start with a letter and have only lower-case letters, digits and '-', because a Service bears the same name"
type PostgreSQL struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the database should be.
	// +required
	Spec PostgreSQLSpec `json:"spec"`

	// What the operator last saw. It is never read as an instruction.
	// +optional
	Status PostgreSQLStatus `json:"status,omitempty"`
}

// PostgreSQLSpec is what a user wants a database to be.
//
// +kubebuilder:validation:XValidation:rule="has(self.server) == has(oldSelf.server) && (!has(self.server) || self.server == oldSelf.server)",message="spec.server can't be changed: the data does not move. Create another PostgreSQL there, and move the data with pg_dump and pg_restore"
// +kubebuilder:validation:XValidation:rule="self.db == oldSelf.db",message="spec.db can't be changed: a database is not renamed under its users. Create another PostgreSQL, and move the data with pg_dump and pg_restore"
// +kubebuilder:validation:XValidation:rule="self.user == oldSelf.user",message="spec.user can't be changed: it owns all that is in the database. Add another login with spec.roles and access: Owner"
// +kubebuilder:validation:XValidation:rule="!has(self.server) || !(has(self.instances) || has(self.version) || has(self.storage) || has(self.backup) || has(self.service) || has(self.network) || has(self.tls) || has(self.restoreFrom) || has(self.resources) || has(self.pooler) || has(self.update) || has(self.upgrade))",message="instances, version, storage, resources, pooler, update, upgrade, backup, restoreFrom, service, network and tls are the server's: with spec.server they are said there"
// +kubebuilder:validation:XValidation:rule="!has(self.deletionPolicy) || self.deletionPolicy != 'Snapshot' || (!has(self.server) && (!has(self.backup) || !has(self.backup.none) || !self.backup.none))",message="deletionPolicy: Snapshot takes a last backup of a server of one's own: it goes neither with spec.server nor with backup.none"
// +kubebuilder:validation:XValidation:rule="!has(self.roles) || !self.roles.exists(r, r.name == self.user)",message="spec.roles must not name spec.user: that role owns the database already"
type PostgreSQLSpec struct {
	// The database.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!(self in ['postgres','template0','template1'])",message="spec.db must be a name of its own: postgres, template0 and template1 are PostgreSQL's"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\x00-\\\\x1f\\\\x7f]*$')",message="spec.db must not have control characters in it"
	// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 63",message="spec.db must have at most 63 bytes in UTF-8, where an umlaut has two and most of Japanese three: PostgreSQL cuts off the rest"
	// +required
	DB string `json:"db"`

	// The role that owns the database and that applications log in with. It is no superuser, and can create
	// neither roles nor databases.
	// +kubebuilder:validation:XValidation:rule="self != 'postgres' && self != 'public' && self != 'none' && !self.startsWith('pg_') && !self.startsWith('toban_')",message="spec.user must be a name of its own: postgres, public, none, pg_… and toban_… are reserved"
	// +required
	User RoleName `json:"user"`

	// The name of a Secret in the same namespace whose key postgresql_password has the user's password. It may come
	// later than this object. When it changes, the password changes with it.
	// +required
	Password SecretName `json:"password"`

	// The SampleDB on which the database is made. Where it is not given there is one for it alone, which bears
	// the name of this object and is deleted with it.
	// +optional
	Server *ServerReference `json:"server,omitempty"`

	// Take over an existing database if spec.user owns it. Without this an existing database is
	// refused, because it may belong to somebody else. Only for a server in the same namespace.
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// How many connections the database may have at once; by default it has no limit of its own.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=262143
	// +optional
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`

	// Extensions in the database. One that is taken off the list stays: removing it would remove data.
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// More roles, each with a login of its own. One that is taken off the list loses its login and its rights;
	// what it owns in this database goes to spec.user.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Roles []Role `json:"roles,omitempty"`

	// What becomes of the data when this object is deleted. With spec.server: Retain (the default) leaves database and
	// roles where they are, and a PostgreSQL of the same name finds them again; Delete drops them. With a server of its
	// own it is the server's: Snapshot takes a last backup first, Retain keeps the volumes, Delete removes them; where
	// it is not given, Snapshot, and Retain with backup.none.
	// +optional
	DeletionPolicy toban.DeletionPolicy `json:"deletionPolicy,omitempty"`

	// How many instances the server of its own has: one primary, the others standbys.
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 9",message="instances must be from 1 to 9: one primary and up to eight standbys"
	// +optional
	Instances *int32 `json:"instances,omitempty"`

	// The PostgreSQL major version of its own server: 17 by default.
	// +kubebuilder:validation:XValidation:rule="self >= 15 && self <= 19",message="version must be a PostgreSQL major version that is supported: 15, 16, 17, 18 or 19"
	// +optional
	Version *int32 `json:"version,omitempty"`

	// The volumes of its own server: 1Gi each by default.
	// +optional
	Storage *toban.StorageSpec `json:"storage,omitempty"`

	// The archive and the backups of the server of its own: as of a SampleDB, with the same defaults.
	// +optional
	Backup *toban.BackupSpec `json:"backup,omitempty"`

	// What the server of its own begins with instead of an empty database: a backup, or the archive of another
	// SampleDB up to a moment. The roles of the spec then get the passwords of the spec.
	// +optional
	RestoreFrom *toban.RestoreSpec `json:"restoreFrom,omitempty"`

	// The Service of its own server: a NodePort by default, so that clients outside of the cluster reach it.
	// +optional
	Service *toban.ServiceSpec `json:"service,omitempty"`

	// Which clients reach the server of its own over the network, as in a SampleDB.
	// +optional
	Network *toban.NetworkSpec `json:"network,omitempty"`

	// By which certificate clients know the server of its own: as of a SampleDB.
	// +optional
	TLS *toban.TLSSpec `json:"tls,omitempty"`

	// The processor time and memory of each instance of its own server. A change restarts them, standbys first.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// A pooler in front of its own server, as of a SampleDB.
	// +optional
	Pooler *toban.PoolerSpec `json:"pooler,omitempty"`

	// When its own server moves on to a newer minor version, as a SampleDB does.
	// +optional
	Update *toban.UpdateSpec `json:"update,omitempty"`

	// How the data of its own server is upgraded when version is raised, as of a SampleDB.
	// +optional
	Upgrade *toban.UpgradeSpec `json:"upgrade,omitempty"`
}

// RoleName is the name of a role.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^[^\\\\x00-\\\\x1f\\\\x7f]*$')",message="the name of a role must not have control characters in it"
// +kubebuilder:validation:XValidation:rule="bytes(self).size() <= 63",message="the name of a role must have at most 63 bytes in UTF-8, where an umlaut has two and most of Japanese three: PostgreSQL cuts off the rest"
type RoleName string

// SecretName is the name of a Secret.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="a password is given by the name of a Secret with the key postgresql_password, and this can't be the name of a Secret: it must have lower-case letters, digits, '-' and '.' only"
type SecretName string

// ServerReference names a SampleDB.
type ServerReference struct {
	// The SampleDB's name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	Name string `json:"name"`

	// The SampleDB's namespace, where it is another one. That SampleDB must allow it: its annotation
	// toban.dev/databases-from lists the namespaces whose PostgreSQLs may lie on it, or has *.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// Role is one more role that can use the database.
type Role struct {
	// The role's name.
	// +kubebuilder:validation:XValidation:rule="self != 'postgres' && self != 'public' && self != 'none' && !self.startsWith('pg_') && !self.startsWith('toban_')",message="a role must have a name of its own: postgres, public, none, pg_… and toban_… are reserved"
	// +required
	Name RoleName `json:"name"`

	// The name of a Secret with the key postgresql_password.
	// +required
	Password SecretName `json:"password"`

	// What it may do: ReadOnly and ReadWrite, with the tables and sequences of spec.user in `schemas`, also those to
	// come; Owner, all that spec.user may, and what it makes belongs to spec.user. ReadOnly if not given.
	// +optional
	Access Access `json:"access,omitempty"`

	// The schemas for ReadOnly and ReadWrite; public if not given. Those that are not there yet are granted when they
	// are.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Schemas []string `json:"schemas,omitempty"`

	// How many connections the role may have at once; by default it has no limit of its own.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=262143
	// +optional
	ConnectionLimit *int32 `json:"connectionLimit,omitempty"`
}

// Access is what a role may do in a database.
// +kubebuilder:validation:Enum=ReadOnly;ReadWrite;Owner
type Access string

// The values of Access.
const (
	AccessReadOnly  Access = "ReadOnly"
	AccessReadWrite Access = "ReadWrite"
	AccessOwner     Access = "Owner"
)

// PostgreSQLStatus is what the operator saw.
type PostgreSQLStatus struct {
	// The generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// A summary for people: Pending, Ready, Failed or Deleting. The condition Ready says why.
	// +optional
	Phase string `json:"phase,omitempty"`

	// The SampleDB that the database lies on.
	// +optional
	Server *ServerReference `json:"server,omitempty"`

	// The Secret with all that an application needs to connect as spec.user.
	// +optional
	Secret string `json:"secret,omitempty"`

	// Which content of that Secret was written last. It says nothing about the password.
	// +optional
	SecretRevision string `json:"secretRevision,omitempty"`

	// Tells what of the Secret an application has from its start from what it was before: all but the authorities in
	// ca.crt, which it reads anew.
	// +optional
	ConnectionRevision string `json:"connectionRevision,omitempty"`

	// Ready is its only condition.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PostgreSQLList is a list of PostgreSQLs.
//
// +kubebuilder:object:root=true
type PostgreSQLList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PostgreSQL `json:"items"`
}

func init() {
	SchemeBuilder.Register(&PostgreSQL{}, &PostgreSQLList{})
}
