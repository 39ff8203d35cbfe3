package upgrade_test

import (
	"testing"
	"time"

	"toban.dev/internal/work/bluegreen"
)

// carryRefreshes begins to carry refreshes, and waits until a session of green waits for a lock.
func (s *sides) carryRefreshes(l bluegreen.Link, waiting string) (end func()) {
	s.Helper()
	ended := make(chan error, 1)
	go func() { _, err := l.CarryRefreshes(s.ctx); ended <- err }()
	s.until(waiting+" waits, or it has ended", func() bool {
		select {
		case err := <-ended:
			ended <- err
			return true
		default:
			return s.green.ask("postgres", `select count(*) > 0 from pg_stat_activity
				where wait_event_type = 'Lock' and `+waiting) == "true"
		}
	})
	return func() { s.Helper(); must(s, <-ended) }
}

// What a materialized view was made of on the serving side may come to the following one later than the note.
func TestARefreshIsCarriedBehindTheRowsThatItHasSeen(t *testing.T) {
	s := newBlue(t, 17)
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	must(t, s.forward.CatchUp(s.ctx))
	slow := s.sessionOn(s.green, "shop", "begin", "lock table app.orders in share mode") // readers don't wait
	s.blue.do("shop", "insert into app.orders (item) values ('one more');\nrefresh materialized view app.totals")
	end := s.carryRefreshes(s.forward, "backend_type ~ 'logical replication'")
	time.AfterFunc(time.Second, func() { s.does(slow, "commit") })
	end()
	must(t, s.forward.CatchUp(s.ctx))
	if got := s.green.ask("shop", "select n from app.totals"); got != "3001" {
		t.Errorf("the refreshed view has %s rows, and not 3001", got)
	}
}

// Notes are numbered when they are made, and seen when they are committed: one that comes late is carried, too.
func TestARefreshThatIsCommittedLateIsCarried(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.do("shop", "set role app;\ncreate materialized view app.items as select count(*) as n from app.orders")
	position := s.publish()
	s.copyTo(position, 17)
	s.follow(position)
	s.blue.do("shop", "insert into app.orders (item) values ('one more')")
	late := s.session("shop", "begin", "refresh materialized view app.totals")
	s.blue.do("shop", "refresh materialized view app.items")
	must(t, s.forward.CatchUp(s.ctx))
	slow := s.sessionOn(s.green, "shop", "begin", "select n from app.items")
	end := s.carryRefreshes(s.forward, "query ~* 'refresh materialized view app.items'")
	s.does(late, "commit")
	s.does(slow, "commit")
	end()
	_, err := s.forward.CarryRefreshes(s.ctx)
	must(t, err)
	if got := s.green.ask("shop", "select (select n from app.totals) || ' ' || (select n from app.items)"); got !=
		"3001 3001" {
		t.Errorf("the views have %s rows, and not 3001 each", got)
	}
}
