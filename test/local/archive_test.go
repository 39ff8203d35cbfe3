package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/test/outside"
)

// archived is a cluster of three whose WAL goes to a folder.
func archived(t *testing.T) (*cluster, string) {
	t.Helper()
	c := formed(t, 3)
	return c, c.archiveHere()
}

// archiveHere has a cluster archive to a folder of its own, and returns its archive in it.
func (c *cluster) archiveHere() string {
	c.Helper()
	folder := filepath.Join(c.folder, "bucket")
	c.must(os.Mkdir(folder, 0o755))
	c.own(folder)
	c.config.Archive = &protocol.Archive{Bucket: bucket.Config{Folder: folder}, Path: "test/db", Owner: "uid-1"}
	c.sync()
	return filepath.Join(folder, "test/db")
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// awaitArchived waits until all WAL that a leader has on disk now is in the archive.
func (c *cluster) awaitArchived(leader string) wal.LSN {
	c.Helper()
	for {
		text, err := c.query(leader, "select pg_current_wal_flush_lsn()::text")
		c.must(err)
		lsn, err := wal.ParseLSN(text)
		c.must(err)
		if lsn%wal.PageSize != 0 || lsn%wal.SegmentSize == 0 { // a segment was switched
			return c.awaitArchivedTo(leader, text)
		}
		// The WAL writer writes whole pages, and so may have come to the middle of a record: a commit goes to its end.
		c.exec(leader, "select txid_current()")
	}
}

// awaitArchivedTo waits until the WAL up to an LSN is in the archive.
func (c *cluster) awaitArchivedTo(leader, text string) wal.LSN {
	c.Helper()
	want, err := wal.ParseLSN(text)
	c.must(err)
	c.await(leader, "archived up to "+text, func(s protocol.Status) bool {
		if s.Archive == nil {
			return false
		}
		have, err := wal.ParseLSN(s.Archive.LSN)
		return err == nil && have >= want
	})
	return want
}

// covered is up to where the archive goes along its newest term history, from where it begins.
func (c *cluster) covered(folder string) (from, to wal.LSN, gap *format.Gap) {
	c.Helper()
	return c.coveredIn(bucket.OpenFolder(folder))
}

// coveredIn is that of an archive in any bucket.
func (c *cluster) coveredIn(archive bucket.Bucket) (from, to wal.LSN, gap *format.Gap) {
	c.Helper()
	catalogue, err := book.Read(context.Background(), archive)
	c.must(err)
	from = wal.LSN(1 << 63)
	for _, term := range catalogue.Terms {
		for _, w := range term.WAL {
			from = min(from, w.Segment.Start())
		}
	}
	to, gap = catalogue.Covered(catalogue.NewestTermHistory(), from)
	return from, to, gap
}

// The leader is lost while it archives; the next one goes on where the archive ends.
func TestFailoverLeavesNoGapInTheArchive(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	w := c.write3()
	for range 2 {
		w.goesOn()
		old := c.leader()
		c.awaitArchived(old)
		c.exec(old, "select pg_switch_wal()")
		c.kill(old, syscall.SIGKILL)
		c.leader(old)
		w.goesOn()
		c.startOne(old)
		c.whole()
		c.sync()
	}
	w.check(outside.Lost)
	want := c.awaitArchived(c.leader())
	if from, to, gap := c.covered(folder); gap != nil || to < want {
		t.Errorf("the archive goes from %s to %s, expected to %s; gap %v", from, to, want, gap)
	}
}

// A term may begin just where a segment does: when the leader before ended right after it had begun a new one.
func TestATermThatBeginsWithASegmentIsArchived(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	for range 3 {
		old := c.leader()
		c.settle()
		c.awaitArchived(old)
		c.exec(old, "insert into t values (1)", "select pg_switch_wal()")
		c.kill(old, syscall.SIGKILL)
		leader := c.leader(old)
		c.exec(leader, "insert into t values (2)")
		c.awaitArchived(leader)
		c.startOne(old)
		c.whole()
		c.sync()
	}
	s, err := c.status(c.leader())
	c.must(err)
	t.Log(s.Election.TermHistory)
	want := c.awaitArchived(c.leader())
	if from, to, gap := c.covered(folder); gap != nil || to < want {
		t.Errorf("the archive goes from %s to %s, expected to %s; gap %v", from, to, want, gap)
	}
}

// Who takes over has the WAL that the one before could not archive, and keeps it.
func TestFailoverWhileTheBucketIsAway(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	old := c.leader()
	c.awaitArchived(old)
	for _, name := range c.names() {
		c.awaitQuery(name, "select count(*)::text from pg_replication_slots where slot_name = 'toban_archive'", "1")
	}
	back := c.storeAway(folder)
	for range 4 {
		c.exec(old, "insert into t values (2)", "select pg_switch_wal()")
	}
	c.kill(old, syscall.SIGKILL)
	leader := c.leader(old)
	c.exec(leader, "checkpoint", "insert into t values (3)", "select pg_switch_wal()", "checkpoint")
	back()
	want := c.awaitArchived(leader)
	if from, to, gap := c.covered(folder); gap != nil || to < want {
		t.Errorf("the archive goes from %s to %s, expected to %s; gap %v", from, to, want, gap)
	}
}

// What can't be archived waits in the slot of every instance, and is archived when the bucket is back.
func TestBucketAwayForAWhile(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	leader := c.leader()
	c.awaitArchived(leader)
	back := c.storeAway(folder)
	c.exec(leader, "select pg_switch_wal()", "insert into t values (2)", "checkpoint", "select pg_switch_wal()",
		"insert into t values (3)", "checkpoint")
	c.await(leader, "not archiving", func(s protocol.Status) bool {
		return s.Archive != nil && s.Archive.Reason == protocol.ArchiveFailing && s.Archive.LagBytes > 0
	})
	back()
	want := c.awaitArchived(leader)
	if from, to, gap := c.covered(folder); gap != nil || to < want {
		t.Errorf("the archive goes from %s to %s, expected to %s; gap %v", from, to, want, gap)
	}
	c.await(leader, "archiving", func(s protocol.Status) bool { return s.Archive.Reason == "" && s.Archive.Gap == "" })
}

// Without its slot, the WAL is gone before the bucket is back: that is said.
func TestWALThatIsGoneBeforeItWasArchivedIsAGap(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	c.config.Parameters["max_slot_wal_keep_size"], c.config.Parameters["wal_keep_size"] = "16MB", "16MB"
	c.sync()
	leader := c.leader()
	c.awaitArchived(leader)
	back := c.storeAway(folder)
	for range 6 {
		c.exec(leader, "insert into t values (2)", "select pg_switch_wal()")
	}
	c.exec(leader, "checkpoint", "checkpoint")
	back()
	c.awaitArchived(leader)
	c.await(leader, "with a gap", func(s protocol.Status) bool { return s.Archive.Gap != "" && s.Archive.Reason == "" })
	if _, _, gap := c.covered(folder); gap == nil {
		t.Error("the archive itself has no gap")
	}
}

func TestArchiveOfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	leader := c.leader()
	c.awaitArchived(leader)
	before, err := os.ReadDir(filepath.Join(folder, "wal"))
	c.must(err)
	c.config.Archive.Owner = "uid-2"
	c.sync()
	c.await(leader, "refused",
		func(s protocol.Status) bool { return s.Archive != nil && s.Archive.Reason == protocol.ArchiveTaken })
	after, err := os.ReadDir(filepath.Join(folder, "wal"))
	if err != nil || len(after) != len(before) {
		t.Errorf("%d folders, before %d, %v", len(after), len(before), err)
	}
}

// The slots let WAL go as the archive goes on, on standbys too.
func TestArchivedWALIsLetGo(t *testing.T) {
	t.Parallel()
	c, _ := archived(t)
	leader := c.leader()
	for range 3 {
		c.exec(leader, "insert into t values (2)", "select pg_switch_wal()")
	}
	want := c.awaitArchived(leader) / wal.SegmentSize * wal.SegmentSize
	for _, name := range c.names() {
		c.awaitQuery(name, "select (restart_lsn >= '"+want.String()+"')::text from pg_replication_slots where "+
			"slot_name = 'toban_archive'", "true")
	}
	c.config.Archive = nil
	c.sync()
	for _, name := range c.names() {
		c.awaitQuery(name, "select count(*)::text from pg_replication_slots where slot_name = 'toban_archive'", "0")
	}
}

// What a server writes by itself is not worth a request to the store; the next commit is.
func TestIdleWALWaitsForACommit(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	c.config.Archive.MaxLag = time.Second
	c.config.Parameters["autovacuum"] = "off" // it commits
	c.sync()
	// That takes half a minute, in which a busy machine may cost a leader its majority: then it is the next one's.
	var leader string
	var from wal.LSN
	for tries := 1; from == 0; tries++ {
		if tries > 3 {
			t.Fatal("no leader leads for long enough")
		}
		leader = c.whole()
		from = c.staysIdle(leader, folder)
	}
	// A standby that stops within idle WAL has a backup that ends there.
	for _, name := range c.names() {
		if name != leader {
			c.exec(name, "checkpoint")
		}
	}
	began := time.Now()
	taken := c.takeBackup()
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("a backup has waited %s for idle WAL", took)
	}
	if stop, err := wal.ParseLSN(taken.StopLSN); err != nil || stop <= from || taken.Instance == leader {
		t.Errorf("the backup of %s ends at %s, where all is archived: %s, %v", taken.Instance, taken.StopLSN, from, err)
	}
	c.exec(leader, "insert into t values (2)")
	want := c.awaitArchived(leader)
	if from, to, gap := c.covered(folder); gap != nil || to < want {
		t.Errorf("the archive goes from %s to %s, expected to %s; gap %v", from, to, want, gap)
	}
}

// staysIdle sees that what a leader writes without commits waits for no archive, and returns how far the WAL was when
// that began; 0 where it does not lead for so long.
func (c *cluster) staysIdle(leader, folder string) wal.LSN {
	c.Helper()
	term := c.await(leader, "primary", primary).Term
	c.exec(leader, "insert into t values (1)")
	c.awaitArchived(leader)
	begin, err := c.flushed(leader)
	if err != nil {
		return 0
	}
	// await waits until something is so of the WAL, or the leader is lost.
	await := func(what string, so func(s protocol.Status, at wal.LSN) bool) (kept bool) {
		c.await(leader, what, func(s protocol.Status) bool {
			at, err := c.flushed(leader)
			kept = err == nil && s.Role == protocol.RolePrimary && s.Term == term
			return !kept || so(s, at)
		})
		return kept
	}
	// The end of what was committed may be followed by one more part, which has a message without its commit.
	var from wal.LSN
	if !await("idle", func(s protocol.Status, at wal.LSN) bool {
		from = at
		return at > begin && s.Archive.LagBytes > 0
	}) {
		return 0
	}
	before := c.walObjects(folder)
	const proofs = 3 // each of some 100 bytes, ten seconds apart
	var behind []protocol.ArchiveStatus
	if !await("idle for long", func(s protocol.Status, at wal.LSN) bool {
		if s.Archive.LagSeconds > 0 || s.Archive.Reason != "" {
			behind = append(behind, *s.Archive)
		}
		return at > from+proofs*100
	}) {
		return 0
	}
	for _, archive := range behind {
		c.Errorf("idle WAL counts as behind: %+v", archive)
	}
	if now := c.walObjects(folder); len(now) > len(before) {
		c.Errorf("idle WAL made %d objects of %d: %q", len(now), len(before), now)
	}
	return from
}

// walObjects are the names of all WAL in an archive.
func (c *cluster) walObjects(folder string) (names []string) {
	c.Helper()
	for o, err := range bucket.OpenFolder(folder).List(context.Background(), format.FolderWAL) {
		c.must(err)
		names = append(names, o.Name)
	}
	return names
}

func (c *cluster) flushed(leader string) (wal.LSN, error) {
	text, err := c.query(leader, "select pg_current_wal_flush_lsn()::text")
	if err != nil {
		return 0, err
	}
	return wal.ParseLSN(text)
}

// All instances are told to stop, as when their namespace is deleted: every commit is in the archive then, however long
// one may wait there, and in whatever order they are told.
func TestThatAllStopLeavesNoCommitOutOfTheArchive(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]struct {
		instances []int
		stop      func(c *cluster, leader string)
	}{
		"at once": {[]int{1, 2, 3}, func(c *cluster, _ string) { c.stopAll() }},
		// Two have no majority without the primary, and no witness here: nobody would take over from it.
		"the primary, and the others during the take-over": {[]int{3}, func(c *cluster, leader string) {
			ended := c.takesOver(leader, func(before, s protocol.Status) bool { return s.Term > before.Term })
			c.stopAll()
			<-ended
		}},
		"the primary, and the others when one of them leads": {[]int{3}, func(c *cluster, leader string) {
			ended := c.takesOver(leader, func(before, s protocol.Status) bool {
				return leading(s) && s.Term > before.Term
			})
			c.stopAll()
			<-ended
		}},
		"the standbys, and then the primary": {[]int{2}, func(c *cluster, leader string) {
			for _, name := range c.names() {
				if name != leader {
					c.kill(name, syscall.SIGTERM)
				}
			}
			c.stopAll()
		}},
	} {
		for _, instances := range order.instances {
			t.Run(fmt.Sprintf("%d, %s", instances, name), func(t *testing.T) {
				stopsWithAllArchived(t, instances, order.stop)
			})
		}
	}
}

// stopsWithAllArchived has instances stop, and fails the test unless a commit that waits for the archive is there then.
func stopsWithAllArchived(t *testing.T, instances int, stop func(c *cluster, leader string)) {
	t.Helper()
	c := formed(t, instances)
	folder := c.archiveHere()
	c.config.Archive.MaxLag = time.Hour
	c.sync()
	leader := c.leader()
	switched, err := c.query(leader, "select pg_switch_wal()::text")
	c.must(err)
	c.awaitArchivedTo(leader, switched)
	c.await(leader, "primary", primary) // again, where a busy machine has ended its server meanwhile
	c.exec(leader, "insert into t values (1)")
	want, err := c.flushed(leader)
	c.must(err)
	if _, to, _ := c.covered(folder); to >= want {
		t.Fatalf("the commit did not wait: the archive goes to %s, the commit to %s", to, want)
	}
	stop(c, leader)
	if from, to, gap := c.covered(folder); gap != nil || to < want {
		t.Errorf("the archive goes from %s to %s, the last commit to %s; gap %v", from, to, want, gap)
	}
}

// takesOver tells the leader to stop, and waits until another is as it should be. The channel is closed when the leader
// has ended.
func (c *cluster) takesOver(leader string, as func(before, s protocol.Status) bool) <-chan struct{} {
	c.Helper()
	before, err := c.status(leader)
	c.must(err)
	others := slices.DeleteFunc(c.names(), func(name string) bool { return name == leader })
	cmd, ended := c.agents[leader], make(chan struct{})
	delete(c.agents, leader)
	c.must(cmd.Process.Signal(syscall.SIGTERM))
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	for began := time.Now(); time.Since(began) < deadline; {
		for _, name := range others {
			if s, err := c.status(name); err == nil && as(before, s) {
				return ended
			}
		}
		select {
		case <-ended:
			c.Fatalf("%s has ended, and nobody has taken over", leader)
		case <-time.After(2 * time.Millisecond):
		}
	}
	c.Fatalf("nobody takes over from %s", leader)
	return nil
}
