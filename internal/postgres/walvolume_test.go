package postgres

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// walServer is a server with data, whose WAL is in the data directory or on a volume of its own.
func walServer(t *testing.T, linked bool) *Server {
	t.Helper()
	s := &Server{Volume: t.TempDir(), WALVolume: t.TempDir()}
	makeData(t, s, s.Data(), linked)
	return s
}

func makeData(t *testing.T, s *Server, data string, linked bool) (folder string) {
	t.Helper()
	folder = filepath.Join(data, walFolder)
	put(t, filepath.Join(data, "PG_VERSION"))
	if linked {
		folder = s.newWALFolder()
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
func settle(t *testing.T, s *Server) (lost, told bool) {
	t.Helper()
	lost, err := s.SettleWAL(func() error { told = true; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return lost, told
}

func TestWALOfTheDataDirectoryIsMovedOntoItsVolume(t *testing.T) {
	s := walServer(t, false)
	for range 2 {
		if lost, told := settle(t, s); lost || told {
			t.Fatal("WAL that is there is taken for lost")
		}
		folder, err := WALFolder(s.Data())
		if err != nil || filepath.Dir(folder) != s.WALVolume {
			t.Fatalf("the WAL is in %q, %v", folder, err)
		}
		for _, name := range []string{"000000010000000000000001", "archive_status/000000010000000000000001.done"} {
			if !isThere(t, filepath.Join(s.Data(), walFolder, name)) {
				t.Errorf("%s is not there", name)
			}
		}
		if left, _ := filepath.Glob(filepath.Join(s.Data(), walFolder+".*")); len(left) > 0 {
			t.Errorf("these are left: %q", left)
		}
	}
}

// It may be cut short anywhere: what is there is the former folder, or the link.
func TestAMoveOfTheWALThatWasCutShort(t *testing.T) {
	for what, cut := range map[string]func(t *testing.T, s *Server, wal string){
		"before the folder is moved": func(t *testing.T, s *Server, _ string) {
			t.Helper()
			folder := s.newWALFolder()
			put(t, filepath.Join(folder, "part"))
			link(t, folder, filepath.Join(s.Data(), walLinkNew))
		},
		"before the link is": func(t *testing.T, s *Server, wal string) {
			t.Helper()
			link(t, s.newWALFolder(), filepath.Join(s.Data(), walLinkNew))
			if err := os.Rename(wal, filepath.Join(s.Data(), walMoved)); err != nil {
				t.Fatal(err)
			}
		},
		"before the folder is removed": func(t *testing.T, s *Server, _ string) {
			t.Helper()
			if err := s.MoveWAL(s.Data()); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(s.Data(), walMoved, "000000010000000000000001"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := walServer(t, false)
			cut(t, s, filepath.Join(s.Data(), walFolder))
			if lost, _ := settle(t, s); lost {
				t.Error("the WAL is lost")
			}
			if !isThere(t, filepath.Join(s.Data(), walFolder, "000000010000000000000001")) {
				t.Error("a file of the WAL is gone")
			}
			if left, _ := filepath.Glob(filepath.Join(s.Data(), walFolder+".*")); len(left) > 0 {
				t.Errorf("these are left: %q", left)
			}
			if err := s.SweepWAL(); err != nil {
				t.Fatal(err)
			}
			if folders, _ := filepath.Glob(filepath.Join(s.WALVolume, "*")); len(folders) != 1 {
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
	s := walServer(t, true)
	s.WALVolume = t.TempDir() // another one, under the same path in a Pod
	folder, err := WALFolder(s.Data())
	if err == nil {
		err = os.RemoveAll(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	if lost, told := settle(t, s); !lost || !told {
		t.Errorf("it is lost %v, and that was told before: %v", lost, told)
	}
	if has, err := s.HasData(); err != nil || has {
		t.Errorf("there is data: %v, %v", has, err)
	}
	if !isThere(t, filepath.Join(s.outgoing(), "PG_VERSION")) {
		t.Error("it is not aside, where somebody could look at it")
	}
	if lost, told := settle(t, s); lost || told {
		t.Error("it is lost once more")
	}
}

func TestDataWhoseWALVolumeThePodLacks(t *testing.T) {
	s := walServer(t, true)
	s.WALVolume = ""
	_, err := s.SettleWAL(func() error { t.Error("nobody is another one"); return nil })
	if !errors.Is(err, ErrWALElsewhere) || !isThere(t, filepath.Join(s.Data(), "PG_VERSION")) {
		t.Errorf("the error is %v", err)
	}
}

// Where a new database begins, data without WAL is kept for good: a copy of it may be nowhere.
func TestDataWithoutItsWALOutlivesANewDatabase(t *testing.T) {
	s := walServer(t, true)
	if err := s.keepWithoutWAL(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.Data(), s.outgoing()); err != nil {
		t.Fatal(err)
	}
	if err := s.keepWithoutWAL(); err != nil || !isThere(t, filepath.Join(s.Volume, withoutWAL, "PG_VERSION")) {
		t.Errorf("it is gone: %v", err)
	}
}

// The hard state is forgotten first: were that to fail, the data stays what it was.
func TestWhatFailsBeforeLosesNothing(t *testing.T) {
	s := walServer(t, true)
	folder, err := WALFolder(s.Data())
	if err == nil {
		err = os.RemoveAll(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SettleWAL(func() error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("the error is %v", err)
	}
	if !isThere(t, filepath.Join(s.Data(), "PG_VERSION")) {
		t.Error("the data is not where it was")
	}
}

func TestWALGoesWithItsData(t *testing.T) {
	s := walServer(t, true)
	before := filepath.Join(s.Volume, "before-x", "data")
	former, unneeded := makeData(t, s, before, true), s.newWALFolder()
	put(t, filepath.Join(unneeded, "x"))
	put(t, filepath.Join(s.WALVolume, "lost+found", "x"))
	if err := s.SweepWAL(); err != nil {
		t.Fatal(err)
	}
	if isThere(t, unneeded) || !isThere(t, former) || !isThere(t, filepath.Join(s.WALVolume, "lost+found")) {
		t.Error("the wrong folders were removed")
	}
	if err := RemoveData(before); err != nil {
		t.Fatal(err)
	}
	if isThere(t, former) || isThere(t, before) {
		t.Error("the removed data has left something")
	}
	current, err := WALFolder(s.Data())
	if err != nil || !isThere(t, current) {
		t.Errorf("the WAL of the data is gone: %v", err)
	}
	if err := DropWAL(s.Data()); err != nil || isThere(t, current) {
		t.Errorf("it was not dropped: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(s.Data(), walFolder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link is left: %v", err)
	}
}

// A folder that no Toban has made is not removed with data whose pg_wal somebody has made a link to it.
func TestAForeignFolderStays(t *testing.T) {
	s, foreign := &Server{Volume: t.TempDir()}, t.TempDir()
	put(t, filepath.Join(foreign, "000000010000000000000001"))
	put(t, filepath.Join(s.Data(), "PG_VERSION"))
	link(t, foreign, filepath.Join(s.Data(), walFolder))
	if err := RemoveData(s.Data()); err != nil {
		t.Fatal(err)
	}
	if !isThere(t, filepath.Join(foreign, "000000010000000000000001")) {
		t.Error("it was removed")
	}
}

func TestWALCountsOnTheVolumeThatItIsOn(t *testing.T) {
	for linked, want := range map[bool]int64{false: 16 << 20, true: 0} {
		s := walServer(t, linked)
		here, err := WALSize(s.Volume)
		if err != nil {
			t.Fatal(err)
		}
		anywhere, err := LinkedWALSize(s.Volume)
		if err != nil || here != want || anywhere != 16<<20 {
			t.Errorf("with a link %v, the data volume has %d, and there are %d, %v", linked, here, anywhere, err)
		}
		s.WALVolume = "/wal" // new WAL takes the room of that
		if got := s.WALFileSystem(); got != "/wal" {
			t.Errorf("with a WAL volume, the room is looked for in %s", got)
		}
		s.WALVolume = ""
		if got := s.WALFileSystem(); got != s.Volume {
			t.Errorf("without one, the room is looked for in %s", got)
		}
	}
}
