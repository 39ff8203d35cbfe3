package volume

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"toban.dev/internal/ha"
)

const upperCase = `ABCDEFGHIJKLMNOPQRSTUVWXYZ\`

const fuzzHardState = `{"voter":"db-0/1a2b3c4d","ballot":{"term":7,"leader":"db-1"},"won":3,` +
	`"record":{"term":7,"version":2,"now":{"voters":["db-0/1a2b3c4d","db-1/00000001"],"acknowledgements":2}},` +
	`"holding":6,"newer":{"a":[1]}}`

// A hard state that is understood loses nothing when another promise is written over it: neither a promise, nor what a
// newer release has put beside.
func FuzzHardState(f *testing.F) {
	f.Add([]byte(fuzzHardState), uint64(8))
	f.Add([]byte(`{"format":1}`), uint64(1))
	f.Add([]byte(`{"voter":"x","record":null,"lineage":[{}],"won":18446744073709551615}`), uint64(0))
	f.Fuzz(func(t *testing.T, text []byte, term uint64) {
		m, err := DecodeHardState(text)
		if err != nil || bytes.ContainsAny(text, upperCase) {
			return // Go takes "Voter" for "voter"; no release writes that
		}
		same, err := EncodeHardState(text, m)
		if err != nil {
			t.Fatalf("%s is understood, and can't be written: %v", text, err)
		}
		if again, err := DecodeHardState(same); err != nil || !equal(t, again, m) {
			t.Errorf("%s becomes %s, %v", text, same, err)
		}
		next := m
		next.Ballot = ha.Ballot{Term: term, Leader: "db-2"}
		written, err := EncodeHardState(same, next)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := DecodeHardState(written); err != nil || !equal(t, again, next) {
			t.Errorf("after %s, %+v is written as %s, %v", text, next, written, err)
		}
		if unknown := []byte(`"newer":`); bytes.Contains(same, unknown) && !bytes.Contains(written, unknown) {
			t.Errorf("%s lacks what %s has of a newer release", written, same)
		}
	})
}

func equal(t *testing.T, a, b ha.HardState) bool {
	t.Helper()
	first, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(first, second)
}

// The notes on a volume, spoilt in whatever way: they are understood or an error, never something that is not there.
func FuzzNotes(f *testing.F) {
	f.Add([]byte(`{"lineage":[{"term":1,"lsn":0,"timeline":1}],` +
		`"begins":{"term":0,"lsn":83886080,"timeline":2},"newest":4}`))
	f.Add([]byte(`{"ids":["a","b"]}`))
	f.Add([]byte(`[{"term":1,"lsn":0,"timeline":1}]`))
	f.Add([]byte("null"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		volume := t.TempDir()
		write := func(path string) {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(preparedFile(volume))
		if p, err := ReadPrepared(volume); err == nil {
			if p == nil {
				t.Fatal("a note that is there is none")
			}
			if err := p.Write(volume); err != nil {
				t.Error(err)
			}
		}
		other := filepath.Join(volume, "restores.json")
		write(other)
		if _, err := readTakenOver(other); err == nil && !json.Valid(text) {
			t.Errorf("%q is taken for a list of restores", text)
		}
		m := &StateStore{data: volume}
		write(filepath.Join(volume, lineageFile))
		if err := m.ReloadTermHistory(); err == nil && !json.Valid(text) {
			t.Errorf("%q is taken for a term history", text)
		}
	})
}
