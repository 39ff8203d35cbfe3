package server_test

import (
	"context"
	"testing"
	"time"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// endOfWAL waits until the end of WAL is known, and all of it is replayed. At no moment before, another is said to be
// it.
func (n *node) endOfWAL() (lsn wal.LSN) {
	n.Helper()
	s := n.session()
	defer s.Close()
	n.eventually("the end of WAL is replayed", func() bool {
		end, err := s.EndOfWAL(n.Context())
		must(n, err)
		if end.Known && lsn > 0 && end.LSN != lsn {
			n.Errorf("the end of WAL is %s, and was said to be %s", end.LSN, lsn)
		}
		if end.Known {
			lsn = end.LSN
		}
		return end.Known && end.Unreplayed == 0
	})
	return lsn
}

func (n *node) promote() {
	n.Helper()
	s := n.session()
	defer s.Close()
	n.settings.Standby, n.settings.Upstream = false, nil // as the agent does it: others may follow it then
	must(n, n.Configure(n.settings))
	must(n, n.process.Reload())
	begin := time.Now()
	must(n, s.Promote(within(n, deadline), nil))
	n.Logf("promotion of %s took %v", n.name, time.Since(begin))
}

func TestTheEndOfWALIsWhereTheNextTimelineForks(t *testing.T) {
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	stop := primary.load()
	defer stop()
	lsn := wal.LSN(0)
	for term := uint64(2); term <= 6; term++ {
		// A receiver may begin with the configuration of the term before, and finds no key: another one begins soon.
		standby.patient = false
		standby.follow(primary, term-1)
		standby.streams()
		// The receiver has just begun when it is stopped: the startup process then is in no hurry to read what it left.
		standby.patient = true
		standby.follow(primary, term-1)
		at := standby.state().Received
		standby.eventually("it has received more", func() bool { return standby.state().Received != at })
		must(t, standby.Revoke(term))
		must(t, standby.process.StopReceiving(within(t, deadline)))
		begin := time.Now()
		lsn = standby.endOfWAL()
		t.Logf("known after %v: %s, received %s", time.Since(begin), lsn, standby.state().Received)
	}
	standby.promote()
	if fork, err := standby.Data.WAL().Fork(2); err != nil || fork != lsn {
		t.Errorf("the new timeline begins at %s (%v), the end of WAL was said to be %s", fork, err, lsn)
	}
	s := primary.session()
	defer s.Close()
	if end, err := s.EndOfWAL(t.Context()); err != nil || !end.Known {
		t.Errorf("a primary does not know the end of its WAL: %v", err)
	}
}

func TestTheEndOfWALIsNotKnownWhileItIsReceived(t *testing.T) {
	_, standbys := pair(t, 1)
	s := standbys[0].session()
	defer s.Close()
	if end, err := s.EndOfWAL(t.Context()); end.Known || err != nil || end.LSN == 0 {
		t.Errorf("got %+v, %v", end, err)
	}
}

// A standby whose replay is paused says at once where its WAL ends, and replay ends there: after a long record, one
// that was cut off, and one that ends its segment.
func TestTheEndOfWALIsKnownBeforeItIsReplayed(t *testing.T) {
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	standby.settings.Parameters["max_wal_size"] = "64MB"
	primary.do("create table t (id bigserial, t text)")
	for term, write := range []string{
		"insert into t (t) select repeat(md5(i::text), 1 + i % 40) from generate_series(1, 60000) i",
		"select pg_logical_emit_message(false, 'long', repeat('x', 40000000))",
		"insert into t (t) select 'last'; select pg_switch_wal()",
	} {
		t.Run(write[:20], func(t *testing.T) {
			standby.follow(primary, uint64(term)+1)
			standby.streams()
			standby.do("select pg_wal_replay_pause()")
			standby.eventually("replay is paused", func() bool {
				primary.do("insert into t (t) select 'more'")
				return standby.ask("select pg_get_wal_replay_pause_state()") == "paused"
			})
			before := standby.state()
			stop := func() {}
			if term == 0 {
				stop = primary.load() // the stream is cut off wherever it is
			}
			primary.do(write)
			until := "'" + before.Received + "'::pg_lsn + 1000000"
			if term == 2 {
				until = "'" + primary.ask("select pg_current_wal_flush_lsn()") + "'"
			}
			standby.eventually("it has received it", func() bool {
				return standby.ask("select pg_last_wal_receive_lsn() >= "+until) == "true"
			})
			must(t, standby.Revoke(uint64(term)+2))
			standby.follow(nil, 0)
			must(t, standby.process.StopReceiving(within(t, deadline)))
			stop()
			standby.expectEnd(before.Replayed)
		})
	}
}

// expectEnd expects that the end of WAL is known at once, and that replay ends there.
func (n *node) expectEnd(paused string) {
	n.Helper()
	s := n.session()
	defer s.Close()
	begin := time.Now()
	end, err := s.EndOfWAL(n.Context())
	must(n, err)
	n.Logf("known after %v: %+v; received %s, replayed %s", time.Since(begin), end, n.state().Received, paused)
	if !end.Known || end.Unreplayed == 0 || n.state().Replayed != paused {
		n.Errorf("the end is %+v, and replay is at %s, was at %s", end, n.state().Replayed, paused)
	}
	must(n, s.HastenReplay(n.Context(), false))
	if got := n.endOfWAL(); got != end.LSN {
		n.Errorf("replay ends at %s, and the end was said to be %s", got, end.LSN)
	}
}

func TestAPromotedStandbySaysItsTimelineAndTheOthersFollow(t *testing.T) {
	primary, standbys := pair(t, 2)
	chosen, other := standbys[0], standbys[1]
	primary.do("create table t as select 1")
	primary.eventually("both have it", func() bool {
		return chosen.ask("select to_regclass('t')") != "" && other.ask("select to_regclass('t')") != ""
	})
	must(t, primary.process.Fence(within(t, deadline)))
	for _, s := range standbys {
		must(t, s.Revoke(2))
		must(t, s.process.StopReceiving(within(t, deadline)))
		s.follow(nil, 0)
	}
	end := chosen.endOfWAL()
	chosen.promote()
	if s := chosen.state(); s.InRecovery || s.Timeline != 2 || s.Received != "" || s.LSN == "" {
		t.Errorf("right after the promotion it says %+v", s)
	}
	if fork, err := chosen.Data.WAL().Fork(2); err != nil || fork != end {
		t.Errorf("timeline 2 begins at %s (%v), expected %s", fork, err, end)
	}
	chosen.slots(other)
	other.follow(chosen, 2)
	begin := time.Now()
	other.streams()
	t.Logf("streamed from the new primary after %v", time.Since(begin))
	chosen.do("create table u as select 1")
	other.eventually("it has what the new primary wrote",
		func() bool { return other.ask("select to_regclass('u')") != "" })
	if s := other.state(); s.Timeline != 2 || s.Received == "" || s.Replayed == "" {
		t.Errorf("the follower says %+v", s)
	}
}

func TestReplayThatWaitsForAReaderGoesOnWhenReadersAreEnded(t *testing.T) {
	for _, tracked := range []string{"on", "off"} {
		t.Run("track_activities "+tracked, func(t *testing.T) { endsReaders(t, tracked) })
	}
}

// endsReaders has replay wait for a reader whose activity is tracked or not.
func endsReaders(t *testing.T, tracked string) {
	t.Helper()
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	standby.patient = true
	standby.follow(primary, 1)
	primary.do("create table t as select i from generate_series(1, 1000) i")
	standby.eventually("it has the table", func() bool { return standby.ask("select to_regclass('t')") != "" })
	reader := standby.dial()
	defer reader.Close(context.Background()) // and not by the garbage collector, before its time
	_, err := reader.Exec(t.Context(), "set track_activities = "+tracked)
	must(t, err)
	_, err = reader.Exec(t.Context(), "begin isolation level repeatable read")
	must(t, err)
	_, err = reader.Exec(t.Context(), "select count(*) from t")
	must(t, err)
	primary.do("delete from t")
	const conflict = "select wait_event from pg_stat_activity where backend_type = 'startup'"
	standby.eventually("replay waits for the reader", func() bool {
		primary.do("vacuum t") // again, because somebody's snapshot may have kept the rows
		return standby.ask(conflict) == "RecoveryConflictSnapshot"
	})
	standby.follow(nil, 0)
	must(t, standby.process.StopReceiving(within(t, deadline)))
	s := standby.session()
	defer s.Close()
	if end, err := s.EndOfWAL(t.Context()); !end.Known || end.Unreplayed == 0 || err != nil {
		t.Errorf("while replay waits, the end is %+v, %v", end, err)
	}
	n, err := s.EndReaders(t.Context())
	must(t, err)
	if n != 1 {
		t.Errorf("%d readers were ended", n)
	}
	standby.endOfWAL()
	// From now on the limits are those of a standby without upstream.
	if n, err := s.EndReaders(t.Context()); err != nil || n != 0 {
		t.Errorf("%d readers were ended for nothing, %v", n, err)
	}
}

func TestAServerThatWasStoppedInOrderIsPromotedWithoutLoss(t *testing.T) {
	primary, standbys := pair(t, 1)
	primary.do("create table t as select 1")
	primary.stop(postgres.StopFast) // it waits until its standbys have everything
	standbys[0].endOfWAL()
	standbys[0].promote()
	if standbys[0].ask("select to_regclass('t')") == "" {
		t.Error("the last commit before an orderly stop is missing")
	}
}

// A standby that would ask for WAL again after an hour asks at once when it is woken; and a pause of its replay that
// somebody wants stays.
func TestAStandbyIsWoken(t *testing.T) {
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	standby.patient = true
	standby.follow(primary, 1)
	s := standby.session()
	defer s.Close()
	standby.eventually("it waits", func() bool { // it does where two receivers have ended one after the other
		primary.do("select pg_terminate_backend(pid) from pg_stat_replication")
		return standby.ask("select wait_event from pg_stat_activity where backend_type = 'startup'") ==
			"RecoveryRetrieveRetryInterval"
	})
	must(t, s.WakeIdle(t.Context()))
	standby.streams()
	standby.do("select pg_wal_replay_pause()")
	must(t, s.WakeIdle(t.Context()))
	if standby.ask("select pg_is_wal_replay_paused()") != "true" {
		t.Error("the pause has ended")
	}
}
