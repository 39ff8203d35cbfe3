package postgres

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// WAL on a volume of its own (docs/sampledb.md): pg_wal of each data directory is a link to a folder there, which no
// other data directory has. So the link goes with its data directory when that is renamed.
const (
	walFolder = "pg_wal"
	// walPrefix begins the names of the folders on a WAL volume.
	walPrefix = "wal-"
	// withoutWAL is where data that has lost its WAL is kept if a new database begins on its volume.
	withoutWAL = "without-wal"
	// Names of pg_wal beside it, while it is moved.
	walLinkNew, walMoved = walFolder + ".link", walFolder + ".moved"
)

// ErrWALElsewhere says that the WAL of a data directory is on a volume that is not here.
var ErrWALElsewhere = errors.New("the WAL of this data is on a volume of its own, which this Pod does not have: " +
	"nothing is started without it. Make the SampleDB anew with the storage.wal that it had")

// newWALFolder is the name of a folder for the WAL of new data, "" where it is in the data directory.
func (d DataDirectory) newWALFolder() string {
	if d.WALVolume == "" {
		return ""
	}
	name := make([]byte, 6)
	_, _ = rand.Read(name) // it never fails (package crypto/rand)
	return filepath.Join(d.WALVolume, walPrefix+hex.EncodeToString(name))
}

// WALOptions have initdb and pg_basebackup put the WAL of new data where it belongs.
func (d DataDirectory) WALOptions() []string {
	if folder := d.newWALFolder(); folder != "" {
		return []string{"--waldir", folder}
	}
	return nil
}

// WALFolder is the folder that pg_wal of a data directory is a link to, "" where it is none.
func WALFolder(data string) (string, error) {
	target, err := os.Readlink(filepath.Join(data, walFolder))
	var wrong *fs.PathError
	switch {
	case err == nil:
		return target, nil
	case errors.Is(err, fs.ErrNotExist), errors.As(err, &wrong) && isNoLink(wrong.Path):
		return "", nil
	}
	return "", fmt.Errorf("see where the WAL is: %w", err)
}

func isNoLink(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode()&fs.ModeSymlink == 0
}

// RemoveData removes a data directory, its WAL first: whoever finds a part of it finds the data, and removes it again.
func RemoveData(data string) error {
	err := DropWAL(data)
	if err == nil {
		err = os.RemoveAll(data)
	}
	if err != nil {
		return fmt.Errorf("remove a data directory: %w", err)
	}
	return nil
}

// DropWAL removes pg_wal of a data directory where it is a link, with what it leads to.
func DropWAL(data string) error {
	if err := healWAL(data); err != nil {
		return err
	}
	folder, err := WALFolder(data)
	if err != nil || folder == "" {
		return err
	}
	if strings.HasPrefix(filepath.Base(folder), walPrefix) { // else it is none of ours
		err = os.RemoveAll(folder)
	}
	if err == nil {
		err = os.Remove(filepath.Join(data, walFolder))
	}
	if err != nil {
		return fmt.Errorf("remove the WAL: %w", err)
	}
	return nil
}

// WALFileSystem is where the room is that new WAL takes.
func (d DataDirectory) WALFileSystem() string { return cmp.Or(d.WALVolume, d.Volume) }

// SyncData writes a data directory to disk, with the file systems that it and its WAL are on.
func SyncData(data string) error {
	if err := SyncFileSystem(data); err != nil {
		return err
	}
	if folder, err := WALFolder(data); err != nil || folder == "" {
		return err
	}
	return SyncFileSystem(filepath.Join(data, walFolder))
}

// SettleWAL sees to it that pg_wal of the data directory is where it belongs. One that lies in the data directory is
// moved onto the WAL volume. It says that the WAL is lost where the link leads nowhere. Then the data is lost, too: it
// is set aside until there is other data. before is called before that. The server must not run.
func (d DataDirectory) SettleWAL(before func() error) (lost bool, err error) {
	if err := healWAL(d.Path()); err != nil {
		return false, err
	}
	folder, err := WALFolder(d.Path())
	switch {
	case err != nil:
		return false, err
	case folder != "" && d.WALVolume == "":
		return false, ErrWALElsewhere
	case folder == "":
		if there, err := exists(string(d.WAL())); err != nil || !there {
			return false, err
		}
		return false, d.MoveWAL(d.Path())
	}
	if there, err := exists(folder); err != nil || there {
		return false, err
	}
	if err := before(); err != nil {
		return true, err
	}
	err = RemoveData(d.outgoing())
	if err == nil {
		err = os.Rename(d.Path(), d.outgoing())
	}
	if err != nil {
		return true, fmt.Errorf("set data aside that has lost its WAL: %w", err)
	}
	return true, syncFolder(d.Volume)
}

// keepWithoutWAL keeps data that was set aside for good where a new database begins: nobody has a copy of it.
func (d DataDirectory) keepWithoutWAL() error {
	there, err := exists(filepath.Join(d.outgoing(), "PG_VERSION"))
	if err == nil && there {
		err = os.Rename(d.outgoing(), filepath.Join(d.Volume, withoutWAL))
	}
	if err != nil {
		return fmt.Errorf("keep data that has lost its WAL (remove the folder %s if nobody needs it): %w",
			withoutWAL, err)
	}
	return nil
}

// MoveWAL moves pg_wal of a data directory onto the WAL volume, where there is one and it is not there yet. It may be
// interrupted anywhere and be called again. Nobody may use the data.
func (d DataDirectory) MoveWAL(data string) error {
	if err := healWAL(data); err != nil {
		return err
	}
	if linked, err := WALFolder(data); err != nil || linked != "" || d.WALVolume == "" {
		return err
	}
	folder := d.newWALFolder()
	if err := moveWAL(data, folder); err != nil {
		return fmt.Errorf("move the WAL onto its volume (spec.storage.wal.size): %w", err)
	}
	return nil
}

func moveWAL(data, folder string) error {
	// The link is there before the folder: one to which none leads is removed.
	if err := os.Symlink(folder, filepath.Join(data, walLinkNew)); err != nil {
		return err
	}
	wal := filepath.Join(data, walFolder)
	err := copyFolder(wal, folder)
	if err == nil {
		err = SyncFileSystem(folder)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	if err := os.Rename(wal, filepath.Join(data, walMoved)); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(data, walLinkNew), wal); err != nil {
		return err
	}
	if err := syncFolder(data); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(data, walMoved))
}

// healWAL takes back a move of pg_wal that was cut short, or ends it.
func healWAL(data string) error {
	wal, moved := filepath.Join(data, walFolder), filepath.Join(data, walMoved)
	_, none := os.Lstat(wal)
	_, gone := os.Lstat(moved)
	var err error
	switch {
	case gone == nil && errors.Is(none, fs.ErrNotExist):
		err = os.Rename(moved, wal)
	case gone == nil:
		err = os.RemoveAll(moved)
	}
	if link := filepath.Join(data, walLinkNew); err == nil {
		var folder string
		if folder, err = os.Readlink(link); err == nil {
			err = errors.Join(os.RemoveAll(folder), os.Remove(link))
		} else if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("see where the WAL is: %w", err)
	}
	return nil
}

func copyFolder(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	for _, entry := range entries {
		if err != nil {
			return err
		}
		source, target := filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())
		if entry.IsDir() {
			err = copyFolder(source, target)
		} else {
			err = copyFile(source, target)
		}
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// SweepWAL removes the folders of the WAL volume to which no data directory on the volume is linked: of data that is
// gone, mostly with a volume that is lost. Nobody else may make or remove data there meanwhile.
func (d DataDirectory) SweepWAL() error {
	if d.WALVolume == "" {
		return nil
	}
	needed := map[string]bool{}
	for _, at := range []string{"*", "*/*"} { // such as data, restore/data, before-ID/data
		links, err := filepath.Glob(filepath.Join(d.Volume, at, walFolder+"*"))
		if err != nil {
			return fmt.Errorf("see which WAL is needed: %w", err)
		}
		for _, link := range links {
			if folder, err := os.Readlink(link); err == nil {
				needed[folder] = true
			} else if !isNoLink(link) {
				return fmt.Errorf("see which WAL is needed: %w", err)
			}
		}
	}
	folders, err := filepath.Glob(filepath.Join(d.WALVolume, walPrefix+"*"))
	for _, folder := range folders {
		if err == nil && !needed[folder] {
			err = os.RemoveAll(folder)
		}
	}
	if err != nil {
		return fmt.Errorf("remove WAL of data that is gone: %w", err)
	}
	return nil
}
