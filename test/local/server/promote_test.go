package server_test

import (
	"context"
	"testing"
	"time"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// endOfWAL waits until the end of WAL is known.
func (n *node) endOfWAL() (lsn wal.LSN) {
	n.Helper()
	s := n.session()
	defer s.Close()
	n.eventually("the end of WAL is known", func() bool {
		at, known, err := s.EndOfWAL(n.Context())
		must(n, err)
		lsn = at
		return known
	})
	return lsn
}

func (n *node) promote() {
	n.Helper()
	s := n.session()
	defer s.Close()
	begin := time.Now()
	must(n, s.Promote(within(n, deadline)))
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
	if _, known, err := s.EndOfWAL(t.Context()); err != nil || !known {
		t.Errorf("a primary does not know the end of its WAL: %v", err)
	}
}

func TestTheEndOfWALIsNotKnownWhileItIsReceived(t *testing.T) {
	_, standbys := pair(t, 1)
	s := standbys[0].session()
	defer s.Close()
	if lsn, known, err := s.EndOfWAL(t.Context()); known || err != nil || lsn == 0 {
		t.Errorf("got %q, %v, %v", lsn, known, err)
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
	primary, standbys := pair(t, 1)
	standby := standbys[0]
	standby.patient = true
	standby.follow(primary, 1)
	primary.do("create table t as select i from generate_series(1, 1000) i")
	standby.eventually("it has the table", func() bool { return standby.ask("select to_regclass('t')") != "" })
	reader := standby.dial()
	defer reader.Close(context.Background()) // and not by the garbage collector, before its time
	_, err := reader.Exec(t.Context(), "begin isolation level repeatable read")
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
	if _, known, err := s.EndOfWAL(t.Context()); known || err != nil {
		t.Errorf("the end is known (%v) while replay waits", err)
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
