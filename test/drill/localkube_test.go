package main

import (
	"strings"
	"testing"
)

func TestLossSaysHowMuchIsDroppedUnlessItIsAll(t *testing.T) {
	senders := []string{"198.18.0.11", "198.18.17.0/24"}
	const half = "ip saddr { 198.18.0.11, 198.18.17.0/24 } numgen random mod 100 < 50 drop"
	if got := lossRules(senders, 50); !strings.Contains(got, half) {
		t.Errorf("half of it: %s", got)
	}
	const all = "ip saddr { 198.18.0.11, 198.18.17.0/24 } drop"
	if got := lossRules(senders, 100); !strings.Contains(got, all) {
		t.Errorf("all of it: %s", got)
	}
}

func TestAProcessOfANodeIsKnownByItsFiles(t *testing.T) {
	const config = "/var/lib/localkube/nodes/worker0/config/containerd.toml"
	args := []string{"/root/.cache/localkube/containerd-1/containerd", "--config", config}
	if !ofLocalkube(args, "worker0-containerd") {
		t.Error("it is not known")
	}
	for name, other := range map[string][]string{
		"another node's":    {args[0], "--config", "/var/lib/localkube/nodes/worker1/config/containerd.toml"},
		"another program":   {"/usr/bin/less", args[2]},
		"the machine's own": {"/usr/bin/containerd", "--config", "/etc/containerd/config.toml"},
		"one that ended":    nil,
	} {
		if ofLocalkube(other, "worker0-containerd") {
			t.Errorf("%s is taken for it", name)
		}
	}
}
