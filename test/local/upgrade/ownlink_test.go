package upgrade_test

import (
	"context"
	"slices"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/work/bluegreen"
)

// What others have made with the names of links is taken for none of ours: it is in the way, by a sentence, and stays
// as it is when a link is removed.
func TestWhatIsOnlyCalledAsALinkIsNotOurs(t *testing.T) {
	s := newBlue(t, 17)
	slot := "toban_to_green_" + s.blue.ask("shop", "select oid from pg_database where datname = current_database()")
	blue := s.blue.side("blue")
	publisher := bluegreen.Forward(blue, bluegreen.Side{}, "test").Publisher()
	publish := func(context.Context) error {
		_, err := publisher.Publish(s.ctx, deadline)
		return err
	}
	refused := func(what string, do func(context.Context) error, names string) {
		t.Helper()
		if err := do(s.ctx); !inTheWay(err, change.NameTaken, names) {
			t.Errorf("%s: it says %v, want %s", what, err, names)
		}
	}

	s.blue.do("shop", "create publication toban_to_green for table app.orders")
	refused("a publication of the superuser", publish, "shop")
	must(t, bluegreen.Cancel(s.ctx, blue))
	if n := s.blue.ask("shop", "select count(*) from pg_publication"); n != "1" {
		t.Errorf("there are %s publications, want that one", n)
	}
	s.blue.do("shop", "drop publication toban_to_green")

	s.blue.do("shop", "select pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
	refused("a slot", publish, slot)
	must(t, bluegreen.Cancel(s.ctx, blue))
	if got := s.blue.ask("shop", "select string_agg(slot_name, ' ') from pg_replication_slots"); got != slot {
		t.Errorf("the slots are %q, want that one", got)
	}
	s.blue.do("shop", "select pg_drop_replication_slot('"+slot+"')")

	position := s.publish()
	s.copyTo(position, 17)
	must(t, s.forward.Adopt(s.ctx))
	for name, make := range map[string]string{
		"one of a user": "grant pg_create_subscription to app;\ngrant create on database shop to app;\n" +
			"set role app;\ncreate subscription toban_to_green connection 'dbname=shop password=x' " +
			"publication toban_to_green with (connect = false, slot_name = 'toban_to_green_5')",
		"one that reads something else": "create subscription toban_to_green connection 'dbname=shop' " +
			"publication other with (connect = false, slot_name = 'toban_to_green_5')",
		"one that reads another slot": "create subscription toban_to_green connection 'dbname=shop' " +
			"publication toban_to_green with (connect = false, slot_name = 'other')",
	} {
		s.green.do("shop", make)
		follow := func(ctx context.Context) error { return s.forward.Follow(ctx, position) }
		for what, do := range map[string]func(context.Context) error{
			"follow": follow, "enable": s.forward.Subscriber().Enable, "leave": s.forward.Subscriber().Leave,
			"reconnect": s.forward.Reconnect,
		} {
			refused(name+": "+what, do, "shop: there is a subscription toban_to_green")
		}
		must(t, s.forward.Subscriber().Remove(s.ctx))
		n, err := strconv.Atoi(s.green.ask("postgres", "select count(*) from pg_subscription where not subenabled"))
		if err != nil || n != 1 {
			t.Errorf("%s: there are %d subscriptions, want that one", name, n)
		}
		s.green.do("shop", "alter subscription toban_to_green set (slot_name = none);\n"+
			"drop subscription toban_to_green")
	}
}

// A Pod may be killed while it waits for its slot, which PostgreSQL makes when the transactions have ended that were
// under way. Until then nothing is noted of it, and it is nobody else's.
func TestASlotThatIsBeingMadeIsOurs(t *testing.T) {
	s := newBlue(t, 17)
	s.publish()
	slot := "toban_to_green_" + s.blue.ask("shop", "select oid from pg_database where datname = current_database()")
	s.blue.do("shop", "select pg_drop_replication_slot('"+slot+"');\ndelete from toban_sides.slot")
	s.session("shop", "begin", "select txid_current()")
	making, stop := context.WithCancel(s.ctx)
	defer stop()
	session, ended := s.session("shop"), make(chan error, 1)
	go func() {
		_, err := session.Exec(making, "select pg_create_logical_replication_slot('"+slot+"', 'pgoutput')")
		ended <- err
	}()
	s.until("the slot is being made", func() bool {
		return s.blue.ask("shop", "select count(*) from pg_replication_slots where slot_name = '"+slot+"'") == "1"
	})
	facts, err := bluegreen.Examine(s.ctx, s.blue.side("blue"))
	must(t, err)
	for _, refusal := range change.CheckCarry(facts) {
		if slices.Contains(refusal.Objects, slot) {
			t.Errorf("it says %s: %v", refusal.Reason, refusal.Objects)
		}
	}
	stop()
	if err := <-ended; err == nil {
		t.Error("it was made though a transaction was under way")
	}
}

// A Pod may be killed when its slot is on disk, and not noted yet: the next one makes it anew, and no person has to.
func TestASlotThatWasNotNotedIsOurs(t *testing.T) {
	s := newBlue(t, 17)
	blue := s.blue.side("blue")
	publisher := bluegreen.Forward(blue, bluegreen.Side{}, "test").Publisher()
	s.publish()
	must(t, publisher.Remove(s.ctx))
	slot := "toban_to_green_" + s.blue.ask("shop", "select oid from pg_database where datname = current_database()")
	s.blue.do("shop", "delete from toban_sides.slot")
	former := s.session("shop", "begin", "select txid_current()")
	making, stop := context.WithCancel(s.ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		_, err := publisher.Publish(making, deadline)
		ended <- err
	}()
	is := func(that string) func() bool {
		return func() bool {
			return s.blue.ask("shop", "select count(*) from pg_replication_slots where slot_name = '"+slot+"' and "+
				that) == "1"
		}
	}
	s.until("the slot waits for a transaction", is("confirmed_flush_lsn is null"))
	holding := s.session("shop", "begin", "lock toban_sides.slot in share mode")
	_, err := former.Exec(s.ctx, "commit")
	must(t, err)
	s.until("the slot is made", is("confirmed_flush_lsn is not null"))
	stop()
	if err := <-ended; err == nil {
		t.Error("it is noted, though nobody could")
	}
	s.until("its session has ended", is("not active"))
	_, err = holding.Exec(s.ctx, "commit")
	must(t, err)

	facts, err := bluegreen.Examine(s.ctx, blue)
	must(t, err)
	for _, refusal := range change.CheckCarry(facts) {
		t.Errorf("it says %s: %v", refusal.Reason, refusal.Objects)
	}
	left := s.blue.ask("shop", "select confirmed_flush_lsn from pg_replication_slots where slot_name = '"+slot+"'")
	s.publish()
	if !is("confirmed_flush_lsn > '" + left + "'")() {
		t.Error("the slot is the one that nobody had noted")
	}
	must(t, bluegreen.Cancel(s.ctx, blue))
	if n := s.blue.ask("shop", "select count(*) from pg_replication_slots"); n != "0" {
		t.Errorf("%s slots are left", n)
	}
}

// While a slot is made, others change a schema: PostgreSQL 17 and 18 decode that, and leave the statement with another
// resource owner, by which an INSERT that has the slot as its source fails, behind a slot that nobody has noted.
func TestASlotIsMadeWhileASchemaChanges(t *testing.T) {
	s := newBlue(t, 17)
	waitsFor := func(xid string) {
		s.until("the slot waits for a transaction", func() bool {
			return s.blue.ask("postgres", "select count(*) from pg_locks where locktype = 'transactionid' "+
				"and not granted and transactionid::text = '"+xid+"'") != "0"
		})
	}
	begun := func() (*pgx.Conn, string) {
		session := s.session("shop", "begin")
		var xid string
		must(t, session.QueryRow(s.ctx, "select pg_current_xact_id()::text").Scan(&xid))
		return session, xid
	}
	end := func(session *pgx.Conn) {
		_, err := session.Exec(s.ctx, "commit")
		must(t, err)
	}
	former, xid := begun()
	made := make(chan error, 1)
	go func() {
		_, err := bluegreen.Forward(s.blue.side("blue"), bluegreen.Side{}, "test").Publisher().Publish(s.ctx, deadline)
		made <- err
	}()
	waitsFor(xid)
	later, xid := begun()
	end(former)
	waitsFor(xid) // from here on catalogs are decoded
	s.blue.do("postgres", "create table while_it_is_made (id int primary key)")
	end(later)
	must(t, <-made)
	s.publish() // again: each slot is noted
}
