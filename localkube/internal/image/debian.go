package image

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"toban.dev/localkube/internal/machine"
)

const (
	// stopGrace is how long a cancelled bootstrap may take to clean up.
	stopGrace = 10 * time.Second
	// keyring has the keys of Debian's archives.
	keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
)

// standsInLabel says on the image itself that it is not what its name says.
const standsInLabel = "dev.toban.localkube.stands-in-for"

// Needs is what making an image of Debian's packages takes.
var Needs = []machine.Need{
	{Program: "mmdebstrap", Package: "mmdebstrap"},
	{Program: keyring, Package: "debian-archive-keyring"},
}

//go:embed debian/*.sh
var debianScripts embed.FS

// debian is an image made of Debian's packages. All of it decides the content,
// so all of it is hashed for the cache; where they come from is not part of it.
type debian struct {
	// Name is the image's on the nodes, Short its name for users and files.
	Name, Short string
	// Suite is the Debian release that has the packages.
	Suite    string
	Packages []string
	// WithoutSecurity leaves out what is in the security archive alone.
	WithoutSecurity bool `json:",omitempty"`
	// Versions are those of Packages that Debian offers: see newest.
	Versions map[string]string
	// Users runs when only the essential packages are there, Layout when all are.
	Users, Layout string
	Config        v1.Config
}

// debian makes an image with mmdebstrap: the essential packages and those
// asked for, in one go of apt, which verifies every one of them with the
// archive's keys. Against debootstrap it can leave files out while it installs,
// knows every suite, and works in a mount namespace of its own: no mount is
// left behind however it ends.
func (b Builder) debian(ctx context.Context, d debian) (string, error) {
	d.Config.Labels = map[string]string{standsInLabel: d.Name}
	return b.newest(ctx, d, b.ask, func(work, out string) error {
		rootfs := filepath.Join(work, "rootfs.tar")
		if err := b.bootstrap(ctx, d, work, rootfs); err != nil {
			return err
		}
		return pack(work, out, d.Name, rootfs, d.Config)
	})
}

func (b Builder) bootstrap(ctx context.Context, d debian, work, rootfs string) error {
	if err := machine.Install(ctx, Needs, b.progress()); err != nil {
		return err
	}
	users, layout := filepath.Join(work, "users.sh"), filepath.Join(work, "layout.sh")
	if err := writeScript(users, d.Users); err != nil {
		return err
	}
	if err := writeScript(layout, d.Layout); err != nil {
		return err
	}
	tmp := filepath.Join(work, "tmp")
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	cmd, err := d.mmdebstrap(ctx, tmp, rootfs, "--skip=cleanup/run", // /run/postgresql is to stay
		"--essential-hook="+users, "--customize-hook="+layout)
	if err != nil {
		return err
	}
	_, err = run(cmd)
	return err
}

// mmdebstrap is the command that makes the root file system, in tmp, with further options.
func (d debian) mmdebstrap(ctx context.Context, tmp, rootfs string, options ...string) (*exec.Cmd, error) {
	pin, err := d.pin(tmp)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "mmdebstrap", slices.Concat([]string{
		"--mode=root", "--variant=essential", "--format=tar",
		// A mirror that stands still carries a testing release past its date. Its
		// signatures are verified all the same; debootstrap never looks at the date.
		"--aptopt=Acquire::Check-Valid-Until \"false\"",
		"--aptopt=APT::Install-Recommends \"false\"",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*",
		"--dpkgopt=path-exclude=/usr/share/locale/*/LC_MESSAGES/*.mo",
		"--include=" + strings.Join(d.Packages, ","),
	}, pin, options, []string{d.Suite, rootfs}, d.sources(ctx))...)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "SOURCE_DATE_EPOCH=0", "LC_ALL=C.UTF-8")
	return cmd, nil
}

// run runs a long command and returns its output, which an error has too.
func run(cmd *exec.Cmd) (string, error) {
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it cleans up on SIGTERM, not on SIGKILL
	cmd.WaitDelay = stopGrace
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd.Path, err, output.String())
	}
	return output.String(), nil
}

// script puts the parts of a hook together. Each sees the root file system as
// $root, and the variables set before it.
func script(variables string, names ...string) string {
	text := "set -eu\nroot=$1\n" + variables + "\n"
	for _, name := range names {
		part, err := debianScripts.ReadFile("debian/" + name + ".sh")
		if err != nil {
			panic(err) // embedded: a wrong name fails every test
		}
		text += string(part)
	}
	return text
}

func writeScript(path, text string) error {
	if err := os.WriteFile(path, //nolint:gosec // a program is executable
		[]byte("#!/bin/sh\n"+text), 0o755); err != nil {
		return fmt.Errorf("write the hook: %w", err)
	}
	return nil
}
