package databasebackup

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/controller/once"
)

// state is what the events of a DatabaseBackup are told of. The events themselves are in once.
func state(s v1.DatabaseBackupStatus) once.State {
	return once.State{
		StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, Attempts: s.Attempts, Conditions: s.Conditions,
	}
}
