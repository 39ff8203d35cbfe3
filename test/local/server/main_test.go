// Package server_test runs real PostgreSQL servers through internal/postgres,
// without agents: what failover is made of, one by one.
package server_test

import (
	"os"
	"testing"

	"toban.dev/test/local/aspostgres"
)

// cisVariable has the text of docs/cis.md, which postgres may not be able to read.
const cisVariable = "TOBAN_TEST_CIS"

func TestMain(m *testing.M) {
	if text, err := os.ReadFile("../../../docs/cis.md"); err == nil {
		_ = os.Setenv(cisVariable, string(text))
	}
	aspostgres.FindReleases(15, 17, 18)
	os.Exit(aspostgres.Run(m, nil))
}
