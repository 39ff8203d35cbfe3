//go:build cluster

package main

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClusterLifecycle makes a real cluster, breaks it, mends it, kills a start
// halfway, and looks for traces afterwards. It needs root and a machine without
// a cluster: go test -tags cluster -run TestClusterLifecycle -timeout 30m .
func TestClusterLifecycle(t *testing.T) {
	k := newBench(t)
	before := traces(t)

	k.must("up", "--kubeconfig", k.kubeconfig)
	k.wantStatus("up", 3)
	k.must("up", "--kubeconfig", k.kubeconfig) // does nothing, and says so by succeeding
	k.must("load", "nginx:1.25")
	k.kubectl("run", "web", "--image=nginx:1.25", "--restart=Never", `--overrides={"spec":{"nodeName":"worker1"}}`)
	k.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	k.kubectl("exec", "web", "--", "getent", "hosts", "kubernetes.default")
	address := k.kubectl("get", "pod", "web", "-o", "jsonpath={.status.podIP}")

	t.Run("two nodes are cut off from each other, and joined", func(t *testing.T) {
		k := k.in(t)
		k.wantReach("worker0", address, true)
		k.must("node", "cut", "worker0", "--from", "worker1")
		k.wantReach("worker0", address, false)
		k.wantReach("worker2", address, true)
		k.must("node", "join", "worker1", "--from", "worker0")
		k.wantReach("worker0", address, true)
	})
	t.Run("a node is frozen, and thawed", func(t *testing.T) {
		k := k.in(t)
		k.must("node", "freeze", "worker1")
		k.wantReach("worker0", address, false)
		k.must("node", "thaw", "worker1")
		k.wantReach("worker0", address, true)
	})
	t.Run("a node loses its power, and gets it back", func(t *testing.T) {
		k := k.in(t)
		k.must("node", "kill", "worker1")
		k.wantStatus("partial", 3)
		k.must("node", "start", "worker1")
		k.kubectl("wait", "--for=condition=Ready", "node/worker1", "--timeout=90s")
		k.wantStatus("up", 3)
	})
	t.Run("all that runs is killed, and up mends it", func(t *testing.T) {
		k := k.in(t)
		for _, process := range processes(t) {
			process.Kill() //nolint:errcheck // it may have ended with another
		}
		k.must("up", "--kubeconfig", k.kubeconfig)
		k.wantStatus("up", 3)
	})
	k.must("node", "freeze", "worker0") // down has to cope with that
	k.must("down")
	wantNoTraces(t, before)

	for _, moment := range []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second} {
		t.Run("a start is killed after "+moment.String(), func(t *testing.T) {
			k := k.in(t)
			k.killUpAfter(moment)
			k.must("down")
			wantNoTraces(t, before)
		})
	}
	k.killUpAfter(time.Second)
	k.must("up", "--kubeconfig", k.kubeconfig)
	k.wantStatus("up", 3)
	k.must("down")
	wantNoTraces(t, before)
}

// A bench runs localkube and kubectl for a test.
type bench struct {
	t                   *testing.T
	program, kubeconfig string
	assets              string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("this test makes a cluster: run it as root")
	}
	if _, err := os.Stat("/var/lib/localkube"); err == nil {
		t.Fatal("there is a cluster on this machine, which this test would remove: run `localkube down` first")
	}
	dir := t.TempDir()
	k := &bench{t: t, program: filepath.Join(dir, "localkube"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	if out, err := exec.Command("go", "build", "-o", k.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build localkube: %v\n%s", err, out)
	}
	// The temporary program is not in the repository, but this test is.
	components, err := filepath.Abs("components")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOCALKUBE_COMPONENTS", components)
	t.Cleanup(func() { exec.Command(k.program, "down").Run() }) //nolint:errcheck // the test has failed then
	k.assets = strings.TrimSpace(k.must("assets"))
	return k
}

// in is the bench for a subtest, which is then the one that fails.
func (k *bench) in(t *testing.T) *bench {
	return &bench{t: t, program: k.program, kubeconfig: k.kubeconfig, assets: k.assets}
}

func (k *bench) must(args ...string) string {
	k.t.Helper()
	command := exec.Command(k.program, args...)
	command.Stderr = k.t.Output()
	out, err := command.Output()
	if err != nil {
		k.t.Fatalf("localkube %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

func (k *bench) kubectl(args ...string) string {
	k.t.Helper()
	command := exec.Command(filepath.Join(k.assets, "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig)
	out, err := command.CombinedOutput()
	if err != nil {
		k.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (k *bench) wantStatus(cluster string, nodes int) {
	k.t.Helper()
	status := k.must("status", "-o", "json")
	if !strings.Contains(status, `"cluster": "`+cluster+`"`) || strings.Count(status, `"podCIDR"`) != nodes {
		k.t.Fatalf("the status is not %s with %d nodes:\n%s", cluster, nodes, status)
	}
}

// wantReach checks that a node reaches the web server at address, or does not.
// After a change it may take a moment until the network has noticed.
func (k *bench) wantReach(node, address string, reaches bool) {
	k.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		err := exec.CommandContext(ctx, k.program, "exec", node, "--", "bash", "-c",
			"exec 3<>/dev/tcp/"+address+"/80 && printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3 && head -c 1 "+
				"<&3 | grep -q H").Run()
		cancel()
		if (err == nil) == reaches {
			return
		}
		if time.Now().After(deadline) {
			k.t.Fatalf("%s reaches %s: %v, want %v", node, address, err == nil, reaches)
		}
	}
}

func (k *bench) killUpAfter(moment time.Duration) {
	k.t.Helper()
	up := exec.Command(k.program, "up", "--kubeconfig", k.kubeconfig)
	if err := up.Start(); err != nil {
		k.t.Fatal(err)
	}
	time.Sleep(moment) // the moment is what is tested, not waited for
	up.Process.Kill()  //nolint:errcheck // then it was quicker
	up.Wait()          //nolint:errcheck // it was killed
}

// traces are what a cluster changes on a machine, by kind.
func traces(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for kind, script := range map[string]string{
		"mounts":    `awk '$5 ~ /localkube|netns/ {print $5}' /proc/self/mountinfo`,
		"links":     `ls /sys/class/net | grep lk || true`,
		"netns":     `ls /run/netns 2>/dev/null | grep localkube || true`,
		"routes":    `ip route | grep 198.1 || true`,
		"rules":     `nft list tables | grep localkube || true`,
		"cgroups":   `find /sys/fs/cgroup -type d -name localkube`,
		"files":     `ls -d /run/localkube* /var/lib/localkube /var/lib/cni /var/log/containers 2>/dev/null || true`,
		"hosts":     `cat /etc/hosts`,
		"settings":  `sysctl vm.overcommit_memory kernel.panic kernel.panic_on_oops`,
		"devices":   `cat /sys/block/loop*/loop/backing_file 2>/dev/null | grep localkube || true`,
		"processes": `ps -eo stat=,args= | grep -E '[/]var/lib/localkube|[/]run/localkube' | grep -v '^Z' || true`,
	} {
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		if err != nil {
			t.Fatalf("look for %s: %v\n%s", kind, err, out)
		}
		found[kind] = string(out)
	}
	return found
}

func wantNoTraces(t *testing.T, before map[string]string) {
	t.Helper()
	after := traces(t)
	if maps.Equal(before, after) {
		return
	}
	for kind := range after {
		if before[kind] != after[kind] {
			t.Errorf("%s were:\n%s\nand are after down:\n%s", kind, before[kind], after[kind])
		}
	}
}

// processes are all that runs in the cluster's cgroups, Pods included.
func processes(t *testing.T) []*os.Process {
	t.Helper()
	script := `cat $(find /sys/fs/cgroup -path '*/localkube/*' -name cgroup.procs) 2>/dev/null | sort -un`
	out, err := exec.Command("sh", "-c", script).Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("no processes are found in the cluster's cgroups: %v", err)
	}
	var list []*os.Process
	for field := range strings.FieldsSeq(string(out)) {
		if pid, err := strconv.Atoi(field); err == nil && pid > 0 {
			process, _ := os.FindProcess(pid) // never fails on Unix
			list = append(list, process)
		}
	}
	return list
}
