//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"toban.dev/test/outside"

	v1 "toban.dev/api/v1"
	"toban.dev/internal/naming"
)

// The preferred zone is lost: another leads, and writes go on. When the zone is back, and all has been well for half a
// minute, it leads again. Nothing is lost. In make test, test/api has the decisions (zones_test.go), and TestDrill a
// node that is cut off.
func TestLongAPreferredZoneIsLost(t *testing.T) {
	s := beginAlone(t) // other databases have instances on that node
	s.apply(bare("shop", 3))
	s.ready("shop")
	s.condition("shop", v1.ConditionSurvivesZoneLoss, "True", v1.ReasonZonesSpread)
	leader := s.leadsElsewhere("shop")
	node, zone := s.node(leader), s.zone("shop", leader)
	s.patch("shop", fmt.Sprintf(`{"primary":{"zones":[%q]}}`, zone))
	s.condition("shop", v1.ConditionPrimaryPreferred, "True", v1.ReasonPreferred)
	check := s.writing("shop")

	before := s.ready("shop")
	t.Cleanup(func() { s.localkube("node", "join", node) })
	s.localkube("node", "cut", node)
	other := s.electedAfter(before)
	s.rowsAtLeast("shop", s.count("shop")+50)
	t.Logf("without zone %s, %s leads", zone, other.Status.Primary)
	s.localkube("node", "join", node)

	s.until(func(ctx context.Context) error {
		now, err := s.SampleDB(ctx, "shop")
		if err == nil && now.Status.Primary != leader {
			err = fmt.Errorf("%s leads, and %s is preferred", now.Status.Primary, leader)
		}
		return err
	})
	s.condition("shop", v1.ConditionPrimaryPreferred, "True", v1.ReasonPreferred)
	s.ready("shop")
	check(outside.Lost)
}

// leadsElsewhere has an instance lead that is not on the operator's node, and says which.
func (s *story) leadsElsewhere(name string) string {
	s.Helper()
	busy, err := outside.Namespace("toban-system").Kubectl(s.ctx, "get", "pods",
		"-o", "jsonpath={.items[*].spec.nodeName}")
	must(s.T, err)
	leader := s.ready(name).Status.Primary
	for i := 0; s.node(leader) == busy; i++ {
		leader = naming.Instance(name, i)
	}
	if leader != s.ready(name).Status.Primary {
		s.toban("switchover", name, "--to", leader)
	}
	s.ready(name)
	return leader
}

// zone is the zone of an instance, as its status says.
func (s *story) zone(name, instance string) string {
	s.Helper()
	for _, i := range s.ready(name).Status.InstanceStatuses {
		if i.Name == instance {
			return i.Zone
		}
	}
	s.Fatalf("the status does not have %s", instance)
	return ""
}

// localkube tells the local cluster to do something.
func (s *story) localkube(args ...string) {
	s.Helper()
	command := exec.CommandContext(s.ctx, "bin/localkube", args...)
	command.Dir = "../.."
	if out, err := command.CombinedOutput(); err != nil {
		s.Fatalf("localkube %v: %v\n%s", args, err, out)
	}
}
