// Package plan lays out the cluster on the machine: which node has which name,
// addresses and network interfaces. It is arithmetic only: it touches nothing.
//
// Every address is out of 198.18.0.0/15, which RFC 2544 reserves for tests of
// networks, so that no real network is ever met.
package plan

import (
	"fmt"
	"net/netip"
)

// The cluster's addresses that are no node's.
const (
	HostIP      = "198.18.0.1"     // the bridge on the host: API server, DNS
	NodeSubnet  = "198.18.0.0/24"  // bridge and nodes
	PodCIDR     = "198.18.16.0/20" // all Pods: a /24 of it per node
	ServiceCIDR = "198.19.0.0/20"
	APIService  = "198.19.0.1"  // the Service kubernetes: always the range's first
	DNSService  = "198.19.0.10" // the Service kube-dns
	APIPort     = 6443
	Domain      = "cluster.local"
)

// Names on the host. All start the same way, so that what belongs to the
// cluster can be found and removed even if its records are lost.
const (
	Bridge      = "lk0"
	NetnsPrefix = "localkube-"
	VethPrefix  = "lk-"
	NodePrefix  = "worker"
)

// MaxNodes is how many /24 there are in PodCIDR.
const MaxNodes = 16

// A Node is one machine of the cluster: a network namespace.
type Node struct {
	Index   int    `json:"-"`
	Name    string `json:"name"`    // worker0
	IP      string `json:"ip"`      // 198.18.0.10
	PodCIDR string `json:"podCIDR"` // 198.18.16.0/24
	Netns   string `json:"netns"`   // localkube-worker0
	Veth    string `json:"veth"`    // the host's end of its cable: lk-worker0
}

// Nodes returns the first count nodes.
func Nodes(count int) ([]Node, error) {
	if count < 1 || count > MaxNodes {
		return nil, fmt.Errorf("%d nodes asked for: from 1 to %d are possible", count, MaxNodes)
	}
	nodes := make([]Node, count)
	for i := range nodes {
		nodes[i] = node(i)
	}
	return nodes, nil
}

func node(index int) Node {
	name := fmt.Sprintf("%s%d", NodePrefix, index)
	return Node{
		Index:   index,
		Name:    name,
		IP:      fmt.Sprintf("198.18.0.%d", 10+index),
		PodCIDR: fmt.Sprintf("198.18.%d.0/24", 16+index),
		Netns:   NetnsPrefix + name,
		Veth:    VethPrefix + name,
	}
}

// PodGateway is the address by which the node's Pods reach the node.
func (n Node) PodGateway() string {
	return netip.MustParsePrefix(n.PodCIDR).Addr().Next().String()
}

// Addresses are all the addresses that packets from this node can carry.
func (n Node) Addresses() []string { return []string{n.IP, n.PodCIDR} }

// NetnsPath is the file that holds the node's network namespace.
func (n Node) NetnsPath() string { return "/run/netns/" + n.Netns }

// Find returns the node called name.
func Find(nodes []Node, name string) (Node, error) {
	for _, n := range nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("no node is called %q: the nodes are %s0 to %s%d",
		name, NodePrefix, NodePrefix, len(nodes)-1)
}
