package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
)

// command prepares one of the program's other commands, with its settings, run as the server's user.
func (c *cluster) command(verb string, settings any, args ...string) (cmd *exec.Cmd, result string, log *bytes.Buffer) {
	c.Helper()
	return c.plainCommand(verb, settings, append([]string{
		"--authority", filepath.Join(c.folder, "ca"), "--address", "127.0.0.1", "--listen", "127.0.0.1:0",
	}, args...)...)
}

// plainCommand prepares one that has no authority, and tells nobody how far it is.
func (c *cluster) plainCommand(
	verb string, settings any, args ...string,
) (cmd *exec.Cmd, result string, log *bytes.Buffer) {
	c.Helper()
	text, err := json.Marshal(settings)
	c.must(err)
	folder, err := os.MkdirTemp("", "toban-job-")
	c.must(err)
	c.Cleanup(func() { _ = os.RemoveAll(folder) })
	c.own(folder)
	file := filepath.Join(folder, "settings.json")
	c.must(os.WriteFile(file, text, 0o644))
	result, log = filepath.Join(folder, "result.json"), &bytes.Buffer{}
	cmd = exec.Command(program,
		append([]string{"--settings", file, "--run", folder, "--termination-log", result}, args...)...)
	cmd.Env = c.env(verb)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.folder, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.owner, Setpgid: true}
	return cmd, result, log
}

// takeBackup takes a base backup, as the Pod of a DatabaseBackup does.
func (c *cluster) takeBackup(args ...string) protocol.BackupResult {
	c.Helper()
	result, err := c.tryBackup(c.taking(), args...)
	c.must(err)
	return result
}

// taking is what the Pod of a backup is told.
func (c *cluster) taking() protocol.BackupSettings {
	settings := protocol.BackupSettings{
		Archive: *c.config.Archive, Keep: protocol.Retention{Count: 7}, Authority: c.config.Authority,
		Operator: c.config.Operator, SampleDB: []byte(`{"kind":"SampleDB"}`),
	}
	for i := range c.config.Members {
		settings.Hosts = append(settings.Hosts, c.host(i))
	}
	return settings
}

// settle brings what was written into the files of all instances: a standby's backup begins at its last restartpoint.
func (c *cluster) settle() {
	c.Helper()
	leader := c.leader()
	c.exec(leader, "checkpoint")
	for _, name := range c.names() {
		if name != leader {
			c.awaitCaughtUp(leader, name)
			c.exec(name, "checkpoint")
		}
	}
}

// tryBackup takes one that may fail.
func (c *cluster) tryBackup(
	settings protocol.BackupSettings, args ...string,
) (result protocol.BackupResult, err error) {
	c.Helper()
	cmd, file, log := c.command("take", settings, args...)
	if err = cmd.Run(); err != nil {
		err = fmt.Errorf("take a backup: %w\n%s", err, log)
	}
	c.said = log.String()
	text, failed := os.ReadFile(file)
	c.must(failed)
	c.must(json.Unmarshal(text, &result))
	return result, err
}

// work runs a worker that must succeed, and reads what it leaves.
func (c *cluster) work(name string, settings protocol.BackupSettings, result any, args ...string) {
	c.Helper()
	cmd, file, log := c.command(name, settings, args...)
	if err := cmd.Run(); err != nil {
		c.Fatalf("%s: %v\n%s", name, err, log)
	}
	text, err := os.ReadFile(file)
	c.must(err)
	c.must(json.Unmarshal(text, result))
}

// restoring is what the Pod of a restore into the first instance of a cluster is told.
func (c *cluster) restoring(source *cluster, target protocol.RestoreTarget) protocol.RestoreSettings {
	return protocol.RestoreSettings{
		Instance: "db-0", Major: c.config.Major, Bucket: source.config.Archive.Bucket, Path: source.config.Archive.Path,
		Target: target, Parameters: c.config.Parameters, Operator: c.config.Operator,
	}
}

func (c *cluster) restoreCommand(settings protocol.RestoreSettings) (cmd *exec.Cmd, result string, log *bytes.Buffer) {
	c.Helper()
	volume := filepath.Join(c.folder, settings.Instance, "volume")
	c.must(os.MkdirAll(volume, 0o700))
	c.own(volume)
	c.own(filepath.Dir(volume))
	if !c.apart {
		return c.command("restore", settings, "--volume", volume)
	}
	c.must(os.MkdirAll(c.walDisk(settings.Instance), 0o700))
	c.own(c.walDisk(settings.Instance))
	return c.command("restore", settings, "--volume", volume, "--"+naming.FlagWALVolume, c.walDisk(settings.Instance))
}

// restore restores to the end, and returns what came of it.
func (c *cluster) restore(settings protocol.RestoreSettings) (protocol.RestoreResult, error) {
	c.Helper()
	cmd, file, log := c.restoreCommand(settings)
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w:\n%s", err, log)
	}
	var result protocol.RestoreResult
	text, failed := os.ReadFile(file)
	c.must(failed)
	c.must(json.Unmarshal(text, &result))
	return result, err
}

// history is a cluster with an archive that goes over a promotion: rows 1 in the backup, 2 before the promotion, 3
// after it and up to a moment, 4 after that.
func history(t *testing.T) (c *cluster, b protocol.BackupResult, at time.Time) {
	t.Helper()
	c, _ = archived(t)
	leader := c.leader()
	c.exec(leader, "create role shop login password 'secret'", "create table kept (n int)",
		"insert into kept values (1)")
	c.awaitArchived(leader)
	b = c.takeBackup()
	c.exec(leader, "insert into kept values (2)", "select pg_switch_wal()")
	c.awaitArchived(leader)
	c.kill(leader, syscall.SIGKILL)
	next := c.leader(leader)
	c.exec(next, "insert into kept values (3)")
	at = c.clock(next)
	c.exec(next, "insert into kept values (4)")
	c.startOne(leader)
	c.whole()
	c.awaitArchived(c.leader())
	return c, b, at
}

// clock is a server's, a moment before the next transaction.
func (c *cluster) clock(name string) time.Time {
	c.Helper()
	text, err := c.query(name,
		"select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")
	c.must(err)
	at, err := time.Parse(time.RFC3339, text)
	c.must(err)
	time.Sleep(2 * time.Millisecond)
	return at
}

const keptRows = "select string_agg(n::text, ',' order by n) from kept"

// A new cluster of three is made of what an archive has, goes on, and archives to a place of its own.
func TestANewClusterIsRestoredFromAnArchive(t *testing.T) {
	t.Parallel()
	source, _, at := history(t)
	before := source.objects()
	c := newCluster(t, 3)
	archive := *source.config.Archive
	archive.Path, archive.Owner = "test/other", "uid-9"
	c.config.Archive = &archive
	result, err := c.restore(c.restoring(source, protocol.RestoreTarget{Time: at}))
	c.must(err)
	if result.Backup == "" || result.LSN == "" || result.Commit.IsZero() || result.Commit.After(at) || result.Kept {
		t.Errorf("it says %+v", result)
	}
	c.start(c.names()...)
	c.await("db-0", "primary", primary)
	c.whole()
	c.awaitQuery("db-0", keptRows, "1,2,3")
	c.awaitQuery("db-0",
		"select (rolpassword like 'SCRAM-SHA-256$%')::text from pg_authid where rolname = 'shop'", "true")
	c.exec("db-0", "insert into kept values (100)")
	c.awaitQuery("db-1", keptRows, "1,2,3,100")
	c.awaitArchived("db-0")
	own := filepath.Join(source.folder, "bucket/test/other")
	if _, to, gap := c.covered(own); to == 0 || gap != nil {
		t.Errorf("its own archive goes to %s, gap %v", to, gap)
	}
	// A failover of the restored one, and a backup of it.
	c.kill("db-0", syscall.SIGKILL)
	next := c.leader("db-0")
	c.awaitQuery(next, keptRows, "1,2,3,100")
	c.startOne("db-0")
	c.whole()
	c.takeBackup()
	if after := source.objects(); after != before {
		t.Errorf("the source's archive was\n%s\nis\n%s", before, after)
	}
}

// A cluster goes back to an earlier moment in its own place. It serves while the data is made; then its instances
// stop, and start with it.
func TestAClusterIsRestoredInPlace(t *testing.T) {
	t.Parallel()
	c, _, at := history(t)
	place := c.leader()
	settings := c.restoring(c, protocol.RestoreTarget{Time: at})
	settings.Instance, settings.InPlace = place, "oops"
	c.config.Prepares = true
	c.sync()
	if result, err := c.restore(settings); err != nil || result.LSN == "" || result.Commit.After(at) {
		t.Fatalf("%+v, %v", result, err)
	}
	c.exec(c.leader(), "insert into kept values (5)")
	five := c.clock(place)
	c.exec(c.leader(), "insert into kept values (7)")
	c.awaitArchived(place)
	before := c.await(place, "as it was", func(s protocol.Status) bool { return s.Term > 0 }).Term
	c.stopAll()
	c.config.Prepares, c.config.Restored = false, "oops"
	c.start(c.names()...)
	now := c.await(place, "primary", primary)
	if now.Term <= before {
		t.Errorf("it leads term %d, and led %d before", now.Term, before)
	}
	if leader := c.whole(); leader != place {
		t.Errorf("%s leads", leader)
	}
	c.awaitQuery(place, keptRows, "1,2,3")
	old := filepath.Join(c.folder, place, "volume/before-oops/data/PG_VERSION")
	if _, err := os.Stat(old); err != nil {
		t.Errorf("the data from before is not there: %v", err)
	}
	// What is done is done once, and its archive goes on along the new branch.
	c.exec(place, "insert into kept values (6)")
	c.awaitArchived(place)
	c.takeBackup()
	c.stopAll()
	c.config.RemoveBefore = true
	c.start(c.names()...)
	leader := c.whole()
	c.awaitQuery(leader, keptRows, "1,2,3,6")
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if _, err := os.Stat(old); err != nil {
			break
		}
	}
	for _, left := range []string{
		old, filepath.Join(c.folder, place, "volume/restore"), filepath.Join(c.folder, place, "volume/restored.json"),
	} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is still there", left)
		}
	}
	c.restoresTo(protocol.RestoreTarget{}, "1,2,3,6")
	// What it was restored from has not gone: neither to a moment, which is on one branch alone, nor to its end.
	left := c.restoresTo(protocol.RestoreTarget{Time: five}, "1,2,3,4,5")
	c.restoresTo(protocol.RestoreTarget{Branch: left.Branch}, "1,2,3,4,5,7")
}

// A lone instance whose volume is lost waits with the new one: it makes no other data. A restore to the end of its
// archive brings all back that was archived, and an archive that has had more is not taken for the whole.
func TestALoneInstanceWhoseVolumeIsLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]string{
		"the volume": "", "the data directory": "volume/data", "the WAL volume": "wal",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 1)
			c.apart = lost == "wal"
			c.form()
			c.archiveHere()
			c.exec("db-0", "create table if not exists kept (n int)", "insert into kept values (1)")
			c.awaitArchived("db-0")
			c.takeBackup()
			c.exec("db-0", "insert into kept values (2)")
			end := c.awaitArchived("db-0")
			before := c.await("db-0", "archived", func(s protocol.Status) bool { return s.Archive != nil })
			c.kill("db-0", syscall.SIGKILL)
			c.must(os.RemoveAll(filepath.Join(c.folder, "db-0", lost)))
			c.start("db-0")
			now := c.await("db-0", "without data", func(s protocol.Status) bool { return s.Data == protocol.DataEmpty })
			votes := now.Election.Configuration.Has(now.Election.Voter)
			if votes != (lost == "volume/data") || now.Role != protocol.RoleNone {
				t.Errorf("it is %+v", now)
			}
			settings := c.restoring(c, protocol.RestoreTarget{})
			settings.InPlace, settings.AtLeast = "lost", (end + 64<<20).String()
			c.config.Prepares = true
			c.sync()
			if _, err := c.restore(settings); err == nil || !strings.Contains(err.Error(), "it has had WAL up to") {
				t.Errorf("an archive that has had more: %v", err)
			}
			settings.AtLeast = before.Archive.LSN
			if result, err := c.restore(settings); err != nil || result.LSN == "" {
				t.Fatalf("%+v, %v", result, err)
			}
			c.stopAll()
			c.config.Prepares, c.config.Restored = false, "lost"
			c.start("db-0")
			if again := c.await("db-0", "primary", primary); again.Term <= before.Term+1000 {
				t.Errorf("it leads term %d, and led %d before", again.Term, before.Term)
			}
			c.awaitQuery("db-0", keptRows, "1,2")
			if c.apart {
				c.walFolder("db-0")
			}
			c.exec("db-0", "insert into kept values (3)")
			c.awaitArchived("db-0")
			c.takeBackup()
			// What the archive had before can be restored as before: it is a branch of its own.
			c.restoresTo(protocol.RestoreTarget{Branch: before.Term}, "1,2")
			c.restoresTo(protocol.RestoreTarget{}, "1,2,3")
		})
	}
}

// restoresTo makes another cluster of the archive, which must have such rows.
func (c *cluster) restoresTo(target protocol.RestoreTarget, rows string) protocol.RestoreResult {
	c.Helper()
	other := newCluster(c.T, 1)
	other.apart = c.apart
	archive := *c.config.Archive
	archive.Path, archive.Owner = "test/other-"+other.folder[len(other.folder)-8:], "uid-9"
	other.config.Archive = &archive
	result, err := other.restore(other.restoring(c, target))
	c.must(err)
	other.start("db-0")
	other.await("db-0", "primary", primary)
	other.awaitQuery("db-0", keptRows, rows)
	return result
}

// objects are the names in the archive of a cluster, but for those of WAL, which goes on.
func (c *cluster) objects() string {
	c.Helper()
	var names []string
	root := filepath.Join(c.folder, "bucket", c.config.Archive.Path)
	c.must(filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() && !strings.Contains(path, "/wal/") {
			names = append(names, strings.TrimPrefix(path, root))
		}
		return err
	}))
	return strings.Join(names, "\n")
}

func TestWhereARestoreEnds(t *testing.T) {
	t.Parallel()
	source, b, _ := history(t)
	for name, c := range map[string]struct {
		backup string
		target protocol.RestoreTarget
		rows   string
	}{
		"at the end of the archive":      {"", protocol.RestoreTarget{}, "1,2,3,4"},
		"where the backup did":           {b.ID, protocol.RestoreTarget{Immediate: true}, "1"},
		"at a moment after the last row": {"", protocol.RestoreTarget{Time: time.Now()}, "1,2,3,4"},
		"at an LSN right at the end": {
			"", protocol.RestoreTarget{LSN: source.awaitArchived(source.leader()).String()}, "1,2,3,4",
		},
		"with the backup that is named":   {b.ID, protocol.RestoreTarget{Time: time.Now()}, "1,2,3,4"},
		"in the future is outside":        {"", protocol.RestoreTarget{Time: time.Now().Add(time.Hour)}, ""},
		"before the backup is outside":    {"", protocol.RestoreTarget{Time: b.Started.Add(-time.Hour)}, ""},
		"at a point that nobody has made": {"", protocol.RestoreTarget{Name: "nobody"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			into := newCluster(t, 1)
			settings := into.restoring(source, c.target)
			settings.Backup = c.backup
			result, err := into.restore(settings)
			if c.rows == "" {
				if err == nil || result.Error == "" {
					t.Fatalf("it is restored: %+v", result)
				}
				t.Log(result.Error)
				return
			}
			into.must(err)
			into.start("db-0")
			into.await("db-0", "primary", primary)
			into.awaitQuery("db-0", keptRows, c.rows)
			into.kill("db-0", syscall.SIGTERM)
			if again, err := into.restore(settings); err != nil || !again.Kept {
				t.Errorf("a volume with a database is restored again: %+v, %v", again, err)
			}
		})
	}
}

// A restore that is killed anywhere is done by the next one, which goes on with what there is.
func TestARestoreThatIsKilledBeginsAnew(t *testing.T) {
	t.Parallel()
	source, _, _ := history(t)
	for _, there := range []string{"restore/data/PG_VERSION", "restore/data/postmaster.pid", "restored.json"} {
		t.Run("when there is "+filepath.Base(there), func(t *testing.T) {
			c := newCluster(t, 1)
			c.apart = strings.HasSuffix(there, ".pid") // a server runs then, with its WAL there
			settings := c.restoring(source, protocol.RestoreTarget{})
			cmd, _, _ := c.restoreCommand(settings)
			c.must(cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			for c.missing(there) && len(ended) == 0 {
				time.Sleep(time.Millisecond)
			}
			_ = cmd.Process.Kill()
			t.Logf("it has ended: %v", <-ended)
			_, err := c.restore(settings)
			c.must(err)
			c.start("db-0")
			c.await("db-0", "primary", primary)
			c.awaitQuery("db-0", keptRows, "1,2,3,4")
			if c.apart {
				c.walFolder("db-0")
			}
			for _, left := range []string{"restore", "restored.json"} {
				if !c.missing(left) {
					t.Errorf("%s is left on the volume", left)
				}
			}
		})
	}
}

func (c *cluster) missing(name string) bool {
	_, err := os.Stat(filepath.Join(c.folder, naming.Instance("db", 0), "volume", name))
	return err != nil
}
