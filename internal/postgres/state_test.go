package postgres

import (
	"strings"
	"testing"
)

// By the time that the server takes for its state an agent tells a busy machine from one with a slow disk. Who reads
// the control file waits for the disk.
func TestTheStateWaitsForNoDisk(t *testing.T) {
	if strings.Contains(stateQuery, "pg_control") {
		t.Error("the question whose time is measured reads the control file")
	}
}
