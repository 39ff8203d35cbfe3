package protocol

import (
	"encoding/json"
	"time"

	"toban.dev/internal/archive/bucket"
)

// FindSettings is what a Pod has to know that looks for backups in a store of which nothing else is known.
type FindSettings struct {
	Bucket bucket.Config `json:"bucket"`
	// Folder is where archives are looked for: the namespace of their SampleDBs.
	Folder string `json:"folder"`
	// Encrypted says that the Pod has the key.
	Encrypted bool `json:"encrypted,omitempty"`
}

// FoundLine is a line that such a Pod writes: a backup, or how it ended. Without an end not all was found.
type FoundLine struct {
	Backup *FoundBackup `json:"backup,omitempty"`
	End    bool         `json:"end,omitempty"`
	// Error is why it ended too early.
	Error string `json:"error,omitempty"`
}

// FoundBackup is a backup in an archive.
type FoundBackup struct {
	// Namespace, Name and UID are those of the SampleDB, Path the folder of its archive.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Path      string `json:"path"`
	// ByFolder says that whose the archive is goes by the name of its folder, and NotSaid why archive.json does not say
	// it; "" is that it is lost, in the words of an older release.
	ByFolder bool   `json:"byFolder,omitempty"`
	NotSaid  string `json:"notSaid,omitempty"`
	// ID is the backup's name in the archive, Trigger why it was taken. It is "" where only Path and Problem are known.
	ID      string `json:"id"`
	Trigger string `json:"trigger,omitempty"`
	// Stopped is when PostgreSQL ended it, zero where its backup.json can't be read; StopLSN where it is consistent,
	// Bytes the size of the data.
	Stopped       time.Time `json:"stopped"`
	StopLSN       string    `json:"stopLSN,omitempty"`
	ServerVersion string    `json:"serverVersion,omitempty"`
	Bytes         int64     `json:"bytes,omitempty"`
	// SampleDB is the manifest that brings it back, and Problem why there is none, or why the backup can't be read.
	SampleDB json.RawMessage `json:"sampledb,omitempty"`
	Problem  string          `json:"problem,omitempty"`
}
