package finish_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"toban.dev/internal/work/maintenance"
)

// errKilled ends a try where a test wants it to end.
var errKilled = errors.New("killed")

// killedAt runs the work until a point, and ends all its sessions there, as when its process is killed. It returns the
// points that it has passed; stop is how many, 0 for all.
func (s *server) killedAt(stop int) (points []string) {
	s.Helper()
	ctx, kill := context.WithCancelCause(s.Context())
	defer kill(nil)
	j := s.job(maintenance.Statistics, maintenance.Indexes)
	j.At = func(point string) {
		if points = append(points, point); len(points) == stop {
			s.do("postgres", `select pg_terminate_backend(pid) from pg_stat_activity
				where pid <> pg_backend_pid() and backend_type = 'client backend'`)
			kill(errKilled)
		}
	}
	if _, err := j.Run(ctx); err != nil && stop == 0 {
		s.Fatal(err)
	}
	return points
}

// Killed at each of its points and run again, the work comes out the same, and does nothing twice that was done.
func TestKilledAnywhereAndRunAgain(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered)
		s.resort()
		for tries := 0; ; tries++ {
			if tries > 40 {
				t.Fatal("it does not get on")
			}
			before := s.look().Indexes
			points := s.killedAt(2) // each time a little further
			if after := s.look().Indexes; after > before {
				t.Fatalf("%d indexes are to be rebuilt after %q, and %d before", after, points, before)
			}
			if len(points) < 2 {
				break
			}
			if strings.HasPrefix(points[1], "check items_note") && s.look().Indexes != 1 {
				t.Errorf("after %q the primary key is to be rebuilt again", points)
			}
			s.killedAt(4)
			if !s.look().Changed() {
				break
			}
		}
		s.killedAt(0)
		if r := s.look(); r.Changed() || r.Indexes > 0 || s.count() != 3000 {
			t.Errorf("%+v, and %d rows are found", r, s.count())
		}
	})
}

// What a try that was cut off has left is dropped: an invalid index beside the one that is in use.
func TestWhatACutOffTryLeavesIsDropped(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered+`
			create index items_note_ccnew on items (note);
			update pg_index set indisvalid = false where indexrelid = 'items_note_ccnew'::regclass;
			create index mine_ccnew on items (name);
			update pg_index set indisvalid = false where indexrelid = 'mine_ccnew'::regclass;`)
		s.resort()
		result := s.run(s.job(maintenance.Indexes))
		const left = "select string_agg(relname, ' ') from pg_class where relname like '%ccnew%'"
		if got := s.ask(left); got != "mine_ccnew" || result.Rebuilt != 2 {
			t.Errorf("left is %s; %+v", got, result)
		}
	})
}

// Rows that were written twice while a unique index was out of order: the index is named with its columns and without
// the values, the others are rebuilt, and the version does not go on record.
func TestDuplicatesAreNamed(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered)
		s.resort()
		conn, err := s.connect(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		twice := 0
		for _, name := range []string{"x10", "x100", "x1000", "x2000", "x2999", "x99"} {
			if _, err := conn.Exec(t.Context(), "insert into public.items values ($1, 'twice')", name); err == nil {
				twice++
			}
		}
		if twice == 0 {
			t.Fatal("the unique index has kept all out")
		}
		result := s.run(s.job(maintenance.Indexes))
		if len(result.Duplicates) != 1 || result.Rebuilt != 1 ||
			!strings.Contains(result.Duplicates[0], "items_pkey on public.items (name) in database shop") ||
			strings.Contains(result.Duplicates[0], "x10") {
			t.Errorf("the result is %+v", result)
		}
		if r := s.look(); !r.Changed() || r.Indexes != 1 {
			t.Errorf("it is seen: %+v", r)
		}
		if n := s.ask("select count(*) from pg_class where relname ~ '_cc(new|old)'"); n != "0" {
			t.Error("a leftover is there")
		}
		s.do("shop", "set enable_indexscan = off; set enable_bitmapscan = off; delete from items where note = 'twice'")
		if result := s.run(s.job(maintenance.Indexes)); result.Rebuilt != 1 || len(result.Duplicates) > 0 {
			t.Errorf("again, the result is %+v", result)
		}
		if r := s.look(); r.Changed() {
			t.Errorf("afterwards it is seen: %+v", r)
		}
	})
}

// A server that goes back to its former library when a part is rebuilt for the next one: that part is out of order.
func TestBackToTheFormerLibrary(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered)
		actual := s.ask("select datcollversion from pg_database where datname = 'shop'")
		s.resort()
		j := s.job(maintenance.Indexes)
		ctx, kill := context.WithCancel(t.Context())
		j.At = func(point string) {
			if point == "check items_note" { // the primary key is rebuilt
				kill()
			}
		}
		_, _ = j.Run(ctx)
		// The versions of ICU are the same here: what was noted is made that of another one.
		s.sortBy("en-u-kn", actual)
		s.do("postgres", "update toban.rebuilt set versions = 'of the next library'")
		if r := s.look(); !r.Changed() || r.Indexes != 1 {
			t.Fatalf("it is seen: %+v", r)
		}
		if result := s.run(s.job(maintenance.Indexes)); result.Rebuilt != 1 || s.count() != 3000 {
			t.Errorf("%+v, and %d rows are found", result, s.count())
		}
		if r := s.look(); r.Changed() {
			t.Errorf("afterwards it is seen: %+v", r)
		}
	})
}

// A database without a version on record is told apart, and gets one; so does one whose library says none any more.
func TestAVersionThatIsNotOnRecord(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered+"update pg_database set datcollversion = null where datname = 'shop'")
		r := s.look()
		if r.Changed() || len(r.Unrecorded) != 1 || r.Indexes != 2 {
			t.Fatalf("it is seen: %+v", r)
		}
		// The library has no version of "C.UTF-8".
		s.do("postgres", "update pg_database set datcollversion = '2.36' where datname = 'postgres'")
		if r := s.look(); len(r.Databases) != 1 || r.Databases[0].Actual != "" {
			t.Errorf("it is seen: %+v", r)
		}
		if result := s.run(s.job(maintenance.Indexes)); result.Rebuilt != 2 || result.Broken != 0 {
			t.Errorf("the result is %+v", result)
		}
		if r := s.look(); r.Changed() || len(r.Unrecorded) > 0 {
			t.Errorf("afterwards it is seen: %+v", r)
		}
	})
}

// Missing statistics are made in stages, and extensions are updated or named.
func TestStatisticsAndExtensions(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered+`alter table items set (autovacuum_enabled = off); analyze items;
			create extension pg_trgm version '1.3'; delete from pg_statistic;`)
		var points []string
		j := s.job(maintenance.Statistics)
		j.At = func(point string) { points = append(points, point) }
		if result := s.run(j); result.Analyzed == 0 {
			t.Errorf("the result is %+v", result)
		}
		all := strings.Join(points, ", ")
		first, last := strings.Index(all, "analyzed items 1"), strings.Index(all, "analyzed items 3")
		if first < 0 || last < first || s.ask("select count(*) from pg_stats where tablename = 'items'") != "2" {
			t.Errorf("it has passed %s", all)
		}
		if result := s.run(s.job(maintenance.Statistics)); result.Analyzed != 0 {
			t.Errorf("again, the result is %+v", result)
		}
		result := s.run(s.job(maintenance.Extensions))
		if len(result.Older) != 1 || !strings.Contains(result.Older[0], "pg_trgm in database shop (1.3") {
			t.Errorf("the result is %+v", result)
		}
		j = s.job(maintenance.Extensions)
		j.UpdateExtensions = true
		if result := s.run(j); len(result.Updated) != 1 || len(result.Older) > 0 {
			t.Errorf("the result is %+v", result)
		}
		if s.ask("select extversion from pg_extension where extname = 'pg_trgm'") == "1.3" {
			t.Error("it is not updated")
		}
	})
}

// An exclusion constraint can't be rebuilt beside the writes; a foreign schema toban is not written into.
func TestAnExclusionConstraintAndAForeignSchema(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", `create type span as range (subtype = text);
			create table t (s span, exclude using gist (s with &&)); insert into t values ('[a,b]')`)
		s.resort()
		s.do("postgres", "create role mallory; create schema toban authorization mallory")
		_, err := s.job(maintenance.Indexes).Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "schema toban") {
			t.Errorf("it is %v", err)
		}
		if r := s.look(); !r.Changed() || r.Indexes != 1 {
			t.Errorf("it is seen: %+v", r)
		}
		s.do("postgres", "drop schema toban")
		if result := s.run(s.job(maintenance.Indexes)); result.Rebuilt != 1 {
			t.Errorf("the result is %+v", result)
		}
		if r := s.look(); r.Changed() || r.Indexes > 0 {
			t.Errorf("afterwards it is seen: %+v", r)
		}
	})
}
