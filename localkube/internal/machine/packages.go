package machine

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A Need is a program or file, and the Debian package that has it.
type Need struct {
	Program string // looked up in PATH, or a path
	Package string
}

// ToRun is what a cluster needs to run, but for its volumes: see volume.Needs.
var ToRun = []Need{
	{"ip", "iproute2"},
	{"nft", "nftables"},
	{"iptables", "iptables"},
	{"conntrack", "conntrack"},
	{"nsenter", "util-linux"},
	{"mount", "mount"},
	{"/usr/lib/cni/ptp", "containernetworking-plugins"},
}

// ToBuildRunc is what runc, which is partly C, needs to be built.
var ToBuildRunc = []Need{
	{"gcc", "gcc"},
	{"/usr/include/stdlib.h", "libc6-dev"}, // which gcc only recommends
	{"pkg-config", "pkg-config"},
	{"/usr/include/seccomp.h", "libseccomp-dev"},
}

// Packages returns the packages that meet the needs, each once, in order.
func Packages(needs []Need) []string {
	var packages []string
	for _, need := range needs {
		packages = append(packages, need.Package)
	}
	slices.Sort(packages)
	return slices.Compact(packages)
}

// Missing returns the packages of those needs that are not met.
func Missing(needs []Need) []string {
	return Packages(slices.DeleteFunc(slices.Clone(needs), func(need Need) bool { return there(need.Program) }))
}

func there(program string) bool {
	if strings.HasPrefix(program, "/") {
		_, err := os.Stat(program)
		return err == nil
	}
	_, err := exec.LookPath(program)
	return err == nil
}

// debianPath is the PATH for apt: packages being installed call their own programs.
const debianPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Install meets the needs with apt, or says what to install where there is none.
func Install(ctx context.Context, needs []Need, progress io.Writer) error {
	if err := InstallPackages(ctx, Missing(needs), progress); err != nil {
		return err
	}
	if still := Missing(needs); len(still) > 0 {
		return fmt.Errorf("programs of %s are still not found in PATH", strings.Join(still, " "))
	}
	return nil
}

// InstallPackages installs packages with apt, whether or not this PATH leads to them.
func InstallPackages(ctx context.Context, packages []string, progress io.Writer) error {
	if len(packages) == 0 {
		return nil
	}
	command := "apt-get update && apt-get install -y --no-install-recommends " + strings.Join(packages, " ")
	if !there("apt-get") {
		return fmt.Errorf("this machine lacks programs; on Debian `%s` would install them: install what they "+
			"are called here", command)
	}
	fmt.Fprintf(progress, "installing what is missing: %s\n", strings.Join(packages, " "))
	apt := exec.CommandContext(ctx, "sh", "-c", command)
	apt.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "PATH="+debianPath)
	if out, err := apt.CombinedOutput(); err != nil {
		return fmt.Errorf("install what is missing: `%s`: %w\n%s", command, err, out)
	}
	return nil
}
