// Package initjob is the work of the init Job: in a new SampleDB it makes the
// application's role, database and extensions and runs the first SQL, each
// exactly once. It knows no Kubernetes: its plan is a file.
package initjob

// Plan is what is to be done, as the key init.json of the ConfigMap NAME-config says.
type Plan struct {
	// Hash identifies the plan; the Job's name has it.
	Hash string `json:"hash"`
	// Hosts are the names to find the primary by, in the order to try.
	Hosts []string `json:"hosts"`
	// Given are the certificates (PEM) of the authorities of what users give the servers to show.
	Given string `json:"given,omitempty"`
	// Restored says that the data is that of a backup. One that was taken during a blue/green upgrade has the links of
	// two sides, of which none is there.
	Restored bool `json:"restored,omitempty"`
	// Database and Owner are made for the application.
	Database string `json:"database"`
	Owner    string `json:"owner"`
	// Extensions are created in the database, as superuser.
	Extensions []string `json:"extensions,omitempty"`
	// SQL is run in the database as its owner.
	SQL []Source `json:"sql,omitempty"`
}

// Source is a file with SQL.
type Source struct {
	// Name is for people, e.g. "ConfigMap schema, key tables.sql".
	Name string `json:"name"`
	// Path is where it is mounted.
	Path string `json:"path"`
	// Secret says that it is a key of a Secret. The operator can't see whether that is there; the Job can. Who reads
	// errors and logs may not read what is in it.
	Secret bool `json:"secret,omitempty"`
}

// Result is what the init Job leaves as its termination message, as JSON.
type Result struct {
	Done bool `json:"done"`
	// Step is where it failed, Message why, for people.
	Step    string `json:"step,omitempty"`
	Message string `json:"message,omitempty"`
	// SecretMissing says that the Step is a source in a Secret, and that the Secret or its key is not there.
	SecretMissing bool `json:"secretMissing,omitempty"`
}
