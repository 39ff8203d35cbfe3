package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// localkube is the program that runs the cluster and breaks it.
type localkube string

// cluster is what it says of the cluster.
type cluster struct {
	Cluster string `json:"cluster"`
	Server  string `json:"server"`
	Nodes   []node `json:"nodes"`
	Faults  []any  `json:"faults"`
	// Processes are those of the control plane, and of each node NODE-containerd and the like.
	Processes []struct {
		Name  string `json:"name"`
		PID   int    `json:"pid"`
		State string `json:"state"`
	} `json:"processes"`
}

type node struct {
	Name    string `json:"name"`
	IP      string `json:"ip"`
	PodCIDR string `json:"podCIDR"`
	Netns   string `json:"netns"`
}

// commandTimeout bounds a command.
const commandTimeout = 90 * time.Second

func command(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	// Ctrl-C is the drill's: a command that mends is not to be ended by it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s",
			program, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

func (l localkube) do(ctx context.Context, args ...string) error {
	_, err := command(ctx, string(l), args...)
	return err
}

func (l localkube) status(ctx context.Context) (cluster, error) {
	var c cluster
	out, err := command(ctx, string(l), "status", "-o", "json")
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		return c, fmt.Errorf("understand what localkube says: %w", err)
	}
	return c, nil
}

// resolver asks the cluster's DNS, where the API server is too: on the machine's end
// of the nodes' network. It remembers nothing; the cluster's DNS does, for its 5 s.
func (c cluster) resolver() (*net.Resolver, error) {
	server, err := url.Parse(c.Server)
	if err != nil {
		return nil, fmt.Errorf("understand the API server's address: %w", err)
	}
	address := net.JoinHostPort(server.Hostname(), "53")
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}, nil
}

// via makes the machine reach the Service by a node of our choice, as a client that
// runs on that node would. By itself the machine goes by the first node, whose end would
// be taken for the Service's.
func (c cluster) via(ctx context.Context, service, nodeName string) error {
	for _, n := range c.Nodes {
		if n.Name == nodeName {
			_, err := command(ctx, "ip", "route", "replace", service+"/32", "via", n.IP)
			return err
		}
	}
	return fmt.Errorf("no node is called %s", nodeName)
}

// unroute takes via back. There may be nothing to take back.
func unroute(ctx context.Context, service string) {
	_, _ = command(ctx, "ip", "route", "del", service+"/32")
}

// lossTable is the name of our rules in a node's network.
const lossTable = "toban_drill_loss"

// lose drops that many percent of the packets that come to a node from another one and
// its Pods, wherever hits says so, until mend.
func (c cluster) lose(ctx context.Context, percent int, hits func(sender, receiver string) bool) error {
	for _, n := range c.Nodes {
		var senders []string
		for _, other := range c.Nodes {
			if other.Name != n.Name && hits(other.Name, n.Name) {
				senders = append(senders, other.IP, other.PodCIDR)
			}
		}
		if len(senders) == 0 {
			continue
		}
		if err := n.nft(ctx, lossRules(senders, percent)); err != nil {
			return err
		}
	}
	return nil
}

// lossRules come before all that tracks connections or translates addresses.
func lossRules(senders []string, percent int) string {
	some := fmt.Sprintf("numgen random mod 100 < %d ", percent)
	if percent >= 100 {
		some = "" // nft takes no comparison that is always true
	}
	return fmt.Sprintf(`
table inet %s {
  chain arriving {
    type filter hook prerouting priority -310
    ip saddr { %s } %sdrop
  }
}
`, lossTable, strings.Join(senders, ", "), some)
}

// mend ends lose.
func (c cluster) mend(ctx context.Context) error {
	for _, n := range c.Nodes {
		rules := fmt.Sprintf("add table inet %[1]s\ndelete table inet %[1]s\n", lossTable)
		if err := n.nft(ctx, rules); err != nil {
			return err
		}
	}
	return nil
}

// nft changes the rules in the node's network.
func (n node) nft(ctx context.Context, rules string) error {
	file, err := os.CreateTemp("", "drill-*.nft")
	if err != nil {
		return fmt.Errorf("write the rules: %w", err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // a small file among temporary ones
	defer file.Close()
	if _, err := file.WriteString(rules); err != nil {
		return fmt.Errorf("write the rules: %w", err)
	}
	_, err = command(ctx, "nsenter", "--net=/run/netns/"+n.Netns, "nft", "-f", file.Name())
	return err
}

// burn keeps that many processors busy until stop, and no longer than most. Each burner has the share of the whole
// local cluster (cgroup.Favour): a niceness of -10 is nine times the usual weight (Linux, kernel/sched/core.c).
func burn(count int, most time.Duration) (stop func(), err error) {
	var running []*exec.Cmd
	stop = func() {
		for _, c := range running {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // its group is its own
			_ = c.Wait()
		}
		running = nil
	}
	for range count {
		c := exec.Command("nice", "-n", "-10", "timeout", fmt.Sprintf("%d", int(most.Seconds())),
			"sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("start a burner: %w", err)
		}
		running = append(running, c)
	}
	return stop, nil
}
