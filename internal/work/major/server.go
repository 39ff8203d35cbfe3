package major

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"toban.dev/internal/postgres"
	"toban.dev/internal/wal"
)

// command makes a command of one of the programs, which does not outlive this process, and says everything in English.
func (u *upgrade) command(ctx context.Context, p postgres.Programs, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.Dir, name), args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "LANGUAGE=C")
	cmd.Stdout, cmd.Stderr = u.Log, u.Log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// run runs a command to its end on a thread of its own, by whose end the kernel tells that of this process.
func (u *upgrade) run(cmd *exec.Cmd) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- postgres.Children.Run(cmd)
	}()
	if err := <-done; err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}

// control is what pg_controldata says, by label.
func (p places) control(ctx context.Context) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(p.programs.Dir, "pg_controldata"), "--pgdata", p.data)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "LANGUAGE=C")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, fmt.Errorf("pg_controldata: %w", err)
	}
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		label, value, _ := strings.Cut(line, ":")
		all[strings.TrimSpace(label)] = strings.TrimSpace(value)
	}
	return all, nil
}

// kept are the parameters of the SampleDB without which its data may not be readable, or its servers not start. Of the
// others either version may not know some. Those of extensions have a dot.
var kept = []string{"shared_preload_libraries", "max_locks_per_transaction", "maintenance_work_mem", "huge_pages"}

// safe are the settings that nothing in the data may change: no session from elsewhere, nothing that runs by itself, no
// commit that waits for others.
var safe = []string{"ssl=off", "archive_mode=off", "autovacuum=off", "jit=off", "logging_collector=off",
	"log_destination=stderr", "synchronous_standby_names=", "max_logical_replication_workers=0", "lc_messages=C"}

// least are lower bounds: pg_dump locks all relations of a database at once.
const leastLocks = 1024

// configure writes the settings with which a server of the upgrade runs, outside its data, and returns the options that
// have it use them.
func (u *upgrade) configure(p places, more string) (options string, err error) {
	if err := os.MkdirAll(p.config, 0o700); err != nil {
		return "", fmt.Errorf("make the folder of the settings: %w", err)
	}
	files := map[string]string{
		"postgresql.conf": postgres.ConfigText(u.parameters(p.programs.Major)),
		// Nobody else gets at the socket: its folder is ours alone, and so is the socket.
		"pg_hba.conf":   "local all all trust\n",
		"pg_ident.conf": "",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.config, name), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write the settings: %w", err)
		}
	}
	words := []string{"-c config_file=" + filepath.Join(p.config, "postgresql.conf"),
		"-c hba_file=" + filepath.Join(p.config, "pg_hba.conf"),
		"-c ident_file=" + filepath.Join(p.config, "pg_ident.conf")}
	for _, setting := range safe {
		words = append(words, "-c "+setting)
	}
	return strings.TrimSpace(strings.Join(words, " ") + " " + more), nil
}

// parameters are those of a server of the upgrade.
func (u *upgrade) parameters(major int) map[string]string {
	all := map[string]string{
		"wal_level": "logical", "max_replication_slots": "100", "max_wal_senders": "10",
		"max_locks_per_transaction": strconv.Itoa(leastLocks),
	}
	if major >= 18 {
		all["max_active_replication_origins"] = "100"
	}
	for name, value := range u.Parameters {
		name = strings.ToLower(name)
		if slices.Contains(kept, name) || strings.Contains(name, ".") {
			all[name] = value
		}
	}
	if n, err := strconv.Atoi(all["max_locks_per_transaction"]); err != nil || n < leastLocks {
		all["max_locks_per_transaction"] = strconv.Itoa(leastLocks)
	}
	return all
}

// firstWAL is where the first WAL begins that is there.
func firstWAL(folder string) (wal.LSN, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("see where the WAL of the new data begins: %w", err)
	}
	for _, entry := range entries { // by name, and so by position
		if start, err := wal.SegmentStart(entry.Name(), wal.SegmentSize); err == nil {
			return start, nil
		}
	}
	return 0, errors.New("the new data has no WAL")
}

// tailOf is the last lines of a log.
func tailOf(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "; ")
}

// statusWriter calls a function for each thing that pg_upgrade says it does, when it begins: that is then a line
// without its end, which comes with "ok". What else it says is for a terminal.
type statusWriter struct {
	begins     func(what string)
	rest, last string
}

func (w *statusWriter) Write(p []byte) (int, error) {
	w.rest += string(p)
	for {
		line, rest, ended := strings.Cut(w.rest, "\n")
		what, ok := strings.CutSuffix(strings.TrimSpace(line), " ok")
		if what = strings.TrimSpace(what); what != "" && what != w.last && (ok || !ended) {
			w.last = what
			w.begins(what)
		}
		if !ended {
			return len(p), nil
		}
		w.rest = rest
	}
}
