package tablerestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"toban.dev/internal/archive/restore"
	"toban.dev/internal/pause"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
	"toban.dev/internal/volume"
	"toban.dev/internal/work/pod"
)

// fileBringing is the file beside the socket of a copy that the process locks for which the copy runs.
const fileBringing = "bringing"

// copyPoll is how often it is looked whether the copy is still needed.
const copyPoll = 500 * time.Millisecond

// CopyOptions are all that is needed: no authority, no key and no store.
type CopyOptions struct {
	// Settings is the file with the settings, Volume the scratch volume with what was restored.
	Settings, Volume string
	// Run is a folder in memory for the socket, which the container that brings sees too.
	Run string
}

// Copy runs the server of a restored copy, until the container beside it that brings things from there has ended.
func Copy(ctx context.Context, o CopyOptions) error {
	var settings protocol.BringSettings
	if err := pod.ReadSettings(o.Settings, &settings); err != nil {
		return err
	}
	programs, err := postgres.FindPrograms(ctx, settings.Major)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waited := make(chan error, 1)
	go func() {
		defer cancel()
		waited <- awaitBrought(ctx, filepath.Join(o.Run, fileBringing))
	}()
	err = restore.RunCopy(ctx, restore.CopyOptions{
		Folder: volume.RestoreFolder(o.Volume), Run: o.Run, Programs: programs, Parameters: settings.Parameters,
		Log: os.Stderr,
	})
	cancel()
	return errors.Join(err, <-waited)
}

// holdCopy keeps the copy running whose socket is in a folder, until the file is closed, which the end of the process
// does too. The file gets its name when it is locked: who sees it and can lock it knows that nothing is brought any
// more.
func holdCopy(folder string) (*os.File, error) {
	path := filepath.Join(folder, fileBringing)
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("hold the restored copy: %w", err)
	}
	if err := errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_EX), os.Rename(path+".new", path)); err != nil {
		return nil, errors.Join(fmt.Errorf("hold the restored copy: %w", err), file.Close())
	}
	return file, nil
}

// awaitBrought waits until the process that has locked a file has ended.
func awaitBrought(ctx context.Context, path string) error {
	for {
		ended, err := lockable(path)
		if err != nil || ended || !pause.For(ctx, copyPoll) {
			return err
		}
	}
}

// lockable says that a file is there, and that nobody locks it.
func lockable(path string) (bool, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("see whether the copy is still needed: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
