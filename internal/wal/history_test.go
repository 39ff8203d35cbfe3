package wal

import "testing"

func TestATimelineBeginsWhereTheLastLineOfItsHistorySays(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		bad        bool
	}{
		"one line": {text: "1\t0/3000148\tno recovery target specified\n", want: "0/3000148"},
		"three lines and no newline": {
			text: "1\t0/3000148\tx\n\n2\t0/5000000\tx\n3\tA/FF000028\tbefore 2000-01-01", want: "A/FF000028",
		},
		"a comment at the end":                {text: "1\t0/3000148\tx\n# 2\t0/5\tx\n", want: "0/3000148"},
		"nothing":                             {want: "0/0"},
		"a line cut off":                      {text: "1\t0/3000148\tx\n2\t", bad: true},
		"a timeline of more than 32 bits":     {text: "4294967296\t0/1\tx", bad: true},
		"a position of which a half is large": {text: "1\t0/100000000\tx", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := ParseHistory(9, c.text)
			if err == nil && h.Begin().String() != c.want || (err != nil) != c.bad {
				t.Errorf("it begins at %s, %v", h.Begin(), err)
			}
		})
	}
}

func TestAHistoryLeavesItsAncestors(t *testing.T) {
	h, err := ParseHistory(7, "1\t0/5000100\tx\n3\t0/7000100\tx\n6\t0/7000200\tx\n")
	if err != nil {
		t.Fatal(err)
	}
	for timeline, want := range map[Timeline]LSN{1: 0x5000100, 3: 0x7000100, 6: 0x7000200} {
		if at, ok := h.Left(timeline); !ok || at != want {
			t.Errorf("it left timeline %d at %s, %v", timeline, at, ok)
		}
	}
	for _, timeline := range []Timeline{2, 7, 8} {
		if at, ok := h.Left(timeline); ok {
			t.Errorf("it left timeline %d, which is no ancestor, at %s", timeline, at)
		}
	}
	for from, want := range map[LSN]LSN{
		0: 0x5000100, 0x5000100: 0x5000100, 0x5000101: 0x7000100, 0x7000200: 0x7000200,
	} {
		if at, ok := h.Switch(from); !ok || at != want {
			t.Errorf("from %s on it goes on to another timeline at %s, %v", from, at, ok)
		}
	}
	if at, ok := h.Switch(0x7000201); ok {
		t.Errorf("it goes on to another timeline at %s after its own beginning", at)
	}
	for before, want := range map[LSN]Timeline{
		1: 1, 0x5000100: 1, 0x5000101: 3, 0x7000200: 6, 0x7000201: 7, MaxLSN: 7,
	} {
		if got := h.Newest(before); got != want {
			t.Errorf("the newest timeline before %s is %d, expected %d", before, got, want)
		}
	}
}

func TestHistoryNames(t *testing.T) {
	if n, ok := ParseHistoryFile(Timeline(0x2A).HistoryFile()); n != 42 || !ok {
		t.Errorf("%s is of %d, %v", Timeline(42).HistoryFile(), n, ok)
	}
	for _, name := range []string{"2A.history", "0000002a.history", "0000002A.history.old", ""} {
		if _, ok := ParseHistoryFile(name); ok {
			t.Errorf("%q is no history", name)
		}
	}
}

func TestTimelineOfAFile(t *testing.T) {
	for name, want := range map[string]Timeline{
		"0000000A.history": 10, "0000000A0000000000000009": 10, "0000000A0000000000000009.partial": 10,
		"0000000a0000000000000009": 0, "0000000A.partial": 0, "0000000A0000000000000009.00000028.backup": 0,
		"archive_status": 0, "xlogtemp.12": 0, "": 0,
	} {
		if got, ok := TimelineOf(name); got != want || ok != (want != 0) {
			t.Errorf("%q is of timeline %d, %v; expected %d", name, got, ok, want)
		}
	}
}
