package local

import (
	"os/exec"
	"strings"
	"testing"
)

// psql logs in as the application's role with PostgreSQL's own client.
func (c *cluster) psql(name, sslmode string) (string, error) {
	c.Helper()
	connection := strings.Replace(c.reader(name), "sslmode=require", "sslmode="+sslmode, 1)
	out, err := exec.CommandContext(c.Context(), c.client("psql"), "-XAtc",
		"select ssl from pg_stat_ssl where pid = pg_backend_pid()", connection).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// A password never goes over the network without TLS, unless a user's own line lets it.
func TestClientsNeedTLSUnlessALineOfTheUsersLetsThemIn(t *testing.T) {
	t.Parallel()
	c := formed(t, 1)
	c.exec("db-0", createReader)
	for mode, encrypted := range map[string]string{"require": "t", "prefer": "t", "allow": "t"} {
		if out, err := c.psql("db-0", mode); err != nil || out != encrypted {
			t.Errorf("with sslmode=%s: %v, %s", mode, err, out)
		}
	}
	out, err := c.psql("db-0", "disable")
	if err == nil || !strings.Contains(out, "no pg_hba.conf entry for host") ||
		!strings.Contains(out, "no encryption") {
		t.Errorf("without TLS: %v, %s", err, out)
	}
	c.config.HBA = []string{"host all reader 127.0.0.0/8 scram-sha-256"}
	c.sync()
	c.await("db-0", "configured", applied(c.config.Revision))
	if out, err := c.psql("db-0", "disable"); err != nil || out != "f" {
		t.Errorf("a line of the user's own lets nobody in: %v, %s", err, out)
	}
	c.config.HBA = nil
	c.sync()
	c.await("db-0", "configured as before", applied(c.config.Revision))
	if out, err := c.psql("db-0", "disable"); err == nil {
		t.Errorf("without that line, somebody gets in without TLS: %s", out)
	}
}
