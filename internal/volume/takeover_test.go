package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/internal/ha"
	"toban.dev/internal/postgres"
)

// volume is one with data and a hard state of term 7, and a restore that is prepared where a file says so.
func volume(t *testing.T, prepared bool) string {
	t.Helper()
	volume := t.TempDir()
	data := postgres.DataDirectory{Volume: volume}
	state := filepath.Join(volume, folderState)
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700),
			os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(data.Path(), "PG_VERSION"), "old")
	write(filepath.Join(state, memoryFile), `{"voter":"db-0.a","ballot":{"term":7,"leader":"db-0"},"won":7}`)
	if prepared {
		write(filepath.Join(restoredData(volume), "PG_VERSION"), "new")
		p := Prepared{
			InPlace: "oops", TermHistory: []ha.TermStart{{Term: 3, Timeline: 1}},
			Begins: ha.TermStart{LSN: 500, Timeline: 2}, Newest: 9,
		}
		if err := p.Write(volume); err != nil {
			t.Fatal(err)
		}
	}
	return volume
}

func content(path ...string) string {
	text, _ := os.ReadFile(filepath.Join(path...))
	return string(text)
}

// checkTakenOver checks that the restored data leads, and that the old is aside.
func checkTakenOver(t *testing.T, volume string) {
	t.Helper()
	data := postgres.DataDirectory{Volume: volume}.Path()
	m, err := OpenStateStore("db-0", filepath.Join(volume, folderState), data)
	if err != nil {
		t.Fatal(err)
	}
	now := m.Get()
	if now.Ballot.Term <= 7+ha.RestoreTerms || now.Won != now.Ballot.Term || now.Ballot.Leader != "db-0" ||
		now.Voter == "db-0.a" || len(now.Configuration.Voters()) != 1 {
		t.Errorf("it remembers %+v", now)
	}
	if l := now.TermHistory; len(l) != 2 || l[0].Term != 3 ||
		l[1] != (ha.TermStart{Term: now.Won, LSN: 500, Timeline: 2}) {
		t.Errorf("its term history is %v", l)
	}
	if content(data, "PG_VERSION") != "new" || content(volume, "before-oops/data/PG_VERSION") != "old" ||
		content(volume, "before-oops", memoryFile) == "" {
		t.Errorf("its data is %q, that before %q",
			content(data, "PG_VERSION"), content(volume, "before-oops/data/PG_VERSION"))
	}
}

// Wherever a take-over is cut short, the next agent brings it to the same end, and the one after that leaves it alone.
func TestATakeOverThatIsCutShortGoesOn(t *testing.T) {
	done := filepath.Join(folderState, "restores.json")
	for name, cut := range map[string]func(volume string) error{
		"nowhere": func(string) error { return nil },
		"before anything moved": func(volume string) error {
			return os.Mkdir(filepath.Join(volume, "before-oops.unfinished"), 0o700)
		},
		"with the data aside": func(volume string) error {
			aside := filepath.Join(volume, "before-oops.unfinished")
			p := Prepared{
				InPlace: "oops", TermHistory: []ha.TermStart{{Term: 3, Timeline: 1}},
				Begins: ha.TermStart{LSN: 500, Timeline: 2}, Newest: 7 + ha.RestoreTerms,
			}
			return errors.Join(p.Write(volume), os.Mkdir(aside, 0o700),
				os.Rename(postgres.DataDirectory{Volume: volume}.Path(), filepath.Join(aside, "data")))
		},
		"with all of it aside": func(volume string) error {
			p, err := ReadPrepared(volume)
			return errors.Join(err, setAside(volume, "db-0", filepath.Join(volume, "before-oops"), p))
		},
		"before it was noted": func(volume string) error {
			return errors.Join(takeOver(volume, "db-0", Due{ID: "oops"}), os.Remove(filepath.Join(volume, done)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			volume, oops := volume(t, true), Due{ID: "oops"}
			if err := errors.Join(cut(volume), takeOver(volume, "db-0", oops)); err != nil {
				t.Fatal(err)
			}
			checkTakenOver(t, volume)
			before := content(volume, folderState, memoryFile)
			if err := errors.Join(takeOver(volume, "db-0", oops), takeOver(volume, "db-0", Due{})); err != nil {
				t.Fatal(err)
			}
			if after := content(volume, folderState, memoryFile); after != before {
				t.Errorf("it was done again: %s, then %s", before, after)
			}
		})
	}
}

func TestNothingIsSetAsideForRestoredDataThatIsGone(t *testing.T) {
	volume := volume(t, true)
	if err := os.RemoveAll(restoredData(volume)); err != nil {
		t.Fatal(err)
	}
	if err := takeOver(volume, "db-0", Due{ID: "oops"}); err == nil {
		t.Error("it was taken over")
	}
	if content((postgres.DataDirectory{Volume: volume}).Path(), "PG_VERSION") != "old" ||
		content(volume, folderState, memoryFile) == "" {
		t.Error("the data is not where it was")
	}
}

func TestWhoHasNoRestoredDataForgetsWhatItHasPromised(t *testing.T) {
	volume := volume(t, false)
	if err := takeOver(volume, "db-0", Due{ID: "oops"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(volume, folderState, memoryFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its hard state is still there: %v", err)
	}
	if data := (postgres.DataDirectory{Volume: volume}).Path(); content(data, "PG_VERSION") != "old" {
		t.Error("its data is gone: a rewind may do")
	}
}

// checkSurvived checks that a survivor has its data and its term history, and is another voter: the only one of a
// quorum that nobody has known, who leads nothing yet and elects itself in a term that is far from those of the former
// quorum.
func checkSurvived(t *testing.T, volume string) ha.Voter {
	t.Helper()
	store, err := Read(volume, "db-0")
	if err != nil {
		t.Fatal(err)
	}
	m := store.Get()
	if m.Ballot != (ha.Ballot{Term: 7 + ha.RestoreTerms}) || m.Won != 0 || m.Voter == "db-0.a" ||
		!m.Configuration.Elects(map[ha.Voter]bool{m.Voter: true}, false) || len(m.Configuration.Voters()) != 1 {
		t.Errorf("it remembers %+v", m)
	}
	data := content(postgres.DataDirectory{Volume: volume}.Path(), "PG_VERSION")
	if len(m.TermHistory) != 1 || data != "old" {
		t.Errorf("its term history is %v, its data %q", m.TermHistory, data)
	}
	if aside := content(volume, folderState, memoryFile+".before-promoted"); !strings.Contains(aside, "db-0.a") {
		t.Errorf("its former hard state is %q", aside)
	}
	return m.Voter
}

func TestTheSurvivorElectsItself(t *testing.T) {
	survivor := Due{ID: "promoted", Survivor: true}
	for name, cut := range map[string]func(volume string) error{
		"nowhere":                   func(string) error { return nil },
		"with the hard state aside": func(volume string) error { return forget(volume, "promoted") },
		"with a new hard state": func(volume string) error {
			err := forget(volume, "promoted")
			_, begun := Read(volume, "db-0")
			return errors.Join(err, begun)
		},
		"before it was noted": func(volume string) error {
			return errors.Join(takeOver(volume, "db-0", survivor), os.Remove(takenOverFile(volume)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			volume := volume(t, false)
			former, err := Read(volume, "db-0")
			if err == nil {
				err = former.SetTermHistory([]ha.TermStart{{Term: 3, Timeline: 1}})
			}
			if err := errors.Join(err, cut(volume), takeOver(volume, "db-0", survivor)); err != nil {
				t.Fatal(err)
			}
			voter := checkSurvived(t, volume)
			if err := takeOver(volume, "db-0", survivor); err != nil {
				t.Fatal(err)
			}
			if again := checkSurvived(t, volume); again != voter {
				t.Errorf("it was done again: it was %s, and is %s", voter, again)
			}
		})
	}
}

// A new volume of the instance that has survived once is as any new volume.
func TestANewVolumeOfTheSurvivorIsNew(t *testing.T) {
	volume := t.TempDir()
	if err := os.MkdirAll(StateFolder(volume), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := takeOver(volume, "db-0", Due{ID: "promoted", Survivor: true}); err != nil {
		t.Fatal(err)
	}
	store, err := Read(volume, "db-0")
	if err != nil {
		t.Fatal(err)
	}
	if m := store.Get(); m.Ballot.Term != 0 || m.Configuration.Version != 0 {
		t.Errorf("it remembers %+v", m)
	}
}

// With the data from before go its tablespaces, and nothing that is anybody else's.
func TestWhatWasThereBeforeGoesWithItsTablespaces(t *testing.T) {
	volume, elsewhere := t.TempDir(), t.TempDir()
	data, old := postgres.DataDirectory{Volume: volume}.Path(), filepath.Join(volume, "before-oops/data")
	space := func(path string, links ...string) {
		t.Helper()
		err := errors.Join(os.MkdirAll(filepath.Join(path, "PG_17_1/5"), 0o700),
			os.WriteFile(filepath.Join(path, "PG_17_1/5/1"), []byte("rows"), 0o600))
		for _, link := range links {
			err = errors.Join(err, os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(path, link))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	link := func(data, oid string) string { return filepath.Join(data, "pg_tblspc", oid) }
	space(filepath.Join(volume, "tablespaces/1"), link(old, "1"))
	space(filepath.Join(volume, "mine"), link(old, "2"))
	space(filepath.Join(elsewhere, "outside"), link(old, "3"))
	space(filepath.Join(volume, "both"), link(old, "4"), link(data, "4"))
	space(filepath.Join(volume, "tablespaces-oops/1"), link(data, "1"))
	if err := errors.Join(os.Symlink(filepath.Join(volume, "gone"), link(old, "5")),
		os.WriteFile(filepath.Join(volume, "mine/notes"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	removed, err := removeBefore(volume, "")
	if err != nil || len(removed) != 1 {
		t.Fatalf("removed %v, %v", removed, err)
	}
	for path, there := range map[string]bool{
		volume + "/before-oops": false, volume + "/tablespaces/1": false, volume + "/mine/PG_17_1": false,
		volume + "/mine/notes": true, elsewhere + "/outside/PG_17_1/5/1": true, volume + "/both/PG_17_1/5/1": true,
		volume + "/tablespaces-oops/1/PG_17_1/5/1": true,
	} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s is there: %v", path, err == nil)
		}
	}
	if removed, err := removeBefore(volume, ""); err != nil || len(removed) > 0 {
		t.Errorf("again: %v, %v", removed, err)
	}
}

// After an upgrade, the data of before and that of now have the same tablespaces, with a folder of each version.
func TestTablespacesOfTwoVersionsGoByVersion(t *testing.T) {
	volume := t.TempDir()
	space := filepath.Join(volume, "tablespaces/1")
	for data, version := range map[string]string{
		postgres.DataDirectory{Volume: volume}.Path(): "18", filepath.Join(volume, "before-up/data"): "15",
	} {
		links := filepath.Join(data, "pg_tblspc")
		if err := errors.Join(os.MkdirAll(links, 0o700), os.MkdirAll(filepath.Join(space, "PG_"+version+"_1"), 0o700),
			os.Symlink(space, filepath.Join(links, "1")),
			os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte(version+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if removed, err := removeBefore(volume, ""); err != nil || len(removed) != 1 {
		t.Fatalf("removed %v, %v", removed, err)
	}
	for name, there := range map[string]bool{"PG_15_1": false, "PG_18_1": true} {
		if _, err := os.Stat(filepath.Join(space, name)); (err == nil) != there {
			t.Errorf("%s is there: %v", name, err == nil)
		}
	}
}
