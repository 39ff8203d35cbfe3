package protocol

import (
	"time"

	"toban.dev/internal/archive/bucket"
)

// RestoreSettings is all that the Pod of a restore has to know; it is in the ConfigMap
// NAME-restore. What is secret is mounted.
type RestoreSettings struct {
	// Instance is the one whose volume gets the data, Major its PostgreSQL version.
	Instance string `json:"instance"`
	Major    int    `json:"major"`
	// InPlace is the id of a restore in place: the data is made beside that of the instance, which runs, and is taken
	// over by its next agent. "" where there is no data yet.
	InPlace string `json:"inPlace,omitempty"`
	// Scratch says that the volume is for this alone: the data stays where it is made, and no instance gets it.
	Scratch bool `json:"scratch,omitempty"`
	// Bucket and Path are the archive's, which is only read.
	Bucket bucket.Config `json:"bucket"`
	Path   string        `json:"path"`
	// Encrypted says that the key of the archive is mounted.
	Encrypted bool `json:"encrypted,omitempty"`
	// Backup is the one to begin with, "" for the best.
	Backup string `json:"backup,omitempty"`
	// Snapshot is the one that the volume was made of, nil where the data comes from the archive.
	Snapshot *Snapshot `json:"snapshot,omitempty"`
	// Target is where it ends.
	Target RestoreTarget `json:"target"`
	// AtLeast is the LSN up to which the archive has had WAL, "" where that is not asked: one that ends before it is
	// not restored.
	AtLeast string `json:"atLeast,omitempty"`
	// Parameters are those of the SampleDB.
	Parameters map[string]string `json:"parameters,omitempty"`
	// Operator is the same as in Config.
	Operator string `json:"operator"`
}

// RestoreTarget is where a restore ends: at the one that is set, or at the end of the archive.
type RestoreTarget struct {
	Time        time.Time `json:"time,omitzero"`
	LSN         string    `json:"lsn,omitempty"`
	Transaction string    `json:"transaction,omitempty"`
	Name        string    `json:"name,omitempty"`
	// Immediate ends where the backup did.
	Immediate bool `json:"immediate,omitempty"`
	Exclusive bool `json:"exclusive,omitempty"`
	// Branch is the one that is meant, 0 where none is named.
	Branch uint64 `json:"branch,omitempty"`
}

// RestoreResult is what a restore's Pod leaves as its termination message.
type RestoreResult struct {
	// Error is why there is no data, "" where there is.
	Error string `json:"error,omitempty"`
	// Kept says that the volume had a database already, which was left as it is.
	Kept bool `json:"kept,omitempty"`
	// Backup is the base backup that it began with.
	Backup string `json:"backup,omitempty"`
	// Branch is the one that it goes along.
	Branch uint64 `json:"branch,omitempty"`
	// LSN is up to where the WAL was replayed, Commit the time of the last transaction.
	LSN    string    `json:"lsn,omitempty"`
	Commit time.Time `json:"commit,omitzero"`
	// Bytes is the size of the base backup, WAL that of what was replayed.
	Bytes int64  `json:"bytes,omitempty"`
	WAL   uint64 `json:"wal,omitempty"`
}

// BringSettings is what has to be known to bring tables, schemas or a database back from a copy.
type BringSettings struct {
	// Database is the one that the tables or schemas are in. Without both it comes back as a whole.
	Database string   `json:"database"`
	Tables   []string `json:"tables,omitempty"`
	Schemas  []string `json:"schemas,omitempty"`
	// Suffix is what their names beside the present ones end in, after an underscore. Another try knows by it what this
	// DatabaseRestore has made.
	Suffix string `json:"suffix"`
	// Replace says that they get the place of the present ones.
	Replace bool `json:"replace,omitempty"`
	// Major is the version of PostgreSQL, Parameters are those that the copy needs.
	Major      int               `json:"major"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// Operator is the same as in Config.
	Operator string `json:"operator"`
}

// BringResult is what the Pod leaves as its termination message.
type BringResult struct {
	// Error is why something was not brought back, "" where all was.
	Error   string          `json:"error,omitempty"`
	Objects []BroughtObject `json:"objects,omitempty"`
}

// BroughtObject is a table, a schema or a database that was brought back, and how it differs from what is there.
type BroughtObject struct {
	Name string `json:"name"`
	As   string `json:"as,omitempty"`
	// Kept is where the rows are that it has replaced.
	Kept string `json:"kept,omitempty"`
	// Rows are those of the restored one, Present those of what is there. The others are known where they were
	// compared.
	Rows         int64  `json:"rows,omitempty"`
	Present      int64  `json:"present,omitempty"`
	OnlyRestored int64  `json:"onlyRestored,omitempty"`
	OnlyPresent  int64  `json:"onlyPresent,omitempty"`
	Different    int64  `json:"different,omitempty"`
	Compared     bool   `json:"compared,omitempty"`
	Says         string `json:"says,omitempty"`
}
