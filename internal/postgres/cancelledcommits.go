package postgres

import (
	"bytes"
	"io"
	"regexp"
	"sync"
	"sync/atomic"
)

// cancelledCommit is the line that a server logs when a commit is cancelled that waits for standbys (SyncRepWaitForLSN
// in syncrep.c of PostgreSQL 15 to 19), with its code where log_error_verbosity is verbose. lc_messages is ours, so
// that it is in English. A tab begins what goes on from the line before.
var cancelledCommit = regexp.MustCompile(
	`^(?:[^\t].*)?WARNING:  (?:\w{5}: )?canceling wait for synchronous replication due to user request$`)

// longestLine is how much of a line is looked at, in bytes: whoever logs a long one does not fill the memory.
const longestLine = 4 << 10

// CommitLog passes a server's log on, and counts in it the commits that were cancelled while they waited for standbys:
// their clients were told that they have succeeded, though they may be on the primary alone. Who may write to the log
// can make it count too many: RAISE WARNING has the same words. One whose log_min_messages is above warning logs none.
type CommitLog struct {
	to    io.Writer
	count atomic.Int64

	mutex sync.Mutex // several programs may write at once
	line  []byte     // what there is of the last line
}

// NewCommitLog passes on to a writer, and goes on to count from what was counted before.
func NewCommitLog(to io.Writer, before int64) *CommitLog {
	l := &CommitLog{to: to}
	l.count.Store(before)
	return l
}

// Cancelled is how many there were.
func (l *CommitLog) Cancelled() int64 { return l.count.Load() }

// Write passes on what a server writes.
func (l *CommitLog) Write(p []byte) (int, error) {
	l.look(p)
	return l.to.Write(p)
}

// look counts the lines that p ends.
func (l *CommitLog) look(p []byte) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			l.keep(p)
			return
		}
		l.keep(p[:end])
		if bytes.HasSuffix(l.line, []byte("request")) && cancelledCommit.Match(l.line) {
			l.count.Add(1)
		}
		l.line, p = l.line[:0], p[end+1:]
	}
}

// keep adds to the line. The end of one that is too long is not looked at.
func (l *CommitLog) keep(p []byte) {
	l.line = append(l.line, p[:min(len(p), longestLine-len(l.line))]...)
}
