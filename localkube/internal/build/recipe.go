// Package build makes the cluster's programs from Go modules and keeps them.
//
// Each component is a module of its own below components/, so that the
// versions one needs don't decide those of another; its go.mod and go.sum say
// what is built, and a Recipe here says how. The result is kept under a hash
// of both, so a second start builds nothing and a changed version builds anew.
package build

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// A Recipe says how one component is built.
type Recipe struct {
	Name     string   // its directory below components/
	Module   string   // the module whose version is the component's
	Packages []string // what is built; "." is the component's own main package
	Tags     string
	CGO      bool
	Links    []string // further names of the program, for one that is many
	// VersionFlags returns the linker's flags that tell the program its version.
	VersionFlags func(version string) []string
}

// The components, in the order of how long they take.
var (
	Kubernetes = Recipe{
		Name:     "kubernetes",
		Module:   "k8s.io/kubernetes",
		Packages: []string{"."},
		Links: []string{"etcd", "kube-apiserver", "kube-controller-manager",
			"kube-proxy", "kube-scheduler", "kubectl", "kubelet"},
		VersionFlags: kubernetesVersion,
	}
	Containerd = Recipe{
		Name:   "containerd",
		Module: "github.com/containerd/containerd/v2",
		Packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
		},
		Tags: "urfave_cli_no_docs no_btrfs no_devmapper no_zfs",
		VersionFlags: func(v string) []string {
			return []string{"-X", "github.com/containerd/containerd/v2/version.Version=" + v}
		},
	}
	CoreDNS = Recipe{
		Name:     "coredns",
		Module:   "github.com/coredns/coredns",
		Packages: []string{"."},
	}
	Runc = Recipe{
		Name:     "runc",
		Module:   "github.com/opencontainers/runc",
		Packages: []string{"github.com/opencontainers/runc"},
		Tags:     "seccomp urfave_cli_no_docs",
		CGO:      true, // nsenter and libseccomp are C
	}
)

// All is every component.
var All = []Recipe{Kubernetes, Containerd, CoreDNS, Runc}

// kubernetesVersion sets what `kubectl version` and the API server report, by
// which clients decide what the cluster can do.
func kubernetesVersion(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, pair := range []string{
			"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor,
			"gitTreeState=clean", "buildDate=1970-01-01T00:00:00Z",
		} {
			flags = append(flags, "-X", pkg+"."+pair)
		}
	}
	return flags
}

// version reads the version of the recipe's module out of a go.mod.
func (r Recipe) version(goMod string) (string, error) {
	line := regexp.MustCompile(`(?m)^(?:require)?\s*` + regexp.QuoteMeta(r.Module) + `\s+(v\S+)`)
	match := line.FindStringSubmatch(goMod)
	if match == nil {
		return "", fmt.Errorf("the go.mod of %s does not require %s", r.Name, r.Module)
	}
	return match[1], nil
}

// arguments are those of `go build`, with output as the directory or file.
func (r Recipe) arguments(version, output string) []string {
	linker := []string{"-s", "-w"}
	if r.VersionFlags != nil {
		linker = append(linker, r.VersionFlags(version)...)
	}
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false",
		"-ldflags", strings.Join(linker, " "), "-o", output}
	if r.Tags != "" {
		args = append(args, "-tags", r.Tags)
	}
	return append(args, r.Packages...)
}

func (r Recipe) environment() []string {
	cgo := "CGO_ENABLED=0"
	if r.CGO {
		cgo = "CGO_ENABLED=1"
	}
	// The user's GOFLAGS and workspace are for the user's own code. GOTOOLCHAIN
	// stays local so that a Go that is too old is named, not downloaded.
	return append(os.Environ(), cgo, "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GO111MODULE=on")
}

// FindComponents looks for the directory of the components: the one named in
// LOCALKUBE_COMPONENTS, or else above this program, or above the working directory.
func FindComponents() (string, error) {
	if dir := os.Getenv("LOCALKUBE_COMPONENTS"); dir != "" {
		return dir, nil
	}
	var starts []string
	if exe, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(exe))
	}
	if cwd, err := os.Getwd(); err == nil {
		starts = append(starts, cwd)
	}
	for _, dir := range starts {
		if found := above(dir); found != "" {
			return found, nil
		}
	}
	return "", fmt.Errorf("localkube/components is neither above this program nor above the working directory: " +
		"run localkube inside the repository, or set LOCALKUBE_COMPONENTS to that directory")
}

func above(dir string) string {
	for {
		for _, candidate := range []string{"localkube/components", "components"} {
			found := filepath.Join(dir, candidate)
			if _, err := os.Stat(filepath.Join(found, Kubernetes.Name, "go.mod")); err == nil {
				return found
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
