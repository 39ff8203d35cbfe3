package local

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// harmful is a value of a parameter that is likely to do harm: its least, its greatest, or a text that names nothing.
type harmful struct{ name, value string }

// harmfulValues are those of all parameters that may be set, and that PostgreSQL takes when it is asked.
func (c *cluster) harmfulValues(restart bool) []harmful {
	c.Helper()
	conn, err := c.connect("db-0")
	if err != nil {
		c.Fatal(err)
	}
	defer conn.Close(context.Background())
	const query = `select name, unnest(case vartype
			when 'bool' then array['on', 'off'] when 'enum' then enumvals
			when 'string' then array['no_such_thing', '/no/such/place', '']
			else array[min_val] || case when context = 'postmaster' then '{}' else array[max_val] end end)
		from pg_settings where context <> 'internal' and (context = 'postmaster') = $1 order by name`
	rows, err := conn.Query(c.Context(), query, restart)
	if err != nil {
		c.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (h harmful, err error) {
		return h, row.Scan(&h.name, &h.value)
	})
	if err != nil {
		c.Fatal(err)
	}
	var programs string
	const folder = "select setting from pg_config where name = 'BINDIR'"
	if err := conn.QueryRow(c.Context(), folder).Scan(&programs); err != nil {
		c.Fatal(err)
	}
	return slices.DeleteFunc(all, func(h harmful) bool { return postgres.Owned(h.name) || !c.takes(programs, h) })
}

// takes says that PostgreSQL takes a value when it is asked. What it does not take is refused by name.
func (c *cluster) takes(programs string, h harmful) bool {
	cmd := exec.CommandContext(c.Context(), filepath.Join(programs, "postgres"), "-C", "max_connections",
		"-D", filepath.Join(c.folder, "db-0/volume/data"), "-c", h.name+"="+h.value)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner}
	return cmd.Run() == nil
}

// batches are the values in parts, each with one value of a parameter. What may let no session begin is on its own: it
// would have the rest taken back with it.
func batches(all []harmful, size int) (out []map[string]string) {
	for _, h := range all {
		i := slices.IndexFunc(out, func(b map[string]string) bool {
			_, has := b[h.name]
			_, alone := b[""]
			return !has && !alone && len(b) < size
		})
		if i < 0 || strings.Contains(h.name, "preload") {
			i, out = len(out), append(out, map[string]string{})
		}
		if out[i][h.name] = h.value; strings.Contains(h.name, "preload") {
			out[i][""] = ""
		}
	}
	for _, b := range out {
		delete(b, "")
	}
	return out
}

// suffer has the cluster run with parameters for a while, takes them back, and expects that all is well then.
func (c *cluster) suffer(plain, harm map[string]string, restart bool) {
	c.Helper()
	c.config.Parameters = harm
	for name, value := range plain {
		if _, has := harm[name]; !has {
			c.config.Parameters[name] = value
		}
	}
	c.offer()
	for range 80 {
		if c.decided() {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if restart {
		c.restartAll()
	}
	time.Sleep(1500 * time.Millisecond)
	c.config.Parameters = plain
	c.offer()
	if restart {
		c.restartAll()
	}
	for _, m := range c.config.Members {
		c.await(m.Name, "as before", applied(c.config.Revision))
	}
	c.awaitWrite()
}

// offer gives the agents the config as it is; one that can't be reached has it when it asks.
func (c *cluster) offer() {
	c.config = c.config.Revise()
	for _, m := range c.config.Members {
		if _, err := c.operator.Sync(c.Context(), m.Host, c.config); err != nil {
			c.Logf("%s: %v", m.Name, err)
		}
	}
}

// decided says that each instance runs with what is wanted, or refuses it.
func (c *cluster) decided() bool {
	return !slices.ContainsFunc(c.config.Members, func(m protocol.Member) bool {
		s, err := c.status(m.Name)
		return err != nil || s.ConfigRevision != c.config.Revision && s.RejectedRevision != c.config.Revision
	})
}

// restartAll restarts each instance, with its agent.
func (c *cluster) restartAll() {
	for _, m := range c.config.Members {
		c.kill(m.Name, syscall.SIGTERM)
		c.start(m.Name)
		time.Sleep(2 * time.Second)
	}
}

// awaitWrite waits until a commit is acknowledged.
func (c *cluster) awaitWrite() {
	c.Helper()
	var last error
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for i := range c.config.Members {
			conn, err := c.connect(naming.Instance("db", i))
			if err != nil {
				last = err
				continue
			}
			_, err = conn.Exec(c.Context(), "insert into t values (3)")
			_ = conn.Close(c.Context())
			if err == nil {
				return
			}
			last = err
		}
	}
	c.Fatalf("nobody takes a write: %v", last)
}

// Whatever a parameter is set to, once it is set back the database is well again without a hand's help: each parameter
// that PostgreSQL has, with values that are likely to do harm and that it takes, on three instances. In make test,
// TestAConfigurationThatLetsNoSessionBegin has the case that lets no session begin.
func TestLongWhateverAParameterWasTheDatabaseComesBack(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"reloaded": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := formed(t, 3)
			plain := c.config.Parameters
			all := batches(c.harmfulValues(restart), 12)
			for i, harm := range all {
				t.Logf("%d of %d: %v", i+1, len(all), harm)
				c.suffer(plain, harm, restart)
			}
		})
	}
}
