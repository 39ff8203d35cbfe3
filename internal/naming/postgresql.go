package naming

// What the objects of a PostgreSQL are called.
const (
	LabelPostgreSQL    = "toban.dev/postgresql"
	ComponentPasswords = "passwords"
	ContainerPasswords = "passwords"
	ContainerChanges   = "changes"

	// LabelShortName and LabelAppReady are on the Pods of a PostgreSQL's own server, for people and scripts: NAME, and
	// AppReady while the Pod's server is ready and the application's database is there.
	LabelShortName = "name"
	LabelAppReady  = "appReady"
	AppReady       = "ok"

	// AnnotationDatabasesFrom on a SampleDB lists the other namespaces whose PostgreSQLs may lie on
	// it, with commas; * is all.
	AnnotationDatabasesFrom = "toban.dev/databases-from"
	// AnnotationReload on a PostgreSQL has its passwords read at once, once for each value.
	AnnotationReload = "toban.dev/reload"

	PathPasswords = "/etc/toban/passwords" //nolint:gosec // the Secrets with passwords, each in a folder of its name
	PathKnownDir  = "/var/lib/toban"       // a small volume in memory
	PathKnown     = "/var/lib/toban/known" // the digest of what the operator was told
)

// PasswordsJob reads the passwords of a PostgreSQL out of its Secrets.
func PasswordsJob(name, hash string) string { return name + "-secrets-" + hash }

// AppRevision is what the Secret NAME-app belongs to, of a SampleDB by its epoch and of a PostgreSQL by its content: it
// goes, and with it the Secret, when what is in it is not true any more.
func AppRevision(name, hash string) string { return name + "-app-" + hash }
