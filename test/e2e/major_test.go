//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// former is a SampleDB with PostgreSQL 15, which is to become one of 17.
func former(name string, instances int, more ...string) string {
	return formerOf(15, name, instances, more...)
}

// formerOf is a SampleDB with a former major version.
func formerOf(version int, name string, instances int, more ...string) string {
	return strings.Replace(sampleDB(name, instances, more...), "version: 17", fmt.Sprint("version: ", version), 1)
}

// upgraded waits until a SampleDB runs a major version and all its instances do what their roles ask, and tells each
// step of the upgrade that it sees.
func (s *story) upgraded(name string, version int32, told func(step string)) v1.SampleDB {
	s.Helper()
	step := ""
	must(s.T, outside.Until(s.ctx, 2*patience, func(ctx context.Context) error { // a rehearsal takes its time
		db, err := s.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		u := db.Status.Upgrade
		if u == nil || u.To != version {
			return fmt.Errorf("there is no upgrade to %d: %+v", version, u)
		}
		if u.Step != step {
			step = u.Step
			told(step)
		}
		if u.Step != v1.UpgradeUpgraded {
			return fmt.Errorf("the upgrade is at %s: %s", u.Step, u.Message)
		}
		return nil
	}))
	db := s.ready(name)
	for _, i := range db.Status.InstanceStatuses {
		if !strings.HasPrefix(i.Version, fmt.Sprint(version)+".") {
			s.Errorf("%s runs %s", i.Name, i.Version)
		}
	}
	return db
}

// A lone instance moves on to the next but one major version in place: its rows, its roles and their passwords are
// there, and the data of the former version goes when that is accepted.
func TestAMajorUpgrade(t *testing.T) {
	s := begin(t)
	s.apply(former("shop", 1, "backup: {none: true}"))
	s.ready("shop")
	s.sql("shop", "CREATE TABLE kept AS SELECT id, 'row ' || id AS text FROM generate_series(1, 10000) AS id")
	s.sql("shop", "CREATE UNIQUE INDEX ON kept (text)")
	s.patch("shop", `{"version":17}`)
	db := s.upgraded("shop", 17, func(string) {})
	if got := s.ask("shop", "SELECT count(*) || ' ' || max(text) FROM kept"); got != "10000 row 9999" {
		t.Errorf("there are %s", got)
	}
	s.condition("shop", v1.ConditionUpgraded, "True", v1.ReasonUpgraded)
	u := db.Status.Upgrade
	closed, _ := u.ClosedFor()
	t.Logf("from 15 to %s by %s: no client was let in for %s", u.Version, u.Method, closed)
	folder := naming.PathVolume + "/before-" + u.ID
	if _, err := s.Kubectl(s.ctx, "exec", "shop-0", "--", "ls", folder); err != nil {
		t.Errorf("the former data is not kept: %v", err)
	}
	s.run("annotate", "sampledb", "shop", naming.AnnotationAcceptUpgrade+"=yes")
	s.until(func(ctx context.Context) error {
		if out, err := s.Kubectl(ctx, "exec", "shop-0", "--", "ls", folder); err == nil {
			return fmt.Errorf("the former data is still there: %s", out)
		}
		return nil
	})
}

// Three instances under load, from the first step to the last: what can't be upgraded is found before anything stops,
// the backup of before is there, nothing acknowledged is lost, and the archive of the new version begins with a backup.
func TestLongAMajorUpgradeUnderLoad(t *testing.T) { majorUpgradeUnderLoad(t, 15, 17) }

// The same with minor versions of which the newer major one does not know what the older one keeps of each column.
func TestLongMajorUpgradeTo18(t *testing.T) { majorUpgradeUnderLoad(t, 17, 18) }

func majorUpgradeUnderLoad(t *testing.T, from, to int) {
	s := begin(t)
	s.apply(formerOf(from, "shop", 3, "postgresql: {parameters: {max_prepared_transactions: \"5\"}}"))
	db := s.ready("shop")
	s.condition("shop", v1.ConditionArchiving, "True", "")
	if _, err := s.inside(db.Status.Primary, "BEGIN; CREATE TABLE p (i int); PREPARE TRANSACTION 'left'"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.inside(db.Status.Primary, "CREATE TYPE pair AS (n int, word text); "+
		"CREATE TABLE pairs AS SELECT row(n, 'word')::pair AS pair FROM generate_series(1, 100) AS n"); err != nil {
		t.Fatal(err)
	}
	check := s.writing("shop")

	s.patch("shop", fmt.Sprintf(`{"version":%d}`, to))
	if words := s.condition("shop", v1.ConditionUpgraded, "False", v1.ReasonUpgradeFailed); !strings.Contains(
		words, "prepared") {
		t.Errorf("it says %q", words)
	}
	db, err := s.SampleDB(s.ctx, "shop")
	if err != nil || db.Status.Upgrade.ClosedAt != "" {
		t.Errorf("clients were sent away: %+v, %v", db.Status.Upgrade, err)
	}
	if _, err := s.inside(db.Status.Primary, "ROLLBACK PREPARED 'left'"); err != nil {
		t.Fatal(err)
	}
	s.run("annotate", "sampledb", "shop", naming.AnnotationUpdate+"=now")
	db = s.upgradedTo("shop", from, to)
	check(outside.Upgrade)
	if got, err := s.inside(db.Status.Primary, "SELECT sum((pair).n) FROM pairs"); err != nil ||
		!strings.Contains(got, "5050") {
		t.Errorf("values of a composite type: %q, %v", got, err)
	}
	s.condition("shop", v1.ConditionDurable, "True", "")
	s.archivedBefore(db, from)
}

// upgradedTo is upgraded, and tells each step, and for how long no client was let in.
func (s *story) upgradedTo(name string, from, to int) v1.SampleDB {
	s.Helper()
	db := s.upgraded(name, int32(to), func(step string) { s.Logf("%s: %s", time.Now().Format("15:04:05.0"), step) })
	u := db.Status.Upgrade
	closed, _ := u.ClosedFor()
	s.Logf("from %d to %s by %s: no client was let in for %s", from, u.Version, u.Method, closed)
	return db
}

// archivedBefore expects an upgrade to have been rehearsed with a backup of before it, the archive to go on, and the
// moment before to be restored from it.
func (s *story) archivedBefore(db v1.SampleDB, from int) {
	s.Helper()
	if db.Status.Upgrade.Backup == "" {
		s.Error("no backup was taken before")
	}
	s.expectRehearsed(db)
	s.condition(db.Name, v1.ConditionArchiving, "True", "")
	s.goesBackBefore(db.Status.Upgrade, from)
}

// goesBackBefore restores the moment at which clients were sent away into another SampleDB, which has the former
// version; in place it is refused, with the command that does it.
func (s *story) goesBackBefore(u *v1.UpgradeStatus, from int) {
	s.Helper()
	s.patch("shop", fmt.Sprintf(`{"restore":{"id":"back","confirm":"shop","target":{"time":%q}}}`, u.ClosedAt))
	words := s.condition("shop", v1.ConditionRestored, "False", v1.ReasonRestoreFailed)
	if !strings.Contains(words, "kubectl toban restore shop --into") {
		s.Errorf("in place it says %q", words)
	}
	s.patch("shop", `{"restore":null}`)
	if out := s.toban("upgrade", "shop", "--back"); !strings.Contains(out, "kubectl toban restore shop") ||
		!strings.Contains(out, "--into OTHER --to "+u.ClosedAt) {
		s.Errorf("of the way back it says %q", out)
	}
	s.restores("shop", "--into", "before", "--to", u.ClosedAt)
	s.ready("before")
	if got := s.ask("before", "SHOW server_version_num"); !strings.HasPrefix(got, fmt.Sprint(from)) {
		s.Errorf("the SampleDB from before the upgrade runs %s", got)
	}
	if got := s.count("before"); got < 50 {
		s.Errorf("it has %d rows", got)
	}
}

// Whatever is killed at whatever step, the upgrade goes on, or the former version serves again and it is tried once
// more: the operator at each step, the Pod that upgrades the data while it works, the primary while clients go.
func TestLongAMajorUpgradeIsKilledAtEachStep(t *testing.T) {
	for what, steps := range map[string][]string{
		"operator": {
			v1.UpgradePulling, v1.UpgradeChecking, v1.UpgradeBackingUp, v1.UpgradeRehearsing, v1.UpgradePreparing,
			v1.UpgradeClosing, v1.UpgradeUpgrading, v1.UpgradeStarting,
		},
		"job":     {v1.UpgradeUpgrading},
		"primary": {v1.UpgradePreparing, v1.UpgradeClosing, v1.UpgradeStarting},
	} {
		t.Run(what, func(t *testing.T) {
			s := beginAlone(t)
			rehearse := v1.RehearseNever // which takes longer than all the rest
			if slices.Contains(steps, v1.UpgradeRehearsing) {
				rehearse = v1.RehearseAlways
			}
			s.apply(former("shop", 3, fmt.Sprintf("upgrade: {rehearse: %s}", rehearse)))
			s.ready("shop")
			s.condition("shop", v1.ConditionArchiving, "True", "")
			check := s.writing("shop")
			k := &killer{story: s, what: what, steps: steps, done: map[string]bool{}}
			s.patch("shop", `{"version":17}`)
			for attempt := 0; ; attempt++ {
				if failed := k.attempt("shop"); !failed || attempt == 5 {
					break
				}
				s.condition("shop", v1.ConditionAvailable, "True", "")
				t.Logf("it failed: %s", s.condition("shop", v1.ConditionUpgraded, "False", v1.ReasonUpgradeFailed))
				s.tryAgain("shop")
			}
			s.upgraded("shop", 17, func(string) {})
			k.expectDone()
			check(outside.UpgradeBroken)
		})
	}
}

// killer kills something when an upgrade comes to certain steps, once at each.
type killer struct {
	*story
	what  string
	steps []string
	done  map[string]bool
}

// attempt waits until an upgrade has ended, and kills on the way; it says whether the upgrade has failed.
func (k *killer) attempt(name string) (failed bool) {
	k.Helper()
	must(k.T, outside.Until(k.ctx, 2*patience, func(ctx context.Context) error {
		db, err := k.SampleDB(ctx, name)
		if err != nil {
			return err
		}
		step := k.see(db)
		failed = step == v1.UpgradeFailed
		if !failed && step != v1.UpgradeUpgraded {
			return fmt.Errorf("the upgrade is at %s", step)
		}
		return nil
	}))
	return failed
}

// tryAgain asks for an upgrade that has failed once more, and waits until it has begun.
func (s *story) tryAgain(name string) {
	s.Helper()
	s.run("annotate", "sampledb", name, naming.AnnotationUpdate+"=now")
	s.until(func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		if err == nil && db.Status.Upgrade.Step == v1.UpgradeFailed {
			err = fmt.Errorf("it is not tried again yet")
		}
		return err
	})
}

// expectDone expects something to have been killed at each step. Closing may be over before anybody has seen it.
func (k *killer) expectDone() {
	k.Helper()
	for _, step := range k.steps {
		switch {
		case k.done[step]:
		case step == v1.UpgradeClosing:
			k.Logf("at %s the %s was not killed: it was too short", step, k.what)
		default:
			k.Errorf("at %s the %s was not killed", step, k.what)
		}
	}
}

// see kills what is to be killed at the step of an upgrade, and returns the step.
func (k *killer) see(db v1.SampleDB) string {
	k.Helper()
	if db.Status.Upgrade == nil {
		return ""
	}
	step := db.Status.Upgrade.Step
	if slices.Contains(k.steps, step) && !k.done[step] && k.kill(db) {
		k.done[step] = true
		k.Logf("at %s the %s was killed: %s", step, k.what, db.Status.Upgrade.Message)
	}
	return step
}

// kill kills what is to be killed, and says whether that was there. While no instance takes writes, the primary is the
// one on whose volume the data is upgraded.
func (k *killer) kill(db v1.SampleDB) bool {
	k.Helper()
	var pods []string
	kubectl := k.run
	switch k.what {
	case "operator":
		pods, kubectl = []string{"-l", operators}, k.operator
	case "job":
		if !strings.HasPrefix(db.Status.Upgrade.Message, "The data is being upgraded") {
			return false // it does not work yet
		}
		pods = []string{"-l", naming.LabelComponent + "=" + naming.ComponentUpgrade}
	case "primary":
		primary := db.Status.Primary
		if primary == "" && db.Status.Upgrade != nil {
			primary = db.Status.Upgrade.Instance
		}
		if primary == "" {
			return false
		}
		pods = []string{primary, "--ignore-not-found"}
	}
	deleted := kubectl(append([]string{"delete", "pod", "--wait=false", "--grace-period=0", "--force"}, pods...)...)
	return strings.Contains(deleted, "deleted")
}
