package backup_test

import (
	"context"
	"testing"
	"time"
)

// A primary that is given more connections writes that into its WAL, and a server that has fewer does not replay on.
func TestARestoreOverMoreConnections(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	a.take()
	source.do("insert into t values (2)")
	for row, more := range []map[string]string{
		{"max_connections": "210"}, {"max_connections": "230", "max_worker_processes": "24"}, {"max_connections": "50"},
	} {
		source.stop()
		source.configure(more)
		source.begin()
		source.ready()
		source.do("insert into t select max(i) + 1 from t")
		if row < 2 {
			source.do("select pg_switch_wal()")
		}
	}
	a.archiveWAL()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	n := newNodeOf(t, source.Programs)
	if err := a.restoreInto(ctx, n, a, nil); err != nil {
		t.Fatalf("%v\n%s", err, n.log)
	}
	n.configure(nil)
	n.begin()
	n.ready()
	if rows := n.rows(); rows != "1,2,3,4,5" {
		t.Errorf("it has rows %s", rows)
	}
}
