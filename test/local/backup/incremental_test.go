package backup_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/keep"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/wal"
)

// summarises is what an incremental backup needs.
var summarises = map[string]string{"summarize_wal": "on"}

// change changes what an incremental backup has to get right: blocks of old files, files that become longer and
// shorter, that are new, and that go; in a tablespace too.
func (n *node) change() {
	n.Helper()
	n.do(
		`update big set b = md5(b) where i % 5000 = 0; insert into big select i, 'more' from generate_series(1, 1000) i;
		delete from big where i > (select max(i) * 9 / 10 from big)`)
	n.do("vacuum big") // which cuts it short
	n.do(`insert into elsewhere select generate_series(1, 10000); drop table if exists other;
		create table other tablespace fast as select md5(i::text) m from generate_series(1, 1000) i;
		select lo_put(4711, 0, 'A'); checkpoint`)
}

// everyNewer runs a test with each version that has incremental backups.
func everyNewer(t *testing.T, test func(t *testing.T, source *node)) {
	for _, major := range newer {
		t.Run(fmt.Sprintf("PostgreSQL %d", major),
			func(t *testing.T) { test(t, primaryOf(t, release(t, major), summarises)) })
	}
}

func TestLongAChainOfBackupsIsRestoredAsWhatItIsTheChangeTo(t *testing.T) {
	everyNewer(t, func(t *testing.T, source *node) {
		keys := newKey(t) + "\n" + newKey(t)
		a := newArchive(t, source, keys)
		last := a.take()
		full := last
		for i := range 3 {
			source.change()
			if i == 1 {
				a.rotate(keys)
			}
			source.do(fmt.Sprintf("insert into t values (%d)", 10+i))
			parent := last
			last = a.takeSince(&parent)
			t.Logf("%s of %d bytes, stored %d; the full one %d, stored %d",
				last.ID, last.RawBytes, last.StoredBytes, full.RawBytes, full.StoredBytes)
			// The first time every page of a new table is changed, by the first VACUUM.
			if last.Type != format.TypeIncremental || last.Parent != parent.ID ||
				i > 0 && last.RawBytes > full.RawBytes/2 {
				t.Errorf("it is %+v", last)
			}
		}
		want := source.contents()
		source.do("insert into t values (20); select pg_switch_wal(); insert into t values (21)")
		a.archiveWAL()
		r := a.restore(last, book.Target{})
		r.finish()
		if r.contents() != want || r.rows() != source.rows() {
			t.Errorf("it has rows %s and %s\nexpected %s and %s", r.rows(), r.contents(), source.rows(), want)
		}
		if left, _ := filepath.Glob(filepath.Join(r.Data.Volume, "scratch/*")); len(left) > 0 {
			t.Errorf("%v is left", left)
		}
		// The server goes on, and so does a chain of it.
		r.do("insert into t values (30); checkpoint")
		r.do("vacuum full big")
		a.verified(last)
	})
}

// verification is that of a backup with its whole chain.
func (a *archive) verification(b format.Backup) (restore.VerifyOptions, *node) {
	a.Helper()
	run := newNodeOf(a.T, a.source.Programs)
	o := restore.VerifyOptions{
		Bucket: a, Decoder: a.decoder, Chain: a.chain(b), Plan: a.plan(b),
		Folder: filepath.Join(run.Data.Volume, "scratch"),
		Run:    run.Server.Run, Programs: run.Programs, Log: run.log, Workers: 2,
	}
	must(a, os.Mkdir(o.Folder, 0o700))
	return o, run
}

func (a *archive) verified(b format.Backup) {
	a.Helper()
	o, run := a.verification(b)
	report, err := verify(a.T, o)
	if err != nil {
		a.Fatalf("%v\n%s", err, run.log)
	}
	a.Logf("%+v", report)
}

// What is put together gets a manifest of its own, which says nothing of what the server had.
func TestAVerificationLooksAtEachPartOfAChain(t *testing.T) {
	source := primaryOf(t, release(t, 17), summarises)
	a := newArchive(t, source, "")
	full := a.take()
	source.change()
	last := a.takeSince(&full)
	for name, b := range map[string]format.Backup{"the full one": full, "the last": last} {
		in := *a
		in.T, in.memory = t, a.copied()
		in.falsify(b)
		o, _ := in.verification(last)
		_, err := restore.Verify(t.Context(), o)
		var file *restore.FileError
		if !errors.As(err, &file) || !strings.Contains(err.Error(), b.ID) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// falsify changes a byte in a file of a backup, and all that is known of the object: somebody has
// written another backup there.
func (a *archive) falsify(b format.Backup) {
	a.Helper()
	folder, piece := format.FolderBase+b.ID+"/", &b.Pieces[0]
	content := a.opened(folder + piece.Name)
	at := offsetOf(a, content, func(h *tar.Header) bool { return h.Size >= 8192 })
	content[at+100] ^= 1
	sealed, err := a.encoder.Encode(content)
	must(a, err)
	sum := sha256.Sum256(sealed)
	piece.Size, piece.SHA256 = int64(len(sealed)), hex.EncodeToString(sum[:])
	text, err := json.Marshal(b)
	must(a, err)
	a.objects[folder+piece.Name], a.objects[folder+format.FileBackup] = sealed, text
}

func (a *archive) opened(name string) []byte {
	a.Helper()
	r, err := a.decoder.Decode(name, bytes.NewReader(a.objects[name]))
	must(a, err)
	defer r.Close()
	content, err := io.ReadAll(r)
	must(a, err)
	return content
}

// offsetOf is where the content of the first file of a kind begins in the beginning of a tar file.
func offsetOf(a *archive, content []byte, is func(*tar.Header) bool) int {
	a.Helper()
	counted := bytes.NewReader(content)
	files := tar.NewReader(counted)
	for {
		h, err := files.Next()
		must(a, err)
		if is(h) {
			return len(content) - counted.Len()
		}
	}
}

func TestWhereNoIncrementalBackupCanBeTakenThatIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		major int
		spoil func(source *node, a *archive, parent *format.Backup)
	}{
		"nothing is summarised": {17, func(source *node, _ *archive, _ *format.Backup) {
			source.do("alter system set summarize_wal = off")
			source.do("select pg_reload_conf()")
			source.wait("the server goes on to summarise",
				"select setting = 'off' from pg_settings where name = 'summarize_wal'")
		}},
		"a summary is gone": {17, func(source *node, _ *archive, parent *format.Backup) {
			source.do("select pg_switch_wal(); checkpoint; select pg_switch_wal(); checkpoint")
			source.summariesGo(parent.StartLSN)
		}},
		"the parent's manifest is another": {17, func(_ *node, a *archive, parent *format.Backup) {
			name := format.FolderBase + parent.ID + "/" + parent.Manifest.Name
			a.objects[name] = flip(a.objects[name])
		}},
		"the parent's manifest is of another server": {17, func(_ *node, a *archive, parent *format.Backup) {
			other := newArchive(a.T, primaryOf(a.T, a.source.Programs, summarises), "")
			*parent = other.take()
			parent.SystemIdentifier = a.source.ask("select system_identifier from pg_control_system()")
			for name, content := range other.objects {
				a.objects[name] = content
			}
		}},
		"the server is too old": {0, func(*node, *archive, *format.Backup) {}},
	} {
		t.Run(name, func(t *testing.T) {
			source := (*node)(nil)
			if c.major == 0 {
				if source = primary(t); source.Programs.Major >= 17 {
					t.Skip("no server before PostgreSQL 17 is installed")
				}
			} else {
				source = primaryOf(t, release(t, c.major), summarises)
			}
			a := newArchive(t, source, "")
			parent := a.take()
			source.do("insert into t values (2); checkpoint")
			c.spoil(source, a, &parent)
			o := a.options()
			o.Parent, o.Decoder = &parent, a.decoder
			_, err := take.Take(t.Context(), o)
			if !errors.Is(err, take.ErrNoIncrement) {
				t.Errorf("the error is %v", err)
			}
			t.Log(err)
			_, err = take.Clean(t.Context(), a)
			must(t, err)
			a.take()
		})
	}
}

// summariesGo removes the summaries, once some of them are of what came after a place in the WAL.
func (n *node) summariesGo(after wal.LSN) {
	n.Helper()
	n.wait("the server summarises nothing",
		fmt.Sprintf("select count(*) > 0 from pg_available_wal_summaries() where end_lsn > '%s'", after))
	// Not the one that is being written.
	files, err := filepath.Glob(filepath.Join(n.Data.Path(), "pg_wal/summaries/0*.summary"))
	must(n, err)
	for _, file := range files {
		must(n, os.Remove(file))
	}
}

// wait asks until the answer is yes.
func (n *node) wait(or, question string) {
	n.Helper()
	for end := time.Now().Add(deadline); n.ask(question) != "true"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			n.Fatal(or)
		}
	}
}

func TestRetentionKeepsAChainWhole(t *testing.T) {
	source := primaryOf(t, release(t, 17), summarises)
	a := newArchive(t, source, "")
	parent := a.take()
	var chain []string
	for range 2 {
		chain = append(chain, parent.ID)
		source.change()
		parent = a.takeSince(&parent)
	}
	chain = append(chain, parent.ID)
	if kept := a.retain(1); strings.Join(kept, " ") != strings.Join(chain, " ") {
		t.Errorf("%v is kept of %v", kept, chain)
	}
	want := source.contents()
	r := a.restore(parent, book.Target{})
	r.finish()
	if r.contents() != want {
		t.Errorf("it has %s\nexpected %s", r.contents(), want)
	}
	source.do("select pg_switch_wal()")
	next := a.take()
	if kept := a.retain(2); len(kept) != 4 {
		t.Errorf("%v is kept: the two last, and the parents of one", kept)
	}
	if kept := a.retain(1); len(kept) != 1 || kept[0] != next.ID {
		t.Errorf("%v is kept of %s", kept, next.ID)
	}
	a.restore(next, book.Target{}).finish()
}

// retain removes what a count of backups does not keep, and returns the ids of what is left.
func (a *archive) retain(count int) (kept []string) {
	a.Helper()
	c, err := book.Read(a.Context(), a)
	must(a, err)
	must(a, a.Delete(a.Context(), keep.Retain(c, keep.Policy{Count: count, Now: time.Now()}).Names...))
	c, err = book.Read(a.Context(), a)
	must(a, err)
	for _, b := range c.Backups {
		kept = append(kept, b.ID)
	}
	return kept
}
