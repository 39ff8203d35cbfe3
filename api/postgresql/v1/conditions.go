package v1

// The types of a PostgreSQL's conditions.
const (
	// ConditionReady is true when the database and its roles are as the spec wants them, on a server that takes writes.
	ConditionReady = "Ready"
)

// docs/reference is written from what follows: each reason says what it means, and after "To do" what the user does.

// Reasons of a PostgreSQL's Ready.
const (
	// ReasonReady: the database and its roles are as the spec wants them.
	// To do: nothing.
	ReasonReady = "Ready"

	// ReasonReadingPasswords: a Pod is reading the Secrets with the passwords.
	// To do: wait. If it stays, `kubectl describe pods -l toban.dev/postgresql=NAME` says why.
	ReasonReadingPasswords = "ReadingPasswords"

	// ReasonSecretNotFound: a Secret with a password does not exist, or is empty.
	// To do: create it; Toban looks for it again within half a minute. An existing role keeps its password.
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonPasswordInvalid: a Secret has no key postgresql_password, or its value can't be a password.
	// To do: correct the Secret, as the message says. An existing role keeps its password.
	ReasonPasswordInvalid = "PasswordInvalid"

	// ReasonWritingSecret: the Secret for applications is being replaced.
	// To do: wait a few seconds.
	ReasonWritingSecret = "WritingSecret"

	// ReasonServerNotFound: the SampleDB that spec.server names does not exist.
	// To do: create it, or another PostgreSQL with the right name.
	ReasonServerNotFound = "ServerNotFound"

	// ReasonServerNotAllowed: the SampleDB is in another namespace and does not allow databases from this one, or
	// spec.adopt would take over an existing database there.
	// To do: add this namespace to its annotation toban.dev/databases-from, or ask its owners to do so; remove
	// spec.adopt.
	ReasonServerNotAllowed = "ServerNotAllowed"

	// ReasonServerNotReady: the server does not take writes now, or is being deleted.
	// To do: wait; if it stays, see the conditions of the SampleDB that the message names.
	ReasonServerNotReady = "ServerNotReady"

	// ReasonServerStopped: the server is stopped (`spec.stopped` of the SampleDB). The databases are as they were.
	// To do: nothing. To start it: `kubectl toban start` with the name of the SampleDB.
	ReasonServerStopped = "ServerStopped"

	// ReasonServerRefused: PostgreSQL refuses a command; the message quotes it.
	// To do: correct what the message names.
	ReasonServerRefused = "ServerRefused"

	// ReasonNameTaken: an object that does not belong to this PostgreSQL has a name that it needs.
	// To do: delete or rename it, or give the PostgreSQL another name.
	ReasonNameTaken = "NameTaken"

	// ReasonDatabaseTaken: the database belongs to another PostgreSQL.
	// To do: choose another spec.db.
	ReasonDatabaseTaken = "DatabaseTaken"

	// ReasonDatabaseExists: the database exists already, and no PostgreSQL has created it.
	// To do: choose another spec.db, or take it over with `spec.adopt: true`.
	ReasonDatabaseExists = "DatabaseExists"

	// ReasonDatabaseForeign: the database exists already, and another role owns it.
	// To do: choose another spec.db, or change its owner with SQL.
	ReasonDatabaseForeign = "DatabaseForeign"

	// ReasonRoleTaken: the role belongs to another PostgreSQL.
	// To do: choose another name.
	ReasonRoleTaken = "RoleTaken"

	// ReasonRoleExists: the role exists already, and no PostgreSQL has created it.
	// To do: choose another name, or take it over with `spec.adopt: true`.
	ReasonRoleExists = "RoleExists"

	// ReasonRolePrivileged: the role exists already, and has rights that an application must not have.
	// To do: choose another name.
	ReasonRolePrivileged = "RolePrivileged"

	// ReasonInvalidSpec: the API server refuses an object that the spec requires; the message quotes it.
	// To do: correct the spec.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonDeleting: it is being deleted, and what it has on the server is being removed.
	// To do: wait; if it stays, the message says what it waits for. With `spec.deletionPolicy: Retain` it is
	// deleted without that.
	ReasonDeleting = "Deleting"
)
