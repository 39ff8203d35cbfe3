package local

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/protocol"
	"toban.dev/test/stores/servers"
)

// inS3 is a cluster of three whose archive is in an S3 server behind a proxy that behaves badly on request. The archive
// is what the server itself has.
func inS3(t *testing.T, parameters map[string]string) (c *cluster, faulty *servers.Faulty, archive bucket.Bucket) {
	t.Helper()
	server := servers.StartS3(t)
	faulty = servers.StartFaulty(t, server.URL)
	c = newCluster(t, 3)
	for name, value := range parameters {
		c.config.Parameters[name] = value
	}
	c.form()
	config := server.At(faulty.URL)
	config.Credentials = c.volume("credentials")
	entries, err := os.ReadDir(server.Config.Credentials)
	c.must(err)
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(server.Config.Credentials, entry.Name()))
		c.must(err)
		file := filepath.Join(config.Credentials, entry.Name())
		c.must(os.WriteFile(file, text, 0o600))
		c.own(file)
	}
	c.config.Archive = &protocol.Archive{Bucket: config, Path: "test/db", Owner: "uid-1"}
	c.sync()
	whole, err := bucket.Open(t.Context(), server.Config)
	c.must(err)
	return c, faulty, bucket.Sub(whole, "test/db")
}

// noise is SQL that writes rows of 8 KiB that can't be compressed. It makes them of few and long hashes: short ones
// took most of the time of the tests that fill something. What string_agg is given has to name a column of its own
// query (i), or else it is an aggregate of the outer one.
const noise = `insert into load select g,
	(select string_agg(sha512(float8send(random() * g + i)), ''::bytea) from generate_series(1, 128) i)
	from generate_series(1, %d) g`

// fillTable puts rows of noise into the files of all instances. No vacuum writes them once more into the
// WAL, at a time of its own.
func (c *cluster) fillTable(rows int) {
	c.Helper()
	c.exec(c.leader(), "create table load (n int, noise bytea) with (autovacuum_enabled = off)",
		"alter table load alter noise set storage external", fmt.Sprintf(noise, rows))
	c.settle()
}

// load writes WAL that can't be compressed, about rate bytes a second, until it is stopped, and returns how
// many rows there are then.
func (c *cluster) load(rate int) (stop func() int) {
	c.Helper()
	leader := c.leader()
	c.exec(leader, "create table if not exists load (n int, noise bytea)",
		"alter table load alter noise set storage external")
	ctx, cancel := context.WithCancel(context.Background())
	var wait sync.WaitGroup
	c.Cleanup(func() { cancel(); wait.Wait() })
	const every = 100 * time.Millisecond
	rows := max(1, rate/8192/int(time.Second/every))
	written := 0
	wait.Go(func() {
		conn, err := c.connect(leader)
		if err != nil {
			c.Errorf("load: %v", err)
			return
		}
		defer conn.Close(context.Background())
		for ticker := time.NewTicker(every); ctx.Err() == nil; <-ticker.C {
			begin := time.Now()
			if _, err := conn.Exec(context.Background(), fmt.Sprintf(noise, rows)); err != nil {
				c.Errorf("load: %v", err)
				return
			}
			if took := time.Since(begin); took > outage/2 { // one that waited for the store would take all of it
				c.Errorf("a commit has taken %s", took)
			}
			written += rows
		}
	})
	return func() int { cancel(); wait.Wait(); return written }
}

// walBytes is the size of an instance's pg_wal.
func (c *cluster) walBytes(name string) (size int64) {
	c.Helper()
	_ = filepath.WalkDir(filepath.Join(c.folder, name, "volume/data/pg_wal"),
		func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return nil // files come and go
			}
			if info, err := entry.Info(); err == nil && !info.IsDir() {
				size += info.Size()
			}
			return nil
		})
	return size
}

// watched is what was seen of an archive for a while.
type watched struct {
	lagSeconds float64
	lagBytes   uint64
	walBytes   int64
	reasons    map[string]bool
}

// watch looks at the archive and at pg_wal of a leader until it is told to end.
func (c *cluster) watch(leader string) (end func() watched) {
	ctx, cancel := context.WithCancel(context.Background())
	seen := watched{reasons: map[string]bool{}}
	var wait sync.WaitGroup
	wait.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
			seen.walBytes = max(seen.walBytes, c.walBytes(leader))
			s, err := c.status(leader)
			if err != nil || s.Archive == nil {
				continue
			}
			seen.lagSeconds, seen.lagBytes = max(seen.lagSeconds,
				s.Archive.LagSeconds), max(seen.lagBytes, s.Archive.LagBytes)
			seen.reasons[s.Archive.Reason] = true
		}
	})
	c.Cleanup(func() { cancel(); wait.Wait() })
	return func() watched { cancel(); wait.Wait(); return seen }
}

// A bucket that takes two megabytes a second: slow is not away, a backup takes its time and is complete, and the WAL of
// a light load stays near behind. (TestSlowIsNotAway of test/stores touches the same.)
func TestLongASlowBucket(t *testing.T) {
	t.Parallel()
	c, faulty, archive := inS3(t, nil)
	leader := c.leader()
	c.fillTable(2500) // 20 MB
	c.awaitArchived(leader)
	faulty.Bandwidth(2 << 20)
	stop, end := c.load(100<<10), c.watch(leader)
	begin := time.Now()
	taken := c.takeBackup()
	took := time.Since(begin)
	seen := end()
	t.Logf("a backup with %d bytes to store took %s; the archive was at most %.1f s and %d bytes behind",
		taken.Stored, took, seen.lagSeconds, seen.lagBytes)
	if slowest := time.Duration(taken.Stored/(2<<20)) * time.Second; took < slowest || slowest < 8*time.Second {
		t.Errorf("%d bytes in %s: nothing was slow", taken.Stored, took)
	}
	if seen.lagSeconds == 0 || seen.lagSeconds > 20 || len(seen.reasons) != 1 || !seen.reasons[""] {
		t.Errorf("the archive was seen as %+v", seen)
	}
	stop()
	faulty.Bandwidth(0)
	c.checkArchived(leader, archive)
}

// checkArchived waits until all is archived, and looks for gaps.
func (c *cluster) checkArchived(leader string, archive bucket.Bucket) {
	c.Helper()
	want := c.awaitArchived(leader)
	if from, to, gap := c.coveredIn(archive); gap != nil || to < want {
		c.Errorf("the archive goes from %s to %s, expected to %s; gap %v", from, to, want, gap)
	}
	c.await(leader, "archiving", func(s protocol.Status) bool {
		return s.Archive.Reason == "" && s.Archive.Gap == "" && s.Archive.LagBytes == 0
	})
}

// outage is how long a bucket is away: longer than all patience with it, and than a server would wait
// that is not to be noticed.
const outage = 60 * time.Second

// smallWAL has pg_wal be small but for what the slots keep, which is up to bound MB.
func smallWAL(bound int) map[string]string {
	return map[string]string{
		"min_wal_size": "32MB", "max_wal_size": "64MB", "wal_keep_size": "16MB",
		"max_slot_wal_keep_size": fmt.Sprintf("%dMB", bound),
	}
}

// A bucket is away for a minute, while the database writes on. What can't be archived waits in the slot, and all
// of it is there afterwards.
func TestLongABucketAwayUnderLoad(t *testing.T) {
	t.Parallel()
	c, faulty, archive := inS3(t, smallWAL(512))
	leader := c.leader()
	c.awaitArchived(leader)
	first := c.takeBackup()
	stop, end := c.load(1<<20), c.watch(leader)
	faulty.Away()
	began := time.Now()
	bad := c.await(leader, "not archiving",
		func(s protocol.Status) bool { return s.Archive.Reason == protocol.ArchiveFailing })
	t.Logf("%.0f s after the bucket went it says: %s", time.Since(began).Seconds(), bad.Archive.Error)
	if result, err := c.tryBackup(c.taking()); err == nil || !strings.Contains(result.Error, "connection refused") {
		t.Errorf("a backup into a bucket that is away: %v, %+v", err, result)
	}
	for time.Since(began) < outage { // without the slot the WAL would go now
		c.exec(leader, "select pg_switch_wal()", "checkpoint")
		time.Sleep(5 * time.Second)
	}
	before := c.archiveStatus(leader)
	if err := faulty.Back(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	rows := stop()
	c.checkArchived(leader, archive)
	seen := end()
	t.Logf("%d bytes behind after %s; archived %.1f s after the bucket was back; pg_wal had %d MiB at most",
		before.LagBytes, outage, time.Since(back).Seconds(), seen.walBytes>>20)
	if seen.lagSeconds < outage.Seconds()*3/4 || before.Since.IsZero() || before.Since.After(began.Add(outage/2)) {
		t.Errorf("it was seen as %+v, and before the end as %+v", seen, before)
	}
	if seen.walBytes < int64(before.LagBytes) || seen.walBytes > (512+64+128)<<20 {
		t.Errorf("pg_wal had %d MiB", seen.walBytes>>20)
	}
	for _, name := range c.names() {
		c.awaitQuery(name, "select (pg_wal_lsn_diff(pg_last_wal_replay_lsn(), restart_lsn) < 33554432 or not "+
			"pg_is_in_recovery())::text from pg_replication_slots where slot_name = 'toban_archive'", "true")
	}
	// Nothing between the backup from before the outage and now is missing.
	other := newCluster(t, 1)
	settings := other.restoring(c, protocol.RestoreTarget{})
	settings.Backup = first.ID
	_, err := other.restore(settings)
	c.must(err)
	other.start("db-0")
	other.await("db-0", "primary", primary)
	other.awaitQuery("db-0", "select count(*)::text from load", fmt.Sprint(rows))
}

// archiveStatus is what a leader says of its archive.
func (c *cluster) archiveStatus(leader string) protocol.ArchiveStatus {
	c.Helper()
	return *c.await(leader, "with an archive", func(s protocol.Status) bool { return s.Archive != nil }).Archive
}

// More WAL than the slot may keep: the volume does not fill up. The gap is said, and a backup begins anew.
func TestABucketAwayForLongerThanTheSlotKeeps(t *testing.T) {
	t.Parallel()
	const bound = 96
	c, faulty, _ := inS3(t, smallWAL(bound))
	leader := c.leader()
	c.awaitArchived(leader)
	c.takeBackup()
	end := c.watch(leader)
	faulty.Away()
	c.exec(leader, "create table load (n int, noise bytea)", "alter table load alter noise set storage external")
	for range 24 { // 400 MB of WAL at least, by segments left early
		c.exec(leader, fmt.Sprintf(noise, 100), "select pg_switch_wal()")
		c.exec(leader, "checkpoint")
	}
	c.must(faulty.Back())
	c.await(leader, "with a gap", func(s protocol.Status) bool { return s.Archive.Gap != "" && s.Archive.Reason == "" })
	seen := end()
	t.Logf("pg_wal had %d MiB at most, of %d that the slot keeps", seen.walBytes>>20, bound)
	if seen.walBytes > (bound+64+64)<<20 {
		t.Errorf("pg_wal had %d MiB", seen.walBytes>>20)
	}
	c.awaitArchived(leader)
	taken := c.takeBackup()
	other := newCluster(t, 1)
	settings := other.restoring(c, protocol.RestoreTarget{})
	_, err := other.restore(settings)
	c.must(err)
	other.start("db-0")
	other.await("db-0", "primary", primary)
	other.awaitQuery("db-0", "select count(*)::text from load", "2400")
	settings.Target.Time = taken.Started.Add(-time.Minute)
	third := newCluster(t, 1)
	settings.Instance = "db-0"
	if result, err := third.restore(settings); err == nil {
		t.Errorf("what lies in the gap is restored: %+v", result)
	}
}

// A bucket refuses writes for a while after the first piece of a backup. The server's connection stands still
// meanwhile, and the same backup goes on: no piece is written twice.
func TestLongABucketThatRefusesWritesHalfWayThroughABackup(t *testing.T) {
	t.Parallel()
	c, faulty, archive := inS3(t, nil)
	leader := c.leader()
	c.fillTable(16000) // 128 MB
	c.awaitArchived(leader)
	var mutex sync.Mutex
	written := map[string]int{}
	faulty.Before(func(r *http.Request) {
		_, name, ok := strings.Cut(r.URL.Path, "/base/")
		if !ok || r.Method != http.MethodPut {
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		if written[name]++; len(written) == 1 {
			faulty.RefuseWritesAfter(0)
			// Longer than the tries of the bucket's own.
			time.AfterFunc(25*time.Second, func() { faulty.RefuseWritesAfter(-1) })
		}
	})
	taken := c.takeBackup()
	if !strings.Contains(c.said, "waits for the store") {
		t.Errorf("it did not wait:\n%s", c.said)
	}
	c.checkArchived(leader, archive)
	catalogue, err := book.Read(t.Context(), archive)
	c.must(err)
	if len(catalogue.Backups) != 1 || catalogue.Backups[0].ID != taken.ID || len(catalogue.Unfinished) > 0 {
		t.Errorf("there are the backups %v and what is left of %v", catalogue.Backups, catalogue.Unfinished)
	}
	mutex.Lock()
	defer mutex.Unlock()
	for name, times := range written {
		if id, _, _ := strings.Cut(name, "/"); id != taken.ID || times != 1 {
			t.Errorf("%s was written %d times, and the backup is %s", name, times, taken.ID)
		}
	}
}
