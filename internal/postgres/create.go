package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Initialise makes a new, empty database system with the superuser postgres, who
// has no password. Text is UTF-8 and sorted by code point, with PostgreSQL's own
// locale provider where there is one (17 and later): its order does not change
// with the image's C library, so no index breaks when the image is changed.
func (s *Server) Initialise(ctx context.Context, progress io.Writer) error {
	// The method is of no effect: the agent writes a pg_hba.conf of its own.
	args := []string{"--pgdata", s.Data.incoming(), "--username", "postgres", "--auth", "reject",
		"--encoding", "UTF8", "--data-checksums", "--no-sync", "--no-instructions"}
	args = append(append(args, localeOptions(s.Programs.Major)...), s.Data.WALOptions()...)
	if err := s.Data.keepWithoutWAL(); err != nil {
		return err
	}
	return s.Data.grow(ctx, func() error { return run(s.Programs.command(ctx, "initdb", args...), progress) })
}

func localeOptions(major int) []string {
	if major >= 17 {
		return []string{"--locale", "C.UTF-8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"}
	}
	return []string{"--locale", "C.UTF-8"}
}

// grow lets make fill the folder incoming, writes it to disk and makes it the
// data directory. A half-made one of before is dropped.
func (d DataDirectory) grow(ctx context.Context, fill func() error) error {
	if err := d.EndOrphans(ctx); err != nil { // nothing may work on data that goes
		return err
	}
	for _, left := range []string{d.incoming(), d.outgoing()} {
		if err := RemoveData(left); err != nil {
			return err
		}
	}
	if err := d.SweepWAL(); err != nil {
		return err
	}
	if err := fill(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := SyncData(d.incoming()); err != nil {
		return err
	}
	if err := RemoveData(d.Path()); err != nil {
		return err
	}
	return d.MoveIn(d.incoming())
}

// MoveIn gives a data directory on the same volume its place, where none may be. It must be on disk.
func (d DataDirectory) MoveIn(data string) error {
	if err := os.Remove(d.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("put the new data directory in its place: %w", err)
	}
	if err := os.Rename(data, d.Path()); err != nil {
		return fmt.Errorf("put the new data directory in its place: %w", err)
	}
	if err := syncFolder(d.Volume); err != nil {
		return err
	}
	return d.unmarkAll()
}

// run runs a program to its end. Its messages go to progress, and the last of
// them into the error.
func run(cmd *exec.Cmd, progress io.Writer) error {
	var messages bytes.Buffer
	cmd.Stdout = progress
	cmd.Stderr = io.MultiWriter(progress, &messages)
	if err := Children.Run(cmd); err != nil {
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, lastLines(messages.String(), 3))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// SyncFileSystem writes a whole file system to disk, which is much faster than
// one fsync for each of a thousand small files (syncfs(2)).
func SyncFileSystem(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open %s to sync it: %w", path, err)
	}
	defer folder.Close()
	if err := unix.Syncfs(int(folder.Fd())); err != nil {
		return fmt.Errorf("write the file system of %s to disk: %w", path, err)
	}
	return nil
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open %s to sync it: %w", path, err)
	}
	defer folder.Close()
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("write %s to disk: %w", path, err)
	}
	return nil
}

// WriteFile replaces a file so that after a crash there is the old or the new
// one, never a part.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return syncFolder(filepath.Dir(path))
}
