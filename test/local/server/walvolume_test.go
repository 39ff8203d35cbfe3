package server_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"toban.dev/internal/postgres"
)

// linked checks that the WAL of a server is in a folder of its WAL volume.
func (n *node) linked() {
	n.Helper()
	folder, err := postgres.WALFolder(n.Data.Path())
	if err != nil || filepath.Dir(folder) != n.Data.WALVolume {
		n.Errorf("the WAL of %s is in %q, %v", n.name, folder, err)
	}
}

// With pg_wal a link to another volume, a server is made, copied, killed and rewound as without.
func TestServersWithWALOnAVolumeOfItsOwn(t *testing.T) {
	all := nodes(t, 2)
	for _, n := range all {
		n.Data.WALVolume = filepath.Join(n.Data.Volume, "..", n.name+"-wal")
		must(t, os.MkdirAll(n.Data.WALVolume, 0o700))
	}
	primary, standby := all[0], all[1]
	primary.found()
	standby.clone(primary)
	standby.follow(primary, 1)
	standby.streams()
	primary.linked()
	standby.linked()
	part(primary, standby)
	standby.checkpoint()
	must(t, syscall.Kill(primary.postmaster(), syscall.SIGKILL))
	must(t, primary.process.Fence(within(t, deadline)))
	must(t, primary.rewind(standby))
	primary.linked()
	primary.rejoined(standby)
	primary.stop(postgres.StopFast)
	primary.clone(standby)
	primary.linked()
	if folders, _ := filepath.Glob(filepath.Join(primary.Data.WALVolume, "*")); len(folders) != 1 {
		t.Errorf("after another copy, the WAL volume has %q", folders)
	}
	primary.process = nil
	primary.follow(standby, 2)
	primary.streams()
}
