package hosts

import (
	"os"
	"path/filepath"
	"testing"
)

var two = []Entry{{"198.18.0.10", "worker0"}, {"198.18.0.11", "worker1"}}

const block = "# localkube: begin\n198.18.0.10 worker0\n198.18.0.11 worker1\n# localkube: end\n"

func TestSet(t *testing.T) {
	cases := map[string]struct {
		before  string
		entries []Entry
		after   string
	}{
		"the block goes to the end":        {"127.0.0.1 localhost\n", two, "127.0.0.1 localhost\n" + block},
		"a missing last newline is added":  {"127.0.0.1 localhost", two, "127.0.0.1 localhost\n" + block},
		"setting it again changes nothing": {"127.0.0.1 localhost\n" + block, two, "127.0.0.1 localhost\n" + block},
		"lines after the block are kept":   {"a\n" + block + "b\n", nil, "a\nb\n"},
		"the block changes size": {
			"a\n" + block, two[:1], "a\n# localkube: begin\n198.18.0.10 worker0\n# localkube: end\n",
		},
		"several blocks become none":             {block + "a\n" + block, nil, "a\n"},
		"without its end only the marker goes":   {"# localkube: begin\na\n", nil, "a\n"},
		"an empty file":                          {"", two, block},
		"an untouched file is returned as it is": {"a\nb", nil, "a\nb"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Set(c.before, c.entries); got != c.after {
				t.Errorf("got:\n%s\nwant:\n%s", got, c.after)
			}
		})
	}
}

func TestUpdateUndoesItself(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hosts")
	const original = "127.0.0.1 localhost\n"
	if err := os.WriteFile(path, []byte(original), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, entries := range [][]Entry{two, nil} {
		if err := Update(path, entries); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != original {
		t.Errorf("set and unset again, the file is:\n%s", got)
	}
}
