package local

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"filippo.io/age"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// verifyBackup verifies a backup, as the containers of a Pod do, one after the other. What the
// second runs for has no key.
func (c *cluster) verifyBackup(id, volume string, args ...string) (protocol.VerifyResult, error) {
	c.Helper()
	return c.verifyAsking(nil, id, volume, args...)
}

// verifyAsking asks assertions too.
func (c *cluster) verifyAsking(
	assertions []protocol.Assertion, id, volume string, args ...string,
) (protocol.VerifyResult, error) {
	c.Helper()
	settings := c.taking()
	settings.Verify = protocol.Verification{
		Major: c.config.Major, Encrypted: c.config.Archive.Recipient != "", Assertions: assertions,
	}
	where := []string{"--volume", volume, "--backup", id}
	cmd, file, log := c.command("verify", settings, append(where, args...)...)
	err := cmd.Run()
	if err == nil {
		cmd, file, log = c.plainCommand("inspect", settings, where...)
		err = cmd.Run()
	}
	if err != nil {
		c.Logf("%s", log)
	}
	var result protocol.VerifyResult
	text, failed := os.ReadFile(file)
	c.must(failed)
	c.must(json.Unmarshal(text, &result))
	return result, err
}

// A verification is done by two processes, of which the second adds to what the first has found. A
// backup says why it was made.
func TestAVerificationIsOneReport(t *testing.T) {
	t.Parallel()
	c, folder := archived(t)
	leader := c.leader()
	c.exec(leader, "create table orders as select 1 as n")
	c.awaitArchived(leader)
	taken := c.takeBackup("--trigger", naming.TriggerMigration)
	catalogue, err := book.Read(t.Context(), bucket.OpenFolder(folder))
	if err != nil || len(catalogue.Backups) != 1 || catalogue.Backups[0].Trigger != naming.TriggerMigration {
		t.Errorf("the backups are %+v, %v", catalogue.Backups, err)
	}
	yes, no := "t", "f"
	right := protocol.Assertion{Name: "right", Database: "postgres", SQL: "SELECT count(*) > 0 FROM orders", Want: &yes}
	wrong := right
	wrong.Name, wrong.Want = "wrong", &no
	for name, asked := range map[string][]protocol.Assertion{
		"all is well": {right}, "an answer is wrong": {right, wrong},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := c.verifyAsking(asked, taken.ID, c.volume("scratch-"+strings.ReplaceAll(name, " ", "-")))
			var steps []string
			for _, s := range result.Steps {
				steps = append(steps, s.Name)
			}
			if strings.Join(steps, " ") != "unpack files recover amcheck ask" || result.LSN == "" ||
				result.Recovery <= 0 || len(result.Answers) != len(asked) {
				t.Errorf("the result is %+v", result)
			}
			if (err == nil) != (len(asked) == 1) || (result.Error == "") != (len(asked) == 1) {
				t.Errorf("%v: %s", err, result.Error)
			}
		})
	}
}

// volume makes a folder for an instance or a scratch volume.
func (c *cluster) volume(name string) string {
	c.Helper()
	path := filepath.Join(c.folder, name)
	c.must(os.MkdirAll(path, 0o700))
	c.own(path)
	return path
}

// key makes the key of an archive, in a folder as a Secret is mounted.
func (c *cluster) key() (folder, recipient string) {
	c.Helper()
	key, err := age.GenerateX25519Identity()
	c.must(err)
	folder = c.volume("key")
	file := filepath.Join(folder, naming.KeyAge)
	c.must(os.WriteFile(file, []byte(key.String()+"\n"), 0o600))
	c.own(file)
	return folder, key.Recipient().String()
}

// A cluster of PostgreSQL 17 whose backups have what has changed, over a failover and a copy, and the way back.
func TestIncrementalBackupsOfACluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	c.newer(17)
	c.config.Parameters["summarize_wal"] = "on"
	c.form()
	c.archiveHere()
	key, recipient := c.key()
	c.config.Archive.Recipient = recipient
	c.sync()
	take := func(wantParent, wantWarning string, args ...string) protocol.BackupResult {
		t.Helper()
		settings := c.taking()
		settings.FullEvery = 4
		result, err := c.tryBackup(settings, append(args, "--key", key)...)
		c.must(err)
		if result.Parent != wantParent || (result.Warning == "") != (wantWarning == "") ||
			!strings.Contains(result.Warning, wantWarning) {
			t.Fatalf("it is %+v, and should have the parent %q, and warn of %q", result, wantParent, wantWarning)
		}
		return result
	}
	leader := c.leader()
	c.exec(leader, "create table kept (n int)",
		"create table big as select i, md5(i::text) from generate_series(1, 50000) i")
	c.awaitArchived(leader)
	c.settle()
	full := take("", "")
	c.exec(leader, "insert into kept values (1)")
	c.settle()
	first := take(full.ID, "")
	if c.copied(leader) || first.Bytes > full.Bytes/2 {
		t.Errorf("it has %d bytes of %d:\n%s", first.Bytes, full.Bytes, c.said)
	}
	// The new leader goes on where the other was.
	c.exec(leader, "insert into kept values (2)")
	c.awaitArchived(leader)
	c.kill(leader, syscall.SIGKILL)
	next := c.leader(leader)
	c.exec(next, "insert into kept values (3)")
	c.startOne(leader)
	c.whole()
	c.awaitArchived(c.leader())
	c.settle()
	second := take(first.ID, "")
	c.wayBack(second, key, "1,2,3")

	// Standbys that were copied since know nothing of the time before: the primary does.
	leader = c.leader()
	c.exec(leader, "insert into kept values (4)")
	for _, name := range c.names() {
		if name != leader {
			c.kill(name, syscall.SIGTERM)
			c.must(os.RemoveAll(filepath.Join(c.folder, name, "volume")))
			c.startOne(name)
			voter := c.await(name, "streaming", streaming).Election.Voter
			c.await(leader, "with the new voter",
				func(s protocol.Status) bool { return s.Election.Configuration.Now.Has(voter) })
			c.whole()
		}
	}
	third := take(second.ID, "")
	if !c.copied(leader) || !strings.Contains(c.said, "asks the primary for an incremental backup") {
		t.Errorf("%s leads, and it says\n%s", leader, c.said)
	}
	c.wayBack(third, key, "1,2,3,4")
	take("", "") // the chain has four
	// What the parent was can't be read: a full one, and why.
	c.must(os.Remove(filepath.Join(key, naming.KeyAge)))
	take("", "it is a full one: no incremental backup can be taken: the key of the archive")
	take("", "", "--full")
}

// copied says that the last backup is of an instance.
func (c *cluster) copied(name string) bool {
	ordinal, _ := naming.Ordinal(name)
	takes := strings.LastIndex(c.said, "takes a backup")
	return takes >= 0 && strings.Contains(c.said[takes:], c.host(ordinal)+`"`)
}

// wayBack verifies a backup, and restores it into a new instance.
func (c *cluster) wayBack(b protocol.BackupResult, key, rows string) {
	c.Helper()
	result, err := c.verifyBackup(b.ID, c.volume("scratch-"+b.ID), "--key", key)
	if err != nil || len(result.Objects) > 0 {
		c.Fatalf("it is verified: %+v, %v", result, err)
	}
	other := newCluster(c.T, 1)
	other.newer(c.config.Major)
	archive := *c.config.Archive
	archive.Path, archive.Owner = "test/"+strings.ToLower(b.ID), b.ID
	other.config.Archive = &archive
	settings := other.restoring(c, protocol.RestoreTarget{})
	settings.Backup, settings.Encrypted = b.ID, true
	cmd, _, log := other.restoreCommand(settings)
	cmd.Args = append(cmd.Args, "--key", key)
	if err := cmd.Run(); err != nil {
		c.Fatalf("restore: %v\n%s", err, log)
	}
	other.start("db-0")
	other.await("db-0", "primary", primary)
	other.awaitQuery("db-0", "select string_agg(n::text, ',' order by n) from kept", rows)
	other.awaitQuery("db-0", "select count(*)::text from big", "50000")
	other.kill("db-0", syscall.SIGTERM)
}
