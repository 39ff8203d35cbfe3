package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/protocol"
	"toban.dev/test/outside"
)

// The ioctls of fsfreeze, of linux/fs.h.
const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

// ownDisk gives an instance a volume with a file system of its own, which can be frozen: nothing that is written there
// comes back until it thaws.
func (c *cluster) ownDisk(name string) {
	c.Helper()
	image, volume := filepath.Join(c.folder, name+".image"), c.disk(name)
	c.must(os.MkdirAll(volume, 0o700))
	c.must(os.WriteFile(image, nil, 0o600))
	c.must(os.Truncate(image, 512<<20))
	for _, program := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, volume}} {
		if out, err := exec.Command(program[0], program[1:]...).CombinedOutput(); err != nil {
			c.Fatalf("%v: %v: %s", program, err, out)
		}
	}
	c.own(volume)
	c.Cleanup(func() { _ = unix.Unmount(volume, unix.MNT_DETACH) })
}

// disk is where the volume of an instance is mounted.
func (c *cluster) disk(name string) string { return filepath.Join(c.folder, name, "volume") }

// walDisk is the volume for the WAL of an instance that has one.
func (c *cluster) walDisk(name string) string { return filepath.Join(c.folder, name, "wal") }

// freeze freezes the volume of an instance until the returned function is called. Even when this test is killed it
// thaws, some time later: what hangs there can't be ended before.
func (c *cluster) freeze(name string) (thaw func()) {
	c.Helper()
	folder, err := os.Open(c.disk(name))
	c.must(err)
	later := exec.Command("sh", "-c", `sleep 240; fsfreeze --unfreeze "$0"`, c.disk(name))
	later.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.must(later.Start())
	thawed := false
	thaw = func() {
		if thawed {
			return
		}
		thawed = true
		if err := unix.IoctlSetInt(int(folder.Fd()), fiThaw, 0); err != nil {
			c.Errorf("thaw the volume of %s: %v", name, err)
		}
		_ = folder.Close()
		_ = syscall.Kill(-later.Process.Pid, syscall.SIGKILL) // its group is its own
		_ = later.Wait()
	}
	c.Cleanup(thaw)
	c.must(unix.IoctlSetInt(int(folder.Fd()), fiFreeze, 0))
	return thaw
}

// hanging says whether processes work in the data directory of an instance.
func (c *cluster) hanging(name string) bool {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		if cwd, _ := os.Readlink(filepath.Join(folder, "cwd")); cwd == filepath.Join(c.disk(name), "data") {
			return true
		}
	}
	return false
}

// onDisks is a cluster of three, of which one has a disk that can be frozen. db-0 leads.
func onDisks(t *testing.T, durability, frozen string) *cluster {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes root to freeze a file system")
	}
	t.Parallel()
	c := newCluster(t, 3)
	c.config.Durability = durability
	c.ownDisk(frozen)
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	if leader := c.whole(); leader != "db-0" {
		t.Fatalf("%s leads", leader)
	}
	return c
}

// volumeNamed is the reason of a primary on such a disk. Its server's write may time out before the volume's limit.
var volumeNamed = regexp.MustCompile(`the volume has not taken a write for [12]s: another instance takes over`)

// While the disk of the primary stands still, its processes can't end, and yet another leads: on the word of the old
// one, which can answer nobody any more.
func TestADiskOfThePrimaryThatStalls(t *testing.T) {
	for _, durability := range []string{"quorum", "async"} {
		t.Run(durability, func(t *testing.T) {
			c := onDisks(t, durability, "db-0")
			w := c.write3()
			w.goesOn()
			thaw, began := c.freeze("db-0"), time.Now()
			c.await("db-0", "resigned",
				func(s protocol.Status) bool { return s.Resigned && s.Role == protocol.RoleNone })
			c.leader("db-0")
			t.Logf("another leads after %s", time.Since(began).Round(10*time.Millisecond))
			w.goesOn()
			log := c.logs["db-0"].String()
			if !volumeNamed.MatchString(log) {
				t.Errorf("it has resigned for another reason:\n%s", log)
			}
			if !c.hanging("db-0") || strings.Contains(log, "the server has been stopped at once") {
				t.Error("nothing hangs on the disk of the old primary")
			}
			thaw()
			c.await("db-0", "streaming", streaming)
			if w.inTime(outside.Lost); durability == "quorum" {
				w.check(outside.Lost)
			}
			c.whole()
		})
	}
}

// The disk of a standby stands still: it says so, is not elected, and nobody waits for it. When the disk goes on, so
// does it.
func TestADiskOfAStandbyThatStalls(t *testing.T) {
	c := onDisks(t, "", "db-1")
	before, err := c.status("db-0")
	c.must(err)
	w := c.write3()
	w.goesOn()
	thaw := c.freeze("db-1")
	c.await("db-1", "stalling", func(s protocol.Status) bool {
		return s.Election.Stalls && !s.Election.Eligible && s.Reason == "VolumeStalls"
	})
	w.goesOn()
	thaw()
	c.await("db-1", "going on",
		func(s protocol.Status) bool { return !s.Election.Stalls && s.Election.Eligible && streaming(s) })
	w.check(outside.Undisturbed)
	if now, err := c.status("db-0"); err != nil || now.Term != before.Term || !leading(now) {
		t.Errorf("db-0 is of term %d, leading: %v, %v; before of term %d", now.Term, leading(now), err, before.Term)
	}
	if log := c.logs["db-1"].String(); strings.Contains(log, "could not stream") {
		t.Errorf("it was copied anew:\n%s", log)
	}
}
