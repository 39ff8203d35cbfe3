package exporter

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"toban.dev/internal/ha"
	"toban.dev/internal/protocol"
)

// without is an exporter of an instance whose server can't be asked.
func without(status protocol.Status, connect func(context.Context) (*pgx.Conn, error)) *Exporter {
	config := func() protocol.Config { return protocol.Config{Major: 17} }
	return &Exporter{
		Connect: connect, Status: func() protocol.Status { return status }, Config: config,
		Log:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		Users: &Users{Config: config, Report: func(*protocol.QueriesStatus) {}},
	}
}

// shown are the values of all series, by their name and labels.
func shown(t *testing.T, e *Exporter) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(e)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// What the agent knows is served however the server is: a server that hangs costs a scrape three seconds, once.
func TestAServerThatHangsHidesNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		e := without(protocol.Status{Term: 7}, func(ctx context.Context) (*pgx.Conn, error) {
			asked++
			<-ctx.Done()
			return nil, ctx.Err()
		})
		began := time.Now()
		for range 3 {
			got := shown(t, e)
			if up, there := got["pg_up"]; !there || up != 0 || got["toban_instance_term"] != 7 {
				t.Errorf("it shows %v", got)
			}
		}
		if took := time.Since(began); took != patience || asked != 1 {
			t.Errorf("three scrapes have asked %d times, in %v", asked, took)
		}
		time.Sleep(fresh + time.Second)
		shown(t, e)
		if asked != 2 {
			t.Errorf("after %v it was asked %d times", fresh, asked)
		}
	})
}

func TestWhetherTheServerIsUp(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want float64
	}{
		"no server runs":                      {errors.New("no such file"), 0},
		"it has no room for another session":  {&pgconn.PgError{Code: "53300"}, 1},
		"it is starting, and lets nobody in":  {&pgconn.PgError{Code: "57P03"}, 0},
		"it refuses the role of the exporter": {&pgconn.PgError{Code: "28000"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := without(protocol.Status{}, func(context.Context) (*pgx.Conn, error) { return nil, c.err })
			if got := shown(t, e)["pg_up"]; got != c.want {
				t.Errorf("pg_up is %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatTheInstanceKnows(t *testing.T) {
	away := func(context.Context) (*pgx.Conn, error) { return nil, errors.New("away") }
	rate := int64(5)
	for name, c := range map[string]struct {
		status protocol.Status
		want   map[string]float64
		absent []string
	}{
		"a primary that leads": {
			protocol.Status{
				Role: protocol.RolePrimary, Ready: true, Term: 3, Timeline: 2, LSN: "1/10", Standbys: []string{"x-1"},
				Voters: []string{"x-0", "x-1", "x-2"}, Acknowledgements: 2, Election: protocol.Election{Leading: true},
				Archive: &protocol.ArchiveStatus{LSN: "1/0", LagBytes: 16, LagSeconds: 2},
				Room:    &protocol.Room{Size: 10, Used: 4, PerDay: &rate},
				KeptWAL: &protocol.KeptWAL{Slots: []protocol.Slot{{Name: "mine", Bytes: 8}}},
			},
			map[string]float64{
				"toban_instance_primary": 1, "toban_instance_standby": 0, "toban_instance_ready": 1,
				"toban_instance_term": 3, "toban_instance_timeline": 2, "toban_instance_wal_position_bytes": 1<<32 + 16,
				"toban_instance_standbys_streaming": 1, "toban_instance_voters": 3,
				"toban_instance_acknowledgements":       2,
				"toban_instance_archive_position_bytes": 1 << 32, "toban_instance_archive_lag_bytes": 16,
				"toban_instance_archive_lag_seconds": 2, "toban_instance_archive_failing": 0,
				"toban_instance_volume_size_bytes": 10, "toban_instance_volume_used_bytes": 4,
				"toban_instance_volume_fills_bytes_per_day": 5, "toban_instance_kept_wal_bytes mine": 8,
			},
			[]string{"toban_instance_streaming", "toban_instance_unreplayed_bytes"},
		},
		"a standby": {
			protocol.Status{
				Role: protocol.RoleStandby, Streaming: true, Voters: []string{"x-0"},
				Election: protocol.Election{Unreplayed: 4096},
			},
			map[string]float64{
				"toban_instance_primary": 0, "toban_instance_standby": 1, "toban_instance_streaming": 1,
				"toban_instance_unreplayed_bytes": 4096,
			},
			[]string{
				"toban_instance_voters", "toban_instance_acknowledgements", "toban_instance_standbys_streaming",
				"toban_instance_wal_position_bytes", "toban_instance_archive_lag_bytes",
				"toban_instance_volume_used_bytes",
			},
		},
		"nothing is known yet": {
			protocol.Status{Election: protocol.Election{Limits: ha.OwnLimits()}},
			map[string]float64{"toban_instance_primary": 0, "toban_instance_standby": 0, "toban_instance_ready": 0},
			[]string{"toban_instance_streaming", "toban_instance_timeline"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, without(c.status, away))
			for series, want := range c.want {
				if value, there := got[series]; !there || value != want {
					t.Errorf("%s is %v (there: %t), want %v", series, value, there, want)
				}
			}
			for _, series := range c.absent {
				if value, there := got[series]; there {
					t.Errorf("%s is shown as %v although it is not known", series, value)
				}
			}
		})
	}
}

func TestMetricsThatAreTurnedOffAreNotServed(t *testing.T) {
	e := without(protocol.Status{}, func(context.Context) (*pgx.Conn, error) { return nil, errors.New("away") })
	for name, c := range map[string]struct {
		metrics *protocol.Metrics
		want    int
	}{
		"by default":   {nil, http.StatusOK},
		"turned off":   {&protocol.Metrics{None: true}, http.StatusNotFound},
		"with queries": {&protocol.Metrics{Queries: []protocol.MetricsQuery{{Name: "x"}}}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			e.Config = func() protocol.Config { return protocol.Config{Major: 17, Metrics: c.metrics} }
			answer := httptest.NewRecorder()
			e.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			if answer.Code != c.want {
				t.Errorf("it answers %d, want %d: %s", answer.Code, c.want, answer.Body)
			}
		})
	}
}

// A dashboard is made of these names. No two queries give the same one, and each says what it is.
func TestNamesOfMetrics(t *testing.T) {
	names, collectors := map[string]bool{}, map[string]bool{}
	for _, q := range queries {
		if collectors[q.name] {
			t.Errorf("two queries are called %s", q.name)
		}
		collectors[q.name] = true
		for _, m := range q.metrics {
			if names[m.name] {
				t.Errorf("two columns are called %s", m.name)
			}
			names[m.name] = true
			if !strings.HasSuffix(m.help, ".") || len(strings.Fields(m.help)) < 3 {
				t.Errorf("what %s says of itself is no sentence: %q", m.name, m.help)
			}
		}
	}
	for _, known := range []string{
		"pg_stat_database_xact_commit", "pg_database_size_bytes", "pg_replication_lag_seconds", "pg_locks_count",
		"pg_settings_max_connections", "pg_stat_activity_count", "pg_stat_bgwriter_buffers_alloc_total",
	} {
		if !names[known] {
			t.Errorf("there is no %s among %v", known, slices.Sorted(maps.Keys(names)))
		}
	}
}

// Of users' queries only the primary's are asked, and who reads them does not wait.
func TestUsersQueriesAreAskedBeside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wanted := &protocol.Metrics{Queries: []protocol.MetricsQuery{{Name: "a"}, {Name: "b"}}}
		var told *protocol.QueriesStatus
		ensured := 0
		u := &Users{
			Config: func() protocol.Config { return protocol.Config{Metrics: wanted} },
			Report: func(s *protocol.QueriesStatus) { told = s },
			Ensure: func(context.Context, string) error {
				ensured++
				time.Sleep(time.Second)
				return nil
			},
			Connect: func(ctx context.Context, _ string) (*pgx.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}
		standby, primary := &protocol.Status{Role: protocol.RoleStandby}, &protocol.Status{Role: protocol.RolePrimary}
		if u.latest(standby); ensured > 0 {
			t.Error("a standby asks them")
		}
		began := time.Now()
		for range 3 {
			u.latest(primary)
		}
		if time.Since(began) > 0 {
			t.Error("who reads the metrics has waited")
		}
		time.Sleep(time.Second + 2*usersPatience + time.Second)
		synctest.Wait() // the one who asks has told all: what it has written may be read
		if ensured != 1 || told == nil || told.Asked != 2 || len(told.Problems) != 2 {
			t.Errorf("asked %d times, it is told %+v", ensured, told)
		}
		if got := u.latest(primary); len(got) != 2 || got[0].err == nil {
			t.Errorf("of two that fail %d are shown", len(got))
		}
		if u.latest(standby); told != nil {
			t.Errorf("of a standby it is told %+v", told)
		}
		time.Sleep(time.Minute)
	})
}

func TestNumbersOfUsers(t *testing.T) {
	for text, want := range map[string]float64{"7": 7, "-1.5": -1.5, "t": 1, "f": 0, "1e3": 1000} {
		if got, err := asNumber([]byte(text)); err != nil || got == nil || *got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if got, err := asNumber(nil); got != nil || err != nil {
		t.Errorf("null is %v, %v", got, err)
	}
	if _, err := asNumber([]byte("open")); err == nil {
		t.Error("a word is a number")
	}
}
