//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// The node of the primary is cut off while its data is upgraded: the former version serves on the other two instances,
// nothing acknowledged is lost, what the Pod has made on that node is undone when it is back, and the upgrade goes
// through when it is asked for again. What the operator decides is also in test/api, what agents undo in
// internal/work/major.
func TestLongAMajorUpgradeLosesTheNodeOfThePrimary(t *testing.T) {
	s := beginAlone(t) // other databases have instances on that node
	s.apply(strings.Replace(former("shop", 3, "backup: {none: true}"), "{size: 512Mi}", "{size: 1Gi}", 1))
	s.ready("shop")
	leader := s.leadsElsewhere("shop")
	node := s.node(leader)
	// As many tables as give the upgrade something to do for a while.
	if _, err := s.inside(leader, "DO $$ BEGIN FOR i IN 1..3000 LOOP EXECUTE format('CREATE TABLE t%s (id int PRIMARY "+
		"KEY, text text)', i); IF i % 500 = 0 THEN COMMIT; END IF; END LOOP; END $$"); err != nil {
		t.Fatal(err)
	}
	check := s.writing("shop")
	s.patch("shop", `{"version":17}`)
	s.untilUpgrading("shop")

	t.Cleanup(func() { s.localkube("node", "join", node) })
	s.localkube("node", "cut", node)
	words := s.condition("shop", v1.ConditionUpgraded, "False", v1.ReasonUpgradeFailed)
	t.Logf("without %s: %s", node, words)
	if !strings.Contains(words, "has not answered") {
		t.Errorf("it says %q", words)
	}
	s.condition("shop", v1.ConditionAvailable, "True", "")
	s.rowsAtLeast("shop", s.count("shop")+50)
	if db, err := s.SampleDB(s.ctx, "shop"); err != nil || db.Status.Primary == leader || db.Status.Major != 15 {
		t.Errorf("%s leads, and the data is of %d: %v", db.Status.Primary, db.Status.Major, err)
	}

	s.localkube("node", "join", node)
	s.until(func(ctx context.Context) error {
		left, err := s.Kubectl(ctx, "exec", leader, "--", "ls", naming.PathVolume)
		if err == nil && (strings.Contains(left, "upgrade.json") || strings.Contains(left, "restored.json")) {
			err = fmt.Errorf("the volume of %s has %s", leader, left)
		}
		return err
	})
	s.tryAgain("shop")
	s.upgraded("shop", 17, func(step string) { t.Logf("again: %s", step) })
	check(outside.UpgradeBroken)
}

// untilUpgrading waits until the data of a SampleDB is being upgraded and no instance runs any more.
func (s *story) untilUpgrading(name string) {
	s.Helper()
	must(s.T, outside.Until(s.ctx, patience, func(ctx context.Context) error {
		db, err := s.SampleDB(ctx, name)
		switch {
		case err != nil:
			return err
		case db.Status.Upgrade == nil || db.Status.Upgrade.Step != v1.UpgradeUpgrading:
			return fmt.Errorf("the upgrade is %+v", db.Status.Upgrade)
		case !strings.Contains(db.Status.Upgrade.Message, "pg_upgrade"):
			return fmt.Errorf("the upgrade is at %s", db.Status.Upgrade.Message)
		}
		return nil
	}))
}
