// Package network lays the cables: a bridge on the host, and for every node a
// network namespace with a veth to it. It also cuts them. Everything is done by
// ip(8) and nft(8), and everything can be done twice.
//
// The host keeps one address on the bridge and routes to the Pods and Services
// through the nodes. Nodes route to each other's Pods. Nothing has a route out.
package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"toban.dev/localkube/internal/plan"
)

const netnsDir = "/run/netns"

// Up makes the bridge, the nodes' namespaces and all routes, so far as they
// are not there yet. Links that were cut stay cut: see Faults.
func Up(ctx context.Context, nodes []plan.Node) error {
	if err := ip(ctx, "", bridge()...); err != nil {
		return fmt.Errorf("make the bridge: %w", err)
	}
	for _, n := range nodes {
		if err := ip(ctx, "", cable(n)...); err != nil {
			return fmt.Errorf("make the network namespace of %s: %w", n.Name, err)
		}
		if err := ip(ctx, n.Netns, inside(n, nodes)...); err != nil {
			return fmt.Errorf("set up the network of %s: %w", n.Name, err)
		}
		if err := within(n.NetnsPath(), route); err != nil {
			return fmt.Errorf("let %s forward packets: %w", n.Name, err)
		}
	}
	if err := ip(ctx, "", podRoutes(nodes)...); err != nil {
		return fmt.Errorf("route to the Pods: %w", err)
	}
	return run(ctx, hostRules(), "nft", "-f", "-")
}

// bridge has a fixed hardware address: it would otherwise change with its
// ports, and the nodes would talk to the old one for a while.
func bridge() []string {
	var lines []string
	if !linkExists(plan.Bridge) {
		lines = append(lines, "link add "+plan.Bridge+" address 02:c6:12:00:00:01 type bridge")
	}
	return append(lines,
		"addr replace "+plan.HostIP+"/24 dev "+plan.Bridge,
		"link set "+plan.Bridge+" up")
}

func cable(n plan.Node) []string {
	var lines []string
	if !isNetns(n.NetnsPath()) {
		// What is there instead, if anything, is left of a start that was killed
		// halfway. If it stays, ip says so.
		_ = os.Remove(n.NetnsPath())
		lines = append(lines, "netns add "+n.Netns)
	}
	if !linkExists(n.Veth) {
		mac := fmt.Sprintf("02:c6:12:00:01:%02x", n.Index)
		lines = append(lines,
			"link add "+n.Veth+" type veth peer name eth0 address "+mac+" netns "+n.Netns,
			"link set "+n.Veth+" up")
	}
	return append(lines, "link set "+n.Veth+" master "+plan.Bridge)
}

// inside is what a node has on its side. The route to the Services is never
// travelled (kube-proxy rewrites the address), but without one the node's own
// processes would be told that there is no way.
func inside(n plan.Node, nodes []plan.Node) []string {
	lines := []string{
		"link set lo up",
		"addr replace " + n.IP + "/24 dev eth0",
		"link set eth0 up",
		"route replace " + plan.ServiceCIDR + " via " + plan.HostIP,
	}
	for _, peer := range nodes {
		if peer.Name != n.Name {
			lines = append(lines, "route replace "+peer.PodCIDR+" via "+peer.IP)
		}
	}
	return lines
}

func podRoutes(nodes []plan.Node) []string {
	var lines []string
	for _, n := range nodes {
		lines = append(lines, "route replace "+n.PodCIDR+" via "+n.IP)
	}
	return lines
}

// route makes a namespace a router that says "refused" each time it is asked for
// a Service without endpoints. The kernel would otherwise say so once a second, and
// clients would see an outage longer than it is.
func route() error {
	for setting, value := range map[string]string{"ip_forward": "1", "icmp_ratelimit": "0"} {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+setting, []byte(value), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// RouteServices leads the host's traffic for Services through node.
func RouteServices(ctx context.Context, node plan.Node) error {
	if err := ip(ctx, "", "route replace "+plan.ServiceCIDR+" via "+node.IP); err != nil {
		return fmt.Errorf("route to the Services through %s: %w", node.Name, err)
	}
	return nil
}

// Ready reports whether the node's namespace is there with its cable.
func Ready(n plan.Node) bool { return isNetns(n.NetnsPath()) && linkExists(n.Veth) }

// isNetns tells a network namespace from the empty file it is mounted on.
func isNetns(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// LinkUp reports whether the host's end of the node's cable is plugged in.
func LinkUp(n plan.Node) bool {
	state, err := os.ReadFile("/sys/class/net/" + n.Veth + "/operstate")
	return err == nil && strings.TrimSpace(string(state)) == "up"
}

// Down removes all that Up and the faults made, found by name, so that it
// needs no record of it. Addresses and routes go with their interfaces.
func Down(ctx context.Context) error {
	errs := []error{removeTables(ctx)}
	links, _ := filepath.Glob("/sys/class/net/" + plan.VethPrefix + plan.NodePrefix + "*")
	for _, link := range append(links, "/sys/class/net/"+plan.Bridge) {
		if exists(link) {
			errs = append(errs, ip(ctx, "", "link delete "+filepath.Base(link)))
		}
	}
	namespaces, _ := filepath.Glob(filepath.Join(netnsDir, plan.NetnsPrefix+plan.NodePrefix+"*"))
	for _, path := range namespaces {
		errs = append(errs, removeNetns(path))
	}
	return errors.Join(append(errs, leaveNetnsDir())...)
}

// removeNetns does without ip(8), which fails if a start was killed between
// making the file and mounting the namespace on it.
func removeNetns(path string) error {
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmount the network namespace %s: %w", path, err)
	}
	return os.Remove(path)
}

// leaveNetnsDir undoes what the first `ip netns add` on a machine does: it
// mounts the directory on itself. If others have namespaces there, it stays.
func leaveNetnsDir() error {
	entries, err := os.ReadDir(netnsDir)
	if err != nil || len(entries) > 0 {
		return nil
	}
	for err == nil { // it may be mounted on itself more than once
		err = unix.Unmount(netnsDir, 0)
	}
	if err := os.Remove(netnsDir); err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("remove the empty %s: %w", netnsDir, err)
	}
	return nil
}
