package upgrade_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	change "toban.dev/internal/change/bluegreen"
	"toban.dev/internal/work/bluegreen"
)

// byRows are tables whose whole rows say which one it is, with a generated column, by what else they have: rows of
// these are found before PostgreSQL 18, which refuses to change them.
var byRows = map[string]string{
	"g_alone":    "",
	"g_begins":   "create index on app.g_begins (g, a)",
	"g_partial":  "create index on app.g_partial (a, g) where a > 0",
	"g_key":      "alter table app.g_key add primary key (id);\ncreate index on app.g_key (a, g)",
	"g_includes": "create index on app.g_includes (a) include (g)",
	"g_computed": "create index on app.g_computed (a, (g + 1))",
}

// byGenerated are those of which no version finds rows.
var byGenerated = map[string]string{
	"h_behind": "create index on app.h_behind (a, g)",
	"h_late":   "alter table app.h_late add primary key (id, g) deferrable",
	"h_key":    "alter table app.h_key add primary key (id, g)",
}

func (i *instance) makeGenerated(tables map[string]string) {
	i.Helper()
	for name, more := range tables {
		i.do("shop", fmt.Sprintf(`create table app.%[1]s (id int, a int, g int generated always as (a * 2) stored);
alter table app.%[1]s replica identity full;
%[2]s;
insert into app.%[1]s select x, x %% 10 from generate_series(1, 50) x`, name, more))
	}
}

// Exactly those tables are refused of which a version that takes part can't change rows: of all others they are found
// by whoever follows.
func TestTablesWithGeneratedColumnsFollowWhereTheyCan(t *testing.T) {
	s := newBlue(t, 17)
	s.blue.makeGenerated(byRows)
	s.blue.makeGenerated(byGenerated)
	blue := s.blue.side("blue")
	for newest, want := range map[int]int{17: len(byGenerated), 18: len(byGenerated) + len(byRows)} {
		blue.Newest = newest
		facts, err := bluegreen.Examine(s.ctx, blue)
		must(t, err)
		refused := change.CheckCarry(facts)
		if len(refused) != 1 || refused[0].Reason != change.GeneratedIdentity || len(refused[0].Objects) != want {
			t.Errorf("to PostgreSQL %d it says %+v, want %d tables", newest, refused, want)
			continue
		}
		for name := range byGenerated {
			if !strings.Contains(strings.Join(refused[0].Objects, ";"), "shop: app."+name+" (g)") {
				t.Errorf("to PostgreSQL %d it does not say %s: %v", newest, name, refused[0].Objects)
			}
		}
	}
	for name := range byGenerated {
		s.blue.do("shop", "drop table app."+name)
	}

	blue.Newest = 17
	position, err := bluegreen.Forward(blue, bluegreen.Side{}, "test").Publisher().Publish(s.ctx, deadline)
	must(t, err)
	s.copyTo(position, 17)
	s.follow(position)
	for name := range byRows {
		s.blue.do("shop", fmt.Sprintf(`update app.%[1]s set a = a + 100 where id %% 3 = 0;
delete from app.%[1]s where id %% 7 = 0;
update app.%[1]s set a = null where id = 11;
update app.%[1]s set a = 12 where id = 11`, name))
	}
	must(t, s.forward.CatchUp(s.ctx))
	s.same(s.forward)

	// What is refused is refused for a reason: this server looks for rows by such an index, and in vain.
	s.green.do("shop", "create index on app.g_alone (a, g)")
	s.blue.do("shop", "delete from app.g_alone where id = 1")
	must(t, s.forward.CatchUp(s.ctx))
	found, err := s.forward.Compare(s.ctx, bluegreen.Comparison{LockTimeout: time.Second, Patience: deadline})
	must(t, err)
	if len(found.Differ) != 1 || found.Differ[0].Table != "app.g_alone" {
		t.Errorf("a row was found by an index with a generated column: %+v", found.Differ)
	}
}
