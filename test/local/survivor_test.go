package local

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// The volumes of two of three are lost. The third is not elected, until it is told to go on with what it has: then it
// leads a term that the former quorum can't have reached, and the others copy it. One of the lost volumes comes back
// later: it follows, and has no say. Then the survivor loses its volume too, and is an instance like any other.
func TestTheSurvivorOfALostMajority(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.exec("db-0", "create table survived (n int)", "insert into survived values (1)")
	c.whole()
	aside := filepath.Join(c.folder, "aside")
	for _, lost := range []string{"db-0", "db-1"} {
		c.kill(lost, syscall.SIGKILL)
	}
	c.must(os.Rename(filepath.Join(c.folder, "db-0"), aside))
	c.must(os.RemoveAll(filepath.Join(c.folder, "db-1")))
	c.start("db-0", "db-1")
	before := c.await("db-2", "refusing", func(s protocol.Status) bool { return s.Refusal == ha.RefusedNoMajority })
	c.stopAll()
	c.config.Restored, c.config.Survivor = "promoted", "db-2"
	c.start(c.names()...)
	now := c.await("db-2", "primary", primary)
	if now.Term <= before.Term+ha.RestoreTerms {
		t.Errorf("it leads term %d, and knew of %d before", now.Term, before.Term)
	}
	if leader := c.whole(); leader != "db-2" {
		t.Errorf("%s leads", leader)
	}
	c.awaitQuery("db-2", "select string_agg(n::text, ',') from survived", "1")
	c.exec("db-2", "insert into survived values (2)")

	c.kill("db-0", syscall.SIGKILL)
	c.must(os.RemoveAll(filepath.Join(c.folder, "db-0")))
	c.must(os.Rename(aside, filepath.Join(c.folder, "db-0")))
	c.start("db-0")
	c.await("db-0", "streaming", streaming)
	if leader := c.whole(); leader != "db-2" {
		t.Errorf("%s leads when a former volume is back", leader)
	}
	c.awaitQuery("db-0", "select string_agg(n::text, ',' order by n) from survived", "1,2")
	again := c.await("db-2", "primary", primary)
	if again.Term != now.Term {
		t.Errorf("it leads term %d, and led %d before", again.Term, now.Term)
	}

	c.await("db-0", "a voter", func(s protocol.Status) bool { return s.Election.Configuration.Has(s.Election.Voter) })
	c.kill("db-2", syscall.SIGKILL)
	c.must(os.RemoveAll(filepath.Join(c.folder, "db-2")))
	c.start("db-2")
	c.await("db-2", "streaming", streaming)
	if leader := c.whole(); leader == "db-2" {
		t.Error("the survivor leads again, with a new volume")
	}
	c.awaitQuery("db-2", "select string_agg(n::text, ',' order by n) from survived", "1,2")
}

// The archive has more than the survivor. What the survivor writes goes to the same archive, on a branch of its own:
// both can be restored.
func TestASurvivorThatIsBehindItsArchive(t *testing.T) {
	t.Parallel()
	c := formed(t, 3)
	c.archiveHere()
	c.exec("db-0", "create table if not exists kept (n int)", "insert into kept values (1)")
	c.whole()
	c.awaitArchived("db-0")
	c.takeBackup()
	c.kill("db-2", syscall.SIGKILL)
	c.exec("db-0", "insert into kept values (2)") // which db-2 never had
	c.awaitArchived("db-0")
	for _, lost := range []string{"db-0", "db-1"} {
		c.kill(lost, syscall.SIGKILL)
		c.must(os.RemoveAll(filepath.Join(c.folder, lost)))
	}
	c.start(c.names()...)
	c.await("db-2", "refusing", func(s protocol.Status) bool { return s.Refusal == ha.RefusedNoMajority })
	c.stopAll()
	c.config.Restored, c.config.Survivor = "promoted", "db-2"
	c.start(c.names()...)
	c.await("db-2", "primary", primary)
	if leader := c.whole(); leader != "db-2" {
		t.Errorf("%s leads", leader)
	}
	c.exec("db-2", "insert into kept values (3)")
	c.awaitArchived("db-2")
	c.takeBackup()
	c.restoresTo(protocol.RestoreTarget{}, "1,3")
	c.restoresTo(protocol.RestoreTarget{Branch: 1}, "1,2")
}
