package plan

import (
	"net/netip"
	"testing"
)

func TestEveryAddressIsInTheTestRangeAndNoTwoNodesShareOne(t *testing.T) {
	all := netip.MustParsePrefix("198.18.0.0/15")
	pods := netip.MustParsePrefix(PodCIDR)
	services := netip.MustParsePrefix(ServiceCIDR)
	nodes, err := Nodes(MaxNodes)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{HostIP: "the host"}
	for _, n := range nodes {
		for _, address := range []string{n.IP, n.PodCIDR, n.Veth, n.Netns} {
			if owner, taken := seen[address]; taken {
				t.Errorf("%s has %s, which is already %s's", n.Name, address, owner)
			}
			seen[address] = n.Name
		}
		subnet := netip.MustParsePrefix(n.PodCIDR)
		if !pods.Contains(subnet.Addr()) || services.Overlaps(subnet) {
			t.Errorf("%s: the Pods' %s is not inside %s alone", n.Name, n.PodCIDR, PodCIDR)
		}
		if !all.Contains(netip.MustParseAddr(n.IP)) {
			t.Errorf("%s: %s is outside %s", n.Name, n.IP, all)
		}
		if len(n.Veth) > 15 {
			t.Errorf("%s: %q is longer than Linux lets an interface's name be", n.Name, n.Veth)
		}
	}
}

func TestPodGatewayIsTheFirstAddressOfTheSubnet(t *testing.T) {
	nodes, _ := Nodes(3)
	if got := nodes[2].PodGateway(); got != "198.18.18.1" {
		t.Errorf("the gateway of %s is %s", nodes[2].PodCIDR, got)
	}
}

func TestNodesRefusesCountsThatHaveNoAddresses(t *testing.T) {
	for _, count := range []int{-1, 0, MaxNodes + 1} {
		if _, err := Nodes(count); err == nil {
			t.Errorf("%d nodes were accepted", count)
		}
	}
}

func TestFindNamesTheNodesThereAre(t *testing.T) {
	nodes, _ := Nodes(3)
	if n, err := Find(nodes, "worker1"); err != nil || n.Index != 1 {
		t.Errorf("worker1 is %+v, %v", n, err)
	}
	_, err := Find(nodes, "worker3")
	if err == nil || err.Error() != `no node is called "worker3": the nodes are worker0 to worker2` {
		t.Errorf("an unknown node gives %v", err)
	}
}
