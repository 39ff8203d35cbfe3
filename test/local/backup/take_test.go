package backup_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"toban.dev/internal/archive/book"
	"toban.dev/internal/archive/format"
	"toban.dev/internal/archive/restore"
	"toban.dev/internal/archive/take"
)

// silent is a server that does not answer.
type silent struct{}

func (silent) Position(context.Context) (restore.Position, error) {
	return restore.Position{InRecovery: true, LSN: 1 << 40}, nil
}

func TestABackupThatEndsAnywhereIsNoneAndTheNextOneWorks(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, "")
	broken := errors.New("broken")
	for _, point := range take.PointsOfTake {
		o := a.options()
		o.At = func(at string) error {
			if at == point {
				return broken
			}
			return nil
		}
		if _, err := take.Take(t.Context(), o); !errors.Is(err, broken) {
			t.Errorf("at %s the error is %v", point, err)
		}
		c, err := book.Read(t.Context(), a)
		must(t, err)
		if exists := len(c.Backups) == 1; exists != (point == "written") || len(c.Strangers) > 0 || len(c.Unread) > 0 {
			t.Errorf("after %s there are %d backups, %v, %v", point, len(c.Backups), c.Strangers, c.Unread)
		}
		_, err = take.Clean(t.Context(), a)
		must(t, err)
		if c, err = book.Read(t.Context(), a); err != nil || len(c.Unfinished) > 0 {
			t.Errorf("after %s %v is left, %v", point, c.Unfinished, err)
		}
		source.wait("after "+point+" the server still sends", "select count(*) = 0 from pg_stat_progress_basebackup")
	}
	b := a.take()
	must(t, a.unpack(b, newNode(t)))
}

func TestACancelledBackupEnds(t *testing.T) {
	a := newArchive(t, primary(t), "")
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int32
	o := a.options()
	o.At = func(point string) error {
		if point == "piece" && n.Add(1) == 1 {
			cancel()
		}
		return nil
	}
	if _, err := take.Take(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// A backup that another one cleaned away while it was waiting must not come to exist.
func TestABackupWhoseObjectsWereRemovedIsNone(t *testing.T) {
	a := newArchive(t, primary(t), "")
	o := a.options()
	o.At = func(point string) error {
		if point == "wal" {
			_, err := take.Clean(t.Context(), a)
			return err
		}
		return nil
	}
	_, err := take.Take(t.Context(), o)
	var object *format.ObjectError
	if !errors.As(err, &object) || object.What != format.Missing {
		t.Errorf("the error is %v", err)
	}
}

// A backup that is to be proved counts when a restore could begin with it, as it lies in the bucket.
func TestABackupThatCannotBeReadIsNone(t *testing.T) {
	a := newArchive(t, primary(t), "")
	altered := ""
	o := a.options()
	o.Prove, o.Decoder = true, a.decoder
	o.At = func(point string) error {
		if point != "wal" || altered == "" {
			return nil
		}
		for object, err := range a.List(t.Context(), format.FolderBase) {
			if err == nil && strings.HasSuffix(object.Name, altered) {
				return a.Put(t.Context(), object.Name, make([]byte, object.Size))
			}
		}
		return fmt.Errorf("there is no %s", altered)
	}
	for _, altered = range []string{"backup_manifest.zst", "base.tar.00000.zst"} {
		_, err := take.Take(t.Context(), o)
		var object *format.ObjectError
		if !errors.As(err, &object) || object.What != format.Altered || !strings.HasSuffix(object.Name, altered) {
			t.Errorf("with another %s the error is %v", altered, err)
		}
		if _, err := take.Clean(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	altered = ""
	b, err := take.Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	catalogue, err := book.Read(t.Context(), a)
	if err != nil || len(catalogue.Backups) != 1 || catalogue.Backups[0].ID != b.ID {
		t.Errorf("there are %v, %v", catalogue.Backups, err)
	}
}

// A standby that is promoted while it is copied.
func TestAStandbyThatIsPromotedMeanwhileGivesNoBackup(t *testing.T) {
	a := newArchive(t, primary(t), "")
	b := a.take()
	r := a.restore(b, book.Target{})
	_, err := r.recover()
	must(t, err)
	copied := newArchive(t, r.node, "")
	o := copied.options()
	o.At = func(point string) error {
		if point == "started" {
			r.do("select pg_promote()")
		}
		return nil
	}
	if _, err := take.Take(t.Context(), o); !errors.Is(err, take.ErrPromoted) {
		t.Errorf("the error is %v", err)
	}
}

func TestAVerificationSaysWhatItFound(t *testing.T) {
	source := primary(t)
	a := newArchive(t, source, newKey(t))
	b := a.take()
	source.do("insert into t values (2)")
	a.archiveWAL()
	two := "2"
	run := newNode(t)
	o := restore.VerifyOptions{Bucket: a, Decoder: a.decoder, Chain: []format.Backup{b}, Plan: a.plan(b),
		Folder: filepath.Join(run.Data.Volume, "scratch"),
		Run:    run.Server.Run, Programs: run.Programs, Log: run.log, Workers: 2}
	asked := []restore.Assertion{
		{Name: "rows", Database: "postgres", SQL: "select count(*) from t", Want: &two},
		{Name: "any", Database: "postgres", SQL: "select i from t order by 1"}}
	must(t, os.Mkdir(o.Folder, 0o700))
	report, err := verify(t, o, asked...)
	if err != nil {
		t.Fatalf("%v\n%s", err, run.log)
	}
	t.Logf("%+v", report)
	if len(report.Steps) != 5 || report.LSN == "" || report.Commit.IsZero() || len(report.Answers) != 2 ||
		report.Answers[1].Rows != 2 {
		t.Errorf("the report is %+v", report)
	}
	asked[0].Want = new(string)
	must(t, os.RemoveAll(o.Folder))
	must(t, os.Mkdir(o.Folder, 0o700))
	report, err = verify(t, o, asked...)
	if err == nil || !strings.Contains(err.Error(), `rows: it gives "2", expected ""`) {
		t.Errorf("the error is %v, the report %+v", err, report)
	}
}

var byHand = regexp.MustCompile("(?s)<!-- by-hand:begin -->\n```bash\n(.*)```\n<!-- by-hand:end -->")

// The script of docs/restore.md is run as it stands there, with nothing of Toban.
func TestTheWayBackByHand(t *testing.T) {
	for name, c := range map[string]struct {
		key              string
		incremental      bool
		segmentsAreParts bool // up to their ends, as they are where they fill slowly
	}{
		"compressed":  {"", false, false},
		"parts":       {"", false, true},
		"encrypted":   {newKey(t), false, true},
		"incremental": {newKey(t), true, false},
		"two keys":    {newKey(t) + "\n" + newKey(t), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			source := (*node)(nil)
			if c.incremental {
				source = primaryOf(t, release(t, 17), map[string]string{"summarize_wal": "on"})
			} else {
				source = primary(t)
			}
			a := newArchive(t, source, c.key)
			a.onlyParts = c.segmentsAreParts
			last := a.take()
			for range 2 {
				if c.incremental {
					time.Sleep(time.Second) // the newest is the last by its name
					source.change()
					last = a.takeSince(&last)
				}
			}
			if strings.Contains(c.key, "\n") {
				a.rotate(c.key)
			}
			source.do("insert into t values (2); select pg_switch_wal(); insert into t values (3)")
			a.archiveWAL()
			want, rows := source.contents(), source.rows()
			source.stop()
			n := a.byHand(c.key)
			if n.contents() != want || n.rows() != rows {
				t.Errorf("it has rows %s and %s\nexpected %s and %s", n.rows(), n.contents(), rows, want)
			}
		})
	}
}

// byHand restores with the script and some variables for it, and is the server that it leads to.
func (a *archive) byHand(key string, variables ...string) *node {
	a.Helper()
	script := byHand.FindStringSubmatch(os.Getenv(manualVariable))
	if script == nil {
		a.Fatal("docs/restore.md has no script between the marks")
	}
	n := newNodeOf(a.T, a.source.Programs)
	for name, content := range a.objects {
		file := filepath.Join(n.Data.Volume, "archive", name)
		must(a, os.MkdirAll(filepath.Dir(file), 0o700))
		must(a, os.WriteFile(file, content, 0o600))
	}
	must(a, os.WriteFile(filepath.Join(n.Data.Volume, "age.key"), []byte(key+"\n"), 0o600))
	log, err := os.Create(filepath.Join(n.Data.Volume, "log"))
	must(a, err)
	defer log.Close()
	cmd := exec.CommandContext(a.Context(), "bash", "-euo", "pipefail", "-c", script[1])
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.Data.Volume, log, log // a file: the server holds it open
	cmd.Env = append(append(os.Environ(), "PATH="+n.Programs.Dir+":"+os.Getenv("PATH")), variables...)
	a.Cleanup(func() {
		_ = exec.Command(filepath.Join(n.Programs.Dir, "pg_ctl"), "-D", n.Data.Path(), "-m", "immediate", "stop").Run()
	})
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		a.Fatalf("%v\n%s", err, said)
	}
	n.Server.Run = a.socket
	n.eventuallyOutOfRecovery()
	return n
}
