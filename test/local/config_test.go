package local

import (
	"slices"
	"strings"
	"testing"

	"toban.dev/internal/protocol"
)

func applied(revision string) func(protocol.Status) bool {
	return func(s protocol.Status) bool { return s.Ready && s.ConfigRevision == revision && s.ConfigError == "" }
}

func TestParameterIsReloadedWithoutARestart(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	old := c.postmaster("db-0")
	c.config.Parameters["work_mem"] = "7MB"
	c.sync()
	c.await("db-0", "configured", applied(c.config.Revision))
	c.awaitQuery("db-0", "show work_mem", "7MB")
	if c.postmaster("db-0") != old {
		t.Error("the server was restarted")
	}
}

func TestParameterThatNeedsARestartWaitsForIt(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.config.Parameters["max_connections"] = "40"
	c.sync()
	c.await("db-0", "waiting for a restart", func(s protocol.Status) bool {
		return slices.Contains(s.PendingRestart, "max_connections")
	})
	c.awaitQuery("db-0", "show max_connections", "30")
	c.restart("db-0")
	c.await("db-0", "restarted", func(s protocol.Status) bool { return primary(s) && len(s.PendingRestart) == 0 })
	c.awaitQuery("db-0", "show max_connections", "40")
}

// A standby that allows less than the primary does not start (PostgreSQL 17
// documentation, 26.4.3): so it keeps the larger value until the primary has the smaller one.
func TestLoweredMaxConnectionsReachesPrimaryFirst(t *testing.T) {
	t.Parallel()
	c := formed(t, 2)
	c.config.Parameters["max_connections"] = "20"
	c.sync()
	c.await("db-0", "waiting for a restart", func(s protocol.Status) bool { return len(s.PendingRestart) > 0 })
	c.restart("db-1")
	c.await("db-1", "streaming", streaming)
	c.awaitQuery("db-1", "show max_connections", "30")
	c.restart("db-0")
	c.await("db-0", "restarted", func(s protocol.Status) bool { return primary(s) && len(s.PendingRestart) == 0 })
	c.await("db-1", "waiting for its restart", func(s protocol.Status) bool { return len(s.PendingRestart) > 0 })
	c.restart("db-1")
	c.await("db-1", "streaming", func(s protocol.Status) bool { return streaming(s) && len(s.PendingRestart) == 0 })
	c.awaitQuery("db-1", "show max_connections", "20")
}

func TestRefusedConfigurationLeavesTheServerAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*protocol.Config)
		words  string
	}{
		"a value out of range": {
			func(c *protocol.Config) { c.Parameters["work_mem"] = "1kB" }, "outside the valid range",
		},
		"a value of the wrong type": {
			func(c *protocol.Config) { c.Parameters["work_mem"] = "much" }, "invalid value for parameter",
		},
		"a name that is none": {
			func(c *protocol.Config) { c.Parameters["work_memory"] = "1MB" }, "unrecognized configuration parameter",
		},
		"a line of pg_hba.conf": {
			func(c *protocol.Config) { c.HBA = []string{"host all all nowhere/x trust"} }, "pg_hba.conf",
		},
		"a line of pg_hba.conf of which PostgreSQL does not say why": {
			func(c *protocol.Config) {
				c.HBA = []string{"hostssl all all 192.0.2.1/32 scram-sha-256 clientcert=maybe"}
			}, "pg_hba.conf",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := formed(t, 1)
			old := db.postmaster("db-0")
			before, err := db.query("db-0", "show work_mem")
			if err != nil {
				t.Fatal(err)
			}
			parameters := map[string]string{}
			for k, v := range db.config.Parameters {
				parameters[k] = v
			}
			c.change(&db.config)
			db.sync()
			s := db.await("db-0", "refusing",
				func(s protocol.Status) bool { return s.RejectedRevision == db.config.Revision })
			if !strings.Contains(s.ConfigError, c.words) || !s.Ready {
				t.Errorf("the status is %+v, expected to be ready and to say %q", s, c.words)
			}
			if db.postmaster("db-0") != old {
				t.Error("the server was restarted")
			}
			db.awaitQuery("db-0", "show work_mem", before)
			db.config.Parameters, db.config.HBA = parameters, nil
			db.sync()
			db.await("db-0", "configured again", applied(db.config.Revision))
		})
	}
}

// A library that is not there is only noticed when a server starts.
func TestConfigurationThatPreventsTheStartIsTakenBack(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.config.Parameters["shared_preload_libraries"] = "no_such_library"
	c.sync()
	c.await("db-0", "waiting for a restart", func(s protocol.Status) bool { return len(s.PendingRestart) > 0 })
	c.restart("db-0")
	s := c.await("db-0", "up with the old configuration", func(s protocol.Status) bool {
		return primary(s) && s.RejectedRevision == c.config.Revision
	})
	if !strings.Contains(s.ConfigError, "no_such_library") {
		t.Errorf("the refusal does not name the library: %q", s.ConfigError)
	}
	c.awaitQuery("db-0", "select count(*)::text from t", "1")
}
