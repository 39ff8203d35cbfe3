package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets this test binary be spawned, as the real program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == SpawnCommand {
		Spawned()
	}
	os.Exit(m.Run())
}

func TestParseStat(t *testing.T) {
	const tail = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for name, comm := range map[string]string{
		"a plain name":          "(etcd)",
		"a name with a space":   "(tmux: server)",
		"a name with a bracket": "(a) R 1)",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat("42 " + comm + tail)
			if err != nil || got != (stat{state: 'S', start: 4711}) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	for _, bad := range []string{"", "42 etcd S", "42 (etcd) S 1 2"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestAnIdentityIsMoreThanItsNumber(t *testing.T) {
	me, err := Identify(os.Getpid())
	if err != nil || !me.Alive() {
		t.Fatalf("I am %+v (%v), alive: %v", me, err, me.Alive())
	}
	reused, rebooted := me, me
	reused.Start++
	rebooted.Boot = "another"
	for _, other := range []Identity{reused, rebooted, {}} {
		if other.Alive() {
			t.Errorf("%+v is taken for %+v", other, me)
		}
		// It would end this test if it were sent.
		if err := other.Signal(unix.SIGKILL); err != nil {
			t.Errorf("a signal to nobody: %v", err)
		}
	}
}

func TestAProcessOutlivesItsStartAndIsFoundAgain(t *testing.T) {
	table, spec := sleeper(t)
	if err := table.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	first, err := table.Get(spec.Name)
	if err != nil || !first.Alive() {
		t.Fatalf("started, it is %+v (%v)", first, err)
	}
	if err := table.Start(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if again, _ := table.Get(spec.Name); again.Identity != first.Identity {
		t.Error("a second start made a second process")
	}
	if err := table.Stop(context.Background(), spec.Name, time.Second); err != nil {
		t.Fatal(err)
	}
	if first.Alive() {
		t.Error("stopped, it still runs")
	}
	if records, _ := table.List(); len(records) != 0 {
		t.Errorf("stopped, it is still recorded: %+v", records)
	}
}

func TestAProgramThatCannotRunSaysSoAtOnce(t *testing.T) {
	table, spec := sleeper(t)
	spec.Args = []string{"/nowhere/program"}
	err := table.Start(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "/nowhere/program") {
		t.Errorf("started what does not exist: %v", err)
	}
	if record, _ := table.Get(spec.Name); record.Alive() {
		t.Error("it is recorded as alive")
	}
}

func TestAStartThatHangsCanBeCancelled(t *testing.T) {
	table, spec := sleeper(t)
	cgroup := t.TempDir() // joining it hangs, as it does when it is frozen: nobody reads this pipe
	if err := unix.Mkfifo(filepath.Join(cgroup, "cgroup.procs"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec.Cgroups = []string{cgroup}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := table.Start(ctx, spec); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	record, err := table.Get(spec.Name)
	if err != nil || record.PID == 0 {
		t.Fatalf("it did not get as far as the cgroup: %+v, %v", record, err)
	}
	if !awaitEnd(t.Context(), record.Identity, 5*time.Second) {
		t.Error("what was half started is still there")
	}
}

func TestAStartThatFailsLeavesNoFileOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would close what was forgotten
	table, spec := sleeper(t)
	startAndStop := func() error {
		err := table.Start(t.Context(), spec)
		return errors.Join(err, table.Stop(t.Context(), spec.Name, 0))
	}
	if err := startAndStop(); err != nil { // the first opens what Go itself keeps
		t.Fatal(err)
	}
	before := openFiles(t)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was) //nolint:errcheck // checked below
	failed := 0
	for more := range 12 { // so that it fails at one file after the other
		limit := unix.Rlimit{Cur: uint64(before + more), Max: was.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		err := startAndStop()
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			failed++
		}
		now := openFiles(t)
		// The process's own handle is closed when it has been reaped.
		for deadline := time.Now().Add(5 * time.Second); now > before &&
			time.Now().Before(deadline); now = openFiles(t) {
			time.Sleep(time.Millisecond)
		}
		if now > before {
			t.Errorf("%d files are open, before it were %d: %v", now, before, err)
		}
	}
	if failed < 5 {
		t.Errorf("only %d starts failed", failed)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files) - 1 // without the directory itself
}

func TestTailShowsTheLastLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(strings.Repeat("earlier\n", 5000)+"a\nb\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := Tail(path, 2); got != "a\nb" {
		t.Errorf("the last two lines are %q", got)
	}
}

func sleeper(t *testing.T) (Table, Spec) {
	t.Helper()
	dir := t.TempDir()
	table := Table{Dir: filepath.Join(dir, "records")}
	spec := Spec{Name: "sleeper", Args: []string{"/bin/sleep", "60"}, Log: filepath.Join(dir, "log")}
	t.Cleanup(func() { table.Stop(context.Background(), spec.Name, 0) }) //nolint:errcheck // best effort
	return table, spec
}
