package running

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"toban.dev/internal/agent/status"
	"toban.dev/internal/postgres"
	"toban.dev/internal/protocol"
)

func TestWhatIsSaidOfTheConfiguration(t *testing.T) {
	refused := &postgres.RejectedError{Words: "no such parameter"}
	for name, c := range map[string]struct {
		happens             func(r *configReport)
		runs, rejected, why string
	}{
		"it started with the wanted one": {
			func(r *configReport) { r.remember(candidate{Revision: "2"}, "2", nil) }, "2", "", "",
		},
		"it started with the one before": {
			func(r *configReport) { r.remember(candidate{Revision: "1"}, "2", fmt.Errorf("start: %w", refused)) },
			"1", "2", "no such parameter",
		},
		"PostgreSQL did not say why": {
			func(r *configReport) { r.remember(candidate{Revision: "1"}, "2", endedError{errors.New("killed")}) },
			"1", "2", "killed",
		},
		"PostgreSQL did not answer": {
			func(r *configReport) { r.remember(candidate{Revision: "1"}, "2", errors.New("too late")) }, "1", "", "",
		},
		"another is refused while it runs": {
			func(r *configReport) { r.refuse("3", refused) }, "1", "3", "no such parameter",
		},
		"it runs with the wanted one": {
			func(r *configReport) { r.refuse("3", refused); r.accept("4", "4") }, "4", "", "",
		},
		"it runs on while a refused is asked": {
			func(r *configReport) { r.refuse("3", refused); r.accept("1", "3") }, "1", "3", "no such parameter",
		},
	} {
		t.Run(name, func(t *testing.T) {
			board := status.New(protocol.Status{ConfigRevision: "1"})
			r := &configReport{status: board, log: slog.New(slog.DiscardHandler)}
			c.happens(r)
			if s := board.Get(); s.ConfigRevision != c.runs || s.RejectedRevision != c.rejected ||
				s.ConfigError != c.why {
				t.Errorf("it runs with %q; %q is refused: %s", s.ConfigRevision, s.RejectedRevision, s.ConfigError)
			}
			if c.rejected != "" && !r.rejected(c.rejected) {
				t.Error("it does not know what was refused")
			}
		})
	}
}

func TestTheLastKnownGoodConfigurationIsKept(t *testing.T) {
	file := LastKnownGood(filepath.Join(t.TempDir(), "good.json"))
	if _, ok := file.load(); ok {
		t.Error("there is one from the first")
	}
	want := candidate{Revision: "2", Parameters: map[string]string{"work_mem": "5MB"}, HBA: []string{"host all"}}
	if err := file.store(want); err != nil {
		t.Fatal(err)
	}
	if got, ok := file.load(); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, %v", got, ok)
	}
	if err := os.WriteFile(string(file), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := file.load(); ok {
		t.Errorf("half of one is %+v", got)
	}
}

// A server that does not start with what is wanted is started with what it ran with, and at last
// with nothing but defaults.
func TestTheConfigurationsToTry(t *testing.T) {
	for name, c := range map[string]struct {
		good string
		want []string
	}{
		"it has never run":      {"", []string{"2", "defaults"}},
		"it ran with another":   {"1", []string{"2", "1", "defaults"}},
		"it ran with that, too": {"2", []string{"2", "defaults"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := LastKnownGood(filepath.Join(t.TempDir(), "good.json"))
			if c.good != "" {
				if err := file.store(candidate{Revision: c.good}); err != nil {
					t.Fatal(err)
				}
			}
			config := &configuration{
				good: file, wanted: func() protocol.Config { return protocol.Config{Revision: "2"} },
			}
			var got []string
			for _, candidate := range config.candidates() {
				got = append(got, candidate.Revision)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("they are %v, want %v", got, c.want)
			}
		})
	}
}
