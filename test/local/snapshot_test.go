package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/pki"
	"toban.dev/internal/protocol"
)

// cutVolume plays the operator and a CSI driver: it waits until a session asks, copies the volume of the instance while
// that works, and says that it is cut.
func (c *cluster) cutVolume(leader, to string, port int, ended <-chan error, log fmt.Stringer) {
	c.Helper()
	roots, err := pki.Pool(c.config.Authority)
	c.must(err)
	operator := protocol.NewClient(pki.ClientTLS(c.operatorCertificate(9), roots, naming.IdentityBackup), port)
	defer operator.Close()
	var progress protocol.BackupProgress
	for end := time.Now().Add(deadline); progress.Session == ""; time.Sleep(50 * time.Millisecond) {
		if len(ended) > 0 || time.Now().After(end) {
			c.Fatalf("no session waits for a snapshot: %+v, %v\n%s", progress, err, log)
		}
		progress, err = operator.Backup(c.Context(), "127.0.0.1")
	}
	if _, err := operator.Cut(c.Context(), "127.0.0.1", protocol.Cut{Session: "another"}); err == nil {
		c.Error("a session takes the word about another for its own")
	}
	c.must(os.MkdirAll(to, 0o700))
	c.own(to)
	copying := exec.CommandContext(c.Context(), "bash", "-c",
		`set -o pipefail; tar -C "$1" --exclude=./lost+found -cf - . | tar -C "$2" -xpf -`, "cut",
		filepath.Join(c.folder, leader, "volume"), to)
	out, err := copying.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: files have changed or gone meanwhile
		c.Fatalf("copy the volume: %v\n%s", err, out)
	}
	_, err = operator.Cut(c.Context(), "127.0.0.1", protocol.Cut{Session: progress.Session})
	c.must(err)
}

// takeSnapshot takes a backup by a snapshot, which is cut into a folder.
func (c *cluster) takeSnapshot(leader, to string) protocol.BackupResult {
	c.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	c.must(err)
	address := listener.Addr().String()
	c.must(listener.Close())
	cmd, file, log := c.command("take", c.taking(), "--"+naming.FlagSnapshot,
		"--listen", address)
	_, text, err := net.SplitHostPort(address)
	c.must(err)
	port, err := strconv.Atoi(text)
	c.must(err)
	c.must(cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	c.cutVolume(leader, to, port, done, log)
	select {
	case err := <-done:
		if err != nil {
			c.Fatalf("take a snapshot: %v\n%s", err, log)
		}
	case <-time.After(2 * deadline):
		c.Fatal("the backup does not end")
	}
	said, err := os.ReadFile(file)
	c.must(err)
	var result protocol.BackupResult
	c.must(json.Unmarshal(said, &result))
	return result
}

// loadKept writes rows from 1000 on into kept until it is stopped, and says how many.
func (c *cluster) loadKept(leader string) (stop func() int) {
	c.Helper()
	conn, err := c.connect(leader)
	c.must(err)
	ctx, cancel := context.WithCancel(c.Context())
	count := make(chan int)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if _, err := conn.Exec(context.Background(), "insert into kept values ($1)", 1000+n); err != nil {
				c.Errorf("write: %v", err)
				break
			}
			n++
		}
		_ = conn.Close(context.Background())
		count <- n
	}()
	return func() int { cancel(); return <-count }
}

// ofSnapshot makes another cluster of a snapshot that was cut into a folder.
func (c *cluster) ofSnapshot(
	from string, b protocol.BackupResult, target protocol.RestoreTarget,
) (*cluster, protocol.RestoreResult) {
	c.Helper()
	other := newCluster(c.T, 2)
	archive := *c.config.Archive
	archive.Path, archive.Owner = "test/other-"+other.folder[len(other.folder)-8:], "uid-9"
	other.config.Archive = &archive
	volume := filepath.Join(other.folder, "db-0", "volume")
	c.must(os.MkdirAll(filepath.Dir(volume), 0o755))
	if out, err := exec.CommandContext(c.Context(), "cp", "-a", from, volume).CombinedOutput(); err != nil {
		c.Fatalf("make a volume of the snapshot: %v\n%s", err, out)
	}
	settings := other.restoring(c, target)
	settings.Snapshot, settings.Backup = b.Snapshot, b.Snapshot.ID
	result, err := other.restore(settings)
	c.must(err)
	other.start(other.names()...)
	other.await("db-0", "primary", primary)
	return other, result
}

// The volume of a primary is copied while clients write, as a snapshot would be. A new cluster is made of it: as it was
// when the session ended, and with the WAL of the archive as it was at a later moment. It is another cluster: it has no
// votes of the former one, and archives to a place of its own.
func TestLongANewClusterIsMadeOfASnapshotOfAVolume(t *testing.T) {
	t.Parallel()
	c, _ := archived(t)
	leader := c.leader()
	c.exec(leader, "create table kept (n int)", "insert into kept values (1)")
	c.awaitArchived(leader)
	stop := c.loadKept(leader)
	cut := filepath.Join(c.folder, "cut")
	b := c.takeSnapshot(leader, cut)
	rows := stop()
	if b.Snapshot == nil || b.Snapshot.Label == "" || b.ID != "" || rows == 0 {
		t.Fatalf("it says %+v after %d rows", b, rows)
	}
	time.Sleep(time.Second) // a snapshot is told by whole seconds
	c.exec(leader, "insert into kept values (2)")
	at := c.clock(leader)
	c.exec(leader, "insert into kept values (3)", "select pg_switch_wal()")
	c.awaitArchived(leader)

	const asked = "select string_agg(n::text, ',' order by n) filter (where n < 1000) || ' ' || " +
		"(count(*) filter (where n >= 1000))::text from kept"
	later, result := c.ofSnapshot(cut, b, protocol.RestoreTarget{Time: at})
	later.awaitQuery("db-0", asked, fmt.Sprintf("1,2 %d", rows))
	if result.Backup != b.Snapshot.ID || result.Kept || result.Commit.After(at) {
		t.Errorf("it says %+v", result)
	}
	later.whole()
	later.exec("db-0", "insert into kept values (100)")
	later.awaitQuery("db-1", asked, fmt.Sprintf("1,2,100 %d", rows))
	later.awaitArchived("db-0")

	clone, _ := c.ofSnapshot(cut, b, protocol.RestoreTarget{Immediate: true})
	got, err := clone.query("db-0", "select (count(*) between 1 and "+strconv.Itoa(rows)+
		" and max(n) - 999 = count(*))::text from kept where n >= 1000")
	if err != nil || got != "true" {
		t.Errorf("the clone has not what was written first: %s, %v", got, err)
	}
	clone.awaitQuery("db-0", "select count(*)::text from kept where n in (2, 3)", "0")
}

// A backup whose Pod is killed before the cut leaves the primary in no backup.
func TestLongABackupBySnapshotThatIsKilledLeavesNoSession(t *testing.T) {
	t.Parallel()
	c, _ := archived(t)
	leader := c.leader()
	c.awaitArchived(leader)
	cmd, _, log := c.command("take", c.taking(), "--"+naming.FlagSnapshot)
	c.must(cmd.Start())
	const sessions = `select count(*)::text from pg_stat_activity where usename = 'toban_backup'
		and query ~ '^select (pg_backup_start\(.*|pg_is_in_recovery\(\))$'`
	c.awaitQuery(leader, sessions, "1")
	c.must(cmd.Process.Kill())
	if err := cmd.Wait(); err == nil {
		t.Errorf("it has ended well:\n%s", log)
	}
	c.awaitQuery(leader, sessions, "0")
}
