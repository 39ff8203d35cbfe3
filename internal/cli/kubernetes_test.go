package cli

import (
	"strings"
	"testing"
)

// The commands that the console shows reach the cluster that it shows.
func TestTheCommandsOfTheConsoleReachItsCluster(t *testing.T) {
	at := cluster{kubeconfig: "/home/me/config", context: "prod", namespace: "shop"}
	if flags := strings.Join(at.sameCluster(), " "); flags != "--kubeconfig /home/me/config --context prod" {
		t.Errorf("the flags are %q", flags)
	}
	if flags := (&cluster{}).sameCluster(); len(flags) > 0 {
		t.Errorf("nothing was given, and the flags are %q", flags)
	}
}
