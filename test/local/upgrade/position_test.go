package upgrade_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"toban.dev/internal/wal"
	"toban.dev/internal/work/bluegreen"
)

// A position may be anywhere behind the starts of the slots, also exactly where a commit begins: then that commit is
// not in the copy, and is sent.
func TestLongAPositionIsExact(t *testing.T) {
	for name, behind := range map[string]bool{"where a commit begins": false, "right behind its beginning": true} {
		t.Run(name, func(t *testing.T) {
			s := newBlue(t, 17)
			start := s.publish()
			s.blue.do("shop", "insert into app.emptied values (1);\ninsert into app.emptied values (2);\n"+
				"insert into app.emptied values (3)")
			position := s.blue.commits(start)[1]
			if behind {
				position++
			}
			s.copyTo(position, 17)
			want := "1"
			if behind {
				want = "2"
			}
			if got := s.green.ask("shop", "select count(*) from app.emptied"); got != want {
				t.Errorf("the copy has %s rows, want %s", got, want)
			}
			s.follow(position)
			must(t, s.forward.CatchUp(s.ctx))
			s.same(s.forward)
		})
	}
}

// commits are where the commits from a position on begin that have changed rows of the table app.emptied.
func (i *instance) commits(from wal.LSN) (all []wal.LSN) {
	i.Helper()
	end := i.ask("postgres", "select pg_current_wal_flush_lsn()")
	out, err := exec.Command(filepath.Join(i.Programs.Dir, "pg_waldump"), "--path", string(i.Data.WAL()),
		"--start", from.String(), "--end", end).CombinedOutput()
	if err != nil {
		i.Fatalf("pg_waldump: %v\n%s", err, out)
	}
	file := i.ask("shop", "select pg_relation_filenode('app.emptied')")
	line := regexp.MustCompile(`tx:\s+(\d+), lsn: ([0-9A-F]+/[0-9A-F]+).*desc: (\S+)`)
	wrote := map[string]bool{}
	for text := range strings.Lines(string(out)) {
		m := line.FindStringSubmatch(text)
		switch {
		case m == nil:
		case strings.HasPrefix(m[3], "INSERT") && strings.Contains(text, "/"+file+" "):
			wrote[m[1]] = true
		case m[3] == "COMMIT" && wrote[m[1]]:
			lsn, err := wal.ParseLSN(m[2])
			must(i, err)
			all = append(all, lsn)
		}
	}
	if len(all) != 3 {
		i.Fatalf("there are commits at %v in\n%s", all, out)
	}
	return all
}

// Whoever makes a link may be ended anywhere, and what was left half made is made whole by who comes next.
func TestLongALinkThatIsCutOffIsMadeWhole(t *testing.T) {
	s := newBlue(t, 17)
	s.forward = bluegreen.Forward(s.blue.side("blue"), bluegreen.Side{}, "test")
	var position wal.LSN
	cuts := s.cutOff(func(ctx context.Context) (err error) {
		position, err = s.forward.Publisher().Publish(ctx, deadline)
		return err
	})
	s.copyTo(position, 17)
	for _, make := range []func(context.Context) error{
		s.forward.Adopt,
		func(ctx context.Context) error { return s.forward.Follow(ctx, position) },
		s.forward.Subscriber().Enable,
		func(ctx context.Context) error { return s.forward.Prepare(ctx, s.back, deadline) },
	} {
		cuts += s.cutOff(make)
	}
	s.blue.do("shop", "insert into app.emptied select generate_series(1, 1000)")
	s.same(s.forward)
	cuts += s.cutOff(func(ctx context.Context) error { _, err := s.forward.Hand(ctx); return err })
	cuts += s.cutOff(func(ctx context.Context) error { return s.forward.Turn(ctx, s.back) })
	s.green.do("shop", "update app.orders set n = -n;\ndelete from app.emptied where id > 500")
	s.same(s.back)
	cuts += s.cutOff(func(ctx context.Context) error { return bluegreen.Cancel(ctx, s.blue.side("blue")) })
	if got := s.blue.ask("postgres", "select count(*) from pg_replication_slots"); got != "0" {
		t.Errorf("there are %s slots", got)
	}
	t.Logf("cut off %d times", cuts)
	if cuts < 30 {
		t.Errorf("it was cut off %d times only", cuts)
	}
}

// cutOff does something again and again, each time for a little longer, until it is done. It says how often it was cut
// off.
func (s *sides) cutOff(do func(context.Context) error) (n int) {
	s.Helper()
	for patience := time.Millisecond; ; patience += patience/8 + time.Millisecond {
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		err := do(ctx)
		cancel()
		switch {
		case err == nil:
			return n
		case patience > deadline:
			s.Fatal(err)
		case !errors.Is(err, context.DeadlineExceeded):
			s.Logf("cut off after %s: %v", patience, err)
		}
		n++
	}
}
