package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	args := []string{"--pgdata", s.incoming(), "--username", "postgres", "--auth", "reject",
		"--encoding", "UTF8", "--data-checksums", "--no-sync", "--no-instructions"}
	args = append(args, localeOptions(s.Programs.Major)...)
	return s.grow(ctx, func() error { return run(s.Programs.command(ctx, "initdb", args...), progress) })
}

func localeOptions(major int) []string {
	if major >= 17 {
		return []string{"--locale", "C.UTF-8", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"}
	}
	return []string{"--locale", "C.UTF-8"}
}

// Clone copies the data of another server through a replication connection, with
// the WAL that was written meanwhile (pg_basebackup). What was in the data
// directory is replaced only when the copy is whole, unless the volume has no room for both: then it goes first.
func (s *Server) Clone(ctx context.Context, source Upstream, progress io.Writer) error {
	args := []string{"--pgdata", s.incoming(), "--dbname", s.copyingInfo(source, nameClone), "--checkpoint", "fast",
		"--wal-method", "stream", "--no-sync", "--verbose"}
	if source.Slot != "" {
		args = append(args, "--slot", source.Slot)
	}
	return s.grow(ctx, func() error {
		if err := s.makeRoom(); err != nil {
			return err
		}
		return run(s.Programs.command(ctx, "pg_basebackup", args...), progress)
	})
}

// roomFor is how much more than the data that is there a copy may take, in bytes: WAL that is written meanwhile.
const roomFor = 128 << 20

// makeRoom removes the data that is about to be replaced where it and the copy would not both fit.
func (s *Server) makeRoom() error {
	free, err := s.FreeSpace()
	if err != nil {
		return err
	}
	used, err := sizeOf(s.Data())
	if err != nil {
		return err
	}
	if used == 0 || free > used+roomFor {
		return nil
	}
	// By one step, and one that a full volume allows: no half of it is ever taken for data.
	if err := os.Rename(s.Data(), s.incoming()); err != nil {
		return fmt.Errorf("make room for a new copy: %w", err)
	}
	if err := os.RemoveAll(s.incoming()); err != nil {
		return fmt.Errorf("make room for a new copy: %w", err)
	}
	return nil
}

// sizeOf is what the files in a folder have, in bytes; 0 where there is none.
func sizeOf(folder string) (bytes uint64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += uint64(info.Size())
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("see how large %s is: %w", folder, err)
	}
	return bytes, nil
}

// grow lets make fill the folder incoming, writes it to disk and makes it the
// data directory. A half-made one of before is dropped.
func (s *Server) grow(ctx context.Context, fill func() error) error {
	if err := os.RemoveAll(s.incoming()); err != nil {
		return fmt.Errorf("remove a half-made data directory: %w", err)
	}
	if err := fill(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := syncFileSystem(s.incoming()); err != nil {
		return err
	}
	if err := os.RemoveAll(s.Data()); err != nil {
		return fmt.Errorf("remove the replaced data directory: %w", err)
	}
	return s.MoveIn(s.incoming())
}

// MoveIn gives a data directory on the same volume its place, where none may be. It must be on disk.
func (s *Server) MoveIn(data string) error {
	if err := os.Remove(s.Data()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("put the new data directory in its place: %w", err)
	}
	if err := os.Rename(data, s.Data()); err != nil {
		return fmt.Errorf("put the new data directory in its place: %w", err)
	}
	if err := syncFolder(s.Volume); err != nil {
		return err
	}
	return s.unmark()
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

// syncFileSystem writes a whole file system to disk, which is much faster than
// one fsync for each of a thousand small files (syncfs(2)).
func syncFileSystem(path string) error {
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
