package databasebackup

import (
	v1 "toban.dev/api/v1"
	"toban.dev/internal/operator/order"
)

// state is what the events of a DatabaseBackup are told of. The events themselves are in once.
func state(s v1.DatabaseBackupStatus) order.State {
	return order.State{
		StartedAt: s.StartedAt, CompletedAt: s.CompletedAt, Attempts: s.Attempts, Conditions: s.Conditions,
	}
}
