//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// The newest major version; 17 is in all the other stories. In make test, test/local/upgrade upgrades to it.
func TestLongTheNewestVersion(t *testing.T) { runsVersion(t, 18) }

// The oldest one also is what TestAMajorUpgrade begins with, and the one of the second ring where Debian 12 is.
func TestLongTheOldestVersion(t *testing.T) { runsVersion(t, 15) }

func runsVersion(t *testing.T, version int) {
	t.Helper()
	s := begin(t)
	s.apply(strings.Replace(sampleDB("shop", 2), "version: 17", fmt.Sprintf("version: %d", version), 1))
	db := s.ready("shop")
	if !strings.HasPrefix(db.Status.Version, fmt.Sprintf("%d.", version)) {
		t.Errorf("the status has version %q", db.Status.Version)
	}
	s.everyInstanceStreams("shop", 1)
	s.sql("shop", "CREATE TABLE t AS SELECT generate_series(1, 100) AS id")
	// Parameters that need a restart are handled by each version's own rules.
	s.patch("shop", `{"postgresql":{"parameters":{"max_connections":"120","max_worker_processes":"10"}}}`)
	s.ready("shop")
	s.shown("shop", "max_connections", "120")
}
