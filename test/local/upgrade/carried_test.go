package upgrade_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/wal"
	"toban.dev/internal/work/bluegreen"
)

// A table and a partition whose CREATE is under way when the tables are listed are in the copy, because the slots wait
// for that transaction. They are carried too.
func TestATableThatIsBeingMadeIsCarried(t *testing.T) {
	s := newBlue(t, 17)
	migration := s.session("shop", "begin", "create table app.inflight (id int primary key, v text)",
		"create table app.parts_3 partition of app.parts for values from ('2027-01-01') to ('2028-01-01')",
		"insert into app.inflight values (1, 'in the copy')")
	position := make(chan wal.LSN, 1)
	s.forward = bluegreen.Forward(s.blue.side("blue"), bluegreen.Side{}, "test")
	go func() {
		at, err := s.forward.Publisher().Publish(s.ctx, deadline)
		if err != nil {
			t.Error(err)
		}
		position <- at
	}()
	s.until("a slot waits for the transaction", func() bool {
		return s.blue.ask("postgres", "select count(*) from pg_replication_slots s join pg_locks l on "+
			"l.pid = s.active_pid where l.locktype = 'transactionid' and not l.granted") != "0"
	})
	s.does(migration, "commit")
	at := <-position
	if t.Failed() {
		return
	}
	s.copyTo(at, 17)
	s.closes(s.green, true)
	s.follow(at)
	s.blue.do("shop", `insert into app.inflight values (2, 'acknowledged');
insert into app.parts values (9000, '2027-05-05')`)
	must(t, s.forward.CatchUp(s.ctx))
	for query, want := range map[string]string{
		"select string_agg(v, ', ' order by id) from app.inflight": "in the copy, acknowledged",
		"select count(*) from app.parts where id = 9000":           "1",
	} {
		if got := s.green.ask("shop", query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	s.same(s.forward)
	must(t, s.forward.Look(s.ctx))
}

// One that has nothing by which a row is found is not published, however late it is seen: PostgreSQL would refuse its
// UPDATE. Whoever tries again begins anew.
func TestATableWithoutAKeyThatIsBeingMadeIsRefused(t *testing.T) {
	s := newBlue(t, 17)
	s.publish()
	s.blue.do("shop", "drop publication toban_to_green")
	s.blue.do("shop", "create publication toban_to_green for table only toban_sides.barrier, only app.orders")
	s.blue.do("shop", "create table app.late (n int);\ninsert into app.late values (1)")
	_, err := s.forward.Publisher().Publish(s.ctx, deadline)
	if !inTheWay(err, change.NoReplicaIdentity, "app.late") {
		t.Errorf("it says %v", err)
	}
	s.blue.do("shop", "update app.late set n = 2;\ndrop table app.late")
	s.publish()
	if got := s.blue.ask("shop", "select count(*) from pg_publication_tables where schemaname = 'app'"); got != "7" {
		t.Errorf("%s tables are published", got)
	}
}

// A schema that a user has called toban is carried as any other, also in the database postgres. What Toban itself keeps
// there differs from side to side.
func TestASchemaThatIsCalledTobanIsCarried(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.do("shop", `create schema toban authorization app;
set role app;
create table toban.claim (id int primary key, who text);
insert into toban.claim values (1, 'before the position');
create sequence toban.counter`)
	s.blue.do("postgres", `create schema toban;
create table toban.claim (kind text, name text, primary key (kind, name));
create table toban.ours (id int primary key)`)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	s.blue.do("shop", `insert into toban.claim values (2, 'acknowledged');
update toban.claim set who = 'changed' where id = 1;
select setval('toban.counter', 4711)`)
	s.blue.do("postgres", "insert into toban.claim values ('database', 'shop');\ninsert into toban.ours values (1)")
	must(t, s.forward.CatchUp(s.ctx))
	_, err := s.forward.CarrySequences(s.ctx)
	must(t, err)
	for _, c := range []struct{ database, query, want string }{
		{"shop", "select string_agg(who, ', ' order by id) from toban.claim", "changed, acknowledged"},
		{"shop", "select last_value from toban.counter", "4711"},
		{"postgres", "select count(*) from toban.claim", "0"},
		{"postgres", "select count(*) from toban.ours", "1"},
	} {
		if got := s.green.ask(c.database, c.query); got != c.want {
			t.Errorf("%s: %s: %s, want %s", c.database, c.query, got, c.want)
		}
	}
	s.same(s.forward)
	must(t, s.forward.Look(s.ctx))
	s.blue.do("postgres", "alter table toban.claim add column made boolean;\ndrop table toban.claim")
	must(t, s.forward.Look(s.ctx))
	s.blue.do("shop", "alter table toban.claim add column more int")
	s.blue.do("postgres", "alter table toban.ours add column more int")
	noted, err := bluegreen.Noted(s.ctx, s.blue.side("blue"))
	must(t, err)
	if got := strings.Join(noted, "; "); got != "postgres: ALTER TABLE toban.ours; shop: ALTER TABLE toban.claim" {
		t.Errorf("noted is %q", got)
	}
}

// What is carried is compared with what is there, on both sides: before a change, and by each comparison.
func TestATableThatIsNotCarriedStopsTheChange(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	must(t, s.forward.CatchUp(s.ctx))
	const unnoticed = "set event_triggers = off;\n"
	for _, c := range []struct{ blue, green, undoBlue, undoGreen, names string }{
		{unnoticed + "alter publication toban_to_green drop table app.orders", "",
			unnoticed + "alter publication toban_to_green add table only app.orders", "",
			"shop: app.orders is not published"},
		{unnoticed + "create table app.later (n int primary key)", "", unnoticed + "drop table app.later", "",
			"shop: app.later is not published, app.later is not on green"},
		{unnoticed + "create table app.later (n int primary key);\n" +
			"alter publication toban_to_green add table app.later",
			unnoticed + "create table app.later (n int primary key)", unnoticed + "drop table app.later",
			unnoticed + "drop table app.later", "shop: app.later is not followed"},
		{"", unnoticed + "create table app.later (n int primary key)", "", unnoticed + "drop table app.later",
			"shop: app.later is not on blue"},
	} {
		s.blue.do("shop", c.blue)
		s.green.do("shop", c.green)
		_, compared := s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: time.Second, Patience: deadline})
		for what, err := range map[string]error{"the look": s.forward.Look(s.ctx), "the comparison": compared} {
			if !inTheWay(err, bluegreen.TablesDiffer, c.names) {
				t.Errorf("after %q and %q %s says %v, want %s", c.blue, c.green, what, err, c.names)
			}
		}
		s.blue.do("shop", c.undoBlue)
		s.green.do("shop", c.undoGreen)
	}
	must(t, s.forward.Look(s.ctx))
}

// Sides do not change while somebody is on the closed one, and what is committed there after the barrier all the same
// comes along before the link ends.
func TestTheClosedSideHasTheLastWord(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	must(t, s.forward.Prepare(s.ctx, s.back, deadline))
	person := s.session("shop", "set application_name = 'kubectl toban psql'")
	for patience := time.Second; ; patience *= 2 { // a busy machine takes longer before it comes to that
		hurry, cancel := context.WithTimeout(s.ctx, patience)
		_, err := s.forward.Hand(hurry)
		cancel()
		if inTheWay(err, bluegreen.ClientsThere, "kubectl toban psql") {
			break
		}
		if err == nil || patience > deadline {
			t.Fatalf("with somebody on blue it says %v", err)
		}
	}
	must(t, person.Close(s.ctx))
	_, err := s.forward.Hand(s.ctx)
	must(t, err)

	// Green serves from now on. One who was not seen commits on blue; and blue stops for a moment to be read.
	s.green.do("shop", "alter subscription "+s.forward.Subscriber().Name+" disable")
	s.blue.do("shop", "insert into app.acknowledged values (9, 1)")
	s.green.do("shop", "insert into app.acknowledged values (8, 1)")
	must(t, s.forward.Subscriber().Enable(s.ctx))
	for range 2 { // whoever was cut off does it again
		must(t, s.forward.Turn(s.ctx, s.back))
	}
	must(t, s.back.CatchUp(s.ctx))
	for name, i := range map[string]*instance{"green": s.green, "blue": s.blue} {
		if got := i.ask("shop", "select count(*) from app.acknowledged where writer in (8, 9)"); got != "2" {
			t.Errorf("%s has %s of the rows", name, got)
		}
	}
	s.same(s.back)

	// So it is on the way back.
	must(t, s.back.Prepare(s.ctx, s.forward, deadline))
	_, err = s.back.Hand(s.ctx)
	must(t, err)
	s.blue.do("shop", "alter subscription "+s.back.Subscriber().Name+" disable")
	s.green.do("shop", "insert into app.acknowledged values (7, 1)")
	must(t, s.back.Subscriber().Enable(s.ctx))
	must(t, s.back.LastWord(s.ctx))
	must(t, bluegreen.Cancel(s.ctx, s.blue.side("blue")))
	if got := s.blue.ask("shop", "select count(*) from app.acknowledged where writer = 7"); got != "1" {
		t.Error("the row is lost")
	}
}

// inTheWay says that an error is something in the way of a change, for a reason, and names what.
func inTheWay(err error, reason, names string) bool {
	var way bluegreen.InTheWay
	return errors.As(err, &way) && way.Reason == reason && strings.Contains(way.Message, names)
}

// session begins one of a person on blue, and does something in it.
func (s *sides) session(database string, statements ...string) *pgx.Conn {
	s.Helper()
	return s.sessionOn(s.blue, database, statements...)
}

func (s *sides) sessionOn(side *instance, database string, statements ...string) *pgx.Conn {
	s.Helper()
	conn, err := side.dial(database)
	must(s, err)
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	s.does(conn, statements...)
	return conn
}

func (s *sides) does(conn *pgx.Conn, statements ...string) {
	s.Helper()
	for _, statement := range statements {
		_, err := conn.Exec(s.ctx, statement)
		must(s, err)
	}
}
