package upgrade_test

import (
	"context"
	"errors"
	"testing"

	"toban.dev/internal/wal"
)

// PostgreSQL changes the progress of an origin at once, and does not take that back with the transaction. A side that
// leaves may be cut off behind that, in the transaction that removes its subscription, and one that returns in the one
// that makes it. Neither forgets where it was, nor does it take a place that was another's.
func TestWhereASideWasIsNotForgottenByATransactionThatIsTakenBack(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	must(t, s.forward.Adopt(s.ctx))
	const name = "toban_to_green"
	at := func() string {
		return s.green.ask("shop", `select pg_replication_origin_progress('pg_' || s.oid, true)
			from pg_subscription s join pg_database d on d.oid = s.subdbid
			where d.datname = current_database() and s.subname = '`+name+`'`)
	}
	s.green.do("shop", "begin;\nselect pg_replication_origin_create('cut off');\n"+
		"select pg_replication_origin_advance('cut off', 'F/0');\nrollback")
	must(t, s.forward.Follow(s.ctx, 0))
	if got := at(); got != "" {
		t.Errorf("it has applied nothing, and is at %s", got)
	}
	must(t, s.forward.Subscriber().Remove(s.ctx))

	must(t, s.forward.Follow(s.ctx, position))
	must(t, s.forward.Subscriber().Enable(s.ctx))
	s.blue.do("shop", "insert into app.full values (1, 'once')")
	must(t, s.forward.CatchUp(s.ctx))
	s.cutOffRemoving(name, s.forward.Subscriber().Leave)
	if got := at(); got != "" {
		t.Logf("this PostgreSQL does not forget: it is at %s", got)
	}
	left := s.green.ask("shop", "select lsn from toban_sides.progress where link = '"+name+"'")
	if was, err := wal.ParseLSN(left); err != nil || was < position {
		t.Fatalf("it was at %s or later, and is noted at %q", position, left)
	}
	must(t, s.forward.Subscriber().Leave(s.ctx)) // again
	if got := s.green.ask("shop", "select lsn from toban_sides.progress where link = '"+name+"'"); got != left {
		t.Errorf("it was at %s, and is noted at %s", left, got)
	}
	must(t, s.forward.Return(s.ctx))
	if got := at(); got != left {
		t.Errorf("it was at %s, and goes on at %q", left, got)
	}
	must(t, s.forward.Subscriber().Enable(s.ctx))
	s.same(s.forward)

	s.blue.do("shop", "insert into app.full values (1, 'twice')")
	must(t, s.forward.CatchUp(s.ctx))
	s.cutOffRemoving(name, s.forward.Subscriber().Leave)
	left = s.green.ask("shop", "select lsn from toban_sides.progress where link = '"+name+"'")
	must(t, s.forward.Return(s.ctx)) // it has not left everywhere
	if got := at(); got != left {
		t.Errorf("it was at %s, and goes on at %q", left, got)
	}
	if n := s.green.ask("shop", "select count(*) from toban_sides.progress"); n != "0" {
		t.Errorf("there are %s notes of where it was", n)
	}
	must(t, s.forward.Subscriber().Enable(s.ctx))
	s.same(s.forward)

	// One that is removed for good does not go on from an earlier place.
	s.cutOffRemoving(name, s.forward.Subscriber().Remove)
	if got := s.green.ask("shop", "select bool_or(subenabled) from pg_subscription"); got != "false" {
		t.Errorf("who was cut off has left it enabled: %s", got)
	}
	must(t, s.forward.Subscriber().Remove(s.ctx))
}

// cutOffRemoving has who removes green's subscriptions cut off when nothing else is left to do, and then in that:
// PostgreSQL has dropped the origin by then, and takes back only that the subscription is gone.
func (s *sides) cutOffRemoving(name string, remove func(context.Context) error) {
	s.Helper()
	conn, err := s.green.dial("shop")
	must(s, err)
	defer conn.Close(context.Background())
	_, err = conn.Exec(s.ctx, "begin; lock table pg_replication_origin in share mode")
	must(s, err)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- remove(ctx) }()
	count := func(what string) string { return s.green.ask("postgres", "select count("+what) }
	waits := "from pg_stat_activity where wait_event_type = 'Lock' and query like '%drop subscription " + name + "'"
	s.until("only the origins are left to drop", func() bool {
		return count("*) "+waits) == count("*) from pg_subscription where subname = '"+name+"'")
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		s.Fatalf("it is removed: %v", err)
	}
	s.until("who was cut off has ended", func() bool {
		count("pg_terminate_backend(pid)) " + waits)
		return count("*) "+waits) == "0"
	})
	_, err = conn.Exec(s.ctx, "rollback")
	must(s, err)
	s.green.do("shop", "begin;\nalter subscription "+name+" set (slot_name = none);\ndrop subscription "+name+
		";\nrollback")
}
