package upgrade_test

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"toban.dev/internal/protocol"
	"toban.dev/internal/work/bluegreen"
)

// The side that follows leaves, is upgraded in place while the other one is written all the time, and returns: nothing
// is missing, and nothing is there twice, wherever either was cut off.
func TestLongASideLeavesIsUpgradedAndReturns(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.do("postgres", "create database bare;\ncreate database held")
	for _, database := range []string{"bare", "held", "template1"} { // an upgrade makes public anew
		s.blue.do(database, "drop schema public")
	}
	c := &clients{sides: s}
	c.write(s.blue)
	position := s.publish()
	s.copyTo(position, 18)
	s.follow(position)
	must(t, s.forward.Prepare(s.ctx, s.back, deadline))
	s.change(c, s.forward, s.back, s.green)
	s.untilWritten(c, 100)
	must(t, s.back.CatchUp(s.ctx)) // a busy machine may have applied nothing yet: then there is no place to note

	cuts := s.cutOff(s.back.Subscriber().Leave)
	left := s.blue.ask("shop", "select lsn from toban_sides.progress where link = 'toban_to_blue'")
	must(t, s.back.Subscriber().Leave(s.ctx)) // again, and nothing is forgotten
	if got := s.blue.ask("shop", "select lsn from toban_sides.progress"); got != left || got == "0/0" {
		t.Errorf("it is noted at %q, and was at %q", got, left)
	}
	if n := s.blue.ask("postgres", "(select count(*) from pg_subscription) + (select count(*) from "+
		"pg_replication_slots) + (select count(*) from pg_replication_origin)"); n != "0" {
		t.Errorf("%s of the link are on the side that has left", n)
	}
	s.untilWritten(c, 100)
	s.closes(s.blue, false)
	s.blue.forgetVersions()
	s.stopBlue(syscall.SIGINT)
	o, _ := s.blue.process(18, protocol.MethodLink, "", false)
	if o.Error != "<nil>" {
		t.Fatal(o.Error)
	}
	s.blue.start(programs(t, 18), filepath.Join(s.blue.Data.Volume, "restore", "data"))
	s.untilWritten(c, 100)
	if n := s.blue.ask("bare", "select count(*) from pg_namespace where nspname = 'public'"); n != "1" {
		t.Error("the upgrade has made no schema public")
	}
	s.blue.do("held", "set event_triggers = off;\ncreate type public.mine as enum ()")

	cuts += s.cutOff(s.back.Return)
	t.Logf("cut off %d times", cuts)
	must(t, s.back.Subscriber().Enable(s.ctx))
	must(t, s.back.CatchUp(s.ctx))
	t.Logf("home, while it is written: %+v", s.same(s.back))
	c.stop()
	if err := s.back.Look(s.ctx); !inTheWay(err, bluegreen.DefinitionsDiffer, "held: schema public (only on blue)") {
		t.Errorf("a schema public that holds something: it says %v", err)
	}
	s.blue.do("held", "set event_triggers = off;\ndrop schema public cascade")
	must(t, s.back.Look(s.ctx))
	if n := s.blue.ask("bare", "select count(*) from toban_sides.noted where object = 'public'"); n != "0" {
		t.Errorf("the schema public is in %s notes", n)
	}
	_, err := s.back.Hand(s.ctx)
	must(t, err)
	c.hasAll(s.blue)
	s.same(s.back)
	if n := s.blue.ask("shop", "select count(*) from toban_sides.progress"); n != "0" {
		t.Errorf("there are %s notes of where it was", n)
	}
	// A side that has not left can't return.
	must(t, s.back.Subscriber().Remove(s.ctx))
	if err := s.back.Return(s.ctx); !errors.Is(err, bluegreen.ErrMissing) {
		t.Errorf("it says %v", err)
	}
	must(t, bluegreen.Cancel(context.WithoutCancel(s.ctx), s.blue.side("blue")))
	if n := s.blue.ask("shop", "select count(*) from pg_namespace where nspname = 'toban_sides'"); n != "0" {
		t.Error("the schema toban_sides is left")
	}
}
