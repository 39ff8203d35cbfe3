package protocol

import (
	"time"

	"toban.dev/internal/bucket"
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
	// Bucket and Path are the archive's, which is only read.
	Bucket bucket.Config `json:"bucket"`
	Path   string        `json:"path"`
	// Encrypted says that the key of the archive is mounted.
	Encrypted bool `json:"encrypted,omitempty"`
	// Backup is the one to begin with, "" for the best.
	Backup string `json:"backup,omitempty"`
	// Target is where it ends.
	Target RestoreTarget `json:"target"`
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
