package major

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"toban.dev/internal/naming"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/wal"
)

// create makes an empty server of the new version, with what must be the same as in the old one. Encodings and locales
// pg_upgrade gives it (check_loc_provider and set_locale_and_encoding, PostgreSQL 16 and later).
func (u *upgrade) create(ctx context.Context) error {
	control, err := u.old.control(ctx)
	if err != nil {
		return err
	}
	args, err := initdbOptions(control, u.New.Major)
	if err != nil {
		return err
	}
	for _, folder := range []string{volume.RestoreFolder(u.Volume), u.work()} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("make room for the new data: %w", err)
		}
	}
	args = append(args, postgres.DataDirectory{WALVolume: u.WALVolume}.WALOptions()...)
	cmd := u.command(ctx, u.New, "initdb", append([]string{"--pgdata", u.new.data}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = io.MultiWriter(u.Log, &said)
	if err := u.run(cmd); err != nil {
		return u.failed(ctx, err, lastLines(said.String(), 8))
	}
	return nil
}

// initdbOptions are those with which a new server matches an old one, of which pg_controldata says this.
func initdbOptions(control map[string]string, major int) ([]string, error) {
	size, err := strconv.ParseUint(control["Bytes per WAL segment"], 10, 64)
	if err != nil || size%(1<<20) != 0 {
		return nil, fmt.Errorf("pg_controldata says %q of the size of WAL segments",
			control["Bytes per WAL segment"])
	}
	if size != wal.SegmentSize {
		return nil, fmt.Errorf("%w: its WAL segments are of %d MiB, and Toban's are of %d", ErrRefused, size>>20,
			wal.SegmentSize>>20)
	}
	args := []string{"--username", naming.RoleSuperuser, "--auth", "reject", "--encoding", "UTF8", "--locale", "C",
		"--no-sync", "--no-instructions", "--wal-segsize", strconv.FormatUint(size>>20, 10)}
	switch checksums := control["Data page checksum version"]; {
	case checksums == "":
		return nil, fmt.Errorf("pg_controldata does not say whether there are checksums")
	case checksums != "0":
		args = append(args, "--data-checksums")
	case major >= 18: // which makes them unless it is told not to
		args = append(args, "--no-data-checksums")
	}
	return args, nil
}

// method is how the files are taken over: as asked for, else as well as the file system can.
func (u *upgrade) method() (string, error) {
	switch u.Method {
	case "":
	case protocol.MethodSwap:
		if u.New.Major < 18 {
			return "", fmt.Errorf("%w: the method %q is of PostgreSQL 18 and later", ErrRefused, u.Method)
		}
		return u.Method, nil
	case protocol.MethodClone, protocol.MethodLink, protocol.MethodCopy:
		return u.Method, nil
	default:
		return "", fmt.Errorf("%w: there is no method %q", ErrRefused, u.Method)
	}
	if runtime.GOOS == "linux" && canClone(u.work()) {
		return protocol.MethodClone, nil
	}
	return protocol.MethodLink, nil
}

// canClone tries whether a file system can have two files share their blocks (ioctl_ficlone(2)).
func canClone(folder string) bool {
	source, err := os.Create(filepath.Join(folder, "clone-source"))
	if err != nil {
		return false
	}
	defer os.Remove(source.Name()) //nolint:errcheck // the folder is removed
	defer source.Close()
	target, err := os.Create(filepath.Join(folder, "clone-target"))
	if err != nil {
		return false
	}
	defer os.Remove(target.Name()) //nolint:errcheck // the folder is removed
	defer target.Close()
	if _, err := source.Write(make([]byte, 8192)); err != nil {
		return false
	}
	return unix.IoctlFileClone(int(target.Fd()), int(source.Fd())) == nil
}
