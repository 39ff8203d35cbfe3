package volume

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"toban.dev/internal/ha"
)

func TestTheHardStateSurvives(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	m, err := OpenStateStore("db-1", folder, data)
	if err != nil || m.Get().Voter.Instance() != "db-1" {
		t.Fatalf("a new hard state is %+v, %v", m, err)
	}
	want := ha.Ballot{Term: 3, Leader: "db-1"}
	if _, err := m.Change(func(m *ha.HardState) bool { m.Ballot = want; return true }); err != nil {
		t.Fatal(err)
	}
	if err := m.SetTermHistory([]ha.TermStart{{Term: 1, Timeline: 1}, {Term: 3, LSN: 77, Timeline: 2}}); err != nil {
		t.Fatal(err)
	}
	again, err := OpenStateStore("db-1", folder, data)
	if err != nil || !reflect.DeepEqual(again.Get(), m.Get()) {
		t.Errorf("stored %+v, found %+v, %v", m.Get(), again.Get(), err)
	}
	// Another data directory has another term history, and the voter stays who it is.
	other, err := OpenStateStore("db-1", folder, t.TempDir())
	if err != nil || other.Get().Voter != m.Get().Voter || len(other.Get().TermHistory) != 0 {
		t.Errorf("with other data the hard state is %+v, %v", other.Get(), err)
	}
}

// The data is replaced, and its term history with it, while the hard state is on its way to the disk.
func TestACopyBringsItsTermHistory(t *testing.T) {
	folder, data := t.TempDir(), t.TempDir()
	m, err := OpenStateStore("db-1", folder, data)
	if err != nil {
		t.Fatal(err)
	}
	before, copied := []ha.TermStart{{Term: 1, Timeline: 1}}, []ha.TermStart{
		{Term: 1, Timeline: 1}, {Term: 2, LSN: 77, Timeline: 2},
	}
	next := m.Get()
	next.TermHistory = before
	if err := m.Put(next, true); err != nil {
		t.Fatal(err)
	}
	next.Ballot = ha.Ballot{Term: 2, Leader: "db-0"}
	m.write = func(path string, content []byte, mode os.FileMode) error {
		text, err := json.Marshal(copied)
		if err == nil {
			err = os.WriteFile(filepath.Join(data, lineageFile), text, 0o600)
		}
		return errors.Join(err, m.ReloadTermHistory(), os.WriteFile(path, content, mode))
	}
	if err := m.Put(next, false); err != nil {
		t.Fatal(err)
	}
	again, err := OpenStateStore("db-1", folder, data)
	for name, is := range map[string]ha.HardState{"it knows": m.Get(), "its disk has": again.Get()} {
		if err != nil || !reflect.DeepEqual(is.TermHistory, copied) || is.Ballot != next.Ballot {
			t.Errorf("%s %+v, %v", name, is, err)
		}
	}
}

func TestALostHardStateIsAnotherVoter(t *testing.T) {
	one, err := OpenStateStore("db-1", t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	two, err := OpenStateStore("db-1", t.TempDir(), t.TempDir())
	if err != nil || one.Get().Voter == two.Get().Voter {
		t.Errorf("the voter %s has lost its hard state and is still %s, %v", one.Get().Voter, two.Get().Voter, err)
	}
}

// A hard state that can't be read is not an empty one: an instance must not vote again.
func TestAnUnreadableHardStateIsAnError(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "memory.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := OpenStateStore("db-1", folder, t.TempDir()); err == nil {
		t.Errorf("half a hard state was taken for %+v", m.Get())
	}
}

// What waits for a term history waits for one file to be replaced and not for two, where nothing else changes.
func TestOnlyWhatChangesIsWritten(t *testing.T) {
	m, err := OpenStateStore("db-1", t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var written []string
	var fails error
	m.write = func(path string, _ []byte, _ os.FileMode) error {
		written = append(written, filepath.Base(path))
		return fails
	}
	put := func(next ha.HardState, history bool, want ...string) {
		t.Helper()
		written = nil
		if err := m.Put(next, history); !errors.Is(err, fails) || !slices.Equal(written, want) {
			t.Errorf("%v, and written is %q, not %q", err, written, want)
		}
	}
	next := m.Get()
	next.Ballot = ha.Ballot{Term: 2, Leader: "db-0"}
	put(next, false, memoryFile)
	put(next, false)
	next.TermHistory = []ha.TermStart{{Term: 1, Timeline: 1}}
	put(next, true, lineageFile)
	// A write that fails may have got there, or not: the next one is made in any case.
	later := next
	later.Ballot = ha.Ballot{Term: 3, Leader: "db-2"}
	fails = errors.New("no space left on device")
	put(later, false, memoryFile)
	fails = nil
	put(next, false, memoryFile)
	put(next, false)
}
