package upgrade_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/bucket"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
	"toban.dev/internal/cli/process"
	"toban.dev/internal/naming"
	"toban.dev/internal/protocol"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/upgrade"
)

// archived takes a backup of a server that runs, with the WAL up to its end, into an archive of its own.
func (i *instance) archived() *bucket.Folder {
	i.Helper()
	into := bucket.OpenFolder(i.TempDir())
	encoder, err := format.NewEncoder("")
	must(i, err)
	history := `{"term": 1, "starts": [{"term": 1, "lsn": "0/0", "timeline": 1}]}`
	must(i, into.Put(i.Context(), format.TermFolder(1)+format.FileLineage, []byte(history)))
	server, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%d user=postgres sslmode=disable",
		i.Server.Run, i.Port))
	must(i, err)
	archive := func(context.Context, wal.Timeline, wal.LSN) (uint64, error) { return 1, i.archiveWAL(into, encoder) }
	_, err = take.Take(i.Context(), take.TakeOptions{Server: server, Bucket: into, Encoder: encoder, Term: 1,
		Workers: 2, Archived: archive})
	must(i, err)
	i.do("shop", "create table late as select 1 as n") // which is in the WAL after the backup alone
	_, err = archive(i.Context(), 1, 0)
	must(i, err)
	i.do("shop", "drop table late")
	return into
}

// archiveWAL archives all that has been flushed.
func (i *instance) archiveWAL(into *bucket.Folder, encoder *format.Encoder) error {
	flushed, err := wal.ParseLSN(i.ask("postgres", "select pg_current_wal_flush_lsn()"))
	if err != nil {
		return err
	}
	for s := (wal.Segment{Timeline: 1, Number: 1, Size: wal.SegmentSize}); s.Start() < flushed; s.Number++ {
		content, err := os.ReadFile(filepath.Join(i.Data.Path(), "pg_wal", s.String()))
		if os.IsNotExist(err) {
			continue // from before the backup
		}
		if err != nil {
			return err
		}
		end := min(uint64(flushed-s.Start()), wal.SegmentSize)
		sealed, err := encoder.Encode(content[:end])
		if err != nil {
			return err
		}
		piece := format.Piece{Segment: s, From: 0, To: uint32(end)}
		if err := into.Put(i.Context(), format.TermFolder(1)+encoder.Name(piece.String()), sealed); err != nil {
			return err
		}
	}
	return nil
}

// rehearsal is the scratch volume of one, with what the container before has restored there.
type rehearsal struct {
	*testing.T
	from   *instance
	volume string
	run    string
}

// restored restores the last backup of an archive into a scratch volume in a folder, as a verification does.
func (i *instance) restored(from *bucket.Folder, folder string) *rehearsal {
	i.Helper()
	r := &rehearsal{T: i.T, from: i}
	for _, f := range []struct {
		into   *string
		folder string
	}{{&r.volume, folder}, {&r.run, "/tmp"}} {
		made, err := os.MkdirTemp(f.folder, "toban-re-")
		must(i, err)
		i.Cleanup(func() { _ = os.RemoveAll(made) })
		*f.into = made
	}
	catalogue, err := book.Read(i.Context(), from)
	must(i, err)
	last := catalogue.Backups[len(catalogue.Backups)-1]
	choice, err := catalogue.Choose(book.Wanted{Backup: last.ID, Now: time.Now()})
	must(i, err)
	plan, err := catalogue.PlanWAL(choice.TermHistory, choice.Backup.StartLSN, choice.To)
	must(i, err)
	decoder, err := format.NewDecoder("")
	must(i, err)
	report, err := restore.Verify(i.Context(), restore.VerifyOptions{
		Bucket: from, Decoder: decoder, Chain: []format.Backup{last}, Plan: plan, Run: r.run,
		Folder: filepath.Join(r.volume, "scratch"), Programs: i.Programs, Log: &testLog{T: i.T}, Workers: 2,
	})
	must(i, err)
	text, err := json.Marshal(protocol.VerifyResult{LSN: report.LSN, Commit: report.Commit,
		Steps: []protocol.VerifyStep{{Name: restore.StepUnpack, Seconds: 1}}})
	must(i, err)
	must(i, os.WriteFile(filepath.Join(r.volume, naming.FileVerified), text, 0o600))
	return r
}

// rehearse does what the container of a rehearsal does that runs SQL.
func (r *rehearsal) rehearse(to int, method string, asks ...protocol.Assertion) (protocol.RehearsalResult, error) {
	r.Helper()
	return r.rehearseIn(r.Context(), to, method, asks...)
}

func (r *rehearsal) rehearseIn(
	ctx context.Context, to int, method string, asks ...protocol.Assertion,
) (protocol.RehearsalResult, error) {
	r.Helper()
	r.Setenv("PATH", programs(r.T, to).Dir+":"+os.Getenv("PATH")) // as in the new image
	folder := r.TempDir()
	write := func(name string, settings any) string {
		text, err := json.Marshal(settings)
		must(r, err)
		path := filepath.Join(folder, name)
		must(r, os.WriteFile(path, text, 0o600))
		return path
	}
	o := upgrade.RehearseOptions{
		Settings: write("upgrade.json", protocol.UpgradeSettings{ID: id, Instance: "db-0", To: to, Method: method,
			From: r.from.Programs.Major}),
		Backup: write("backup.json", protocol.BackupSettings{Verify: protocol.Verification{Assertions: asks}}),
		Former: formerFolder(r.T, r.from.Programs.Major), Volume: r.volume, Run: r.run,
		Termination: filepath.Join(folder, "result.json"),
	}
	failed := upgrade.Rehearse(ctx, o)
	var result protocol.RehearsalResult
	text, err := os.ReadFile(o.Termination)
	must(r, err)
	if len(text) > 4096 {
		r.Errorf("the result has %d bytes, of which the kubelet keeps 4096", len(text))
	}
	must(r, json.Unmarshal(text, &result))
	r.Logf("%v: %+v", failed, result)
	return result, failed
}

func shopAsks(name, sql, want string) protocol.Assertion {
	return protocol.Assertion{Name: name, Database: "shop", SQL: sql, Want: &want}
}

// sound fails unless a rehearsal has done everything, and found nothing.
func (r *rehearsal) sound(got protocol.RehearsalResult, err error) {
	r.Helper()
	if err != nil || got.Error != "" || len(got.Problems) > 0 {
		r.Errorf("it has found %q, %q, %v", got.Problems, got.Error, err)
	}
	var steps []string
	short := 0.0
	for _, s := range got.Steps {
		steps = append(steps, s.Name)
		if slices.Contains([]string{"recover", "create", "check", "upgrade", "finish", "start"}, s.Name) {
			short += s.Seconds
		}
		if s.Skipped != "" && s.Name != restore.StepAsk {
			r.Errorf("%s was left out: %s", s.Name, s.Skipped)
		}
	}
	want := []string{"unpack", "recover", "create", "check", "upgrade", "finish", "start", "databases",
		"amcheck", "ask"}
	if !slices.Equal(steps, want) {
		r.Errorf("the steps are %q", steps)
	}
	if difference := got.WithoutWrites - short; got.WithoutWrites <= 0 || difference > 0.01 || difference < -0.01 {
		r.Errorf("it would take %f s without writes, the steps of that %f", got.WithoutWrites, short)
	}
	if got.Bytes < 10<<20 || !strings.HasPrefix(got.From, "15.") || got.Commit.IsZero() {
		r.Errorf("the result is %+v", got)
	}
}

// A backup is restored, upgraded with all rows and looked through, while the server that it is of goes on. Problems are
// told, each in a sentence; that something is not known is no problem.
func TestRehearsal(t *testing.T) {
	i := newInstance(t, 15, "")
	i.start(i.Programs, i.Data.Path())
	i.fill()
	want := i.facts()
	into := i.archived()
	rows := shopAsks("rows", "select count(*) + (select sum(n) from late) from orders", "20001")

	r := i.restored(into, "")
	got, err := r.rehearse(17, "", rows)
	r.sound(got, err)
	if got.Method != protocol.MethodLink || !strings.HasPrefix(got.To, "17.") {
		t.Errorf("the result is %+v", got)
	}
	i.has(want)

	t.Run("an answer is not as wanted", func(t *testing.T) {
		i := &instance{t, i.Server}
		got, err := i.restored(into, "").rehearse(17, protocol.MethodCopy, rows,
			shopAsks("more", "select count(*) from orders", "20001"), shopAsks("none", "select * from nowhere", "1"))
		if err != nil || got.Error != "" || len(got.Problems) != 2 ||
			!strings.Contains(got.Problems[0], `more: it gives "20000", expected "20001"`) ||
			!strings.Contains(got.Problems[1], "none: ") || got.WithoutWrites == 0 {
			t.Errorf("it has found %q, %q, %v", got.Problems, got.Error, err)
		}
	})
	t.Run("the server of a question is killed", func(t *testing.T) {
		i := &instance{t, i.Server}
		got, err := i.restored(into, "").rehearse(17, "", rows,
			shopAsks("killed", "select pg_terminate_backend(pg_backend_pid())", "t"))
		notKnown(t, got, err)
	})
	t.Run("it is ended while it works", func(t *testing.T) {
		i := &instance{t, i.Server}
		r := i.restored(into, "")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if made, _ := filepath.Glob(filepath.Join(r.volume, "scratch/restore/data/*")); len(made) > 0 {
					cancel()
				}
				time.Sleep(time.Millisecond)
			}
		}()
		got, err := r.rehearseIn(ctx, 17, "")
		cancel()
		notKnown(t, got, err)
	})
}

// notKnown fails unless it is told that it is not known whether there are problems, so that another Pod tries.
func notKnown(t *testing.T, got protocol.RehearsalResult, err error) {
	t.Helper()
	if err == nil || process.Refused(err) || len(got.Problems) > 0 || got.Error == "" {
		t.Errorf("that it is not known is told as %q, %q, %v", got.Problems, got.Error, err)
	}
}

// What only a look at all rows, or at what pg_upgrade does with them, can show.
func TestARehearsalFindsWhatIsInTheWay(t *testing.T) {
	i := newInstance(t, 15, "")
	i.start(i.Programs, i.Data.Path())
	i.fill()
	// An order that is another one by now, as after a change of a library.
	i.do("shop", `create function ordered(a int, b int) returns int language sql immutable as 'select sign(a - b)::int';
create operator class ordered for type int using btree as operator 1 <, operator 2 <=, operator 3 =, operator 4 >=,
	operator 5 >, function 1 ordered(int, int);
create table damaged as select generate_series(1, 1000) as n;
create index damaged_n on damaged (n ordered);
create or replace function ordered(a int, b int) returns int language sql immutable as 'select sign(b - a)::int'`)
	into := i.archived()
	got, err := i.restored(into, "").rehearse(17, "")
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "damaged_n") ||
		got.WithoutWrites == 0 {
		t.Errorf("of an index out of order it says %q, %q, %v", got.Problems, got.Error, err)
	}
	i.do("shop", `create table refers (id int, what regproc)`)
	into = i.archived()
	got, err = i.restored(into, "").rehearse(17, "")
	if err != nil || len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "public.refers.what") ||
		got.WithoutWrites != 0 {
		t.Errorf("of what pg_upgrade refuses it says %q, %q, %v", got.Problems, got.Error, err)
	}
}

// A scratch volume that is full says nothing about the upgrade, and is told as what can't come true in another try.
func TestARehearsalWithoutRoomHasFoundNothing(t *testing.T) {
	folder := os.Getenv(smallVariable)
	if folder == "" {
		t.Skip("there is no small file system")
	}
	i := newInstance(t, 15, "")
	i.start(i.Programs, i.Data.Path())
	i.fill()
	into := i.archived()
	r := i.restored(into, folder)
	var stat syscall.Statfs_t
	must(t, syscall.Statfs(folder, &stat))
	filler, err := os.Create(filepath.Join(folder, "filler"))
	must(t, err)
	t.Cleanup(func() { must(t, os.Remove(filler.Name())) })
	must(t, syscall.Fallocate(int(filler.Fd()), 0, 0, int64(stat.Bavail)*stat.Bsize-(24<<20)))
	must(t, filler.Close())
	got, err := r.rehearse(17, protocol.MethodCopy)
	if !process.Refused(err) || len(got.Problems) > 0 || !strings.Contains(got.Error, "spec.backup.verification.size") {
		t.Errorf("it says %q, %q, %v", got.Problems, got.Error, err)
	}
}
