package crowd

import "testing"

func TestWhatAProcessTook(t *testing.T) {
	for name, c := range map[string]struct{ stat, command, kind string }{
		"an agent":          {"42 (toban) S 1 1 1 0 -1 0 1 0 0 0 30 12 0 0 2 0 9 0 7", "/opt/toban agent", Agents},
		"the operator":      {"42 (toban) S 1 1 1 0 -1 0 1 0 0 0 30 12 0 0 2 0 9 0 7", "/toban operator --x", Operator},
		"with a ) in it":    {"42 (a) b) S 1 1 1 0 -1 0 1 0 0 0 30 12 0 0 2 0 9 0 7", "", Everything},
		"a server":          {"42 (postgres) S 1 1 1 0 -1 0 1 0 0 0 30 12 0 0 2 0 9 0 7", "postgres: app", Servers},
		"what runs servers": {"42 (containerd-shim) S 1 1 1 0 -1 0 1 0 0 0 30 12 0 0 2 0 9 0 7", "", Nodes},
	} {
		id, p, ok := parseStat(c.stat, c.command)
		if !ok || id != "42@7" || p.kind != c.kind || p.ticks != 42 {
			t.Errorf("%s: %q %+v %v", name, id, p, ok)
		}
	}
	if _, _, ok := parseStat("42 (toban) S 1", ""); ok {
		t.Error("a line that is cut short is read")
	}
	if n := parseForks("cpu 1 2\nprocesses 1234\nprocs_running 1\n"); n != 1234 {
		t.Errorf("%d processes were made", n)
	}
}
