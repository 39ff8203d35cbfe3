package network

import (
	"strings"
	"testing"

	"toban.dev/localkube/internal/plan"
)

func TestANodeRoutesToItsPeersPodsAndTheServicesAndNowhereElse(t *testing.T) {
	nodes, _ := plan.Nodes(3)
	got := strings.Join(inside(nodes[1], nodes), "\n")
	const want = `link set lo up
addr replace 198.18.0.11/24 dev eth0
link set eth0 up
route replace 198.19.0.0/20 via 198.18.0.1
route replace 198.18.16.0/24 via 198.18.0.10
route replace 198.18.18.0/24 via 198.18.0.12`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestRules(t *testing.T) {
	nodes, _ := plan.Nodes(3)
	cases := map[string]struct {
		rules    string
		contains []string
		lacks    string
	}{
		"a cut from the API names both ports": {
			apiRules(nodes[0], true),
			[]string{
				"delete table inet localkube_api_worker0", "198.18.0.10, 198.18.16.0/24", "dport 6443 drop",
				"sport 6443 drop", "dport 10250 drop",
			}, "peers",
		},
		"joined to the API there are no rules": {
			apiRules(nodes[0], false), []string{"delete table inet localkube_api_worker0"}, "drop",
		},
		"a cut from nodes names them and their Pods": {
			peerRules(nodes[1:]),
			[]string{"198.18.0.11, 198.18.17.0/24, 198.18.0.12, 198.18.18.0/24", "hook forward"}, "6443",
		},
		"joined to all nodes there are no rules": {
			peerRules(nil), []string{"delete table inet localkube_peers"}, "drop",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, want := range c.contains {
				if !strings.Contains(c.rules, want) {
					t.Errorf("%q is not in:\n%s", want, c.rules)
				}
			}
			if strings.Contains(c.rules, c.lacks) {
				t.Errorf("%q is in:\n%s", c.lacks, c.rules)
			}
		})
	}
}
