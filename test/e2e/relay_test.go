//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"toban.dev/internal/naming"
	"toban.dev/test/outside"
)

// A Service leads to all instances, which pass its clients on: also when the primary is killed, and to a Pod that has
// come back. The route changes both ways without a restart.
func TestRelay(t *testing.T) {
	s := begin(t)
	s.apply(bare("shop", 3, ""))
	s.ready("shop")
	writer, err := outside.StartWriter(s.ctx, s.access("shop", naming.ReadWriteService("shop")))
	must(t, err)
	defer writer.Stop()
	started := s.startedAt("shop")
	s.rowsAtLeast("shop", 50)
	s.patch("shop", `{"service":{"route":"Relay"}}`)
	s.leadsTo("shop", 3)
	s.rowsAtLeast("shop", s.count("shop")+50)
	if now := s.startedAt("shop"); now != started {
		t.Errorf("the servers started at %s, and before the change of the route at %s", now, started)
	}

	before := s.ready("shop")
	s.run("delete", "pod", before.Status.Primary, "--grace-period=0", "--force")
	s.electedAfter(before)
	s.rowsAtLeast("shop", s.count("shop")+50)
	s.ready("shop")
	s.leadsTo("shop", 3)
	for range 6 { // by whichever instance
		where, err := s.access("shop", naming.ReadWriteService("shop")).Patient().
			Ask(s.ctx, "SELECT current_setting('cluster_name')")
		must(t, err)
		if primary := s.ready("shop").Status.Primary; where != primary {
			t.Errorf("a client gets to %s, and %s is the primary", where, primary)
		}
	}
	s.patch("shop", `{"service":{"route":"Primary"}}`)
	s.leadsTo("shop", 1)
	s.rowsAtLeast("shop", s.count("shop")+50)
	writer.Stop()
	lost, err := writer.Lost(s.ctx)
	must(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d acknowledged rows are lost", len(lost), writer.Acknowledged())
	}
	s.inTime(writer, outside.Lost)
}

// leadsTo waits until the Service leads to so many instances: to more than one by their relays.
func (s *story) leadsTo(name string, instances int) {
	s.Helper()
	s.until(func(ctx context.Context) error {
		addresses, err := s.Kubectl(ctx, "get", "endpointslices", "-l", "kubernetes.io/service-name="+name,
			"-o", "jsonpath={.items[*].endpoints[*].addresses[*]}")
		if err != nil {
			return err
		}
		var service corev1.Service
		if err := s.Get(ctx, "service/"+naming.ReadWriteService(name), &service); err != nil {
			return err
		}
		relays := service.Spec.Selector[naming.LabelRelay] != ""
		if got := len(strings.Fields(addresses)); got != instances || relays != (instances > 1) {
			return fmt.Errorf("the Service leads to %d instances, by their relays: %t", got, relays)
		}
		return nil
	})
}
