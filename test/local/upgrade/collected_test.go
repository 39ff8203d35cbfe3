package upgrade_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"toban.dev/internal/postgres"
)

// The programs of the old image run with what came with them, and nothing else: each of their libraries is one that was
// collected, also of the server's processes while it works.
func TestCollectedProgramsUseNothingElse(t *testing.T) {
	for _, major := range []int{15, 17} {
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			old := collected(t, major)
			folder, err := filepath.EvalSymlinks(formerFolder(t, major))
			must(t, err)
			for _, program := range []string{
				"postgres", "pg_ctl", "pg_controldata", "pg_resetwal", "initdb", "pg_dump", "psql",
			} {
				out, err := exec.Command(filepath.Join(old.Dir, program), "--version").CombinedOutput()
				if err != nil || !strings.Contains(string(out), old.Version) {
					t.Errorf("%s: %v: %s", program, err, out)
				}
			}
			i := newInstance(t, major, "")
			i.start(old, i.Data.Path())
			i.fill()
			i.do("shop", "set jit_above_cost = 0;\nselect count(*) from orders")
			conn, err := i.dial("shop")
			must(t, err)
			defer conn.Close(t.Context())
			_, err = conn.Exec(t.Context(), "select hstore('a', 'b'), to_tsvector('english', 'words')")
			must(t, err)
			var pid int
			must(t, conn.QueryRow(t.Context(), "select pg_backend_pid()").Scan(&pid))
			usesOnly(t, pid, folder)
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err != nil || strings.TrimSpace(string(name)) != "postgres" {
				t.Errorf("its process is called %q, %v: nobody would find what is left of it", name, err)
			}
		})
	}
}

// usesOnly fails where a process has code from outside of a folder.
func usesOnly(t *testing.T, pid int, folder string) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	must(t, err)
	libraries := 0
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") || !strings.Contains(fields[1], "x") {
			continue
		}
		if libraries++; !strings.HasPrefix(fields[5], folder+"/") {
			t.Errorf("the server has %s", fields[5])
		}
	}
	if libraries < 10 {
		t.Errorf("the server has only %d libraries:\n%s", libraries, maps)
	}
}

// An instance whose data is of the former version does not start it, and copies that of the new primary.
func TestAnInstanceWithDataOfTheFormerVersionCopies(t *testing.T) {
	h, primary := newHouse(t), newInstance(t, 17, "")
	h.serve(primary, primary.Programs)
	session, err := primary.Connect(t.Context())
	must(t, err)
	defer session.Close()
	must(t, session.EnsureReplication(t.Context()))
	primary.do("postgres", "create table kept as select generate_series(1, 1000) n")
	other := newInstance(t, 15, "")
	other.Programs = primary.Programs
	for _, file := range []string{postgres.FileAuthority, postgres.FileCertificate, postgres.FileKey} {
		text, err := os.ReadFile(filepath.Join(primary.Server.Run, file))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(other.Server.Run, file), text, 0o600))
	}
	must(t, other.Configure(postgres.Settings{Name: "db-1"}))
	if _, err := other.Start(t.Context(), &testLog{T: t}); err == nil {
		t.Fatal("it has started data of another version")
	}
	source := postgres.Upstream{Host: primary.Listen, Address: primary.Listen, Port: primary.Port, Name: "db-1"}
	must(t, other.Clone(t.Context(), source, func(bool) error { return nil }, &testLog{T: t}))
	if incomplete, err := other.Incomplete(); err != nil || incomplete {
		t.Fatalf("the copy is incomplete: %v, %v", incomplete, err)
	}
	stop := other.start(other.Programs, other.Data.Path())
	defer stop(syscall.SIGQUIT)
	if rows := other.ask("postgres", "select count(*) from kept"); rows != "1000" {
		t.Errorf("the copy has %s rows", rows)
	}
}
