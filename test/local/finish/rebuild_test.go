package finish_test

import (
	"strings"
	"testing"

	"toban.dev/internal/work/maintenance"
)

// count asks how many of the rows a session that uses indexes only finds by their primary key.
func (s *server) count() (n int) {
	s.Helper()
	conn, err := s.connect(s.Context(), "shop")
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(s.Context())
	if _, err := conn.Exec(s.Context(), "set enable_seqscan = off; set enable_bitmapscan = off; "+
		"set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off; set enable_memoize = off",
	); err != nil {
		s.Fatal(err)
	}
	err = conn.QueryRow(s.Context(), `select count(*) from generate_series(1, 3000) i
		join public.items on name = 'x' || i`).Scan(&n)
	if err != nil {
		s.Fatal(err)
	}
	return n
}

// Under another library rows are not found by indexes that were made under the former one. That is seen, and after the
// work they are found, and the versions are on record.
func TestRowsAreFoundAgain(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", numbered)
		if r := s.look(); r.Changed() || r.Indexes != 0 || r.Dependent != 2 || len(r.Databases) > 0 {
			s.Fatalf("before, it is seen: %+v", r)
		}
		s.resort()
		if n := s.count(); n == 3000 {
			s.Fatal("all rows are found: nothing is out of order")
		}
		s.seesChange()
		result := s.run(s.job(maintenance.Indexes))
		if result.Rebuilt != 2 || result.Checked != 2 || result.Broken != 2 || !result.Done {
			s.Errorf("the result is %+v", result)
		}
		if n := s.count(); n != 3000 {
			s.Errorf("%d of 3000 rows are found", n)
		}
		if r := s.look(); r.Changed() || r.Indexes != 0 {
			s.Errorf("afterwards, it is seen: %+v", r)
		}
		if n := s.ask("select count(*) from pg_extension where extname = 'amcheck'"); n != "0" {
			s.Error("amcheck is left in the database")
		}
		if result := s.run(s.job(maintenance.Indexes)); result.Rebuilt != 0 {
			s.Errorf("again, it does %+v", result)
		}
	})
}

// seesChange fails the test unless it is seen that the library of shop has changed, and what depends on that.
func (s *server) seesChange() {
	s.Helper()
	r := s.look()
	if !r.Changed() || r.Indexes != 2 || len(r.Databases) != 1 || r.Databases[0].Database != "shop" ||
		r.Databases[0].Recorded != "former" || r.Databases[0].Actual == "" || r.Largest == 0 {
		s.Errorf("it is seen: %+v", r)
	}
}

// Which indexes depend on an order that has changed: also by what they compare inside.
func TestWhatDependsOnAnOrder(t *testing.T) {
	each(t, func(s *server) {
		s.do("shop", `
			create collation own (provider = icu, locale = 'en-u-kn');
			create collation own_range (provider = icu, locale = 'en-u-kn');
			create type span as range (subtype = text, collation = own_range);
			create domain word as text;
			create type pair as (a text, b int);
			create table t (id int, plain text, ours text collate own, c text collate "C", span span, word word,
				pair pair, list text[], doc jsonb, n name);
			create index i_plain on t (plain);
			create index i_ours on t (ours);
			create index i_c on t (c);
			create index i_id on t (id);
			create index i_name on t (n);
			create index i_span on t using gist (span);
			create index i_word on t (word);
			create index i_pair on t (pair);
			create index i_list on t using gin (list);
			create index i_json on t (doc);
			create index i_jsongin on t using gin (doc);
			create index i_expression on t ((plain < 'm'));
			create index i_row on t ((row(plain, id) < row('m'::text, 1)));
			create index i_predicate on t (id) where plain > 'm';
			create index i_cpredicate on t (id) where c > 'm';
			create table parts (name text) partition by range (name);
			create table parts_a partition of parts for values from ('a') to ('m');
			create index parts_name on parts (name);
			create table hashed (name text) partition by hash (name);
			create materialized view m as select plain from t;
			create index i_view on m (plain);`)
		s.resort()
		r := s.look()
		if len(r.Partitioned) != 1 || r.Partitioned[0] != "shop.public.parts" && r.Partitioned[0] != "shop.parts" {
			s.Errorf("partitioned by order are %q", r.Partitioned)
		}
		if len(r.Collations) != 2 || len(r.Databases) != 1 {
			s.Errorf("changed are %v, %v", r.Databases, r.Collations)
		}
		var rebuilt []string
		j := s.job(maintenance.Indexes)
		j.At = func(point string) {
			if name, is := strings.CutPrefix(point, "rebuilt "); is {
				rebuilt = append(rebuilt, name)
			}
		}
		s.run(j)
		all := strings.Join(rebuilt, " ") + " "
		for _, want := range []string{
			"i_plain", "i_ours", "i_span", "i_word", "i_pair", "i_list", "i_json", "i_expression", "i_row",
			"i_predicate", "parts_a_name_idx", "i_view",
		} {
			if !strings.Contains(all, want+" ") {
				s.Errorf("%s is not rebuilt: %s", want, all)
			}
		}
		for _, not := range []string{"i_c ", "i_id", "i_name", "i_jsongin", "i_cpredicate"} {
			if strings.Contains(all, not) {
				s.Errorf("%s is rebuilt: %s", not, all)
			}
		}
	})
}
