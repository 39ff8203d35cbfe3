package agent

import (
	"bytes"
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"toban.dev/internal/postgres"
)

// reapLoop takes the exit status of orphans, which in a container become
// children of the process with id 1 and would stay as zombies.
func reapLoop(ctx context.Context) error {
	if os.Getpid() != 1 {
		<-ctx.Done()
		return nil
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		// At first, too: some may have ended before this program took the process over.
		postgres.Children.Strangers(zombies(os.Getpid()), func(pid int) {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // gone already: as well
		})
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		}
	}
}

// zombies are the children of a process that have ended and are not waited for
// yet (proc(5), /proc/pid/stat).
func zombies(parent int) []int {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil // only a malformed pattern is an error
	}
	var pids []int
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has gone
		}
		if pid, ok := zombieOf(text, parent); ok {
			pids = append(pids, pid)
		}
	}
	return pids
}

// zombieOf reads "pid (name) state ppid …"; the name may have any characters.
func zombieOf(stat []byte, parent int) (int, bool) {
	head, _, ok := bytes.Cut(stat, []byte(" "))
	end := bytes.LastIndexByte(stat, ')')
	if !ok || end < 0 {
		return 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 2 || string(fields[0]) != "Z" || string(fields[1]) != strconv.Itoa(parent) {
		return 0, false
	}
	pid, err := strconv.Atoi(string(head))
	return pid, err == nil
}
