package local

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// readerOrdinal is that of a reader here: its address is no member's.
const readerOrdinal = 6

// A reader copies the primary, gets what is written, and follows the next primary. No rule for commits has it: a commit
// that a voter does not acknowledge waits, though the reader has it already. When it is gone, so is its slot.
func TestAReaderFollowsAndCountsForNothing(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	before := c.whole()
	reader := naming.Reader("db", readerOrdinal)
	c.config.Readers = readerOrdinal + 1
	c.sync()
	c.start(reader)
	c.await(reader, "a standby", streaming)
	c.exec(before, "create table read (n int)", "insert into read values (1)")
	c.awaitQuery(reader, "select count(*)::text from read", "1")
	c.countsForNothing(before, reader)

	c.kill(before, syscall.SIGKILL)
	leader := c.leader(before)
	c.await(reader, "a standby of "+leader, func(s protocol.Status) bool { return streaming(s) && s.Leader == leader })
	c.exec(leader, "insert into read values (2)")
	c.awaitQuery(reader, "select count(*)::text from read", "2")
	c.countsForNothing(leader, reader)
	c.waitsForAVoter(before, leader, reader)

	c.kill(reader, syscall.SIGTERM)
	c.config.Readers = 0
	c.sync()
	c.awaitQuery(leader, "select count(*)::text from pg_replication_slots where slot_name like '%readers%'", "0")
}

// countsForNothing holds that a reader streams, and that neither the rule for commits nor the configuration names it.
func (c *cluster) countsForNothing(leader, reader string) {
	c.Helper()
	c.awaitQuery(leader, "select sync_state from pg_stat_replication where application_name = '"+reader+"'", "async")
	rule, err := c.query(leader, "select current_setting('synchronous_standby_names')")
	c.must(err)
	status, err := c.status(leader)
	c.must(err)
	if !strings.HasPrefix(rule, "ANY 1") || strings.Contains(rule, "readers") ||
		slices.Contains(status.Voters, reader) {
		c.Errorf("%s demands %q, and its voters are %v", leader, rule, status.Voters)
	}
}

// countsCancelled cancels a commit that waits for standbys: its client is told that it has succeeded. It is counted.
func (c *cluster) countsCancelled(leader string) {
	c.Helper()
	c.awaitMetric(leader, "toban_instance_cancelled_commits_total", 0)
	conn, err := c.connect(leader)
	c.must(err)
	defer conn.Close(context.Background())
	pid, committed := c.pid(conn), make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "insert into read values (4)")
		committed <- err
	}()
	c.awaitQuery(leader, "select wait_event from pg_stat_activity where pid = "+strconv.Itoa(pid), "SyncRep")
	c.exec(leader, "select pg_cancel_backend("+strconv.Itoa(pid)+")")
	c.must(<-committed)
	c.awaitMetric(leader, "toban_instance_cancelled_commits_total", 1)
}

// waitsForAVoter stops what the last other voter receives by: a commit reaches the reader, and waits all the same.
func (c *cluster) waitsForAVoter(gone, leader, reader string) {
	c.Helper()
	voter := slices.DeleteFunc(c.names(), func(name string) bool { return name == gone || name == leader })[0]
	c.await(voter, "a standby of "+leader, func(s protocol.Status) bool { return streaming(s) && s.Leader == leader })
	receiver := c.process(voter, "walreceiver")
	c.must(syscall.Kill(receiver, syscall.SIGSTOP))
	goOn := func() { _ = syscall.Kill(receiver, syscall.SIGCONT) }
	c.Cleanup(goOn)
	conn, err := c.connect(leader)
	c.must(err)
	defer conn.Close(context.Background())
	committed := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "insert into read values (3)")
		committed <- err
	}()
	c.awaitQuery(reader, "select count(*)::text from read", "3")
	c.awaitQuery(leader, "select count(*)::text from pg_stat_activity where wait_event = 'SyncRep'", "1")
	select {
	case err := <-committed:
		c.Errorf("a commit that no voter has is over: %v", err)
		return
	default:
	}
	c.countsCancelled(leader)
	goOn()
	c.must(<-committed)
}
