package network

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"toban.dev/localkube/internal/plan"
)

// All tables of rules start with this, so that they can be found again.
const tablePrefix = "localkube"

// A Cut is what a node is cut off from.
type Cut struct {
	Link  bool        // everything: its cable is unplugged
	API   bool        // the API server, and the API server from its kubelet
	Nodes []plan.Node // these nodes and their Pods
}

// Apply makes the node cut off from exactly what cut says, and joined to all else.
func Apply(ctx context.Context, n plan.Node, cut Cut) error {
	state := "up"
	if cut.Link {
		state = "down"
	}
	// The host's end goes down: the node sees its carrier vanish, as when a
	// cable is pulled, and keeps its addresses and routes.
	if err := ip(ctx, "", "link set "+n.Veth+" "+state); err != nil {
		return fmt.Errorf("set the link of %s %s: %w", n.Name, state, err)
	}
	if err := run(ctx, apiRules(n, cut.API), "nft", "-f", "-"); err != nil {
		return fmt.Errorf("set what parts %s from the API: %w", n.Name, err)
	}
	nsenter := []string{"--net=" + n.NetnsPath(), "nft", "-f", "-"}
	if err := run(ctx, peerRules(cut.Nodes), "nsenter", nsenter...); err != nil {
		return fmt.Errorf("set what parts %s from other nodes: %w", n.Name, err)
	}
	return nil
}

// hostRules keep the cluster's traffic off the machine's other networks if the
// host forwards packets, and end the way of a packet to a Service that does not
// exist, which would go round between the host and a node.
func hostRules() string {
	return table(tablePrefix, `
  chain forward {
    type filter hook forward priority -10
    iifname "lk0" oifname != "lk0" drop
    iifname != "lk0" oifname "lk0" drop
    iifname "lk0" ip daddr `+plan.ServiceCIDR+` drop
  }`)
}

// apiRules are the host's, where the API server is. They drop and don't refuse,
// as a broken network would.
func apiRules(n plan.Node, cut bool) string {
	name := tablePrefix + "_api_" + n.Name
	if !cut {
		return table(name, "")
	}
	return table(name, fmt.Sprintf(`
  set node { type ipv4_addr; flags interval; elements = { %s } }
  chain input {
    type filter hook input priority -10
    ip saddr @node tcp dport %[2]d drop
  }
  chain output {
    type filter hook output priority -10
    ip daddr @node tcp sport %[2]d drop
    ip daddr @node tcp dport 10250 drop
  }`, strings.Join(n.Addresses(), ", "), plan.APIPort))
}

// peerRules are the node's. They come after kube-proxy has put a Pod's address
// in place of a Service's, so they part Services too.
func peerRules(peers []plan.Node) string {
	const name = tablePrefix + "_peers"
	if len(peers) == 0 {
		return table(name, "")
	}
	var addresses []string
	for _, peer := range peers {
		addresses = append(addresses, peer.Addresses()...)
	}
	return table(name, fmt.Sprintf(`
  set peers { type ipv4_addr; flags interval; elements = { %s } }
  chain input {
    type filter hook input priority 10
    ip saddr @peers drop
  }
  chain output {
    type filter hook output priority 10
    ip daddr @peers drop
  }
  chain forward {
    type filter hook forward priority 10
    ip saddr @peers drop
    ip daddr @peers drop
  }`, strings.Join(addresses, ", ")))
}

// table returns nft's input that replaces the table in one transaction, or
// only deletes it if body is empty. Adding it first makes deleting it safe.
func table(name, body string) string {
	text := fmt.Sprintf("add table inet %[1]s\ndelete table inet %[1]s\n", name)
	if body != "" {
		text += fmt.Sprintf("table inet %s {%s\n}\n", name, body)
	}
	return text
}

// removeTables deletes the host's tables; a node's go with its namespace.
func removeTables(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "nft", "list", "tables", "inet").Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil // then there can be none of ours
	}
	if err != nil {
		return fmt.Errorf("list the nft tables: %w", err)
	}
	var errs []error
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // table inet NAME
		if len(fields) == 3 && (fields[2] == tablePrefix || strings.HasPrefix(fields[2], tablePrefix+"_")) {
			errs = append(errs, run(ctx, table(fields[2], ""), "nft", "-f", "-"))
		}
	}
	return errors.Join(errs...)
}
