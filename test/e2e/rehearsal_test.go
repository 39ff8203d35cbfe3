//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// A rehearsal that is asked for alone restores the backup, upgrades the copy and asks it the assertions, while the
// database goes on with its version. What it finds ends an upgrade before a client is sent away; when that is mended,
// the upgrade goes on, and takes about as long as it was foreseen.
func TestLongARehearsedUpgrade(t *testing.T) {
	s := begin(t)
	s.apply(strings.Replace(withBackup("shop", 1, "verification: {schedule: none, assertions: "+
		"[{name: filled, sql: \"SELECT count(*) > 0 FROM kept\", want: t}]}"), "version: 17", "version: 15", 1))
	s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", v1.ReasonArchiving)
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, "shop")
		if err == nil && (db.Status.Backup == nil || db.Status.Backup.LastBackup == "") {
			err = fmt.Errorf("there is no first backup: %+v", db.Status.Backup)
		}
		return err
	})
	s.sql("shop", "CREATE TABLE kept (id int PRIMARY KEY, text text)")
	s.archived("shop")

	out, err := s.Toban(s.ctx, "upgrade", "shop", "--to", "17", "--rehearse")
	if err == nil || !strings.Contains(out+err.Error(), "1 problem: the assertion filled") {
		t.Errorf("the rehearsal alone says %q, %v", out, err)
	}
	db := s.ready("shop")
	if db.Status.Upgrade != nil || !strings.HasPrefix(db.Status.Version, "15.") || db.Status.Rehearsal == nil ||
		db.Status.Rehearsal.WithoutWrites == nil {
		t.Errorf("after it the status is %+v, %+v", db.Status.Upgrade, db.Status.Rehearsal)
	}

	s.patch("shop", `{"version":17}`)
	words := s.condition("shop", v1.ConditionUpgraded, "False", v1.ReasonUpgradeFailed)
	if db, err = s.SampleDB(s.ctx, "shop"); err != nil || !strings.Contains(words, "the assertion filled") ||
		db.Status.Upgrade.ClosedAt != "" {
		t.Errorf("it says %q; clients were sent away at %q, %v", words, db.Status.Upgrade.ClosedAt, err)
	}
	s.sql("shop", "INSERT INTO kept SELECT id, 'row ' || id FROM generate_series(1, 10000) AS id")
	s.archivedBy(db.Status.Primary) // it is not Ready while it wants an upgrade that has failed
	s.tryAgain("shop")
	db = s.upgraded("shop", 17, func(step string) { t.Log(step) })
	s.expectRehearsed(db)
	if got := s.ask("shop", "SELECT count(*) FROM kept"); got != "10000" {
		t.Errorf("there are %s", got)
	}
	s.until(func(ctx context.Context) error { // the Pod and its scratch volume
		left, err := s.Kubectl(ctx, "get", "jobs,pods", "-l", naming.LabelComponent+"="+naming.ComponentRehearse,
			"-o", "name")
		if err == nil && left != "" {
			err = fmt.Errorf("of the rehearsal there is still %s", left)
		}
		return err
	})
}

// expectRehearsed expects a rehearsal to have found nothing before an upgrade, and tells what was foreseen and came.
func (s *story) expectRehearsed(db v1.SampleDB) {
	s.Helper()
	u := db.Status.Upgrade
	r := u.Rehearsal
	if r == nil || r.Result != v1.RehearsalPassed || r.WithoutWrites == nil || r.Backup != u.Backup {
		s.Fatalf("it was rehearsed: %+v", r)
	}
	closed, _ := u.ClosedFor()
	s.Logf("%s, by %s, %d MiB; no client was let in for %s", r.Message, r.Method, r.Bytes>>20, closed)
	for _, step := range r.Steps {
		s.Logf("%s: %s %s", step.Name, step.Took.Duration, step.Skipped)
	}
}
