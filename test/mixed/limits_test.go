package mixed

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/protocol"
)

// patient is a release to come whose leaders go on for half an hour without a majority, and which waits an hour for a
// silent leader.
func patient(t *testing.T) release {
	t.Helper()
	return changed(t, "patient", "toban.dev/internal/ha", "ha.go",
		"\tSilenceLimit = 2 * time.Second", "\tSilenceLimit = time.Hour",
		"\tFenceLimit = 1250 * time.Millisecond", "\tFenceLimit = time.Hour / 2")
}

// changed is a release to come with other words in a file of a package.
func changed(t *testing.T, version, pkg, name string, words ...string) release {
	t.Helper()
	file, err := output(exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}/"+name, pkg))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for pair := range slices.Chunk(words, 2) {
		if !strings.Contains(changed, pair[0]) {
			t.Fatalf("%s has no %q any more", file, pair[0])
		}
		changed = strings.ReplaceAll(changed, pair[0], pair[1])
	}
	folder := t.TempDir()
	instead, overlay := filepath.Join(folder, name), filepath.Join(folder, "overlay.json")
	names, err := json.Marshal(map[string]map[string]string{"Replace": {file: instead}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{instead: changed, overlay: string(names)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return release{version: version, changed: overlay}.built(t)
}

// A leader of a release to come that would go on for half an hour without a majority is led by how long the others
// wait. (TestASilentLeaderIsWaitedForAsLongAsItGoesOn touches the same.)
func TestLongALeaderGoesOnNoLongerThanTheOthersWait(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 100, patient(t), today(t), today(t))
	c.mustLead("db-0")
	c.freeze("db-1", "db-2")
	c.await("db-0 is no primary any more", func(found map[string]protocol.Status) bool {
		return found["db-0"].Name != "" && found["db-0"].Role != protocol.RolePrimary
	})
	c.thaw("db-1", "db-2")
	c.writeOn().goesOn()
}

// Instances of today wait for a silent leader as long as that one goes on, by its own word.
func TestASilentLeaderIsWaitedForAsLongAsItGoesOn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 101, patient(t), today(t), today(t))
	c.mustLead("db-0")
	c.freeze("db-0")
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, name := range []string{"db-1", "db-2"} {
			if s, err := c.status(name); err == nil && (s.Election.LeaderLost || s.Leader != "db-0") {
				t.Fatalf("%s has lost its leader: %s of term %d", name, s.Leader, s.Term)
			}
		}
	}
	c.thaw("db-0")
	c.writeOn().goesOn()
}

// mustLead stops the test where another leads: the first instance makes the data.
func (c *cluster) mustLead(name string) {
	c.Helper()
	if leader := c.whole(); leader != name {
		c.Fatalf("%s leads", leader)
	}
}

// freeze stops agents, but not their servers.
func (c *cluster) freeze(names ...string) {
	c.Helper()
	for _, name := range names {
		c.must(c.instances[name].cmd.Process.Signal(syscall.SIGSTOP))
	}
}

func (c *cluster) thaw(names ...string) {
	c.Helper()
	for _, name := range names {
		c.must(c.instances[name].cmd.Process.Signal(syscall.SIGCONT))
	}
}
