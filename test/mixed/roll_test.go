// Package mixed runs agents of different releases in one SampleDB: real programs, built from the repository's own
// history, with real servers, without Kubernetes.
package mixed

import (
	"flag"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if programs, err = os.MkdirTemp("", "toban-mixed-"); err == nil {
		err = os.Chmod(programs, 0o755)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

// rounds is how often a cluster is rolled from a release to the code as it is here, and back.
var rounds = flag.Int("rounds", 1, "how often each cluster is rolled there and back, after once with other faults, too")

// fault is what happens to who leads.
type fault struct {
	name string
	do   func(c *cluster, leader string)
}

// faults are tried in turn after the first round, in which the leader is killed each time.
var faults = []fault{
	{"killed", (*cluster).killAgent},
	{"frozen", (*cluster).freezeAgent},
	{"told to stop", func(c *cluster, leader string) {
		c.end(leader, syscall.SIGTERM)
		c.leader(leader)
		c.start(leader)
	}},
}

func (c *cluster) killAgent(leader string) {
	c.end(leader, syscall.SIGKILL)
	c.leader(leader)
	c.start(leader)
}

// freezeAgent stops the agent of the leader, but not its server, until another leads.
func (c *cluster) freezeAgent(leader string) {
	c.freeze(leader)
	c.leader(leader)
	c.thaw(leader)
}

func TestReleasesMix(t *testing.T) {
	t.Parallel()
	now := today(t)
	for i, old := range releases(t) {
		t.Run(old.version, func(t *testing.T) {
			old := old.built(t)
			c := newCluster(t, i+1, old)
			w := c.writeOn()
			for round := range *rounds {
				w.roll(now, round)
				w.roll(old, round)
			}
			w.checkAll()
		})
	}
}

// roll replaces the agents by those of a release, one after the other. In each state between, who leads fails.
func (w *writer) roll(to release, round int) {
	w.Helper()
	for step := 0; ; step++ {
		name := w.turn(to, w.whole())
		if name == "" {
			return
		}
		began := time.Now()
		w.end(name, syscall.SIGTERM)
		w.instances[name].release = to
		w.start(name)
		w.whole()
		if s, err := w.status(name); to.commit == "" && (err != nil || s.Protocol != protocol.Version) {
			w.Fatalf("%s says that it speaks version %d of the protocol, %v", name, s.Protocol, err)
		}
		w.goesOn()
		rolled := time.Now()
		fault := faults[round*(step+1)%len(faults)]
		leader := w.whole()
		fault.do(w.cluster, leader)
		w.goesOn()
		w.Logf("%s is of %s now (%.1f s); then %s, of %s, was %s (%.1f s)",
			name, to.version, rolled.Sub(began).Seconds(), leader, w.instances[leader].release.version, fault.name,
			time.Since(rolled).Seconds())
	}
}
