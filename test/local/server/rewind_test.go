package server_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"toban.dev/internal/postgres"
)

// part cuts a standby off and promotes it while the primary goes on alone:
// from then on their histories differ.
func part(primary, standby *node) {
	primary.Helper()
	primary.do("create table before as select i from generate_series(1, 1000) i")
	standby.eventually("it has the table", func() bool { return standby.ask("select to_regclass('before')") != "" })
	must(primary, standby.Revoke(2))
	must(primary, standby.process.StopReceiving(within(primary, deadline)))
	standby.endOfWAL()
	primary.do("create table tail as select i from generate_series(1, 1000) i; update before set i = -i")
	standby.promote()
	standby.do("create table after as select 1; update before set i = i + 1")
}

// checkpoint is what a new primary does soon after its promotion.
func (n *node) checkpoint() {
	n.Helper()
	s := n.session()
	defer s.Close()
	must(n, s.Checkpoint(n.Context()))
}

func (n *node) rewind(of *node) error {
	of.slots(n)
	return n.Rewind(within(n, deadline), n.upstream(of, 0), n.log)
}

// rejoined checks that a server follows the new primary and has nothing of its own.
func (n *node) rejoined(of *node) {
	n.Helper()
	if incomplete, err := n.Incomplete(); incomplete || err != nil {
		n.Fatalf("its data is incomplete: %v, %v", incomplete, err)
	}
	n.process = nil
	n.follow(of, 2)
	n.streams()
	of.do("create table if not exists last as select 1")
	n.eventually("it has what is written now", func() bool { return n.ask("select to_regclass('last')") != "" })
	if tail := n.ask("select to_regclass('tail')"); tail != "" {
		n.Error("it still has what nobody else has")
	}
	if sum, want := n.ask("select sum(i) from before"), of.ask("select sum(i) from before"); sum != want {
		n.Errorf("the sum is %s, on the primary %s", sum, want)
	}
}

func TestAnOldPrimaryWithATailOfItsOwnRejoins(t *testing.T) {
	for name, end := range map[string]func(n *node){
		"stopped in order": func(n *node) {
			n.keepWAL()
			n.stop(postgres.StopFast)
		},
		"killed": func(n *node) {
			must(n, syscall.Kill(n.postmaster(), syscall.SIGKILL))
			must(n, n.process.Fence(within(n, deadline)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			primary, standbys := pair(t, 1)
			part(primary, standbys[0])
			standbys[0].checkpoint()
			end(primary)
			must(t, primary.rewind(standbys[0]))
			primary.rejoined(standbys[0])
		})
	}
}

func TestAKilledStandbyThatReceivedTheTailRejoins(t *testing.T) {
	primary, standbys := pair(t, 2)
	chosen, other := standbys[0], standbys[1]
	part(primary, chosen)
	chosen.checkpoint()
	other.eventually("it has the tail", func() bool { return other.ask("select to_regclass('tail')") != "" })
	must(t, syscall.Kill(other.postmaster(), syscall.SIGKILL))
	must(t, other.process.Fence(within(t, deadline)))
	must(t, other.rewind(chosen))
	other.rejoined(chosen)
}

func TestRewindFromASourceWithoutCheckpointDoesNotPassForDone(t *testing.T) {
	primary, standbys := pair(t, 1)
	// The checkpoint after the promotion shall take its time.
	primary.keepWAL()
	primary.do("create table big as select i, repeat('x', 500) from generate_series(1, 20000) i")
	part(primary, standbys[0])
	primary.stop(postgres.StopFast)
	err := primary.rewind(standbys[0])
	if standbys[0].Programs.Major <= 15 && standbys[0].ask("select timeline_id from pg_control_checkpoint()") == "1" &&
		!errors.Is(err, postgres.ErrSameTimeline) {
		t.Errorf("the source has no checkpoint, and the rewind says %v", err)
	}
	if err != nil {
		if incomplete, err := primary.Incomplete(); incomplete || err != nil {
			t.Fatalf("nothing was done, and it is incomplete: %v, %v", incomplete, err)
		}
		standbys[0].checkpoint()
		must(t, primary.rewind(standbys[0]))
	}
	primary.rejoined(standbys[0])
}

func TestRewindImpossibleWithoutItsWALAndACloneHelps(t *testing.T) {
	primary, standbys := pair(t, 1)
	part(primary, standbys[0])
	standbys[0].checkpoint()
	for range 3 {
		primary.do("select pg_switch_wal(); create table if not exists more (); checkpoint")
	}
	primary.stop(postgres.StopFast)
	files, err := filepath.Glob(filepath.Join(primary.Data.Path(), "pg_wal", "00000001*"))
	must(t, err)
	for _, file := range files[:len(files)-2] {
		must(t, os.Remove(file))
	}
	if err := primary.rewind(standbys[0]); err == nil {
		t.Fatal("it was rewound without its WAL")
	}
	if incomplete, err := primary.Incomplete(); incomplete || err != nil {
		t.Errorf("nothing was changed, and it is incomplete: %v, %v", incomplete, err)
	}
	must(t, primary.Clone(t.Context(), primary.upstream(standbys[0], 0), never, primary.log))
	primary.rejoined(standbys[0])
}

func TestRewindOfAnUnreachableSourceChangesNothing(t *testing.T) {
	primary, standbys := pair(t, 1)
	primary.stop(postgres.StopFast)
	standbys[0].stop(postgres.StopFast)
	err := primary.Rewind(within(t, deadline), primary.upstream(standbys[0], 0), primary.log)
	if !errors.Is(err, postgres.ErrUnreached) {
		t.Fatalf("of a rewind from nobody it says %v", err)
	}
	if incomplete, err := primary.Incomplete(); incomplete || err != nil {
		t.Errorf("it is incomplete: %v, %v", incomplete, err)
	}
	primary.lead("")
}

// watcher calls at when a text has been written.
type watcher struct {
	seen string
	at   map[string]func()
}

func (w *watcher) Write(p []byte) (int, error) {
	w.seen += string(p)
	for text, call := range w.at {
		if strings.Contains(w.seen, text) {
			delete(w.at, text)
			call()
		}
	}
	return len(p), nil
}

func TestARewindThatIsKilledInTheMiddleLeavesDataThatOnlyACloneCures(t *testing.T) {
	primary, standbys := pair(t, 1)
	source := standbys[0]
	primary.keepWAL()
	part(primary, source)
	// Takes a while to read in the WAL.
	primary.do("create table wide as select i, repeat('x', 500) from generate_series(1, 50000) i")
	source.checkpoint()
	primary.stop(postgres.StopFast)
	source.slots(primary)
	ctx, kill := context.WithCancel(t.Context())
	defer kill()
	held := 0
	hold := func() { // the source stops answering before anything is copied
		held, _ = strconv.Atoi(source.ask("select pid from pg_stat_activity where application_name = 'toban-rewind'"))
		must(t, syscall.Kill(held, syscall.SIGSTOP))
	}
	failed := primary.Rewind(ctx, primary.upstream(source, 0),
		&watcher{at: map[string]func(){"reading WAL in target": hold, "need to copy": kill}})
	if failed == nil {
		t.Fatal("a rewind that was killed has succeeded")
	}
	must(t, syscall.Kill(held, syscall.SIGCONT))
	if incomplete, err := primary.Incomplete(); !incomplete || err != nil {
		t.Fatalf("its data passes for whole (%v) after %v", err, failed)
	}
	if _, err := primary.Start(t.Context(), primary.log); err == nil {
		t.Fatal("a server was started on half of its data")
	}
	if err := primary.rewind(source); err == nil {
		t.Fatal("it was rewound a second time")
	}
	must(t, primary.Clone(t.Context(), primary.upstream(source, 0), never, primary.log))
	primary.rejoined(source)
}

// The source has followed over one promotion and was then promoted itself, a moment ago: in PostgreSQL 15 its control
// file still names the first timeline, by which a rewind would leave data that can't be started.
func TestRewindDoesNotGoByATimelineThatTheSourceHasLeft(t *testing.T) {
	primary, standbys := pair(t, 2)
	former, next := standbys[0], standbys[1]
	former.streams() // else it may not have all that the other one has when the primary stops
	next.streams()
	primary.stop(postgres.StopFast)
	cut := func(n *node, term uint64) {
		must(t, n.Revoke(term))
		must(t, n.process.StopReceiving(within(t, deadline)))
		n.endOfWAL()
	}
	former.keepWAL()
	cut(former, 2)
	former.promote()
	former.slots(next)
	next.follow(former, 2)
	next.streams()
	former.do("create table before as select i from generate_series(1, 200000) i")
	next.eventually("it has the table", func() bool { return next.ask("select to_regclass('before')") != "" })
	cut(next, 3)
	former.do("create table tail as select i from generate_series(1, 1000) i; update before set i = -i")
	former.stop(postgres.StopFast)
	next.promote()
	err := former.rewind(next)
	if next.Programs.Major <= 15 && next.ask("select timeline_id from pg_control_checkpoint()") != "3" &&
		!errors.Is(err, postgres.ErrSameTimeline) {
		t.Errorf("the source has no checkpoint, and the rewind says %v", err)
	}
	next.checkpoint()
	if err != nil {
		must(t, former.rewind(next))
	}
	former.rejoined(next)
}
