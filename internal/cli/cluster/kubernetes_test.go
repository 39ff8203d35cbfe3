package cluster

import (
	"strings"
	"testing"
)

// The commands that the console shows reach the cluster that it shows.
func TestTheCommandsOfTheConsoleReachItsCluster(t *testing.T) {
	at := Cluster{Kubeconfig: "/home/me/config", Context: "prod", Namespace: "shop"}
	if flags := strings.Join(at.SameCluster(), " "); flags != "--kubeconfig /home/me/config --context prod" {
		t.Errorf("the flags are %q", flags)
	}
	if flags := (&Cluster{}).SameCluster(); len(flags) > 0 {
		t.Errorf("nothing was given, and the flags are %q", flags)
	}
}
