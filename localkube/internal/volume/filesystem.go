package volume

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"toban.dev/localkube/internal/machine"
)

// filesystem is a kind of file system that volumes can hold.
type filesystem struct {
	name string
	// minimum is the smallest disk it can be made on.
	minimum int64
	// mkfs makes it in the file that is appended.
	mkfs    []string
	options string
	// grow fills its device while it is mounted.
	grow func(device, point string) []string
	// debian is the package with its programs.
	debian string
}

var (
	// ext4 is what most clouds give. Lazy: the tables are zero in a new sparse
	// file anyway, and noinit_itable keeps the kernel from filling it with
	// zeroes. No blocks are kept back for root: the whole size is the Pod's.
	ext4 = filesystem{
		name: "ext4", minimum: 16 << 20, debian: "e2fsprogs",
		mkfs: []string{"mkfs.ext4", "-q", "-F", "-m", "0",
			"-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard"},
		options: "discard,noinit_itable",
		grow:    func(device, _ string) []string { return []string{"resize2fs", device} },
	}
	// xfs is for machines where root lacks CAP_SYS_RESOURCE, without which the
	// kernel does not let a mounted ext4 grow.
	xfs = filesystem{
		name: "xfs", minimum: 304 << 20, debian: "xfsprogs",
		mkfs:    []string{"mkfs.xfs", "-q", "-f", "-K"},
		options: "discard",
		grow:    func(_, point string) []string { return []string{"xfs_growfs", "-d", point} },
	}
)

// preferred is the file system of new volumes, and whether they can grow while in
// use: root without CAP_SYS_RESOURCE (privileged is false) can grow xfs only.
func preferred(privileged, kernelHasXFS bool) (fs filesystem, grows bool) {
	switch {
	case privileged:
		return ext4, true
	case kernelHasXFS:
		return xfs, true
	default:
		return ext4, false
	}
}

// here is what is preferred on this machine.
func here() (fs filesystem, grows bool) {
	return preferred(holds(unix.CAP_SYS_RESOURCE), kernelKnows(xfs.name))
}

// choose picks the file system of new volumes, and says what will not work.
func choose() (fs filesystem, warning string) {
	const cannot = "volumes cannot grow while in use: root lacks CAP_SYS_RESOURCE for ext4"
	fs, grows := here()
	switch {
	case !grows:
		return fs, cannot + ", and the kernel has no xfs"
	case !installed(fs.mkfs[0]):
		return ext4, cannot + "; apt-get install " + fs.debian
	default:
		return fs, ""
	}
}

// Needs is what the provisioner takes on this machine: the programs of the file
// system that new volumes get here, and those of ext4, which older ones may have.
func Needs() []machine.Need {
	fs, _ := here()
	return []machine.Need{ext4.need(), fs.need()}
}

func (fs filesystem) need() machine.Need {
	return machine.Need{Program: fs.mkfs[0], Package: fs.debian}
}

// holds tells whether this process has a capability.
func holds(capability int) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[capability/32].Effective&(1<<(capability%32)) != 0
}

func kernelKnows(name string) bool {
	text, err := os.ReadFile("/proc/filesystems")
	return err == nil && strings.Contains(string(text), "\t"+name+"\n")
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// kindOf tells which file system a disk holds: those made before the machine
// changed stay what they are.
func kindOf(disk string) (filesystem, error) {
	file, err := os.Open(disk)
	if err != nil {
		return filesystem{}, fmt.Errorf("open the disk: %w", err)
	}
	defer file.Close()
	magic := make([]byte, 4)
	if _, err := file.ReadAt(magic, 0); err != nil {
		return filesystem{}, fmt.Errorf("read the disk: %w", err)
	}
	if string(magic) == "XFSB" {
		return xfs, nil
	}
	return ext4, nil
}

// command runs one of a file system's programs.
func (fs filesystem) command(ctx context.Context, args []string) error {
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s (apt-get install %s): %w: %s", args[0], fs.debian, err, out)
	}
	return nil
}
