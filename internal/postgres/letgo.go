package postgres

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// lastSessions are the sessions that are left of a server which stops fast, as they were seen from look to look.
//
// A session that ends removes its temporary tables, and waits for standbys as for any commit. A fast stop takes no such
// wait back: the signal to end is ignored by whoever ends already (die in postgres.c, PostgreSQL 15 to 18), and no
// standby can connect any more. So the server would not stop. It is the checkpointer that lets such sessions go, when
// it reads that no standby is to be waited for (SyncRepUpdateSyncStandbysDefined in syncrep.c).
//
// From then on no commit waits. A session that has written its commit and does not wait yet would tell its client that
// it is safe, and so would one that waits and has not taken the signal to end. So they are let go only when nobody is
// left who may tell a client of a commit: each one left waits, and goes on waiting though it has taken the signal.
type lastSessions struct {
	directory  DataDirectory
	postmaster int
	// may are the processes that may commit. They are listed once: a server that is stopping lets nobody else in.
	may []int
	// told are those that were sent the signal to end from here, with their standstill at the last look.
	told map[int]standstill
}

// standstill is how often a process had given up its processor when it was seen asleep in a wait, "" where it was not.
// One that has the same at two looks has not run between them.
type standstill string

// letGo lets the sessions that are left go, if none of them can tell anybody of a commit. The next start of the server
// has the file written anew.
func (l *lastSessions) letGo() error {
	if l.directory.pidFileState(l.postmaster) != "stopping" {
		return nil // it has not taken the signal to stop: it lets sessions in
	}
	pids, err := children(l.postmaster)
	if err != nil {
		return err
	}
	checkpointer, sessions, senders := sortChildren(pids)
	if l.told == nil {
		l.told = map[int]standstill{}
		l.may = slices.Concat(sessions, senders)
	}
	sessions, senders = common(l.may, sessions), common(l.may, senders)
	// A postmaster that stops tells its WAL senders to end last: only for this they are told to do so before.
	if checkpointer == 0 || len(sessions) == 0 || !l.stuck(sessions) || !l.stuck(senders) {
		return nil
	}
	if err := l.directory.waitForNoStandby(); err != nil {
		return err
	}
	if err := syscall.Kill(checkpointer, syscall.SIGHUP); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("have the checkpointer read its configuration: %w", err)
	}
	return nil
}

// stuck says that processes wait for standbys for ever: each has been sent the signal to end from here (when the
// postmaster does it is not known), has taken it, and has been in the same wait since the look before. One that had not
// begun to end would have left that wait, and tells its client nothing then (SyncRepWaitForLSN in syncrep.c).
func (l *lastSessions) stuck(pids []int) bool {
	all := true
	for _, pid := range pids {
		before, told := l.told[pid]
		if !told {
			_ = syscall.Kill(pid, syscall.SIGTERM) // one that has ended needs none
		}
		l.told[pid] = waitOf(pid)
		all = all && told && before != "" && before == l.told[pid]
	}
	return all
}

// waitOf is the standstill of a process that sleeps in a wait which may be one for standbys, with no signal to end to
// be taken. The kernel reads the state first, then the signals, then the switches (proc_pid_status in fs/proc/array.c).
func waitOf(pid int) standstill {
	text, err := os.ReadFile(procFile(pid, "status"))
	if err != nil {
		return ""
	}
	status := string(text)
	asleep := strings.HasPrefix(statusOf(status, "State"), "S")
	if !asleep || pendingSignals(status)&(1<<(uint(syscall.SIGTERM)-1)) != 0 ||
		!waitsForStandbys(title(pid)) && !waitsForEvents(pid) {
		return ""
	}
	return standstill(statusOf(status, "voluntary_ctxt_switches") + " " +
		statusOf(status, "nonvoluntary_ctxt_switches"))
}

// waitsForEvents says that a process sleeps in epoll_wait(2). By its title a session says for what it waits, unless it
// has update_process_title = off. Where a session may not be interrupted it sleeps for standbys so, and for locks
// otherwise: it may have written its commit, and be kept from its wait for standbys by a lock.
func waitsForEvents(pid int) bool {
	text, err := os.ReadFile(procFile(pid, "wchan"))
	return err == nil && (bytes.Contains(text, []byte("epoll")) || bytes.Contains(text, []byte("ep_poll")))
}

// sortChildren are the processes of a server that stops: its checkpointer, 0 for none, those that may commit, and of
// them, apart, those that the postmaster does not tell to end before. Processes that no commit is made by are left out.
func sortChildren(pids []int) (checkpointer int, sessions, senders []int) {
	for _, pid := range pids {
		switch name := title(pid); {
		case isCheckpointer(name):
			checkpointer = pid
		case isIOWorker(name) || sendsOnly(name):
		case isSender(name):
			senders = append(senders, pid)
		default:
			sessions = append(sessions, pid)
		}
	}
	return checkpointer, sessions, senders
}

// common are those of a list that are in another one, too.
func common(list, other []int) []int {
	return slices.DeleteFunc(slices.Clone(list), func(pid int) bool { return !slices.Contains(other, pid) })
}

// waitForNoStandby has no commit wait for standbys: the last line about a parameter counts.
func (d DataDirectory) waitForNoStandby() error {
	const line = "synchronous_standby_names = ''\n"
	path := filepath.Join(d.Path(), "postgresql.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("have no commit wait: %w", err)
	}
	if bytes.HasSuffix(text, []byte("\n"+line)) {
		return nil
	}
	return WriteFile(path, append(text, line...), 0o600)
}

var (
	// waiting is the end of the title of a session that waits for standbys (SyncRepWaitForLSN in syncrep.c).
	waiting = regexp.MustCompile(` waiting for [0-9A-F]+/[0-9A-F]+$`)
	// sending is the title of a WAL sender that streams and has no database, so that it takes no SQL either: after its
	// kind come its user and its client's address. With a database there is one word more.
	sending = regexp.MustCompile(
		`^postgres: \S+ walsender [^ ]+ (\[local\]|[^ ]+\(\d+\)) streaming [0-9A-F]+/[0-9A-F]+$`)
)

func waitsForStandbys(title string) bool { return waiting.MatchString(title) }

func sendsOnly(title string) bool { return sending.MatchString(title) }

// isSender says so of the title of a WAL sender. That of a session whose user has this name begins alike.
func isSender(title string) bool {
	words := strings.Fields(title)
	return len(words) > 3 && words[0] == "postgres:" && words[2] == "walsender"
}

// isCheckpointer says so of a title, "postgres: NAME: checkpointer". That of a session has more words.
func isCheckpointer(title string) bool {
	words := strings.Fields(title)
	return len(words) == 3 && words[0] == "postgres:" && words[2] == "checkpointer"
}
