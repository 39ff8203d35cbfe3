package running

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// twoOthers is a rule by which commits wait.
var twoOthers = ha.Rule{Count: 1, From: []ha.Voter{"db-1.b", "db-2.c"}}

// settings is a server that runs with the configuration which its files had when it was reloaded last.
type settings struct {
	files, runs postgres.Settings
	loaded      time.Time
	checks      error    // what it says of a configuration that it is asked about
	reads       error    // what it says of the one in its files
	pending     []string // what waits for a restart
	reloads     int
	// rejects is what it says of what is in its files, cut how often it does not say that it has read them.
	rejects func(files postgres.Settings) error
	cut     int
	before  int // the reloads when it was asked last
	// refuses says why no session begins under what it runs with, nil where one does.
	refuses func(runs postgres.Settings) error
}

func (s *settings) login(context.Context) error {
	if s.refuses == nil {
		return nil
	}
	return s.refuses(s.runs)
}

func (s *settings) Check(context.Context, postgres.Settings) error { return s.checks }

func (s *settings) Configure(next postgres.Settings) error {
	s.files = next
	return nil
}

func (s *settings) Reload() error {
	s.reloads++
	s.runs, s.loaded = s.files, s.loaded.Add(time.Millisecond)
	return nil
}

func (s *settings) ConfigErrors(context.Context) error {
	if s.rejects != nil {
		return s.rejects(s.files)
	}
	return s.reads
}

func (s *settings) LoadTime(context.Context) (time.Time, error) {
	if s.cut > 0 && s.reloads > s.before {
		s.cut--
		return time.Time{}, context.DeadlineExceeded
	}
	s.before = s.reloads
	return s.loaded, nil
}

func (s *settings) PendingRestart(context.Context) ([]string, error) { return s.pending, nil }

// configured1 runs with the configuration 1, as it did before; wanted is a configuration 2.
func configured1(t *testing.T) (*configuration, *settings, *status.Board) {
	t.Helper()
	server, board := &settings{}, status.New(protocol.Status{ConfigRevision: "1"})
	first := candidate{Revision: "1", Parameters: map[string]string{"work_mem": "1MB"}}
	c := &configuration{
		name: "db-0", server: server, process: server, login: server.login, judgement: judgement{judged: true},
		good: LastKnownGood(filepath.Join(t.TempDir(), "good.json")),
		withRole: func(s postgres.Settings) (postgres.Settings, error) {
			s.Synchronous = twoOthers.String()
			return s, nil
		},
		wanted: func() protocol.Config {
			return protocol.Config{Revision: "2", Parameters: map[string]string{"work_mem": "2MB"}}
		},
		look: func() {}, report: configReport{status: board, log: slog.New(slog.DiscardHandler)},
		log: slog.New(slog.DiscardHandler), life: t.Context(), runs: first,
	}
	var err error
	if c.settings, err = c.settingsOf(first); err != nil {
		t.Fatal(err)
	}
	c.keep(first)
	server.files, server.runs = c.settings, c.settings
	return c, server, board
}

// applied is what becomes of a configuration.
type applied struct {
	server   settings
	workMem  string // what it runs with, and has in its files
	revision string
	rejected string
	good     string
	failed   bool
}

// check compares what runs, what is in the files, and what the status says.
func (c applied) check(t *testing.T, config *configuration, server *settings, now protocol.Status) {
	t.Helper()
	if now.ConfigRevision != c.revision || now.RejectedRevision != c.rejected ||
		!slices.Equal(now.PendingRestart, c.server.pending) {
		t.Errorf("it says that it runs with %q, %q is refused, and %v wait",
			now.ConfigRevision, now.RejectedRevision, now.PendingRestart)
	}
	if runs, has := server.runs.Parameters["work_mem"], server.files.Parameters["work_mem"]; runs != c.workMem ||
		has != c.workMem {
		t.Errorf("it runs with %s, and its files have %s", runs, has)
	}
	if good, ok := config.good.load(); !ok || good.Revision != c.good {
		t.Errorf("to come back to is %+v", good)
	}
}

func TestAConfigurationIsAppliedAsFarAsPostgreSQLTakesIt(t *testing.T) {
	refused := &postgres.RejectedError{Words: "work_mem is too low"}
	for name, c := range map[string]applied{
		"it is taken":                    {settings{}, "2MB", "2", "", "2", false},
		"it needs a restart":             {settings{pending: []string{"work_mem"}}, "2MB", "2", "", "1", false},
		"it is refused when asked about": {settings{checks: refused}, "1MB", "1", "2", "1", false},
		"it is refused when read":        {settings{reads: refused}, "1MB", "1", "2", "1", false},
		"it can't be read":               {settings{reads: errors.New("no connection")}, "1MB", "1", "", "1", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, server, board := configured1(t)
				server.checks, server.reads, server.pending = c.server.checks, c.server.reads, c.server.pending
				if err := config.apply(t.Context(), server); err != nil {
					t.Fatal(err)
				}
				if server.reloads > 0 {
					t.Error("it was not asked about first")
				}
				synctest.Wait() // PostgreSQL has been asked
				err := errors.Join(config.apply(t.Context(), server), config.prove(t.Context(), server))
				if (err != nil) != c.failed {
					t.Fatal(err)
				}
				c.check(t, config, server, board.Get())
				if reloads := server.reloads; config.apply(t.Context(), server) != nil != c.failed ||
					server.reloads > reloads {
					t.Error("it is applied again")
				}
			})
		})
	}
}

// withoutLibrary refuses sessions while a parameter has one of these values.
func withoutLibrary(values ...string) func(postgres.Settings) error {
	return func(runs postgres.Settings) error {
		if !slices.Contains(values, runs.Parameters["work_mem"]) {
			return nil
		}
		return fmt.Errorf("connect: %w", &pgconn.PgError{Code: "58P01", Message: "could not access file"})
	}
}

// follows applies what is wanted until there is nothing more to do, and says how often it was reloaded.
func (s *settings) follows(t *testing.T, config *configuration) int {
	t.Helper()
	before := s.reloads
	for range 4 {
		if err := errors.Join(config.apply(t.Context(), s), config.prove(t.Context(), s)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
	}
	return s.reloads - before
}

// What lets no session begin is taken back, and what mends it is taken, on its own and after a start with it.
func TestAConfigurationThatLetsNoSessionBeginIsTakenBack(t *testing.T) {
	for name, c := range map[string]struct {
		refused []string // the values with which no session begins
		started bool     // with what is wanted
		want    applied
	}{
		"it is reloaded":           {[]string{"2MB"}, false, applied{settings{}, "1MB", "1", "2", "1", false}},
		"the server starts so":     {[]string{"2MB"}, true, applied{settings{}, "1MB", "1", "2", "1", false}},
		"the last good one is too": {[]string{"1MB", "2MB"}, true, applied{settings{}, "", "defaults", "2", "", false}},

		"so are all": {[]string{"1MB", "2MB", ""}, false, applied{settings{}, "2MB", "2", "", "1", false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, server, board := configured1(t)
				server.refuses = withoutLibrary(c.refused...)
				if c.started {
					config.judged, config.runs = false, candidate{Revision: "2", Parameters: config.wanted().Parameters}
					config.settings, _ = config.settingsOf(config.runs)
					server.files, server.runs = config.settings, config.settings
				}
				server.follows(t, config)
				good, _ := config.good.load()
				now := board.Get()
				if runs := server.runs.Parameters["work_mem"]; runs != c.want.workMem || good.Revision != c.want.good ||
					now.ConfigRevision != c.want.revision || now.RejectedRevision != c.want.rejected {
					t.Errorf("it runs with %q, to come back to is %q, and it says %+v", runs, good.Revision, now)
				}
				if (now.ConfigError != "") != (c.want.rejected != "") || !config.judged {
					t.Errorf("it says %q", now.ConfigError)
				}
				if again := server.follows(t, config); again > 0 {
					t.Errorf("it is reloaded %d times more", again)
				}
				config.wanted = func() protocol.Config {
					return protocol.Config{Revision: "3", Parameters: map[string]string{"work_mem": "3MB"}}
				}
				server.follows(t, config)
				now = board.Get()
				good, _ = config.good.load()
				if now.ConfigRevision != "3" || now.ConfigError != "" || good.Revision != "3" {
					t.Errorf("once another one is wanted it says %+v", now)
				}
			})
		})
	}
}

// What the server runs with by the time that the session has begun is not judged by it.
func TestAnotherConfigurationIsNotJudgedByTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, _ := configured1(t)
		config.judged = false
		server.refuses = func(postgres.Settings) error {
			server.refuses = nil
			config.files.Lock()
			defer config.files.Unlock()
			config.run(config.settings, candidate{Revision: "3"})
			return nil
		}
		if err := config.prove(t.Context(), server); err != nil || config.judged {
			t.Errorf("judged: %t, %v", config.judged, err)
		}
	})
}

// Where the server started with what was good, because it ended with what is wanted, it says why of that.
func TestWhatWasRefusedFirstIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, board := configured1(t)
		config.judged = false
		config.report.remember(config.runs, "2", endedError{errors.New("it ended")})
		server.refuses = withoutLibrary("1MB")
		server.follows(t, config)
		if now := board.Get(); now.ConfigRevision != revisionDefaults || now.RejectedRevision != "2" ||
			now.ConfigError != "it ended" {
			t.Errorf("it says %+v", now)
		}
	})
}

// A server that may have read another configuration than is noted is told again, and proves nothing meanwhile.
func TestAReloadThatWasCutIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, board := configured1(t)
		server.refuses = withoutLibrary("2MB")
		if err := config.apply(t.Context(), server); err != nil { // it is asked about
			t.Fatal(err)
		}
		synctest.Wait()
		if err := config.apply(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		server.cut = 1 // the way back is read, and that can't be seen any more
		if err := config.prove(t.Context(), server); err == nil {
			t.Fatal("it was not cut")
		}
		server.reads = context.DeadlineExceeded // nor is it seen in the next look what is in the files
		if err := config.apply(t.Context(), server); err == nil || !config.unsure {
			t.Fatalf("it is sure: %v", err)
		}
		server.reads = nil
		server.follows(t, config)
		good, _ := config.good.load()
		if now := board.Get(); now.RejectedRevision != "2" || now.ConfigRevision != "1" || good.Revision != "1" {
			t.Errorf("it says %+v, and to come back to is %q", now, good.Revision)
		}
	})
}

// Where the server goes on with what was good, or with the defaults, who may log in from where stays.
func TestAWayBackKeepsWhoMayLogIn(t *testing.T) {
	for want, rejected := range map[string]string{"1": "", revisionDefaults: "1MB"} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, server, board := configured1(t)
				wanted := config.wanted()
				wanted.HBA = []string{"host all all 192.0.2.0/24 reject"}
				config.wanted = func() protocol.Config { return wanted }
				server.refuses = withoutLibrary("2MB")
				server.rejects = func(files postgres.Settings) error {
					if files.Parameters["work_mem"] == rejected {
						return &postgres.RejectedError{Words: "it is too low by now"}
					}
					return nil
				}
				if rejected == "" {
					server.rejects = nil
				}
				server.follows(t, config)
				if now := board.Get(); now.RejectedRevision != "2" || now.ConfigRevision != want ||
					!slices.Equal(server.runs.HBA, wanted.HBA) {
					t.Errorf("it runs with %+v, and says %+v", server.runs, now)
				}
				if again := server.follows(t, config); again > 0 {
					t.Errorf("it is reloaded %d times more", again)
				}
			})
		})
	}
}

// What is refused leaves the server with what it runs with, also where that is not what was good last.
func TestARefusalChangesNothingThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, board := configured1(t)
		server.pending = []string{"shared_buffers"} // so 2 is not what to come back to
		server.follows(t, config)
		config.wanted = func() protocol.Config {
			return protocol.Config{Revision: "3", Parameters: map[string]string{"work_mem": "3MB"}}
		}
		server.checks = &postgres.RejectedError{Words: "work_mem is too low"}
		server.follows(t, config)
		if now := board.Get(); now.RejectedRevision != "3" || server.runs.Parameters["work_mem"] != "2MB" {
			t.Errorf("it runs with %+v, and says %+v", server.runs, now)
		}
	})
}

// The rule for commits holds though what else is wanted is refused.
func TestARefusalDoesNotKeepTheRuleForCommitsOut(t *testing.T) {
	for name, reads := range map[string]bool{"when it is asked about": false, "when it is read": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, server, board := configured1(t)
				refused := &postgres.RejectedError{Words: "no such line"}
				if reads {
					server.rejects = func(files postgres.Settings) error {
						if files.Parameters["work_mem"] == "2MB" {
							return refused
						}
						return nil
					}
				} else {
					server.checks = refused
				}
				if err := config.apply(t.Context(), server); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // it has been asked about
				nobody := ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}.String()
				config.withRole = func(s postgres.Settings) (postgres.Settings, error) {
					s.Synchronous = nobody
					return s, nil
				}
				err := config.apply(t.Context(), server)
				if now := board.Get(); err != nil || now.RejectedRevision != "2" || server.runs.Synchronous != nobody {
					t.Errorf("it runs with %+v, and says %+v: %v", server.runs, now, err)
				}
			})
		})
	}
}

// Where sessions are refused whatever is configured, that is found out once.
func TestWhatIsNotAtFaultIsNotJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, _ := configured1(t)
		server.refuses = withoutLibrary("1MB", "2MB", "")
		server.follows(t, config)
		time.Sleep(2 * doubtInterval)
		config.doubt()
		if again := server.follows(t, config); again > 0 || !config.judged {
			t.Errorf("it is reloaded %d times more", again)
		}
	})
}

// A library may go while the server runs: what is doubted is judged anew, now and then.
func TestADoubtedConfigurationIsJudgedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, board := configured1(t)
		server.follows(t, config)
		server.refuses = withoutLibrary("2MB")
		config.doubt()
		if server.follows(t, config); board.Get().RejectedRevision != "" {
			t.Error("it is judged anew at once")
		}
		time.Sleep(doubtInterval)
		config.doubt()
		server.follows(t, config)
		if now := board.Get(); now.RejectedRevision != "2" || now.ConfigRevision != revisionDefaults {
			t.Errorf("it says %+v", now)
		}
	})
}

// One refusal may pass.
func TestAConfigurationIsNotRejectedForARefusalThatPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, board := configured1(t)
		server.refuses = func(runs postgres.Settings) error {
			server.refuses = nil
			return withoutLibrary("1MB", "2MB")(runs)
		}
		server.follows(t, config)
		if now := board.Get(); now.ConfigRevision != "2" || now.RejectedRevision != "" || server.reloads != 1 {
			t.Errorf("it says %+v", now)
		}
	})
}

// What was good is not forgotten because the server did not answer while it was tried again.
func TestWhatWasGoodIsNotForgottenForNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config, server, board := configured1(t)
		late := true
		server.refuses = func(runs postgres.Settings) error {
			if runs.Parameters["work_mem"] == "1MB" && late {
				return context.DeadlineExceeded
			}
			return withoutLibrary("2MB")(runs)
		}
		server.follows(t, config)
		if good, ok := config.good.load(); !ok || config.judged {
			t.Errorf("to come back to is %+v, judged: %t", good, config.judged)
		}
		late = false
		server.follows(t, config)
		if now := board.Get(); now.ConfigRevision != "1" || now.RejectedRevision != "2" || !config.judged {
			t.Errorf("it says %+v", now)
		}
	})
}

// While it can't be said whether sessions begin under a former configuration, the server goes on with that, and is not
// reloaded to and fro. What is refused is known as soon as it can be said, or another configuration is wanted.
func TestAServerThatIsFullIsNotReloadedToAndFro(t *testing.T) { //nolint:gocognit // one table
	full := &pgconn.PgError{Code: "53300"}
	for name, c := range map[string]struct {
		refused             []string // what no session begins with, once it is not full any more
		another             bool     // a third configuration is wanted then
		runs, rejected      string
		reloads, afterwards int
	}{
		"the former one is good": {[]string{"2MB"}, false, "1", "2", 2, 2},
		"it is not":              {[]string{"2MB", "1MB"}, false, revisionDefaults, "2", 2, 3},
		"none is":                {[]string{"2MB", "1MB", ""}, false, "2", "", 2, 4},
		"another is wanted":      {[]string{"2MB"}, true, "3", "", 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, server, board := configured1(t)
				server.refuses = func(runs postgres.Settings) error {
					if err := withoutLibrary("2MB")(runs); err != nil {
						return err
					}
					return full
				}
				for range 5 {
					server.follows(t, config)
				}
				if now := board.Get(); server.reloads != c.reloads || now.RejectedRevision != "" || config.judged {
					t.Errorf("while it is full it was reloaded %d times, and says %+v", server.reloads, now)
				}
				server.refuses = withoutLibrary(c.refused...)
				if c.another {
					config.wanted = func() protocol.Config {
						return protocol.Config{Revision: "3", Parameters: map[string]string{"work_mem": "3MB"}}
					}
				}
				for range 3 {
					server.follows(t, config)
				}
				if now := board.Get(); server.reloads != c.afterwards || now.ConfigRevision != c.runs ||
					now.RejectedRevision != c.rejected || !config.judged {
					t.Errorf("then it was reloaded %d times, and says %+v", server.reloads, now)
				}
				if good, _ := config.good.load(); c.another && good.Revision != "3" {
					t.Errorf("to come back to is %q", good.Revision)
				}
			})
		})
	}
}

// A server that is full, or does not answer, says nothing of its configuration: it is judged when it does.
func TestNoAnswerIsNoJudgement(t *testing.T) {
	for name, refusal := range map[string]error{
		"it is full": &pgconn.PgError{Code: "53300"}, "it starts": &pgconn.PgError{Code: "57P03"},
		"it says nothing": context.DeadlineExceeded,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config, server, board := configured1(t)
				server.refuses = func(postgres.Settings) error { return refusal }
				server.follows(t, config)
				good, _ := config.good.load()
				if now := board.Get(); config.judged || now.ConfigRevision != "2" || good.Revision != "1" {
					t.Errorf("judged: %t, to come back to is %q, and it says %+v", config.judged, good.Revision, now)
				}
				server.refuses = nil
				server.follows(t, config)
				if good, _ = config.good.load(); !config.judged || good.Revision != "2" || server.reloads != 1 {
					t.Errorf("judged: %t, to come back to is %q", config.judged, good.Revision)
				}
			})
		})
	}
}

// A new rule for commits is in the files and read, whatever of the configuration is wanted.
func TestANewRoleIsReloaded(t *testing.T) {
	config, server, _ := configured1(t)
	nobody := ha.Rule{Count: 1, From: []ha.Voter{ha.Nobody}}.String()
	config.withRole = func(s postgres.Settings) (postgres.Settings, error) {
		s.Synchronous, s.Closed = nobody, true
		return s, nil
	}
	if err := config.Rewrite(); err != nil {
		t.Fatal(err)
	}
	if server.runs.Synchronous != nobody || server.runs.Parameters["work_mem"] != "1MB" || !server.runs.Closed {
		t.Errorf("it runs with %+v", server.runs)
	}
	// Whether it has read that nobody is let in is known once it was seen to.
	if _, closed := config.closed(); closed {
		t.Error("it is said to be closed before it was seen to read that")
	}
	began := time.Now()
	if err := config.apply(t.Context(), server); err != nil {
		t.Fatal(err)
	}
	if since, closed := config.closed(); !closed || since.Before(began) {
		t.Errorf("closed: %t, since %s", closed, since)
	}
}
