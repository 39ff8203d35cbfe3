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

	// ReasonSecretNotFound: a Secret with a password is not there, or has nothing in it.
	// To do: create it; it is looked for again within half a minute. A role that was made already keeps
	// the password that it has.
	ReasonSecretNotFound = "SecretNotFound"

	// ReasonPasswordInvalid: a Secret has no key postgresql_password, or nothing in it that can be a password.
	// To do: mend the Secret, as the message says. A role that was made already keeps the password that it has.
	ReasonPasswordInvalid = "PasswordInvalid"

	// ReasonWritingSecret: the Secret for applications is being written anew.
	// To do: wait a few seconds.
	ReasonWritingSecret = "WritingSecret"

	// ReasonServerNotFound: there is no SampleDB of the name in spec.server.
	// To do: create it, or another PostgreSQL with the right name.
	ReasonServerNotFound = "ServerNotFound"

	// ReasonServerNotAllowed: the SampleDB is in another namespace and does not allow databases from this one, or
	// spec.adopt would take over what is there.
	// To do: add this namespace to its annotation toban.dev/databases-from, or ask those whose it
	// is; leave spec.adopt out.
	ReasonServerNotAllowed = "ServerNotAllowed"

	// ReasonServerNotReady: the server takes no writes now, or is being deleted.
	// To do: wait; if it stays, see the conditions of the SampleDB that the message names.
	ReasonServerNotReady = "ServerNotReady"

	// ReasonServerRefused: PostgreSQL itself refuses something; the message has its words.
	// To do: mend what it says.
	ReasonServerRefused = "ServerRefused"

	// ReasonNameTaken: an object whose name is needed is there and is not this one's.
	// To do: delete or rename it, or give the PostgreSQL another name.
	ReasonNameTaken = "NameTaken"

	// ReasonDatabaseTaken: another PostgreSQL has the database.
	// To do: choose another spec.db.
	ReasonDatabaseTaken = "DatabaseTaken"

	// ReasonDatabaseExists: the database is there already, and no PostgreSQL has made it.
	// To do: choose another spec.db, or take it over with `spec.adopt: true`.
	ReasonDatabaseExists = "DatabaseExists"

	// ReasonDatabaseForeign: the database is there already and belongs to another role.
	// To do: choose another spec.db, or change its owner with SQL.
	ReasonDatabaseForeign = "DatabaseForeign"

	// ReasonRoleTaken: another PostgreSQL has the role.
	// To do: choose another name.
	ReasonRoleTaken = "RoleTaken"

	// ReasonRoleExists: the role is there already, and no PostgreSQL has made it.
	// To do: choose another name, or take it over with `spec.adopt: true`.
	ReasonRoleExists = "RoleExists"

	// ReasonRolePrivileged: the role is there already with rights that an application must not have.
	// To do: choose another name.
	ReasonRolePrivileged = "RolePrivileged"

	// ReasonInvalidSpec: the API server refuses an object that the spec asks for; the message has its words.
	// To do: mend the spec.
	ReasonInvalidSpec = "InvalidSpec"

	// ReasonDeleting: it is being deleted, and what it has on the server is being removed.
	// To do: wait; if it stays, the message says for what it waits. `spec.deletionPolicy: Retain`
	// lets it go without that.
	ReasonDeleting = "Deleting"
)
