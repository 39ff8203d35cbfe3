package postgres

import (
	"os"
	"regexp"
	"strings"
)

// forgottenLooks is at how many looks in a row a checkpointer has to be idle, to be one that nobody ends.
const forgottenLooks = 7

// forgotten is a checkpointer that nobody ends. A server that is told to stop fast while it recovers from the crash of
// one of its processes never stops: the postmaster waits for the end of its checkpointer, and has not told that to end
// (PostmasterStateMachine in postmaster.c, PM_WAIT_BACKENDS with FatalError, PostgreSQL 15 to 17). There is nothing to
// stop in order then: what such a server has is recovered at its next start in any case.
type forgotten struct {
	pid int
	// switches are how often it has given up its processor, looks at how many looks that was the same.
	switches string
	looks    int
}

// waitsForEver says, after some looks, that a postmaster which stops fast waits for an idle checkpointer alone. One
// that is at work, or waits for its disk, is none.
func (f *forgotten) waitsForEver(postmaster int) bool {
	pid := onlyCheckpointer(postmaster)
	text, err := os.ReadFile(procFile(pid, "status"))
	if pid == 0 || err != nil || !strings.HasPrefix(statusOf(string(text), "State"), "S") {
		*f = forgotten{}
		return false
	}
	switches := statusOf(string(text), "voluntary_ctxt_switches") + " " +
		statusOf(string(text), "nonvoluntary_ctxt_switches")
	if pid != f.pid || switches != f.switches {
		*f = forgotten{pid: pid, switches: switches}
	}
	f.looks++
	return f.looks > forgottenLooks
}

// onlyCheckpointer is the checkpointer of a postmaster that has no other processes but those which read and write for
// it, 0 for none.
func onlyCheckpointer(postmaster int) (pid int) {
	pids, err := children(postmaster)
	if err != nil {
		return 0
	}
	for _, child := range pids {
		switch name := title(child); {
		case isCheckpointer(name):
			pid = child
		case !isIOWorker(name):
			return 0
		}
	}
	return pid
}

// ioWorker is the title of a process that reads and writes for others (PostgreSQL 18).
var ioWorker = regexp.MustCompile(`^postgres: \S+ io worker( \d+)?$`)

func isIOWorker(title string) bool { return ioWorker.MatchString(title) }
