package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toban.dev/internal/ha"
)

func TestWhatANewerReleaseHasWrittenIsKept(t *testing.T) {
	const record = `"record":{"term":4,"version":2,"now":{"voters":["db-0.a"],"acknowledgements":1,"weight":3}}`
	for name, c := range map[string]struct {
		before string
		change func(*ha.HardState)
		want   string
	}{
		"a member that is not known": {
			`{"voter":"db-0.a","ballot":{"term":4,"leader":"db-0"},` + record +
				`,"pledge":{"until":[12345678901234567890]}}`,
			func(m *ha.HardState) { m.Ballot = ha.Ballot{Term: 5, Leader: "db-1"} },
			`{"ballot":{"term":5,"leader":"db-1"},"pledge":{"until":[12345678901234567890]},` +
				record + `,"voter":"db-0.a"}`,
		},
		"what is said of something goes with it": {
			`{"voter":"db-0.a","ballot":{"term":4,"leader":"db-0","since":"noon"},` + record + `}`,
			func(m *ha.HardState) { m.Ballot = ha.Ballot{Term: 5, Leader: "db-1"} },
			`{"ballot":{"term":5,"leader":"db-1"},` + record + `,"voter":"db-0.a"}`,
		},
		"what is known and ends does end": {
			`{"voter":"db-0.a","ballot":{"term":4,"leader":"db-0"},` + record + `,"holding":4,"more":1}`,
			func(m *ha.HardState) { m.ReadLease = 0 },
			`{"ballot":{"term":4,"leader":"db-0"},"more":1,` + record + `,"voter":"db-0.a"}`,
		},
		"what is known and begins does begin": {
			`{"voter":"db-0.a","ballot":{"term":4,"leader":"db-0"},` + record + `,"won":0}`,
			func(m *ha.HardState) { m.Won = 4 },
			`{"ballot":{"term":4,"leader":"db-0"},` + record + `,"voter":"db-0.a","won":4}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := DecodeHardState([]byte(c.before))
			if err != nil {
				t.Fatal(err)
			}
			c.change(&m)
			got, err := EncodeHardState([]byte(c.before), m)
			if err != nil || string(got) != c.want {
				t.Errorf("it becomes\n%s, want\n%s, %v", got, c.want, err)
			}
		})
	}
}

func TestTheHardStateOnTheVolumeKeepsWhatIsNotKnown(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, memoryFile)
	if err := os.WriteFile(file,
		[]byte(`{"voter":"db-0.a","ballot":{"term":4,"leader":"db-0"},"pledge":7}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for term := range uint64(3) { // also by who has read what this release wrote
		m, err := OpenStateStore("db-0", folder, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for step := range uint64(2) {
			if _, err := m.Change(
				func(m *ha.HardState) bool { m.Ballot.Term = 5 + 2*term + step; return true }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := content(file); !strings.Contains(got, `"pledge":7`) || !strings.Contains(got, `"term":10`) {
		t.Errorf("it is %s", got)
	}
}

func TestAHardStateOfANewerFormatIsRefusedAndLeftAsItIs(t *testing.T) {
	folder := t.TempDir()
	file, newer := filepath.Join(folder, memoryFile), `{"format":1,"voter":"db-0.a","ballot":"4 db-0"}`
	if err := os.WriteFile(file, []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := OpenStateStore("db-0", folder, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "the format 1") ||
		!strings.Contains(err.Error(), "run that release") {
		t.Errorf("the error is %v", err)
	}
	if content(file) != newer {
		t.Errorf("the file is %s", content(file))
	}
}
