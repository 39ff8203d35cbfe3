package render

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/localkube/internal/pki"
	"toban.dev/localkube/internal/plan"
)

var update = flag.Bool("update", false, "write what is rendered to testdata")

var sample = Programs{
	Kubernetes: "/c/kubernetes-1", Containerd: "/c/containerd-1", Runc: "/c/runc-1", CoreDNS: "/c/coredns-1",
}

func TestRenderedIsAsInTestdata(t *testing.T) {
	nodes, err := plan.Nodes(2)
	if err != nil {
		t.Fatal(err)
	}
	store := pki.Store{Dir: plan.PKI}
	got := map[string]string{}
	for _, file := range append(ControlPlane(nodes), Node(nodes[1], sample, store, true)...) {
		got[filepath.Base(file.Path)] = file.Text
	}
	for _, object := range Objects() {
		got["objects.txt"] += object.Path + "\n" + object.YAML + "\n"
	}
	for _, command := range [][]string{
		EtcdCommand(sample, store, false), APIServerCommand(sample, store), ControllerManagerCommand(sample, store),
		SchedulerCommand(sample), CoreDNSCommand(sample), ProvisionerCommand("/bin/localkube"),
		ContainerdCommand(sample, nodes[1]), KubeletCommand(sample, nodes[1]), KubeProxyCommand(sample, nodes[1]),
	} {
		got["commands.txt"] += strings.Join(command, " \\\n  ") + "\n\n"
	}
	for name, text := range got {
		compare(t, filepath.Join("testdata", name), text)
	}
}

func compare(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != got {
		t.Errorf("%s differs (%v); if that is meant, run `go test ./internal/render -update`. Now it is:\n%s",
			golden, err, got)
	}
}

func TestEtcdSyncsWhenAskedTo(t *testing.T) {
	for fsync, unsafe := range map[bool]bool{true: false, false: true} {
		command := strings.Join(EtcdCommand(sample, pki.Store{}, fsync), " ")
		if strings.Contains(command, "--unsafe-no-fsync") != unsafe {
			t.Errorf("with fsync %v: %s", fsync, command)
		}
	}
}
