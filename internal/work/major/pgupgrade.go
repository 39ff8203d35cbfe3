package major

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
)

// methodOptions are pg_upgrade's; copying is what it does without one.
var methodOptions = map[string]string{
	protocol.MethodClone: "--clone", protocol.MethodLink: "--link", protocol.MethodSwap: "--swap",
}

// check chooses the method. pg_upgrade begins with all of its checks, and changes nothing before they are through; only
// where it destroys the old data they are made once more beforehand, so that what fails then has not begun.
func (u *upgrade) check(ctx context.Context) error {
	var err error
	if u.result.Method, err = u.method(); err != nil {
		return err
	}
	if u.result.Method != protocol.MethodSwap {
		return nil
	}
	return u.pgUpgrade(ctx, "--check")
}

// upgrade runs pg_upgrade.
func (u *upgrade) upgrade(ctx context.Context) error {
	if err := u.noteState(u.result.Method); err != nil {
		return err
	}
	if err := u.pgUpgrade(ctx, "--no-sync"); err != nil {
		return err
	}
	u.result.Statistics = u.New.Major >= statisticsSince
	return u.readExtensions()
}

// pgUpgrade runs the program.
func (u *upgrade) pgUpgrade(ctx context.Context, more ...string) error {
	former, err := u.configure(u.old, "")
	if err != nil {
		return err
	}
	next, err := u.configure(u.new, "")
	if err != nil {
		return err
	}
	programs, err := u.dumps()
	if err != nil {
		return err
	}
	args := slices.Concat([]string{
		"--old-bindir", u.Former.Dir, "--new-bindir", programs, "--old-datadir", u.old.data,
		"--new-datadir", u.new.data,
		"--socketdir", u.Run, "--username", naming.RoleSuperuser, "--jobs", strconv.Itoa(u.Jobs),
		"--old-options", former, "--new-options", next,
	}, more)
	if option := methodOptions[u.result.Method]; option != "" {
		args = append(args, option)
	}
	cmd := u.command(ctx, u.New, "pg_upgrade", args...)
	cmd.Dir = u.work()
	var said bytes.Buffer
	status := &statusWriter{begins: u.doing}
	cmd.Stdout = io.MultiWriter(u.Log, &said, status)
	cmd.Stderr = cmd.Stdout
	if err := u.run(cmd); err != nil {
		return u.failed(ctx, err, words(said.String(), filepath.Join(u.new.data, "pg_upgrade_output.d"),
			volume.RestoreFolder(u.Volume), u.Volume))
	}
	return nil
}

// doing tells what pg_upgrade is doing.
func (u *upgrade) doing(what string) {
	u.Step("pg_upgrade: " + what)
	u.At("pg_upgrade: " + what)
}

// failed is the error of a program that has ended by itself, and would again; one that was ended, or for which ctx has,
// may be run again.
func (u *upgrade) failed(ctx context.Context, err error, words string) error {
	var exit *exec.ExitError
	if ctx.Err() != nil || !errors.As(err, &exit) || !exit.Exited() {
		return errors.Join(ctx.Err(), err)
	}
	return fmt.Errorf("%w: %s", ErrRefused, words)
}
