package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Table is a directory of records, one file per process.
type Table struct {
	Dir string
	// Lock, if set, is held open by a spawned process until it is recorded and
	// runs. A lock that whoever starts processes holds on it is thus not
	// released by their death before nothing is half started any more.
	Lock *os.File
}

// Start runs what spec says and returns once the program runs; if ctx is done
// before that, the program will not run. If a process of that name is alive
// already it does nothing.
func (t Table) Start(ctx context.Context, spec Spec) error {
	if record, err := t.Get(spec.Name); err != nil || record.Alive() {
		return err
	}
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return fmt.Errorf("make room for the records of processes: %w", err)
	}
	log, err := openLog(spec.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	request, err := t.request(spec)
	if err != nil {
		return err
	}
	defer request.Close()
	report, reportWrite, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	defer report.Close()
	command := t.command(log, request, reportWrite)
	err = command.Start()
	_ = reportWrite.Close() // the report ends when nobody has this end open any more
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Reaped here while this program lives, and by init after that.
	go command.Wait() //nolint:errcheck // how it ended is in its log
	if err := awaitExec(ctx, report, spec.Name); err != nil {
		_ = command.Process.Kill() // unless it has ended by itself
		return err
	}
	return nil
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the log's directory: %w", err)
	}
	log, err := os.OpenFile(path, //nolint:gosec // users who are not root read logs too
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	return log, nil
}

// request is what the spawned process reads: see become.
func (t Table) request(spec Spec) (*os.File, error) {
	request, err := json.Marshal(struct {
		Spec
		Record string
	}{spec, t.path(spec.Name)})
	if err != nil {
		return nil, err
	}
	return memoryFile(request)
}

// command is that by which this program runs itself: see Spawned.
func (t Table) command(log, request, report *os.File) *exec.Cmd {
	command := exec.Command("/proc/self/exe", SpawnCommand)
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{request, report} // specFD, errorFD
	if t.Lock != nil {
		command.ExtraFiles = append(command.ExtraFiles, t.Lock) // lockFD
	}
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return command
}

func memoryFile(content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("spec", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	file := os.NewFile(uintptr(fd), "spec")
	_, err = file.Write(content)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("write a file in memory: %w", err)
	}
	return file, nil
}

// Get returns the record of name. A name without one gets a record of nobody,
// who is not alive.
func (t Table) Get(name string) (Record, error) {
	data, err := os.ReadFile(t.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("read the record of %s: %w", name, err)
	}
	var record Record
	if err := json.Unmarshal(data, &record); err != nil {
		return Record{}, fmt.Errorf("read the record of %s: %w", name, err)
	}
	return record, nil
}

// List returns every record, by name.
func (t Table) List() ([]Record, error) {
	paths, err := filepath.Glob(t.path("*"))
	if err != nil {
		return nil, err
	}
	records := make([]Record, 0, len(paths))
	for _, path := range paths {
		record, err := t.Get(strings.TrimSuffix(filepath.Base(path), ".json"))
		if err != nil {
			return nil, err
		}
		records = append(records, record)
	}
	return records, nil
}

// Stop ends the process called name and forgets it. It asks first and is
// patient for grace; with no grace it kills at once.
func (t Table) Stop(ctx context.Context, name string, grace time.Duration) error {
	record, err := t.Get(name)
	if err != nil {
		return err
	}
	if grace > 0 {
		if err := record.Signal(unix.SIGTERM); err != nil {
			return err
		}
		awaitEnd(ctx, record.Identity, grace)
	}
	if err := record.Signal(unix.SIGKILL); err != nil {
		return err
	}
	if !awaitEnd(ctx, record.Identity, 10*time.Second) {
		return fmt.Errorf("%s (process %d) is still there after SIGKILL: it may hang in a system call",
			name, record.PID)
	}
	if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}

func awaitEnd(ctx context.Context, id Identity, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); id.Alive(); {
		if time.Now().After(deadline) || ctx.Err() != nil {
			return false
		}
		time.Sleep(5 * time.Millisecond)
	}
	return true
}

func (t Table) path(name string) string { return filepath.Join(t.Dir, name+".json") }

// Tail returns the last lines of a log, to show why its program has ended.
func Tail(path string, lines int) string {
	const enough = 16 << 10
	file, err := os.Open(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > enough {
		file.Seek(-enough, io.SeekEnd) //nolint:errcheck // then it is read from the start
	}
	data, _ := io.ReadAll(io.LimitReader(file, enough))
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
