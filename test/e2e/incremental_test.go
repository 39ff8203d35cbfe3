//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"toban.dev/internal/cli/restore"
)

// Backups that have what has changed since the one before, proven and restored; and the verb of a person in a hurry.
func TestLongIncrementalBackup(t *testing.T) {
	s := begin(t)
	s.apply(withBackup("grow", 2, "incremental: {fullEvery: 3}"))
	s.ready("grow")
	s.backedUp("grow")
	s.sql("grow", "CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	for i, want := range []string{"Incremental", "Incremental", "Full"} {
		s.sql("grow", fmt.Sprintf("INSERT INTO kept VALUES (%d)", i+2))
		name := fmt.Sprintf("grow-%d", i)
		s.apply("apiVersion: toban.dev/v1\nkind: DatabaseBackup\nmetadata: {name: " + name + "}\nspec: {sampleDB: " +
			"grow, verify: " + fmt.Sprint(i == 1) + "}\n")
		s.completed(name)
		if is := s.run("get", "databasebackup", name, "-o", "jsonpath={.status.type}"); is != want {
			t.Errorf("%s is %s, not %s: %s",
				name, is, want, s.run("get", "databasebackup", name, "-o", "jsonpath={.status.conditions[*].message}"))
		}
	}
	s.until(func(ctx context.Context) error {
		said, err := s.Kubectl(ctx, "get", "databasebackup", "grow-1",
			"-o", "jsonpath={range .status.conditions[?(@.type=='Verified')]}{.status}: {.message}{end}")
		if err == nil && !strings.HasPrefix(said, "True: ") {
			err = fmt.Errorf("verified: %q", said)
		}
		return err
	})
	s.restores("grow", "--into", "again", "--backup", "grow-1")
	s.ready("again")
	s.kept("again", "1,2,3")

	s.backedUp("again")
	s.archived("again")
	if err := s.tryRestore("again", "--to", "2020-01-01T00:00:00Z", "--yes"); err == nil ||
		!strings.Contains(err.Error(), "outside of what can be restored") {
		t.Errorf("a moment before its first backup: %v", err)
	}
	s.ready("again")
	s.kept("again", "1,2,3")
	s.sql("grow", "INSERT INTO kept VALUES (5)")
	at := s.clock("grow")
	s.sql("grow", "DELETE FROM kept")
	s.archived("grow")
	s.restores("grow", "--to", at, "--yes")
	s.ready("grow")
	s.kept("grow", "1,2,3,4,5")
}

// restores is `kubectl toban restore`, which must come to its end.
func (s *story) restores(args ...string) {
	s.Helper()
	must(s.T, s.tryRestore(args...))
}

func (s *story) tryRestore(args ...string) error {
	s.Helper()
	var out bytes.Buffer
	verb := restore.RestoreTo()
	verb.SetOut(&out)
	verb.SetErr(&out)
	verb.SetArgs(append(args, "--namespace", string(s.Namespace)))
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	err := verb.ExecuteContext(ctx)
	s.Logf("toban restore %s:\n%s", strings.Join(args, " "), out.String())
	return err
}
