// Package backup_test takes base backups of real PostgreSQL servers, and restores them,
// without agents and without Kubernetes.
package backup_test

import (
	"os"
	"testing"

	"toban.dev/test/local/aspostgres"
)

// newer are the versions that have incremental backups.
var newer = []int{17, 18}

// manualVariable has the text of docs/restore.md, which postgres may not be able to read.
const manualVariable = "TOBAN_TEST_MANUAL"

func TestMain(m *testing.M) {
	if manual, err := os.ReadFile("../../../docs/restore.md"); err == nil {
		_ = os.Setenv(manualVariable, string(manual))
	}
	aspostgres.FindReleases(newer...)
	os.Exit(aspostgres.Run(m, nil))
}
