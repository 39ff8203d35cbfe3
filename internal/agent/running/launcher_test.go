package running

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/ha"
	"toban.dev/internal/ha/machine"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

// startable is a server that can be started.
type startable struct {
	answering
	process
	standby  bool
	settings postgres.Settings // those that it was started with
	started  int
	fails    error // how a start ends
	// ends says that it ends with settings that it was started with, nil for never.
	ends        func(postgres.Settings) bool
	singles     int   // how often it was told to let us in while it does not run
	unwillingly error // what it does not do then
	// stuck says that it does not end though it is killed.
	stuck bool
	// missing are folders of tablespaces that it ends for while they are not there.
	missing []string
}

func (s *startable) MissingTablespace() string {
	for _, folder := range s.missing {
		if _, err := os.Stat(folder); err != nil {
			return folder
		}
	}
	return ""
}

func (s *startable) Control(context.Context) (postgres.Control, error) {
	return postgres.Control{Least: map[string]int{"max_connections": 70}}, nil
}

func (s *startable) Directory() DataDirectory                       { return s }
func (s *startable) SetStandby(standby bool) error                  { s.standby = standby; return nil }
func (s *startable) Check(context.Context, postgres.Settings) error { return nil }
func (s *startable) Configure(next postgres.Settings) error         { s.settings = next; return nil }
func (s *startable) Ready(context.Context) error {
	if s.ends != nil && s.ends(s.settings) {
		close(s.done)
		return errors.New("the server has ended: out of memory")
	}
	if folder := s.MissingTablespace(); folder != "" {
		close(s.done)
		return fmt.Errorf("the server has ended: directory %q does not exist", folder)
	}
	return nil
}
func (s *startable) Stop(context.Context, postgres.StopMode) {
	if !s.stuck && !Ended(s) {
		close(s.done)
	}
}
func (s *startable) LetUsIn(context.Context) error {
	s.singles++
	return s.unwillingly
}

func (s *startable) Start(context.Context, io.Writer) (Process, error) {
	s.started++
	s.done = make(chan struct{})
	return s, s.fails
}

// launch is a launcher of a server.
func launch(t *testing.T, server *startable) *Launcher {
	t.Helper()
	server.done = make(chan struct{})
	own := func() ha.HardState { return ha.HardState{Voter: "db-0.aa", Won: 3} }
	var rule ha.Rule
	return &Launcher{
		Identity: func() (certificate []byte, trusted string, identity protocol.Identity) { return },
		Name:     "db-0", Server: server, Log: slog.New(slog.DiscardHandler), HardState: own,
		Good:    LastKnownGood(filepath.Join(t.TempDir(), "good.json")),
		Wanted:  func() protocol.Config { return protocol.Config{Revision: "1"} },
		Require: func(r ha.Rule) { rule = r }, Rule: func() ha.Rule { return rule }, Flags: &Flags{},
		Status: status.New(protocol.Status{}), Post: func(machine.Event) {}, Publish: func(protocol.Role) {},
		Current: &atomic.Pointer[Server]{},
	}
}

// A server that ends with what is wanted, and with what was good, is started with PostgreSQL's defaults.
func TestAServerThatEndsWithItsConfigurationIsStartedWithoutIt(t *testing.T) {
	server := &startable{ends: func(s postgres.Settings) bool { return s.Parameters != nil }}
	l := launch(t, server)
	l.Wanted = func() protocol.Config {
		return protocol.Config{Revision: "2", Parameters: map[string]string{"huge_pages": "on"}}
	}
	if err := l.Good.store(candidate{Revision: "1", Parameters: map[string]string{"work_mem": "1MB"}}); err != nil {
		t.Fatal(err)
	}
	err := l.Start(t.Context(), machine.Command{Kind: machine.StartStandby})
	if now := l.Status.Get(); err != nil || server.started != 3 || now.ConfigRevision != revisionDefaults ||
		now.RejectedRevision != "2" || !strings.Contains(now.ConfigError, "out of memory") {
		t.Errorf("it was started %d times, and says %+v: %v", server.started, now, err)
	}
}

// A primary is stopped again, and told to let its agent in, only where that may help.
func TestOnlyWhatCanBeUndoneIsUndoneInSingleUserMode(t *testing.T) {
	for name, c := range map[string]struct {
		code    string
		kind    machine.Kind
		singles int
	}{
		"the role may not log in":             {"28000", machine.StartPrimary, 1},
		"the database takes no sessions":      {"55000", machine.StartPrimary, 1},
		"the database is gone":                {"3D000", machine.StartPrimary, 0},
		"a standby, which has it from others": {"28000", machine.StartStandby, 0},
		"it has too many clients":             {"53300", machine.StartPrimary, 0},
	} {
		server := &startable{}
		server.refuses = &pgconn.PgError{Code: c.code}
		err := launch(t, server).Start(t.Context(), machine.Command{Kind: c.kind})
		if err != nil || server.singles != c.singles || server.started != 1+c.singles {
			t.Errorf("%s: told %d times, started %d times: %v", name, server.singles, server.started, err)
		}
	}
}

// Who reads the log finds what to run where the database is gone, and what PostgreSQL has refused to undo.
func TestTheLogSaysWhatToDoAboutARefusal(t *testing.T) {
	for code, want := range map[string]string{
		"3D000": "kubectl toban psql NAME --instance db-0 --database template1 -- -c 'CREATE DATABASE postgres'",
		"28000": `role \"postgres\" does not exist`,
	} {
		server := &startable{unwillingly: errors.New(`role "postgres" does not exist`)}
		server.refuses = &pgconn.PgError{Code: code}
		l := launch(t, server)
		var words strings.Builder
		l.Log = slog.New(slog.NewTextHandler(&words, nil))
		err := l.Start(t.Context(), machine.Command{Kind: machine.StartPrimary})
		if err != nil || !strings.Contains(words.String(), want) {
			t.Errorf("%s: %v: %s", code, err, &words)
		}
	}
}

// One that does not end though it is killed is told nothing, and not started again: its start ends.
func TestAServerThatDoesNotEndIsNotToldToLetUsIn(t *testing.T) {
	server := &startable{stuck: true}
	server.refuses = &pgconn.PgError{Code: "28000"}
	l := launch(t, server)
	err := l.Start(t.Context(), machine.Command{Kind: machine.StartPrimary})
	if !errors.Is(err, ErrNoEnd) || server.singles != 0 || server.started != 1 {
		t.Errorf("told %d times, started %d times: %v", server.singles, server.started, err)
	}
	if r := l.Current.Load(); r == nil || r.Process != Process(server) || !r.Ending.Load() {
		t.Errorf("a fence would find %+v", r)
	}
	close(server.done)
	l.giveUp(l.Current.Load())
	if l.Current.Load() != nil {
		t.Error("it has ended, and is there")
	}
}

// What a server ends for that has to replay how tablespaces were made is made, one after the other.
func TestAServerIsStartedOverItsTablespaces(t *testing.T) {
	volume := t.TempDir()
	folder := filepath.Join(volume, "tablespaces")
	server := &startable{missing: []string{filepath.Join(folder, "a/one"), filepath.Join(folder, "two")}}
	l := launch(t, server)
	l.Volume = volume
	if err := l.Start(t.Context(), machine.Command{Kind: machine.StartStandby}); err != nil || server.started != 3 {
		t.Errorf("it was started %d times: %v", server.started, err)
	}
	if now := l.Status.Get(); now.ConfigError != "" || now.ConfigRevision != "1" {
		t.Errorf("it says %+v", now)
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{
		filepath.Join(folder, "file/none"), filepath.Join(volume, "data/x"), folder + "/../data/x",
	} {
		server = &startable{missing: []string{none}}
		l = launch(t, server)
		l.Volume = volume
		if err := l.Start(t.Context(), machine.Command{Kind: machine.StartStandby}); err == nil {
			t.Errorf("it makes %s", none)
		}
	}
}

// A server has its role and the rule for its commits before it runs, and is found by who may have to end it.
func TestAServerIsStartedInItsRole(t *testing.T) {
	rule := ha.Rule{Count: 1, From: []ha.Voter{"db-1.bb"}, Term: 3}
	for name, c := range map[string]struct {
		kind    machine.Kind
		closed  bool
		primary bool
	}{
		"a primary":                          {machine.StartPrimary, false, true},
		"a primary that proves itself first": {machine.StartPrimary, true, true},
		"a standby":                          {machine.StartStandby, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := &startable{}
			l := launch(t, server)
			err := l.Start(t.Context(), machine.Command{ID: 9, Kind: c.kind, Closed: c.closed, Rule: rule})
			r := l.Current.Load()
			if err != nil || r == nil || r.Run != 9 || server.started != 1 {
				t.Fatalf("%v, and %d were started: %+v", err, server.started, r)
			}
			defer r.Close()
			if server.standby == c.primary || server.settings.Standby == c.primary ||
				server.settings.Closed != c.closed || r.Standing.IsPrimary() != c.primary {
				t.Errorf("it runs as %+v, with %+v", r.Standing, server.settings)
			}
			if got := server.settings.Synchronous; c.primary && got != rule.String() {
				t.Errorf("its commits wait by %s", got)
			}
			if bound := server.settings.Least["max_connections"]; (bound == 70) == c.primary {
				t.Errorf("max_connections is at least %d", bound)
			}
		})
	}
}

func TestAServerThatDoesNotStartIsNotThere(t *testing.T) {
	server := &startable{fails: errors.New("no such program")}
	l := launch(t, server)
	err := l.Start(t.Context(), machine.Command{ID: 9, Kind: machine.StartStandby})
	if !errors.Is(err, server.fails) || l.Current.Load() != nil {
		t.Errorf("%v, and %+v is there", err, l.Current.Load())
	}
}
