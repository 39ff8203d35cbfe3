package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"toban.dev/test/outside"
	"toban.dev/test/releases"
)

// hand is a server of this machine that is upgraded by hand.
type hand struct {
	folder   string
	from, to string
}

// byHand upgrades a server as somebody does who has prepared all that can be: the new server is there, and checked
// against the old one.
func byHand(ctx context.Context, o options) (all []measured, err error) {
	h := hand{}
	if h.folder, err = os.MkdirTemp("/var/tmp", "toban-bench-upgrade-"); err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(h.folder) }()
	for major, folder := range map[int]*string{o.from: &h.from, o.to: &h.to} {
		if *folder, err = releases.Programs(ctx, major); err != nil {
			return nil, err
		}
	}
	if out, err := exec.CommandContext(ctx, "install", "-d", "-o", "postgres", h.folder, h.work()).
		CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for _, version := range []string{h.from, h.to} {
		if err := h.run(ctx, version, "initdb", "--pgdata", h.data(version), "--data-checksums", "--locale=C.UTF-8",
			"--auth=trust"); err != nil {
			return nil, err
		}
	}
	if err := h.start(ctx, h.from); err != nil {
		return nil, err
	}
	defer func() { _ = h.stop(context.WithoutCancel(ctx), h.from) }()
	defer func() { _ = h.stop(context.WithoutCancel(ctx), h.to) }()
	access := outside.Access{Host: h.folder, Port: port, User: "postgres", Database: "postgres"}
	if err := fill(ctx, access, o.gigabytes); err != nil {
		return nil, err
	}
	if err := h.upgrade(ctx, "--check"); err != nil {
		return nil, err
	}
	return watch(ctx, access, change{do: func(ctx context.Context) error {
		if err := h.stop(ctx, h.from); err != nil {
			return err
		}
		if err := h.upgrade(ctx); err != nil {
			return err
		}
		return h.start(ctx, h.to)
	}})
}

const port = 6543

func (h hand) data(version string) string {
	return filepath.Join(h.folder, "data-"+filepath.Base(filepath.Dir(version)))
}

// work is where pg_upgrade's servers have their sockets, so that the writer does not get at them.
func (h hand) work() string { return filepath.Join(h.folder, "work") }

func (h hand) start(ctx context.Context, version string) error {
	return h.run(ctx, version, "pg_ctl", "start", "--wait", "--pgdata", h.data(version), "--log",
		filepath.Join(h.folder, "log"), "--options",
		fmt.Sprintf("-c listen_addresses= -p %d -k %s", port, h.folder))
}

func (h hand) stop(ctx context.Context, version string) error {
	return h.run(ctx, version, "pg_ctl", "stop", "--wait", "--mode=fast", "--pgdata", h.data(version))
}

func (h hand) upgrade(ctx context.Context, more ...string) error {
	return h.run(ctx, h.to, "pg_upgrade", append(more, "--link", "--jobs", strconv.Itoa(runtime.NumCPU()),
		"--old-bindir", h.from, "--new-bindir", h.to, "--old-datadir", h.data(h.from), "--new-datadir", h.data(h.to),
		"--socketdir", h.work(), "--old-port", strconv.Itoa(port))...)
}

// run runs one of the programs as PostgreSQL's user.
func (h hand) run(ctx context.Context, version, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, "runuser",
		append([]string{"-u", "postgres", "--", filepath.Join(version, program)}, args...)...)
	cmd.Dir = h.folder
	log, err := os.CreateTemp("", "toban-bench-upgrade-") // a server keeps the one of pg_ctl open
	if err != nil {
		return err
	}
	defer func() { _ = log.Close(); _ = os.Remove(log.Name()) }()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w: %s", program, err, text)
	}
	return nil
}
