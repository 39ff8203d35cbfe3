package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// walData is data, whose WAL is in the data directory or on a volume of its own.
func walData(t *testing.T, linked bool) DataDirectory {
	t.Helper()
	d := DataDirectory{Volume: t.TempDir(), WALVolume: t.TempDir()}
	makeData(t, d, d.Path(), linked)
	return d
}

func makeData(t *testing.T, d DataDirectory, data string, linked bool) (folder string) {
	t.Helper()
	folder = filepath.Join(data, walFolder)
	put(t, filepath.Join(data, "PG_VERSION"))
	if linked {
		folder = d.newWALFolder()
		if err := os.Symlink(folder, filepath.Join(data, walFolder)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(folder, "archive_status", "000000010000000000000001.done"))
	put(t, filepath.Join(folder, "000000010000000000000001"))
	return folder
}

func put(t *testing.T, path string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte("x"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func isThere(t *testing.T, path string) bool {
	t.Helper()
	there, err := exists(path)
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// settle settles the WAL, and says whether it was told before that the instance is another one.
func settle(t *testing.T, d DataDirectory) (lost, told bool) {
	t.Helper()
	lost, err := d.SettleWAL(func() error { told = true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return lost, told
}

func TestWALOfTheDataDirectoryIsMovedOntoItsVolume(t *testing.T) {
	d := walData(t, false)
	for range 2 {
		if lost, told := settle(t, d); lost || told {
			t.Fatal("WAL that is there is taken for lost")
		}
		folder, err := WALFolder(d.Path())
		if err != nil || filepath.Dir(folder) != d.WALVolume {
			t.Fatalf("the WAL is in %q, %v", folder, err)
		}
		for _, name := range []string{"000000010000000000000001", "archive_status/000000010000000000000001.done"} {
			if !isThere(t, filepath.Join(d.Path(), walFolder, name)) {
				t.Errorf("%s is not there", name)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(d.Path(), walFolder+".*")); len(left) > 0 {
			t.Errorf("these are left: %q", left)
		}
	}
}

// It may be cut short anywhere: what is there is the former folder, or the link.
func TestAMoveOfTheWALThatWasCutShort(t *testing.T) {
	for what, cut := range map[string]func(t *testing.T, d DataDirectory, wal string){
		"before the folder is moved": func(t *testing.T, d DataDirectory, _ string) {
			t.Helper()
			folder := d.newWALFolder()
			put(t, filepath.Join(folder, "part"))
			link(t, folder, filepath.Join(d.Path(), walLinkNew))
		},
		"before the link is": func(t *testing.T, d DataDirectory, wal string) {
			t.Helper()
			link(t, d.newWALFolder(), filepath.Join(d.Path(), walLinkNew))
			if err := os.Rename(wal, filepath.Join(d.Path(), walMoved)); err != nil {
				t.Fatal(err)
			}
		},
		"before the folder is removed": func(t *testing.T, d DataDirectory, _ string) {
			t.Helper()
			if err := d.MoveWAL(d.Path()); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(d.Path(), walMoved, "000000010000000000000001"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			d := walData(t, false)
			cut(t, d, filepath.Join(d.Path(), walFolder))
			if lost, _ := settle(t, d); lost {
				t.Error("the WAL is lost")
			}
			if !isThere(t, filepath.Join(d.Path(), walFolder, "000000010000000000000001")) {
				t.Error("a file of the WAL is gone")
			}
			if left, _ := filepath.Glob(filepath.Join(d.Path(), walFolder+".*")); len(left) > 0 {
				t.Errorf("these are left: %q", left)
			}
			if err := d.SweepWAL(); err != nil {
				t.Fatal(err)
			}
			if folders, _ := filepath.Glob(filepath.Join(d.WALVolume, "*")); len(folders) != 1 {
				t.Errorf("on the volume are %q", folders)
			}
		})
	}
}

func link(t *testing.T, to, path string) {
	t.Helper()
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// Whoever has lost one volume has lost both.
func TestDataWithoutItsWAL(t *testing.T) {
	d := walData(t, true)
	d.WALVolume = t.TempDir() // another one, under the same path in a Pod
	folder, err := WALFolder(d.Path())
	if err == nil {
		err = os.RemoveAll(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	if lost, told := settle(t, d); !lost || !told {
		t.Errorf("it is lost %v, and that was told before: %v", lost, told)
	}
	if has, err := d.HasData(); err != nil || has {
		t.Errorf("there is data: %v, %v", has, err)
	}
	if !isThere(t, filepath.Join(d.outgoing(), "PG_VERSION")) {
		t.Error("it is not aside, where somebody could look at it")
	}
	if lost, told := settle(t, d); lost || told {
		t.Error("it is lost once more")
	}
}

func TestDataWhoseWALVolumeThePodLacks(t *testing.T) {
	d := walData(t, true)
	d.WALVolume = ""
	_, err := d.SettleWAL(func() error { t.Error("nobody is another one"); return nil })
	if !errors.Is(err, ErrWALElsewhere) || !isThere(t, filepath.Join(d.Path(), "PG_VERSION")) {
		t.Errorf("the error is %v", err)
	}
}

// Where a new database begins, data without WAL is kept for good: a copy of it may be nowhere.
func TestDataWithoutItsWALOutlivesANewDatabase(t *testing.T) {
	d := walData(t, true)
	if err := d.keepWithoutWAL(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(d.Path(), d.outgoing()); err != nil {
		t.Fatal(err)
	}
	if err := d.keepWithoutWAL(); err != nil || !isThere(t, filepath.Join(d.Volume, withoutWAL, "PG_VERSION")) {
		t.Errorf("it is gone: %v", err)
	}
}

// The hard state is forgotten first: were that to fail, the data stays what it was.
func TestWhatFailsBeforeLosesNothing(t *testing.T) {
	d := walData(t, true)
	folder, err := WALFolder(d.Path())
	if err == nil {
		err = os.RemoveAll(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.SettleWAL(func() error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
	if !isThere(t, filepath.Join(d.Path(), "PG_VERSION")) {
		t.Error("the data is not where it was")
	}
}

func TestWALGoesWithItsData(t *testing.T) {
	d := walData(t, true)
	before := filepath.Join(d.Volume, "before-x", "data")
	former, unneeded := makeData(t, d, before, true), d.newWALFolder()
	put(t, filepath.Join(unneeded, "x"))
	put(t, filepath.Join(d.WALVolume, "lost+found", "x"))
	if err := d.SweepWAL(); err != nil {
		t.Fatal(err)
	}
	if isThere(t, unneeded) || !isThere(t, former) || !isThere(t, filepath.Join(d.WALVolume, "lost+found")) {
		t.Error("the wrong folders were removed")
	}
	if err := RemoveData(before); err != nil {
		t.Fatal(err)
	}
	if isThere(t, former) || isThere(t, before) {
		t.Error("the removed data has left something")
	}
	current, err := WALFolder(d.Path())
	if err != nil || !isThere(t, current) {
		t.Errorf("the WAL of the data is gone: %v", err)
	}
	if err := DropWAL(d.Path()); err != nil || isThere(t, current) {
		t.Errorf("it was not dropped: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(d.Path(), walFolder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link is left: %v", err)
	}
}

// A folder that no Toban has made is not removed with data whose pg_wal somebody has made a link to it.
func TestAForeignFolderStays(t *testing.T) {
	d, foreign := DataDirectory{Volume: t.TempDir()}, t.TempDir()
	put(t, filepath.Join(foreign, "000000010000000000000001"))
	put(t, filepath.Join(d.Path(), "PG_VERSION"))
	link(t, foreign, filepath.Join(d.Path(), walFolder))
	if err := RemoveData(d.Path()); err != nil {
		t.Fatal(err)
	}
	if !isThere(t, filepath.Join(foreign, "000000010000000000000001")) {
		t.Error("it was removed")
	}
}

func TestWALCountsOnTheVolumeThatItIsOn(t *testing.T) {
	for linked, want := range map[bool]int64{false: 16 << 20, true: 0} {
		d := walData(t, linked)
		here, err := WALSize(d.Volume)
		if err != nil {
			t.Fatal(err)
		}
		anywhere, err := LinkedWALSize(d.Volume)
		if err != nil || here != want || anywhere != 16<<20 {
			t.Errorf("with a link %v, the data volume has %d, and there are %d, %v", linked, here, anywhere, err)
		}
		d.WALVolume = "/wal" // new WAL takes the room of that
		if got := d.WALFileSystem(); got != "/wal" {
			t.Errorf("with a WAL volume, the room is looked for in %s", got)
		}
		d.WALVolume = ""
		if got := d.WALFileSystem(); got != d.Volume {
			t.Errorf("without one, the room is looked for in %s", got)
		}
	}
}
